"""Opening a store for both packages: clock, path, configuration.

In: the parameters of `open` and `open_async`. Out: a store, and the configuration of every
instance. `stores` reads files; the engine reads the keys of the configuration.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, cast, get_args

from .component import Program
from .errors import LcmError
from .instance import Instance
from .models import Asking
from .ports import NoStore
from .results import Configuration, ReadDialect, ToolScope
from .settings import NAMED, Settings, resolve
from .stores import AsyncStore, MemoryStore, SqliteStore, Store
from .stores.contract import check_store

Clock = Callable[[], int]
"""Milliseconds since the Unix epoch."""

RETRIES = 2
MEMORY = "memory:"


def wall_clock() -> int:
    """Returns the time of the machine, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


AnyStore = TypeVar("AnyStore", Store, AsyncStore, Store | AsyncStore)


def open_store(store: str | os.PathLike[str] | AnyStore) -> Store | AnyStore:
    """Opens a store by a file path or `memory:`, or checks the store of the caller."""
    if not isinstance(store, (str, os.PathLike)):
        check_store(store)
        return store
    if store == MEMORY:
        return MemoryStore()
    if isinstance(store, str) and "://" in store:
        scheme = store.partition("://")[0]
        raise LcmError("unsupported", f"this host has no store for `{scheme}://`")
    return SqliteStore(Path(store))


def checked_scope(scope: ToolScope) -> ToolScope:
    """Checks the scope of the tools of an agent."""
    if scope not in get_args(ToolScope):
        message = f"`scope` must be `conversation` or `store`, got `{scope}`"
        raise LcmError("invalid-input", message)
    return scope


def checked_dialect(dialect: ReadDialect) -> ReadDialect:
    """Checks the dialect of messages."""
    names = get_args(ReadDialect)
    if dialect not in names:
        message = f"`dialect` must be one of {', '.join(names)}, got `{dialect}`"
        raise LcmError("invalid-input", message)
    return dialect


def place_of(store: Store | AsyncStore) -> str:
    """Returns a name that all handles of a store in this process share."""
    return os.path.realpath(store.path) if isinstance(store, SqliteStore) else f"{id(store)}"


def configured(
    program: Program,
    config: Configuration | None,
    environment: Mapping[str, str] | None,
    asking: Asking,
) -> Settings:
    """Returns the settings of a configuration, checked by the engine.

    A key without effect is a warning.
    """
    settings = _resolved(program, config, os.environ if environment is None else environment)
    check_named_models(settings, asking)
    for line in settings.lines:
        warnings.warn(line, stacklevel=3)
    return settings


def _resolved(
    program: Program, config: Configuration | None, environment: Mapping[str, str]
) -> Settings:
    steps = resolve(config, environment)
    try:
        name, arguments = next(steps)
        instance = Instance(program)
        try:
            answer = str(instance.call(name, arguments, NoStore()))
        except LcmError as error:
            steps.throw(error)
            raise
        steps.send(answer)
    except StopIteration as end:
        return cast(Settings, end.value)
    raise AssertionError("one call of the engine resolves a configuration")


def check_named_models(settings: Settings, asking: Asking) -> None:
    """Raises when the configuration names a model and the caller gave no callback to ask it."""
    for key, purposes in NAMED:
        model = cast(str | None, settings.host[key])  # type: ignore[literal-required]
        if model is not None and not all(asking.models.of(purpose) for purpose in purposes):
            message = f"`{key}` asks for `{model}`, so `open` needs `complete`"
            raise LcmError("invalid-input", f"config: {message}")


def default_store(settings: Settings) -> str:
    """Returns the path of the store in the configuration, else `memory:`."""
    return settings.host["database_path"] or MEMORY


def warn_of_unused_path(settings: Settings) -> None:
    """Warns when the configuration names a store although the caller gave another."""
    if settings.host["database_path"] is not None:
        warnings.warn("config: `database_path`: not used, `open` has a `store`", stacklevel=3)
