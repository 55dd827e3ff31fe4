"""Sessions: run calls of an instance one by one, and repeat a call after a conflict.

In: calls by name with plain values, over a blocking or an asynchronous store. Out: their results. A
session returns a result after the commit of the call succeeded. The flows choose the calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from zlib import crc32

from .errors import LcmError
from .instance import Instance
from .lines import closed
from .ports import DeferredPort, DirectPort
from .stores import AsyncStore, Store
from .stores.contract import checked_page, checked_values

T = TypeVar("T")

Repeated = Callable[[str, dict[str, Any], int], None]
"""Function that is called before a call is repeated, with the name and the arguments of the call
and the number of the repetition, from 1."""

CONFLICTS_MAX = 256
"""Largest number of repeats after conflicts; at each conflict another writer succeeded."""

ROUNDS_MAX = 2_000
"""Largest number of rounds of reads of one call; more are a fault."""

LANES = 8
"""Instances over an asynchronous store: conversations of different lanes do not wait for each
other."""


def pause_seconds(attempt: int) -> float:
    """Returns the random pause before repetition `attempt`, at most 8 ms."""
    return random.uniform(0, 0.001 * min(2**attempt, 8))


def _pauses(conflicts_max: int) -> Iterator[float]:
    """Yields the seconds to wait before each repetition."""
    return map(pause_seconds, range(conflicts_max))


class Turn:
    """A lock for one thread at a time. A nested call of the same thread is refused."""

    def __init__(self, refusal: str) -> None:
        self._refusal = refusal
        # `with` takes and releases an `RLock` in C code. In Python code an interrupt could leave
        # the lock taken.
        self._lock = threading.RLock()
        self._is_taken = False
        self._at_end: list[Callable[[], None]] = []

    def take(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function while this thread has the turn; waits for other threads."""
        with self._lock:
            if self._is_taken:
                raise LcmError("conflict", self._refusal)
            try:
                self._is_taken = True
                return function(*arguments)
            finally:
                self._is_taken = False
                while self._at_end:
                    self._at_end.pop()()

    def take_or_follow(self, function: Callable[[], None]) -> None:
        """Calls a function in a new turn, or if this thread has the turn, at the end of it."""
        with self._lock:
            if self._is_taken:
                self._at_end.append(function)
            else:
                self.take(function)


class Session:
    """One instance over a store whose calls block. Threads take turns."""

    def __init__(
        self,
        instance: Instance,
        store: Store,
        conflicts_max: int = CONFLICTS_MAX,
        repeated: Repeated | None = None,
    ) -> None:
        self.instance = instance
        self._store = store
        self._conflicts_max = conflicts_max
        self._repeated = repeated
        self._turn = Turn("a store called the engine that was calling it")
        self._is_closed = False

    def restart(self, config_json: str | None) -> None:
        """Sets the configuration; the next call makes a new instance."""
        self._turn.take(self._restart, config_json)

    def _restart(self, config_json: str | None) -> None:
        self.instance.config_json = config_json
        self.instance.drop()

    def call(self, name: str, arguments: dict[str, Any], once: bool = False) -> Any:
        """Calls a function; without `once` the call is repeated after a conflict."""
        value, failure = self.outcome(name, arguments, once)
        if failure is not None:
            raise failure
        return value

    def outcome(
        self, name: str, arguments: dict[str, Any], once: bool = False
    ) -> tuple[Any, LcmError | None]:
        """Returns the result or the error of a call; raises exceptions of handlers and stores.

        A signal handler may raise a `conflict`, too. The call is not repeated then, because its
        commit may have succeeded.
        """
        pauses = _pauses(0 if once else self._conflicts_max)
        attempt = 0
        while True:
            port = DirectPort(self._store)
            try:
                return self._turn.take(self._call, name, arguments, port), None
            except LcmError as error:
                if error is not port.answered:
                    raise
                pause = next(pauses, None) if error.code == "conflict" else None
                if pause is None:
                    return None, error
            attempt += 1
            if self._repeated is not None:
                self._repeated(name, arguments, attempt)
            time.sleep(pause)

    def close(self) -> None:
        """Waits for the running engine call and closes the store; later calls are refused.

        Inside an engine call, as in a signal handler, the store is closed after the call.
        """
        self._turn.take_or_follow(self._close)

    def _call(self, name: str, arguments: dict[str, Any], port: DirectPort) -> Any:
        # `drive` reads no store, so a task during which the store was closed still gets its end.
        if self._is_closed and not name.startswith("drive."):
            port.answered = closed()
            raise port.answered
        return self.instance.call(name, arguments, port)

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.instance.drop()
            self._store.close()


def on_loop(repeated: Repeated) -> Repeated:
    """Returns a function for another thread that calls `repeated` in the running event loop."""
    loop = asyncio.get_running_loop()

    def tell(name: str, arguments: dict[str, Any], attempt: int) -> None:
        # If the event loop is closed, no listener can be called.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(repeated, name, arguments, attempt)

    return tell


