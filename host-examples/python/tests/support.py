"""What several tests need: programs, stores that fail on demand, the built artefacts."""

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
    """The probe component, compiled."""
    return load(bytes(wasmtime.wat2wasm(probe.wat())), cache=False)


@functools.cache
def engine_program() -> Program:
    """The engine, compiled."""
    return load()


class FailingStore(MemoryStore):
    """A memory store whose next commits do what a list says: None, or an error to raise."""

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
    """The same behind awaitable calls."""

    def __init__(self, commits: Sequence[Exception | None] = (), delay_seconds: float = 0) -> None:
        super().__init__(delay_seconds)
        self.inner = FailingStore(commits)


def conflict() -> LcmError:
    """What a store raises when another writer was faster."""
    return LcmError("conflict", "injected")


def child_environment() -> dict[str, str]:
    """The environment for a child process that imports the package from the source tree."""
    paths = [str(HERE / "src"), str(HERE)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def temporary_folder(case: Any) -> Path:
    """A folder that goes with the test."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    return Path(folder.name)


PYTHON = sys.executable
