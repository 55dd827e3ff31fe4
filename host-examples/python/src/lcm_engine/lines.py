"""Who waits for whom in asyncio: calls of one conversation in the order they were made.

A call keeps its place from one engine call to the next, so that none of another call comes in
between, and gives it up while it waits for a model. Nothing is called here.
"""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from .errors import LcmError


def closed() -> LcmError:
    """What a call is told after `close`."""
    return LcmError("invalid-input", "the store is closed")


class Locks:
    """A lock per name; one that nobody has is forgotten."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, name: str) -> asyncio.Lock:
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
        self._count = 0
        self._is_empty = asyncio.Event()

    def place(self, conversation: str | None) -> Place:
        """For one call; None: it is of no conversation and waits for nobody."""
        lock = None if conversation is None else self._locks.of(conversation)
        return Place(self, lock)

    def enter(self) -> None:
        """Counts one that is in line; refuses it when the store is closed."""
        if self._is_closed:
            raise closed()
        self._count += 1
        self._is_empty.clear()

    def leave(self) -> None:
        """Counts one less."""
        self._count -= 1
        if not self._count:
            self._is_empty.set()

    async def close(self) -> bool:
        """Lets nobody in any more and waits for who is; returns whether it was open."""
        await asyncio.sleep(0)  # Tasks that were made before have their place then.
        was_open, self._is_closed = not self._is_closed, True
        if self._count:
            await self._is_empty.wait()
        return was_open


class Place:
    """The place of one call."""

    def __init__(self, lines: Lines, lock: asyncio.Lock | None) -> None:
        self._lines = lines
        self._lock = lock
        self._is_taken = False

    async def take(self) -> None:
        """Waits for the calls before; does nothing when it is taken already."""
        if self._is_taken:
            return
        self._lines.enter()
        try:
            if self._lock is not None:
                await self._lock.acquire()
        except BaseException:
            self._lines.leave()
            raise
        self._is_taken = True

    def leave(self) -> None:
        """Lets the next one go on."""
        if self._is_taken:
            self._is_taken = False
            if self._lock is not None:
                self._lock.release()
            self._lines.leave()
