"""The interface of a store: an ordered key-value map with atomic, guarded commits.

Keys are printable ASCII and sort bytewise; values are bytes that only the engine understands.
A store never retries and never interprets. No store is implemented here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

Guards = Sequence[tuple[str, bytes | None]]
"""Conditions of a commit: each key has exactly this value; None: the key is absent."""

Puts = Sequence[tuple[str, bytes | None]]
"""Writes of a commit; None deletes the key."""

Entries = list[tuple[str, bytes]]
"""Keys with their values, in the order asked for."""


class Store(Protocol):
    """A store whose calls block. Failures are raised as `LcmError`.

    `commit` raises `conflict` when a guard did not hold and nothing was written; after any other
    error of `commit` the outcome is unknown. A commit that returned survives process and power
    failure, unless the store says otherwise.
    """

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns the values of at most 1,000 keys, in order; None: the key is absent."""
        ...

    def scan(
        self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
    ) -> tuple[Entries, bool]:
        """Returns entries with `start <= key < end`, and whether more follow.

        At most `entries_max` entries and `bytes_max` bytes of keys and values, but at least one
        entry when there is one.
        """
        ...

    def commit(self, guards: Guards, puts: Puts) -> None:
        """Checks all guards and writes all puts in one atomic step, or nothing."""
        ...

    def close(self) -> None:
        """Closes files and connections of the store; further calls fail."""
        ...


class AsyncStore(Protocol):
    """A store with awaitable calls; `asynchronous` declares the kind."""

    asynchronous: ClassVar[Literal[True]]

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        ...

    async def scan(
        self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
    ) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        ...

    async def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        ...

    async def close(self) -> None:
        """As `Store.close`."""
        ...
