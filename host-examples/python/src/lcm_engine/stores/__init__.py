"""The stores that ship with the package, and what any other store has to offer."""

from .base import AsyncStore, Entries, Guards, Puts, Store
from .memory import AsyncMemoryStore, MemoryStore
from .sqlite import SqliteStore

__all__ = [
    "AsyncMemoryStore",
    "AsyncStore",
    "Entries",
    "Guards",
    "MemoryStore",
    "Puts",
    "SqliteStore",
    "Store",
]
