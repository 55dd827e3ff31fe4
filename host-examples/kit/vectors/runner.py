"""Runs the golden vectors in a host that is written in Python.

In: vector files and a host. Out: the digest of the store after the last step of each, or
`Mismatch`, and the report `dist/vectors-HOST.json`. Nothing here calls the component.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Protocol

from . import matching, shorthand
from .matching import Mismatch
from .scripted import ScriptedModel

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "tests" / "vectors"
_VECTOR_FIELDS = {"description", "config", "steps", "completions", "store_sha256"}
_STEP_FIELDS = {"call", "args", "expect", "expect_error", "note"}


class Host(Protocol):
    """The functions that a host provides for the runner. A failed call raises an error with `code`
    and `message`.

    Names of arguments and results are in snake_case; values are JSON values. An `AsyncHost` has the
    same functions, and those that call the component are coroutines.
    """

    def parameters(self, name: str) -> dict[str, bool]:
        """Returns the parameters of `interface.function`, and whether each is optional."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls `interface.function`; an absent argument gets the neutral value of its type."""

    def drive(self, arguments: dict[str, Any], offline: bool) -> Any:
        """Runs the compaction loop with `conversation`, `budget`, `options` and `now`."""

    def restart(self, config_json: str | None) -> None:
        """Drops the instance; the next gets this configuration (None: the configuration before)."""

    def sha256(self) -> str:
        """Returns the digest of the store, computed by the host; 64 hex digits."""


Step = tuple[str, Any]
"""Name of a function of `Host`, and its arguments."""


class Vector:
    """One vector that is being run."""

    def __init__(self, path: Path) -> None:
        self._vector = json.loads(path.read_text(encoding="utf-8"))
        if set(self._vector) - _VECTOR_FIELDS or not self._vector.get("steps"):
            raise Mismatch("a vector has unknown fields, or no steps")
        config = self._vector.get("config")
        self.config_json = None if config is None else shorthand.to_json(config)
        self.model = ScriptedModel(self._vector.get("completions", []))

    def play(self) -> Generator[Step, Any, str]:
        """Yields steps for the host and receives their results; returns the digest at the end."""
        results: list[Any] = []
        for index, step in enumerate(self._vector["steps"]):
            try:
                results.append((yield from self._step(step, results)))
            except Mismatch as error:
                raise Mismatch(f"step {index} ({step.get('call')}): {error}") from error
        digest: str = yield "sha256", ()
        by_engine = yield from self._call("admin.digest", None)
        if digest not in by_engine:
            raise Mismatch(f"admin.digest says {by_engine}, the store is {digest}")
        expected = self._vector.get("store_sha256")
        if not expected:
            raise Mismatch("no `store_sha256`: it is not blessed")
        if digest != expected:
            raise Mismatch(f"store is {digest}, expected {expected}")
        return digest

    def _step(self, step: dict[str, Any], results: list[Any]) -> Generator[Step, Any, Any]:
        if set(step) - _STEP_FIELDS or {"expect", "expect_error"} <= set(step):
            raise Mismatch("a step has unknown fields, or both `expect` and `expect_error`")
        wanted_error = step.get("expect_error")
        args = shorthand.references_resolved(step.get("args"), results)
        try:
            result = yield from self._perform(step["call"], args)
        except Exception as error:
            code, message = getattr(error, "code", None), getattr(error, "message", "")
            if code is None:
                raise
            if wanted_error is None:
                raise Mismatch(f"failed with {code}: {message}") from error
            matching.check(wanted_error["code"], code, "code")
            matching.check(wanted_error.get("message", message), message, "message")
            return None
        if wanted_error is not None:
            raise Mismatch(f"expected `{wanted_error['code']}`, came {matching.shorten(result)}")
        if self.model.missing:
            raise Mismatch("no scripted completion fits")
        if "expect" in step:
            matching.check(step["expect"], result, "result")
        return result

    def _perform(self, name: str, args: Any) -> Generator[Step, Any, Any]:
        if name == "restart":
            if args and set(args) != {"config"}:
                raise Mismatch("`restart` has only the argument `config`")
            yield "restart", (shorthand.to_json(args["config"]) if args else None,)
            return None
        if name in ("drive", "offline"):
            defaults = {"conversation": shorthand.CONVERSATION, "budget": 0, "options": {}}
            defaults["now"] = shorthand.NOW
            if set(args or {}) - set(defaults):
                raise Mismatch("`drive` has an unknown argument")
            return (yield "drive", (defaults | (args or {}), name == "offline"))
        return (yield from self._call(name, args))

    def _call(self, name: str, args: Any) -> Generator[Step, Any, Any]:
        parameters = yield "parameters", (name,)
        self.model.mark()
        return (yield "call", (name, shorthand.arguments(name, args, parameters)))


def run_vector(path: Path, make_host: Callable[[Vector], Host]) -> str:
    """Runs one vector in a new host and returns the digest of its store."""
    vector = Vector(path)
    host, play = make_host(vector), vector.play()
    try:
        step, arguments = next(play)
        while True:
            try:
                result = getattr(host, step)(*arguments)
            except Exception as error:
                step, arguments = play.throw(error)
            else:
                step, arguments = play.send(result)
    except StopIteration as end:
        return str(end.value)


def find(paths: Iterable[str]) -> dict[str, Path]:
    """Returns the vector files below the given paths, or all, by their names in a report."""
    files: list[Path] = []
    for path in [Path(one).resolve() for one in paths] or [VECTORS]:
        files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return {
        path.relative_to(VECTORS).as_posix() if VECTORS in path.parents else path.name: path
        for path in files
    }


def report(host: str, files: dict[str, Path], results: tuple[dict[str, Any], ...]) -> int:
    """Prints the failures and the number of passed runs, and returns the exit code.

    `results` maps names of vectors to digests, or to exceptions of failed vectors: first with a
    store that answers at once, then with a store that answers every first read with
    `would-block`. If `files` are all vectors, also writes `dist/vectors-HOST.json`.
    """
    passed: list[int] = []
    digests: dict[str, str] = {}
    for mode, of_mode in zip(("", " (would-block)"), results, strict=True):
        good = {name: digest for name, digest in of_mode.items() if isinstance(digest, str)}
        for name in of_mode.keys() - good.keys():
            print(f"FAILED {name}{mode}: {type(of_mode[name]).__name__}: {of_mode[name]}")
        passed.append(len(good))
        digests |= good
    if set(files) == set(find([])):
        document = {"host": host, "vectors": len(files), "passed": passed[0]}
        document |= {"would_block_passed": passed[1], "digests": digests}
        out = ROOT / "dist" / f"vectors-{host}.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    failed = 2 * len(files) - sum(passed)
    print(f"{sum(passed)} passed, {failed} failed")
    return 1 if failed or not files else 0


def run_all(
    host: str, paths: Iterable[str], make_host: Callable[[Vector, bool], Host]
) -> int:
    """Runs all vectors twice, then with `would-block`, and reports; returns the exit code."""
    files = find(paths)
    results: tuple[dict[str, Any], ...] = ({}, {})
    for name, path in files.items():
        for blocks, of_mode in enumerate(results):
            try:
                of_mode[name] = run_vector(path, lambda vector: make_host(vector, bool(blocks)))
            except Exception as error:
                of_mode[name] = error
    return report(host, files, results)
