"""Program input: `python PROGRAM BASE_URL STORE SCRIPT FIRST END` makes turns FIRST to END - 1."""

import json
import sys
from pathlib import Path

BASE_URL, STORE, _path, _first, _end = sys.argv[1:]
_played = json.loads(Path(_path).read_text(encoding="utf-8"))
SAID: list[str] = _played["said"][int(_first) : int(_end)]


def read_file(path: str) -> str:
    """Reads a file of the script."""
    return _played["files"].get(path, f"no such file: {path}")
