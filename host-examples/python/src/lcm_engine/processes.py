"""Forks: an open store belongs to the process that opened it.

The locks and threads of an open store do not work in a forked process: a call would wait forever.
So a forked process refuses every call.
"""

from __future__ import annotations

import os

from .errors import LcmError


class Owner:
    """The process that opened a store."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened the store."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Refuses a call in another process."""
        if not self.is_here:
            message = "the store was opened before a fork: open it again in this process"
            raise LcmError("store-unavailable", message)
