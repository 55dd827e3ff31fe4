"""Finds, compiles and caches the component.

In: the bytes of `lcm.wasm`. Out: a compiled program that instances are made from. Compiling takes
a fraction of a second, so the result is kept on disk; nothing here calls the engine.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
import warnings
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wasmtime
from wasmtime.component import Component

from .errors import LcmError

PACKAGE = "lcm:engine"


@dataclass
class Program:
    """A compiled component, shared by all instances made from it."""

    engine: wasmtime.Engine
    component: Component
    sha256: str
    """SHA-256 of the wasm bytes, 64 hex digits."""
    interfaces: dict[str, str] = field(default_factory=dict)
    """Full name of each exported interface by its short name, `ingest` for example."""
    version: str = ""
    """Suffix of the interface names: `@` and the version of the package, or empty."""
    signatures: dict[str, Any] = field(default_factory=dict)
    """Types of functions, filled by `Instance` on first use."""


def default_wasm() -> Path:
    """Returns the path of `lcm.wasm`: `LCM_WASM`, else in the package, else in `dist/`."""
    named = os.environ.get("LCM_WASM")
    if named:
        return Path(named)
    here = Path(__file__).resolve()
    candidates = [here.with_name("lcm.wasm")]
    candidates += [folder / "dist" / "lcm.wasm" for folder in here.parents]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise LcmError("not-found", "`lcm.wasm` is not built: set LCM_WASM to its path")


def cache_folder() -> Path:
    """Returns the folder of compiled components: `LCM_CACHE_DIR`, else the user's cache folder.

    The files are machine code that is run unchecked, so only the user may be able to write them.
    """
    named = os.environ.get("LCM_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lcm-engine"


def load(wasm: bytes | str | os.PathLike[str] | None = None, cache: bool = True) -> Program:
    """Compiles these bytes or the file at this path; None: `default_wasm`."""
    if not isinstance(wasm, bytes):
        path = default_wasm() if wasm is None else Path(wasm)
        try:
            wasm = path.read_bytes()
        except OSError as error:
            raise LcmError("not-found", f"`{path}` cannot be read: {error.strerror}") from error
    engine = wasmtime.Engine()
    sha256 = hashlib.sha256(wasm).hexdigest()
    component = _compile(engine, wasm, sha256, cache)
    exports = component.type.exports(engine)
    program = Program(engine, component, sha256)
    for name in exports:
        if name.startswith(PACKAGE + "/"):
            short, at, version_number = name.removeprefix(PACKAGE + "/").partition("@")
            program.interfaces[short] = name
            program.version = at + version_number
    return program


def _compile(engine: wasmtime.Engine, wasm: bytes, sha256: str, cache: bool) -> Component:
    if not cache:
        return Component(engine, wasm)
    name = f"{sha256}-wasmtime-{version('wasmtime')}-{platform.machine()}.cwasm"
    path = cache_folder() / name
    try:
        return Component.deserialize(engine, path.read_bytes())
    except (OSError, wasmtime.WasmtimeError):
        pass  # Absent, unreadable or of another machine: compile anew.
    component = Component(engine, wasm)
    _write_beside(path, bytes(component.serialize()))
    return component


def _write_beside(path: Path, content: bytes) -> None:
    """Replaces a file atomically; a failure is a warning, because the file is a cache."""
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        warnings.warn(
            f"the compiled component cannot be cached in `{path.parent}`, so every start takes"
            f" seconds: {error.strerror}",
            stacklevel=2,
        )
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
