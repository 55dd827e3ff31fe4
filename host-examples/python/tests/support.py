"""Helpers for several tests: components, stores that fail on demand, built files."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wasmtime

from lcm_engine import LcmError, MemoryStore
from lcm_engine.component import Program, load
from lcm_engine.stores import AsyncMemoryStore

from . import probe

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
NOW = 1_700_000_000_000


@functools.cache
def probe_program() -> Program:
    """Returns the compiled probe component."""
    return load(bytes(wasmtime.wat2wasm(probe.wat())), cache=False)


@functools.cache
def engine_program() -> Program:
    """Returns the compiled engine."""
    return load()


class FailingStore(MemoryStore):
    """A memory store. Each item of `commits` is for one commit: an error to raise; None: write."""

    def __init__(self, commits: Sequence[Exception | None] = ()) -> None:
        super().__init__()
        self.planned = list(commits)
        self.commits = 0

    def commit(self, guards: Any, puts: Any) -> None:
        self.commits += 1
        failure = self.planned.pop(0) if self.planned else None
        if failure is not None:
            raise failure
        super().commit(guards, puts)


class FailingAsyncStore(AsyncMemoryStore):
    """A `FailingStore` behind awaitable calls."""

    def __init__(self, commits: Sequence[Exception | None] = (), delay_seconds: float = 0) -> None:
        super().__init__(delay_seconds)
        self.inner = FailingStore(commits)


def conflict() -> LcmError:
    """Returns the error that a store raises when another writer was faster."""
    return LcmError("conflict", "injected")


def child_environment() -> dict[str, str]:
    """Returns the environment of a child process that imports the package from the sources."""
    paths = [str(HERE / "src"), str(HERE)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def temporary_folder(case: Any) -> Path:
    """Returns a folder that is removed after the test."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    return Path(folder.name)


PYTHON = sys.executable
