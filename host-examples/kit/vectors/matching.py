"""Compares a result with the value that a vector expects.

In: the expected value and the result. Out: nothing, or `Mismatch` with the first difference.
"""

from __future__ import annotations

import json
from typing import Any

ABSENT = object()
"""Marks a missing value."""

SHOWN_CHARACTERS_MAX = 300


class Mismatch(Exception):
    """A claim of a vector that does not hold, or a vector that breaks the format."""


def shorten(value: Any) -> str:
    """Returns the first 300 characters of a value as JSON."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:SHOWN_CHARACTERS_MAX]} ... ({len(text)} characters)"


def _require(holds: bool, expected: Any, actual: Any, path: str) -> None:
    if not holds:
        raise Mismatch(f"{path}: expected {shorten(expected)}, came {shorten(actual)}")


def _operator(expected: Any) -> tuple[str, Any] | None:
    if isinstance(expected, dict) and len(expected) == 1:
        ((name, wanted),) = expected.items()
        if name.startswith("$"):
            return name, wanted
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _holds(name: str, wanted: Any, actual: Any) -> bool:
    match name:
        case "$length":
            if isinstance(actual, str):
                actual = _parsed(actual)
            return isinstance(actual, list) and len(actual) == wanted
        case "$max":
            return _is_number(actual) and actual <= wanted
        case "$ends":
            return isinstance(actual, str) and actual.endswith(wanted)
        case "$starts":
            return isinstance(actual, str) and actual.startswith(wanted)
        case "$contains":
            return isinstance(actual, str) and wanted in actual
    raise Mismatch(f"no operator `{name}`")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ABSENT


def check(expected: Any, actual: Any, path: str) -> None:
    """Compares by the rules of the format; raises `Mismatch`."""
    operator = _operator(expected)
    if operator is not None and operator[0] == "$absent":
        absent = actual is ABSENT or actual is None
        return _require(absent is operator[1], expected, actual, path)
    _require(actual is not ABSENT, expected, actual, path)
    if operator is not None:
        return _require(_holds(*operator, actual), expected, actual, path)
    if isinstance(actual, str) and expected is not None and not isinstance(expected, str):
        parsed = _parsed(actual)
        _require(parsed is not ABSENT, expected, actual, path)
        actual = parsed
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            check(value, actual.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        _require(len(expected) == len(actual), expected, actual, path)
        for index, (wanted, came) in enumerate(zip(expected, actual, strict=True)):
            check(wanted, came, f"{path}.{index}")
    else:
        same = expected == actual and isinstance(expected, bool) is isinstance(actual, bool)
        _require(same, expected, actual, path)