class ThreadSession:
    """A session in its own thread, so that an event loop continues while the store is busy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lcm-engine")

    async def call(self, name: str, arguments: dict[str, Any], once: bool = False) -> Any:
        """Calls a function; a cancellation takes effect after the call.

        A cancelled call that has not begun is not made.
        """
        running = self._thread.submit(self._session.call, name, arguments, once)
        waiting = asyncio.wrap_future(running)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not running.cancel():
                await asyncio.wait([waiting])
                waiting.exception()
            raise

    def restart(self, config_json: str | None) -> None:
        """Sets the configuration, as `Session.restart`."""
        self._session.restart(config_json)

    async def close(self) -> None:
        """Waits for the running call, closes the store and ends the thread."""
        closing = asyncio.wrap_future(self._thread.submit(self._session.close))
        self._thread.shutdown(wait=False)
        await asyncio.shield(closing)


class AsyncSession:
    """Instances over an asynchronous store, one per lane; calls of a lane take turns.

    The engine runs without waiting. Missing values are fetched, and the call is repeated. The
    commit follows after the call; after a failed commit the instance is dropped, because the state
    of the instance includes the commit.
    """

    def __init__(
        self,
        make_instance: Callable[[], Instance],
        store: AsyncStore,
        conflicts_max: int = CONFLICTS_MAX,
        lanes: int = LANES,
        repeated: Repeated | None = None,
    ) -> None:
        self._make_instance = make_instance
        self._store = store
        self._conflicts_max = conflicts_max
        self._repeated = repeated
        self._lanes: list[tuple[Instance, asyncio.Lock] | None] = [None] * lanes

    def _lane(self, conversation: str) -> tuple[Instance, asyncio.Lock]:
        index = crc32(conversation.encode("utf-8", "replace")) % len(self._lanes)
        lane = self._lanes[index]
        if lane is None:
            lane = self._lanes[index] = (self._make_instance(), asyncio.Lock())
        return lane

    def drop(self) -> None:
        """Forgets all instances; the next calls make new ones."""
        self._lanes = [None] * len(self._lanes)

    async def call(self, name: str, arguments: dict[str, Any], once: bool = False) -> Any:
        """Calls a function; without `once` the call is repeated after a conflict."""
        if name.startswith("drive."):
            # `drive` reads no store, so the call does not wait for its turn in a lane.
            return self._lane("")[0].call(name, arguments, DeferredPort({}, {}))
        instance, turn = self._lane(str(arguments.get("conversation") or ""))
        pauses = _pauses(0 if once else self._conflicts_max)
        attempt = 0
        while True:
            try:
                async with turn:
                    return await self._attempt(instance, name, arguments)
            except LcmError as error:
                pause = next(pauses, None) if error.code == "conflict" else None
                if pause is None:
                    raise
            attempt += 1
            if self._repeated is not None:
                self._repeated(name, arguments, attempt)
            await asyncio.sleep(pause)

    async def _attempt(self, instance: Instance, name: str, arguments: dict[str, Any]) -> Any:
        values: dict[str, bytes | None] = {}
        scans: dict[Any, Any] = {}
        for _ in range(ROUNDS_MAX):
            port = DeferredPort(values, scans)
            value, failure = None, None
            try:
                value = instance.call(name, arguments, port)
            except LcmError as error:
                failure = error
            if port.blocked and failure is not None and failure.code == "would-block":
                await self._fetch(port, values, scans)
                continue
            if port.captured is not None:
                await self._commit(instance, port)
            if failure is not None:
                raise failure
            return value
        message = f"`{name}` must end after at most {ROUNDS_MAX} rounds of reads"
        raise LcmError("store-unavailable", message)

    async def _fetch(
        self, port: DeferredPort, values: dict[str, bytes | None], scans: dict[Any, Any]
    ) -> None:
        try:
            if port.missing_keys:
                keys = list(port.missing_keys)
                fetched = checked_values(await self._store.get_many(keys), keys)
                values.update(zip(keys, fetched, strict=True))
            scan = port.missing_scan
            if scan is not None:
                scans[scan] = checked_page(await self._store.scan(*scan), *scan)
        except LcmError:
            raise
        except Exception as error:
            raise LcmError("store-unavailable", f"the store raised {error!r}") from error

    async def _commit(self, instance: Instance, port: DeferredPort) -> None:
        assert port.captured is not None
        try:
            await self._store.commit(*port.captured)
        except LcmError:
            instance.drop()
            raise
        except Exception as error:
            instance.drop()
            raise LcmError("store-unavailable", f"the store raised {error!r}") from error
        except BaseException:  # Cancelled: the outcome is unknown.
            instance.drop()
            raise
