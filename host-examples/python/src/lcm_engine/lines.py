"""Queues of asyncio calls: calls of one conversation run in the order in which they were made.

A call holds the queue from its first engine call to its last, so that no other call runs between
them. While the call waits for a model, it releases the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from .errors import LcmError


def closed() -> LcmError:
    """Returns the error of a call after `close`."""
    return LcmError("invalid-input", "the store is closed")


class Locks:
    """Locks by name; an unused lock is dropped."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: Hashable) -> asyncio.Lock:
        """Returns the lock of a name."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock


class Lines:
    """The queues of all conversations of a store."""

    def __init__(self) -> None:
        self._locks = Locks()
        self._is_closed = False
        self._calls = 0
        self._is_idle = asyncio.Event()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Counts a call as running in the `with` block; raises if the store is closed."""
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
        """Returns the place of a call in the queue; without a conversation it need not wait."""
        return Place(None if conversation is None else self._locks.of(conversation))

    async def close(self) -> None:
        """Refuses later calls and waits for earlier calls."""
        await asyncio.sleep(0)  # Lets tasks that were created before begin their calls.
        self._is_closed = True
        if self._calls:
            await self._is_idle.wait()


class Place:
    """The place of one call in the queue of its conversation."""

    def __init__(self, lock: asyncio.Lock | None) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> None:
        """Waits for the calls before; does nothing if this call already holds the queue."""
        if self._lock is not None and not self._is_taken:
            await self._lock.acquire()
            self._is_taken = True

    def leave(self) -> None:
        """Lets the next call continue."""
        if self._lock is not None and self._is_taken:
            self._is_taken = False
            self._lock.release()
