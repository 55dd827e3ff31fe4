"""Lossless context management for language-model conversations: the Python host of `lcm.wasm`.

`open` is for blocking programs, `open_async` for asyncio; both have the same calls. Without
`complete` no model is needed. Stores are in `lcm_engine.stores`.
"""

from . import results
from .async_lcm import AsyncLcm, open_async
from .errors import CompletionFailed, LcmError
from .events import EventListener
from .lcm import Lcm, open
from .results import *
from .stores import AsyncStore, MemoryStore, SqliteStore, Store
from .verbs.handle import AsyncConversation, Conversation
from .verbs.reading import GrepQuery

__all__ = [
    "AsyncConversation",
    "AsyncLcm",
    "AsyncStore",
    "CompletionFailed",
    "Conversation",
    "EventListener",
    "GrepQuery",
    "Lcm",
    "LcmError",
    "MemoryStore",
    "SqliteStore",
    "Store",
    "open",
    "open_async",
]
__all__ += results.__all__
