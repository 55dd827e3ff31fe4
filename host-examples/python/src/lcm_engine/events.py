"""Events: passes what happened to a listener of the program.

In: events of the engine and of this package. Out: calls of the listener. A listener that raises
breaks nothing.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import cast

from .errors import LcmError
from .results import StoreEvent

EventListener = Callable[[StoreEvent], object]
"""Receives each event in the thread or event loop of the caller; it should return quickly."""

_LOG = logging.getLogger(__package__)


class Events:
    """The listener of one engine; None: nobody listens."""

    def __init__(self, listener: EventListener | None) -> None:
        if listener is not None and not callable(listener):
            raise LcmError("invalid-input", "`on_event` must be a function")
        if inspect.iscoroutinefunction(listener):
            raise LcmError("invalid-input", "`on_event` must not be a coroutine function")
        self._listener = listener
        self._is_reported = False

    def emit(self, event: Mapping[str, object]) -> None:
        """Hands an event to the listener; its first exception is logged."""
        if self._listener is None:
            return
        try:
            self._listener(cast(StoreEvent, event))
        except Exception:
            if not self._is_reported:
                self._is_reported = True
                _LOG.warning("on_event failed, which stops nothing", exc_info=True)

    def repeated(self, name: str, arguments: Mapping[str, object], attempt: int) -> None:
        """Emits the event of a call that is repeated after a conflict."""
        conversation = arguments.get("conversation") or ""
        event = {"kind": "conflict-repeated", "conversation": conversation}
        self.emit({**event, "call": name, "attempt": attempt})
