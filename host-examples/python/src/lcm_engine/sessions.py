"""How calls reach an instance: in turn, repeated on conflict, over either kind of store.

In: calls by name with plain values. Out: their results. A result is handed over only once its
commit has succeeded. Which calls are made is the business of the flows.
"""

from __future__ import annotations

import asyncio
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

CONFLICTS_MAX = 256
"""How often a call that met a conflict is repeated: each time another writer got further."""

ROUNDS_MAX = 2_000
"""How often one call may ask for more before it is taken for a fault."""

LANES = 8
"""Instances over an asynchronous store: conversations of different lanes do not wait for each
other."""


def pause_seconds(attempt: int) -> float:
    """How long to wait before a repetition after so many others: random, at most 8 ms."""
    return random.uniform(0, 0.001 * min(2**attempt, 8))


def _pauses(conflicts_max: int) -> Iterator[float]:
    """Seconds to wait before each repetition."""
    return map(pause_seconds, range(conflicts_max))


class Turn:
    """What only one thread does at a time; who does it already is refused, not kept for ever."""

    def __init__(self, refusal: str) -> None:
        self._refusal = refusal
        # One that is taken and given back without Python code of ours, in which an interrupt
        # could leave it taken.
        self._lock = threading.RLock()
        self._is_taken = False
        self._at_end: list[Callable[[], None]] = []

    def take(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls this when all threads before have had their turn."""
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
        """Calls this in a turn, or when that of this thread is over."""
        with self._lock:
            if self._is_taken:
                self._at_end.append(function)
            else:
                self.take(function)


class Session:
    """One instance over a store whose calls block. Threads take turns."""

    def __init__(
        self, instance: Instance, store: Store, conflicts_max: int = CONFLICTS_MAX
    ) -> None:
        self.instance = instance
        self._store = store
        self._conflicts_max = conflicts_max
        self._turn = Turn("a store called the engine that was calling it")
        self._is_closed = False

    def restart(self, config_json: str | None) -> None:
        """Has the next call make a new instance of this configuration."""
        self._turn.take(self._restart, config_json)

    def _restart(self, config_json: str | None) -> None:
        self.instance.config_json = config_json
        self.instance.drop()

    def call(self, name: str, arguments: dict[str, Any], once: bool = False) -> Any:
        """Calls a function; a conflict is repeated unless it is to be called `once`."""
        value, failure = self.outcome(name, arguments, once)
        if failure is not None:
            raise failure
        return value

    def outcome(
        self, name: str, arguments: dict[str, Any], once: bool = False
    ) -> tuple[Any, LcmError | None]:
        """The result of a call, or how it failed. What is raised is of a handler or a store.

        A handler may raise an error of the engine, too: such a conflict is none of this call,
        whose commit may have landed.
        """
        pauses = _pauses(0 if once else self._conflicts_max)
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
            time.sleep(pause)

    def close(self) -> None:
        """Waits for the engine call under way and closes the store; later ones are refused.

        From inside of that call, as a handler of a signal may come, it is done when that is over.
        """
        self._turn.take_or_follow(self._close)

    def _call(self, name: str, arguments: dict[str, Any], port: DirectPort) -> Any:
        # A step reads nothing: who closes the store within a call still hears how that ended.
        if self._is_closed and not name.startswith("drive."):
            port.answered = closed()
            raise port.answered
        return self.instance.call(name, arguments, port)

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.instance.drop()
            self._store.close()


class ThreadSession:
    """A session in a thread of its own, so that an event loop goes on while the store is busy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lcm-engine")

    async def call(self, name: str, arguments: dict[str, Any], once: bool = False) -> Any:
        """Calls a function. Who is cancelled meanwhile hears of it when the call is over.

        A call that has not begun is not made then.
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
        """As `Session.restart`."""
        self._session.restart(config_json)

    async def close(self) -> None:
        """Waits for what is under way, closes the store and ends the thread."""
        closing = asyncio.wrap_future(self._thread.submit(self._session.close))
        self._thread.shutdown(wait=False)
        await asyncio.shield(closing)


class AsyncSession:
    """Instances over an asynchronous store, one per lane; calls of a lane take turns.

    The engine runs to its end without waiting. What it misses is fetched and the call repeated;
    its commit is performed afterwards, and when that fails the instance, which believes it
    happened, is dropped.
    """

    def __init__(
        self,
        make_instance: Callable[[], Instance],
        store: AsyncStore,
        conflicts_max: int = CONFLICTS_MAX,
        lanes: int = LANES,
    ) -> None:
        self._make_instance = make_instance
        self._store = store
        self._conflicts_max = conflicts_max
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
        """Calls a function; a conflict is repeated unless it is to be called `once`."""
        if name.startswith("drive."):
            # It reads nothing, so it waits for no call of a lane.
            return self._lane("")[0].call(name, arguments, DeferredPort({}, {}))
        instance, turn = self._lane(str(arguments.get("conversation") or ""))
        pauses = _pauses(0 if once else self._conflicts_max)
        while True:
            try:
                async with turn:
                    return await self._attempt(instance, name, arguments)
            except LcmError as error:
                pause = next(pauses, None) if error.code == "conflict" else None
                if pause is None:
                    raise
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
        raise LcmError("store-unavailable", f"`{name}` asks for values without end")

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
