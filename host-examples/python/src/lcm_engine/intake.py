"""How messages enter a conversation: the newest of it, or what is missing of a whole transcript."""

from __future__ import annotations

from typing import Any

from .drive import drive
from .flows import Fields, Flow


def intake(task: Fields, texts: list[str], now: int) -> Flow[Any]:
    """Stores messages by task `append` or `ingest`; returns one receipt for all of them."""
    outcome = yield from drive(task, lambda: now, texts)
    return outcome.result | {"warnings": outcome.warnings}
