"""The configuration of an instance, as JSON text.

In: the caller's object and the environment. Out: one object. The engine decides what a key means
and whether the key exists.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import cast

from .errors import LcmError
from .results import Configuration, ConfigurationReport, JsonObject, JsonValue
from .texts import to_json

PREFIX = "LCM_"
OF_HOSTS = frozenset({"LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"})
"""Variables that do not configure the engine."""


def _reference_name(variable: str) -> str:
    """`LCM_CONTEXT_THRESHOLD` is `contextThreshold`."""
    first, *rest = variable.removeprefix(PREFIX).lower().split("_")
    return first + "".join(word.capitalize() for word in rest)


def _finite(text: str) -> float:
    """Returns a finite number; raises for `NaN` and `1e999`."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"`{text}` must be a finite number")
    return number


def _value(text: str) -> JsonValue:
    try:
        return cast(JsonValue, json.loads(text, parse_float=_finite, parse_constant=_finite))
    except ValueError:
        return text


def from_environment(environment: Mapping[str, str]) -> JsonObject:
    """Returns the values of `LCM_*` variables under reference names."""
    return {
        _reference_name(variable): _value(environment[variable])
        for variable in sorted(environment)
        if variable.startswith(PREFIX) and variable not in OF_HOSTS
    }


def configuration(
    config: Configuration | None,
    environment: Mapping[str, str],
    configure: Callable[[str], str],
) -> tuple[str | None, list[str]]:
    """Returns the configuration as JSON text, and the unknown keys of `config`.

    The environment takes precedence; text None: no configuration. `configure` of the engine
    reports the treatment of each key, and which keys are aliases.
    """
    if not isinstance(config, Mapping | None):
        raise LcmError("invalid-input", f"`config` must be a dict, not {type(config).__name__}")
    said = from_environment(environment)
    if config is None and not said:
        return None, []
    own: dict[str, object] = dict(config or {})
    report = _report(configure, own, "config")
    accepted = set(_report(configure, said, "environment")["accepted"]) if said else set()
    aliases = {alias["key"]: alias["as"] for alias in report["aliased"]}
    kept = {key: value for key, value in own.items() if aliases.get(key, key) not in accepted}
    merged = kept | said
    if said:
        _report(configure, merged, "configuration")
    return to_json(merged, "config"), report["unknown"]


def _report(
    configure: Callable[[str], str], given: Mapping[str, object], source: str
) -> ConfigurationReport:
    """Returns the engine's report of one source; an error names the source."""
    text = to_json(given, source)
    try:
        report: ConfigurationReport = json.loads(configure(text))
    except LcmError as error:
        raise LcmError(error.code, f"{source}: {error.message}") from error
    return report
