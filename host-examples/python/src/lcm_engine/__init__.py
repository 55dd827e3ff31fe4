"""Lossless context management for language-model conversations: the Python host of `lcm.wasm`.

`open` gives plain calls, `open_async` the same for asyncio. Both need no model when `complete` is
left out. Stores are in `lcm_engine.stores`.
"""

from .async_lcm import AsyncLcm, open_async
from .errors import CompletionFailed, LcmError
from .lcm import Lcm, open
from .results import (
    Assembled,
    Compaction,
    CompletionRequest,
    Debt,
    Maintained,
    Pass,
    Receipt,
    ToolAnswer,
    Turn,
)
from .stores import AsyncStore, MemoryStore, SqliteStore, Store

__all__ = [
    "Assembled",
    "AsyncLcm",
    "AsyncStore",
    "Compaction",
    "CompletionFailed",
    "CompletionRequest",
    "Debt",
    "Lcm",
    "LcmError",
    "Maintained",
    "MemoryStore",
    "Pass",
    "Receipt",
    "SqliteStore",
    "Store",
    "ToolAnswer",
    "Turn",
    "open",
    "open_async",
]
