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
from typing import TypeVar, get_args

from .component import Program
from .errors import LcmError
from .instance import Instance
from .ports import NoStore
from .results import Configuration, ReadDialect, ToolScope
from .settings import configuration
from .stores import AsyncStore, MemoryStore, SqliteStore, Store
from .stores.contract import check_store

Clock = Callable[[], int]
"""Milliseconds since the Unix epoch."""

RETRIES = 2


def wall_clock() -> int:
    """Returns the time of the machine, in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


AnyStore = TypeVar("AnyStore", Store, AsyncStore, Store | AsyncStore)


def open_store(store: str | os.PathLike[str] | AnyStore) -> Store | AnyStore:
    """Opens a store by a file path or `memory:`, or checks the store of the caller."""
    if not isinstance(store, (str, os.PathLike)):
        check_store(store)
        return store
    if store == "memory:":
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
    program: Program, config: Configuration | None, environment: Mapping[str, str] | None
) -> str | None:
    """Returns the configuration of every instance, checked by the engine.

    An unknown key is a warning.
    """
    scratch = Instance(program)

    def configure(text: str) -> str:
        return str(scratch.call("setup.configure", {"config_json": text}, NoStore()))

    environment = os.environ if environment is None else environment
    chosen, unknown = configuration(config, environment, configure)
    for key in unknown:
        warnings.warn(f"config: unknown key `{key}`", stacklevel=3)
    return chosen
