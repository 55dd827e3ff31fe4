"""Tests that the rules of providers refuse: breaks valid requests and counts the refusals."""

import copy
from collections.abc import Callable
from typing import Any

import rules

# Paths in a request, each with the new value at the path; `None`: the value is removed.
Breaks = list[tuple[tuple[Any, ...], Any]]


def break_at(sound: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Returns a copy with one value replaced, or removed."""
    whole = inside = copy.deepcopy(sound)
    for step in path[:-1]:
        inside = inside[step]
    if value is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return whole


def count_refusals(
    headers: dict[str, str], cases: list[tuple[Callable[..., None], Any, Breaks]]
) -> int:
    """Counts broken requests; fails if a valid request is refused, or a broken one accepted."""
    refused = 0
    for check, sound, breaks in cases:
        check(headers, copy.deepcopy(sound))
        for path, value in breaks:
            try:
                check(headers, break_at(sound, path, value))
            except rules.Refused:
                refused += 1
                continue
            raise SystemExit(f"{check.__name__}: {path} = {value} is not refused")
    return refused
