"""Keeps exceptions from running through the component, where they would end the process.

During an engine call the signal handlers of the caller, which may raise `KeyboardInterrupt`, wait
for the end of the call. While a store or a model of the caller runs inside of the call, a handler
runs at once. Python runs signal handlers in the main thread only, so other threads need nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

ROOM_FRAMES = 100
"""Frames that must be left of Python's recursion limit before an engine call. A callback without
room to begin would also end the process."""

_LEFT_ALONE = ("SIGCHLD", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT")
"""Signals whose handlers stay untouched: `SIGCHLD`, and faults that the wasm runtime handles."""

_NUMBERS: list[int] = sorted(
    number
    for number in signal.valid_signals()
    if getattr(number, "name", "") not in _LEFT_ALONE
)


class Interrupts:
    """The interrupts of one engine call; a context manager around the call."""

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        """The handlers of the caller by number of the signal."""
        self._waiting: list[tuple[int, FrameType | None]] = []
        self._let_through = False
        """Whether code of the caller runs, so that an exception of a handler can be caught."""
        self._is_over = False
        self.raised: BaseException | None = None
        """The exception that a handler raised in the caller's code."""

    def __enter__(self) -> Interrupts:
        _need_room(ROOM_FRAMES)
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
            try:
                for number in self._handlers:
                    signal.signal(number, self._handle)
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.raised = None
        try:
            self._restore()
        finally:
            while self._waiting:
                number, frame = self._waiting.pop(0)
                self._handlers[number](number, frame)

    def _restore(self) -> None:
        numbers, raised = list(self._handlers), None
        while numbers:
            try:
                while numbers:
                    number = numbers[-1]
                    # A handler that the caller's code set meanwhile stays.
                    if signal.getsignal(number) == self._handle:
                        signal.signal(number, self._handlers[number])
                    numbers.pop()
            except BaseException as error:
                raised = error
        self._is_over = True
        if raised is not None:
            raise raised

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not (self._let_through or self._is_over):
            self._waiting.append((number, frame))
            return
        # Only once: a further signal waits until the first is handled.
        self._let_through = False
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            if not self._is_over:
                self.raised = error
            raise

    def letting_through(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls code of the caller, during which interrupts do not wait."""
        try:
            self._let_through = True
            return function(*arguments)
        finally:
            self._let_through = False


def _need_room(frames: int) -> None:
    """Raises `RecursionError` unless `frames` frames are left."""
    if frames:
        _need_room(frames - 1)
