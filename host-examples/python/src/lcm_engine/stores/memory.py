"""Stores in memory, for tests, vectors and conversations that need not be kept."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Sequence
from typing import ClassVar, Literal

from ..errors import LcmError
from .base import Entries, Guards, Puts


class MemoryStore:
    """An ordered map in memory; the entries end with the process."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        return [self.entries.get(key) for key in keys]

    def scan(
        self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
    ) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        found = sorted((key for key in self.entries if start <= key < end), reverse=reverse)
        page: Entries = []
        room = bytes_max
        for key in found:
            value = self.entries[key]
            if page and (len(page) >= entries_max or len(key) + len(value) > room):
                return page, True
            room -= len(key) + len(value)
            page.append((key, value))
        return page, False

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        for key, value in guards:
            if self.entries.get(key) != value:
                raise LcmError("conflict", f"`{key}` was changed by another writer")
        for key, value in puts:
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value

    def sha256(self) -> str:
        """Returns the digest of all entries as `admin.digest` does, 64 hex digits."""
        digest = hashlib.sha256()
        for key in sorted(self.entries):
            name = key.encode("ascii")
            value = self.entries[key]
            digest.update(struct.pack(">I", len(name)) + name)
            digest.update(struct.pack(">I", len(value)) + value)
        return digest.hexdigest()

    def close(self) -> None:
        """Does nothing: the entries stay readable."""


class AsyncMemoryStore:
    """A `MemoryStore` behind awaitable calls, each after `delay_seconds`."""

    asynchronous: ClassVar[Literal[True]] = True

    def __init__(self, delay_seconds: float = 0) -> None:
        self.inner = MemoryStore()
        self.delay_seconds = delay_seconds

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        await asyncio.sleep(self.delay_seconds)
        return self.inner.get_many(keys)

    async def scan(
        self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
    ) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        await asyncio.sleep(self.delay_seconds)
        return self.inner.scan(start, end, reverse, entries_max, bytes_max)

    async def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        await asyncio.sleep(self.delay_seconds)
        self.inner.commit(guards, puts)

    async def close(self) -> None:
        """Does nothing: the entries stay readable."""
