"""Who waits for whom in asyncio: calls of one conversation in the order they were made.

A call keeps its place from one engine call to the next, so that none of another call comes in
between, and gives it up while it waits for a model. Nothing is called here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from .errors import LcmError


def closed() -> LcmError:
    """What a call is told after `close`."""
    return LcmError("invalid-input", "the store is closed")


class Locks:
    """A lock per name; one that nobody has is forgotten."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: Hashable) -> asyncio.Lock:
        """The lock of this name."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock


class Lines:
    """The lines of all conversations of a store."""

    def __init__(self) -> None:
        self._locks = Locks()
        self._is_closed = False
        self._calls = 0
        self._is_idle = asyncio.Event()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around a call; refuses it when the store is closed."""
        if self._is_closed:
            raise closed()
        self._calls += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._is_idle.set()

    def place(self, conversation: str | None) -> Place:
        """For a call; None: it is of no conversation and waits for nobody."""
        return Place(None if conversation is None else self._locks.of(conversation))

    async def close(self) -> None:
        """Refuses what is called from here on and waits for the rest."""
        await asyncio.sleep(0)  # Calls of tasks that were made before have begun then.
        self._is_closed = True
        if self._calls:
            await self._is_idle.wait()


class Place:
    """The place of one call."""

    def __init__(self, lock: asyncio.Lock | None) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> None:
        """Waits for the calls before; does nothing when it is taken already."""
        if self._lock is not None and not self._is_taken:
            await self._lock.acquire()
            self._is_taken = True

    def leave(self) -> None:
        """Lets the next one go on."""
        if self._lock is not None and self._is_taken:
            self._is_taken = False
            self._lock.release()
