"""Lossless context management for language-model conversations: the Python host of `lcm.wasm`.

`open` gives plain calls, `open_async` the same for asyncio. Both need no model when `complete` is
left out. Stores are in `lcm_engine.stores`.
"""

from .async_lcm import AsyncLcm, open_async
from .errors import CompletionFailed, LcmError
from .lcm import Lcm, open
from .results import (
    Advice,
    Asked,
    Assembled,
    Compaction,
    CompletionRequest,
    Debt,
    Decision,
    Embedded,
    Grant,
    Maintained,
    Pass,
    Planned,
    Prices,
    Receipt,
    Reported,
    Routing,
    Spent,
    ToolAnswer,
    Turn,
    Usage,
)
from .stores import AsyncStore, MemoryStore, SqliteStore, Store

__all__ = [
    "Advice",
    "Asked",
    "Assembled",
    "AsyncLcm",
    "AsyncStore",
    "Compaction",
    "CompletionFailed",
    "CompletionRequest",
    "Debt",
    "Decision",
    "Embedded",
    "Grant",
    "Lcm",
    "LcmError",
    "Maintained",
    "MemoryStore",
    "Pass",
    "Planned",
    "Prices",
    "Receipt",
    "Reported",
    "Routing",
    "SqliteStore",
    "Spent",
    "Store",
    "ToolAnswer",
    "Turn",
    "Usage",
    "open",
    "open_async",
]
