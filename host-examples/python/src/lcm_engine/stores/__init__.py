"""The stores of the package, and the interface of any other store."""

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
