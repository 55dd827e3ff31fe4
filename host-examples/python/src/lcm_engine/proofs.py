"""Proofs that the beginning of a list is stored, so that a list that grew is not compared again.

In: the lists that were stored. Out: members of a task `append` or `ingest`. The engine verifies a
proof, and compares the whole list if the conversation has changed.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from .flows import Fields

CONVERSATIONS_MAX = 256
"""Maximum number of conversations whose newest list is known."""
COMPARED_MAX = 100
"""Maximum number of messages of a list that needs no proof, because one call takes it."""


class _Stored(NamedTuple):
    """A list that a receipt confirmed."""

    messages: int
    digest: bytes
    revision: int


class Proofs:
    """The newest stored list of each conversation."""

    def __init__(self) -> None:
        self._newest: dict[str, _Stored] = {}

    def find(self, task: Fields, texts: list[str]) -> Fields:
        """Returns `proven` and `proven_revision`, or no member if nothing is known."""
        stored = self._newest.get(str(task["conversation"]))
        if _is_new(task) or stored is None or stored.messages >= len(texts):
            return {}
        if _digest(task, texts[: stored.messages]) != stored.digest:
            return {}
        return {"proven": stored.messages, "proven_revision": stored.revision}

    def keep(self, task: Fields, texts: list[str], revision: int) -> None:
        """Keeps the list of a task that a receipt of this revision confirmed."""
        if _is_new(task):
            return
        conversation = str(task["conversation"])
        self._newest.pop(conversation, None)
        if len(texts) >= COMPARED_MAX:
            self._newest[conversation] = _Stored(len(texts), _digest(task, texts), revision)
        if len(self._newest) > CONVERSATIONS_MAX:
            del self._newest[next(iter(self._newest))]


def _is_new(task: Fields) -> bool:
    """Returns whether the messages of a task are new, so that the task compares no list."""
    return task.get("append_mode") == "new"


def _digest(task: Fields, texts: list[str]) -> bytes:
    """Returns the hash of messages, which are texts in JSON, and so of their number."""
    joined = "\n".join([str(task["dialect"]), *texts])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()
