"""Ports: the store imports of an instance during one exported call.

In: a store and the calls of the guest. Out: plain answers, or an error for the guest. A port exists
for one exported call. Afterwards its caller reads from it: a fault that makes the instance
unusable, reads that have to be fetched, a commit that has to be performed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .errors import LcmError
from .stores import Entries, Guards, Puts, Store
from .stores.contract import checked_page, checked_values

Scan = tuple[str, str, bool, int, int]
"""Arguments of a scan: start, end, reverse, entries_max, bytes_max."""


class Port(Protocol):
    """The store that the guest uses during one call."""

    fault: LcmError | None
    """The error to raise after the call; the instance is dropped. None: no fault."""
    caught: BaseException | None
    """The last exception of the store."""
    answered: LcmError | None
    """The error of the call itself; an exception that is another object is of a signal handler."""

    def get_many(self, keys: list[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        ...

    def scan(self, scan: Scan) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        ...

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        ...


class NoStore:
    """The port between calls, and of calls that must not use a store."""

    fault: LcmError | None = None
    caught: BaseException | None = None
    answered: LcmError | None = None

    def _refuse(self) -> LcmError:
        return LcmError("store-unavailable", "this call may not use the store")

    def get_many(self, keys: list[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        raise self._refuse()

    def scan(self, scan: Scan) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        raise self._refuse()

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        raise self._refuse()


class DirectPort:
    """Passes every call on to a store whose calls block."""

    def __init__(self, store: Store) -> None:
        self.fault: LcmError | None = None
        self.caught: BaseException | None = None
        self.answered: LcmError | None = None
        self._store = store

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            answer = function(*arguments)
        except Exception as error:
            self.caught = error
            if isinstance(error, LcmError):
                raise
            # An exception must not pass through the frames of the guest, which are not unwound.
            self.fault = LcmError("store-unavailable", f"the store raised {error!r}")
            self.fault.__cause__ = error
            raise self.fault from error
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            self.fault = LcmError(
                "invalid-input",
                "the store answered with an awaitable: declare it with `asynchronous = True`",
            )
            raise self.fault
        return answer

    def get_many(self, keys: list[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        return checked_values(self._guarded(self._store.get_many, keys), keys)

    def scan(self, scan: Scan) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        return checked_page(self._guarded(self._store.scan, *scan), *scan)

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        try:
            self._guarded(self._store.commit, guards, puts)
        except LcmError as error:
            if error.code != "conflict":
                self.fault = error  # The outcome is unknown.
            raise


class DeferredPort:
    """Answers from fetched values; at a missing value the guest ends the call.

    The commit is only captured: its caller performs it once the exported call has returned.
    """

    def __init__(self, values: dict[str, bytes | None], scans: dict[Scan, Any]) -> None:
        self.fault: LcmError | None = None
        self.caught: BaseException | None = None
        self.answered: LcmError | None = None
        self.missing_keys: Sequence[str] = ()
        self.missing_scan: Scan | None = None
        self.captured: tuple[Guards, Puts] | None = None
        self._values = values
        self._scans = scans

    @property
    def blocked(self) -> bool:
        """Whether values must be fetched before the call is repeated."""
        return bool(self.missing_keys) or self.missing_scan is not None

    def get_many(self, keys: list[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._values]
        if missing:
            self.missing_keys = missing
            raise LcmError("would-block", "values are being fetched")
        return [self._values[key] for key in keys]

    def scan(self, scan: Scan) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        if scan not in self._scans:
            self.missing_scan = scan
            raise LcmError("would-block", "entries are being fetched")
        answer: tuple[Entries, bool] = self._scans[scan]
        return answer

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        self.captured = (guards, puts)
