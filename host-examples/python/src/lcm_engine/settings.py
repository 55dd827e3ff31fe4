"""The configuration of an instance, and the settings in it that this package applies itself.

In: the caller's object and the environment. Out: the engine's configuration as JSON text, the
settings of the host, and lines for the caller. The engine knows the keys, reads the texts of
variables and decides which source wins.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from .errors import LcmError
from .results import Configuration, ConfigurationReport
from .texts import to_json
from .time_zones import offsets_of

PREFIX = "LCM_"

NAMED = (("summary_model", ("leaf", "condensed")), ("expansion_model", ("ask",)))
"""Keys that name a model, with the purposes of its requests."""


class HostSettings(TypedDict):
    """Settings that the host applies itself; None: not configured."""

    database_path: str | None
    """Path of the store, if the caller names none."""
    expansion_model: str | None
    """Model that answers questions."""
    fallback_models: list[str]
    """Models that are asked, in order, after the model of a request failed."""
    summary_model: str | None
    """Model that writes summaries."""
    timeout_ms: int | None
    """Longest time for one answer of a model."""
    timezone: str | None
    """Name of a time zone."""


class ResolvedConfiguration(TypedDict):
    """The answer of `setup.resolve`."""

    config: Configuration
    """The configuration of the engine."""
    host: HostSettings
    """The settings that the host applies itself."""
    report: ConfigurationReport
    """The treatment of each key."""


@dataclass(frozen=True)
class Settings:
    """A resolved configuration, from an object and variables."""

    config_json: str | None
    """The configuration of every instance; None: there is none."""
    host: HostSettings
    """The settings that this package applies itself."""
    report: ConfigurationReport | None
    """The treatment of each key; None: there is no configuration."""

    @property
    def lines(self) -> list[str]:
        """Returns a line for each key without effect."""
        notes = [] if self.report is None else self.report["notes"]
        return [f"config: `{note['key']}`: {note['note']}" for note in notes]


UNSET: HostSettings = {
    "database_path": None,
    "expansion_model": None,
    "fallback_models": [],
    "summary_model": None,
    "timeout_ms": None,
    "timezone": None,
}


def variables_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with the prefix `LCM_`; the engine gets no other variable."""
    return {name: text for name, text in environment.items() if name.startswith(PREFIX)}


def resolve(
    config: Configuration | None, environment: Mapping[str, str]
) -> Generator[tuple[str, dict[str, Any]], str, Settings]:
    """Yields one call of the engine; returns the settings of its answer.

    The message of an error begins with `config:`.
    """
    if not isinstance(config, Mapping | None):
        raise LcmError("invalid-input", f"`config` must be a dict, not {type(config).__name__}")
    variables = variables_of(environment)
    if config is None and not variables:
        return Settings(None, UNSET, None)
    given = to_json(dict(config or {}), "config")
    arguments = {
        "config_json": given,
        "variables_json": to_json(variables, "environment"),
    }
    try:
        resolved = cast(ResolvedConfiguration, json.loads((yield "setup.resolve", arguments)))
        return settings_of(resolved)
    except LcmError as error:
        raise LcmError(error.code, f"config: {error.message}") from error


def settings_of(resolved: ResolvedConfiguration) -> Settings:
    """Returns the settings that `setup.resolve` found, with the offsets of their time zone."""
    engine, host = cast(dict[str, object], resolved["config"]), resolved["host"]
    if host["timezone"] is not None and "time_offsets" not in engine:
        engine["time_offsets"] = offsets_of(host["timezone"])
    return Settings(to_json(engine, "config"), host, resolved["report"])
