"""Checks the answers of a store before the engine reads them.

A store is foreign code. The engine would take a wrong answer for damage, so a wrong answer is
`store-unavailable` at once. Answers are not repaired, and calls are not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LcmError
from .base import Entries

FUNCTIONS = ("get_many", "scan", "commit", "close")


def check_store(store: object) -> None:
    """Raises `invalid-input` unless the object has the functions of a store."""
    if isinstance(store, type):
        message = f"`store` must be an object, not the class `{store.__name__}`"
        raise LcmError("invalid-input", message)
    for name in FUNCTIONS:
        if not callable(getattr(store, name, None)):
            raise LcmError("invalid-input", f"`store` must have a function `{name}`")


def checked_values(answer: object, keys: Sequence[str]) -> list[bytes | None]:
    """Returns the answer of `get_many`: one value or None for every key."""
    values: list[bytes | None] = _listed(answer, "get_many")
    if len(values) != len(keys):
        raise _broken("get_many", f"{len(keys)} keys with {len(values)} values")
    for value in values:
        if value is not None:
            _check_bytes(value, "get_many")
    return values


def checked_page(
    answer: object, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
) -> tuple[Entries, bool]:
    """Returns the answer of `scan`: entries of the range, each once and in order."""
    pair = _listed(answer, "scan")
    if len(pair) != 2 or not isinstance(pair[1], bool):
        raise _broken("scan", "no pair of entries and whether more follow")
    entries, more = [_entry(one) for one in _listed(pair[0], "scan")], pair[1]
    last: str | None = None
    for key, _ in entries:
        if not start <= key < end:
            raise _broken("scan", "a key out of its range")
        if last is not None and (key >= last if reverse else key <= last):
            raise _broken("scan", "keys out of order, or the same twice")
        last = key
    if len(entries) > entries_max:
        raise _broken("scan", f"{len(entries)} entries, {entries_max} at most")
    keys = sum(len(key.encode("utf-8", "surrogatepass")) for key, _ in entries)
    size = keys + sum(len(value) for _, value in entries)
    if len(entries) > 1 and size > bytes_max:
        raise _broken("scan", f"{size} bytes, {bytes_max} at most")
    if more and not entries:
        raise _broken("scan", "no entry, although more follow")
    return entries, more


def _broken(name: str, answered: str) -> LcmError:
    return LcmError("store-unavailable", f"the store answered `{name}` with {answered}")


def _listed(answer: object, name: str) -> list[Any]:
    if not isinstance(answer, (list, tuple)):
        raise _broken(name, f"a {type(answer).__name__} in place of a list")
    return list(answer)


def _check_bytes(value: object, name: str) -> None:
    if not isinstance(value, bytes):
        raise _broken(name, f"a {type(value).__name__} in place of bytes")


def _entry(given: object) -> tuple[str, bytes]:
    entry = _listed(given, "scan")
    if len(entry) != 2 or not isinstance(entry[0], str):
        raise _broken("scan", "an entry that is no key with its value")
    _check_bytes(entry[1], "scan")
    return entry[0], entry[1]
