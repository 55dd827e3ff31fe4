"""The configuration of an instance, as JSON text.

In: the caller's object and the environment. Out: one object. What a key means, and whether there
is such a key, only the engine knows; it is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What `LCM_*` variables say, under reference names."""
    return {
        _reference_name(variable): _value(environment[variable])
        for variable in sorted(environment)
        if variable.startswith(PREFIX) and variable not in OF_HOSTS
    }


def configuration(
    config: Mapping[str, Any] | None,
    environment: Mapping[str, str],
    configure: Callable[[str], str],
) -> str | None:
    """The configuration object as JSON text; the environment comes first. None: there is none.

    `configure` is the engine's and reports what it made of an object: only it knows which two
    keys mean the same.
    """
    said = from_environment(environment)
    if config is None and not said:
        return None
    merged = dict(config or {})
    if merged and said:
        aliases = {
            alias["key"]: alias["as"] for alias in json.loads(configure(to_json(merged)))["aliased"]
        }
        accepted = set(json.loads(configure(to_json(said)))["accepted"])
        merged = {
            key: value for key, value in merged.items() if aliases.get(key, key) not in accepted
        }
    return to_json(merged | said)
