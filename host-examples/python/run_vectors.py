"""Runs every golden vector in this host and writes the report `dist/vectors-python.json`.

    python run_vectors.py [FILE or FOLDER]...

Each vector runs twice: over a store that answers at once, and in asyncio over a store that answers
every first read with `would-block`. With `--delay-ms` or `--conflicts-permille`, the vectors run
concurrently in one event loop instead, over stores that delay every call and refuse that share of
commits; `--seed` determines which commits. With `--sqlite` each vector has its own SQLite file.
The last line is `N passed, N failed`; the exit code is 1 if a vector failed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "src"), str(HERE.parent / "kit")]

from lcm_engine import SqliteStore  # noqa: E402
from lcm_engine.component import load  # noqa: E402
from vector_hosts import AsyncHost, BesetStore, PlainHost, run_vector  # noqa: E402
from vectors import runner  # noqa: E402

REPETITIONS = 8
TOGETHER_MAX = 64


def run_twice(paths: list[str]) -> int:
    """Runs all vectors, blocking and in asyncio; returns the exit code."""
    program = load()
    files = runner.find(paths)

    async def blocked(path: Path) -> str:
        vector = runner.Vector(path)
        return await run_vector(vector, AsyncHost(program, vector))

    plain: dict[str, str | Exception] = {}
    awaited: dict[str, str | Exception] = {}
    with asyncio.Runner() as loop:
        for name, path in files.items():
            try:
                plain[name] = runner.run_vector(path, lambda one: PlainHost(program, one))
            except Exception as error:
                plain[name] = error
            try:
                awaited[name] = loop.run(blocked(path))
            except Exception as error:
                awaited[name] = error
    return runner.report("python", files, (plain, awaited))


def run_in_files(paths: list[str]) -> int:
    """Runs all vectors, each over an SQLite file; returns the exit code."""
    program = load()
    files = runner.find(paths)
    failed = 0
    for name, path in files.items():
        with TemporaryDirectory() as folder, closing(SqliteStore(f"{folder}/a.lcm.db")) as store:
            try:
                runner.run_vector(path, lambda one: PlainHost(program, one, store))
            except Exception as error:
                print(f"FAILED {name}: {type(error).__name__}: {error}")
                failed += 1
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed or not files else 0


async def run_beset(paths: list[str], delay_ms: int, permille: int, seed: int) -> int:
    """Runs all vectors concurrently over slow stores with conflicts; returns the exit code."""
    program = await asyncio.to_thread(load)
    turns = asyncio.Semaphore(TOGETHER_MAX)
    files = runner.find(paths)
    stores: list[BesetStore] = []

    async def one(name: str, path: Path) -> str | None:
        async with turns:
            vector = runner.Vector(path)
            store = BesetStore(delay_ms / 1000, permille, f"{seed} {name}", vector.model.rewind)
            stores.append(store)
            try:
                await run_vector(vector, AsyncHost(program, vector, store, REPETITIONS))
            except Exception as error:
                return f"FAILED {name}: {type(error).__name__}: {error}"
            return None

    begin = time.perf_counter()
    said = await asyncio.gather(*(one(name, path) for name, path in files.items()))
    failures = [line for line in said if line]
    calls = sum(store.calls for store in stores)
    conflicts = sum(store.conflicts for store in stores)
    print("\n".join(failures), end="\n" if failures else "")
    seconds = time.perf_counter() - begin
    print(f"{calls} store calls of {delay_ms} ms, {conflicts} commits refused, {seconds:.1f} s")
    print(f"{len(files) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not files or (permille and not conflicts) else 0


def main() -> int:
    """Runs the program; returns the exit code, 0 if every vector passed."""
    parser = argparse.ArgumentParser(description="runs the golden vectors")
    parser.add_argument("paths", nargs="*", help="files or folders; all vectors without")
    parser.add_argument("--delay-ms", type=int, default=0, help="what every store call takes")
    parser.add_argument("--conflicts-permille", type=int, default=0, help="commits refused")
    parser.add_argument("--seed", type=int, default=1, help="which commits")
    parser.add_argument("--sqlite", action="store_true", help="over files in place of memory")
    given = parser.parse_args()
    if given.sqlite:
        return run_in_files(given.paths)
    if given.delay_ms or given.conflicts_permille:
        beset = (given.delay_ms, given.conflicts_permille, given.seed)
        return asyncio.run(run_beset(given.paths, *beset))
    return run_twice(given.paths)


if __name__ == "__main__":
    sys.exit(main())
