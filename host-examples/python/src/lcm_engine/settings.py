"""The configuration of an instance, as JSON text.

In: the caller's object and the environment. Out: one object; what a key means, and whether there
is such a key, is the engine's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .texts import to_json

PREFIX = "LCM_"
OF_HOSTS = frozenset({"LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"})
"""Variables that do not configure the engine."""


def _reference_name(variable: str) -> str:
    """`LCM_CONTEXT_THRESHOLD` is `contextThreshold`."""
    first, *rest = variable.removeprefix(PREFIX).lower().split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def configuration(config: Mapping[str, Any] | None, environment: Mapping[str, str]) -> str | None:
    """The configuration object; None: nothing is configured."""
    merged = dict(config or {})
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in OF_HOSTS:
            merged[_reference_name(variable)] = _value(environment[variable])
    return to_json(merged) if merged or config is not None else None
