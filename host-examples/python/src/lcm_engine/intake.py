"""Intake of the newest messages of a conversation, or of a whole transcript."""

from __future__ import annotations

from typing import cast

from .drive import drive
from .flows import Fields, Flow
from .results import Receipt


def intake(task: Fields, texts: list[str], now: int) -> Flow[Receipt]:
    """Stores messages by task `append` or `ingest`; returns one receipt for all of them."""
    outcome = yield from drive(task, lambda: now, texts)
    return cast(Receipt, outcome.result | {"warnings": outcome.warnings})
