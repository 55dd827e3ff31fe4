"""Intake of the newest messages of a conversation, or of a whole transcript."""

from __future__ import annotations

from typing import cast

from .drive import drive
from .flows import Fields, Flow
from .proofs import Proofs
from .results import Receipt


def intake(task: Fields, texts: list[str], now: int, proofs: Proofs) -> Flow[Receipt]:
    """Stores messages by task `append` or `ingest`; returns one receipt for all of them."""
    outcome = yield from drive(task | proofs.find(task, texts), lambda: now, texts)
    proofs.keep(task, texts, outcome.result["revision"])
    return cast(Receipt, outcome.result | {"warnings": outcome.warnings})
