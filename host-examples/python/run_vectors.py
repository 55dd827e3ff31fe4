"""Runs every golden vector in this host and writes what came to `dist/vectors-python.json`.

    python run_vectors.py [FILE or FOLDER]...

Each vector runs twice: over a store that answers at once, and over one that answers every first
read with `would-block`. The last line is `N passed, N failed`; the exit code is 1 when one failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from lcm_engine import LcmError  # noqa: E402
from lcm_engine.component import load  # noqa: E402
from vectors.matching import Mismatch  # noqa: E402
from vectors.runner import run_vector  # noqa: E402


def find(arguments: list[str]) -> list[Path]:
    """The vector files below the given paths."""
    paths = [Path(one) for one in arguments] or [ROOT / "tests" / "vectors"]
    files: list[Path] = []
    for path in paths:
        files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return files


def main(arguments: list[str]) -> int:
    """Runs the vectors; the exit code."""
    folder = ROOT / "tests" / "vectors"
    program = load()
    digests: dict[str, str] = {}
    passed = {False: 0, True: 0}
    files = find(arguments)
    for path in files:
        path = path.resolve()
        name = path.relative_to(folder).as_posix() if folder in path.parents else path.name
        for asynchronous in (False, True):
            mode = " (would-block)" if asynchronous else ""
            try:
                digest = run_vector(path, program, asynchronous)
            except (Mismatch, LcmError, ValueError, KeyError, TypeError) as error:
                print(f"FAILED {name}{mode}: {type(error).__name__}: {error}")
                continue
            passed[asynchronous] += 1
            digests[name] = digest
    report = {
        "host": "python",
        "vectors": len(files),
        "passed": passed[False],
        "would_block_passed": passed[True],
        "digests": digests,
    }
    if not arguments:
        out = ROOT / "dist" / "vectors-python.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    total = sum(passed.values())
    failed = 2 * len(files) - total
    print(f"{total} passed, {failed} failed")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
