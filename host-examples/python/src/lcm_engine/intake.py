"""How messages enter a conversation: the newest of it, or what is missing of a whole transcript."""

from __future__ import annotations

import json
from typing import Any

from .drive import drive
from .flows import Call, Fields, Flow, parsed
from .texts import batches


def intake(task: Fields, texts: list[str], now: int) -> Flow[Any]:
    """Stores messages by task `append` or `ingest`; returns one receipt for all of them."""
    outcome = yield from drive(task, lambda: now, texts)
    return outcome.result | {"warnings": outcome.warnings}


def estimate(dialect: str, texts: list[str]) -> Flow[int]:
    """Estimated tokens of messages."""
    tokens = 0
    for part in batches(texts):
        entries = yield Call("ingest.identify", {"dialect": dialect, "messages": part})
        tokens += sum(entry["tokens"] for entry in json.loads(entries))
    return tokens


def validate(dialect: str, texts: list[str]) -> Flow[list[str]]:
    """Why the provider of a dialect would refuse messages."""
    arguments = {"dialect": dialect, "messages_json": f"[{','.join(texts)}]"}
    findings: list[str] = yield from parsed("context.validate", arguments)
    return findings
