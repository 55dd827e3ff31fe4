"""The package for asyncio programs: `open_async` and `AsyncLcm`.

The same calls as in `lcm`, awaited. The model is awaited between two engine calls, so appending
and assembling go on while it thinks; an asynchronous store is awaited inside of a call (see
`sessions`). A store that is opened by its path works in a thread of its own; one of the caller's
whose calls block is called in the thread of the event loop, for the milliseconds of an engine call.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from . import completions, flows
from .component import Program, load
from .errors import LcmError
from .instance import MEMORY_BYTES_MAX, Instance
from .models import Complete, Model
from .opening import RETRIES, Clock, configured, open_path, wall_clock
from .sessions import AsyncSession, Session, ThreadSession
from .stores import AsyncStore, Store
from .verb import Awaited
from .verbs import Verbs

T = TypeVar("T")


def open_async(
    store: str | os.PathLike[str] | Store | AsyncStore = "memory:",
    complete: Complete | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    wasm: bytes | str | os.PathLike[str] | None = None,
    clock: Clock = wall_clock,
    retries: int = RETRIES,
    environment: Mapping[str, str] | None = None,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    timeout_ms: int = completions.TIMEOUT_MS,
) -> Opening:
    """As `lcm.open`; `complete` may be a coroutine function, and the store an `AsyncStore`.

    A path is served by a thread of its own, so that the event loop goes on; a `Store` of yours
    whose calls block is called where the loop runs.
    `async with open_async(...) as lcm` closes the store at the end, `lcm = await open_async(...)`
    leaves that to `close`. Compiling the component, once per machine, happens in a thread of its
    own.
    """

    async def opened() -> AsyncLcm:
        program = await asyncio.to_thread(load, wasm)
        config_json = configured(program, config, environment)
        return AsyncLcm(
            program,
            open_path(store) if isinstance(store, (str, os.PathLike)) else store,
            complete,
            config_json,
            clock,
            retries,
            memory_bytes_max,
            timeout_ms,
            in_thread=isinstance(store, (str, os.PathLike)),
        )

    return Opening(opened)


class Opening:
    """A store that is being opened: to be awaited, or entered."""

    def __init__(self, opened: Callable[[], Coroutine[Any, Any, AsyncLcm]]) -> None:
        self._opened = opened
        self._lcm: AsyncLcm | None = None

    def __await__(self) -> Generator[Any, None, AsyncLcm]:
        return self._opened().__await__()

    async def __aenter__(self) -> AsyncLcm:
        self._lcm = await self._opened()
        return self._lcm

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lcm is not None:
            await self._lcm.close()


class AsyncLcm(Verbs, Awaited):
    """An open store. Made by `open_async`; usable as an asynchronous context manager."""

    def __init__(
        self,
        program: Program,
        store: Store | AsyncStore,
        complete: Complete | None,
        config_json: str | None,
        clock: Clock,
        retries: int,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        timeout_ms: int = completions.TIMEOUT_MS,
        in_thread: bool = False,
    ) -> None:
        super().__init__(complete, clock, retries, timeout_ms, together=True)
        self.store = store
        self._config_json = config_json

        def make() -> Instance:
            return Instance(program, self._config_json, memory_bytes_max=memory_bytes_max)

        self._session: Session | ThreadSession | AsyncSession
        if getattr(store, "asynchronous", False):
            self._session = AsyncSession(make, store)  # type: ignore[arg-type]
        else:
            session = Session(make(), store)  # type: ignore[arg-type]
            self._session = ThreadSession(session) if in_thread else session

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Calls a function of the interface by name (`admin.status`), with plain values."""
        return await self._call(name, dict(arguments), False)

    async def _call(self, name: str, arguments: dict[str, Any], once: bool) -> Any:
        if not isinstance(self._session, Session):
            return await self._session.call(name, arguments, once)
        await asyncio.sleep(0)  # What takes many calls lets others have their turn between them.
        return self._session.call(name, arguments, once)

    async def _run(self, flow: flows.Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    result = await self._perform(effect)
                except (Exception, asyncio.CancelledError) as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _perform(self, effect: flows.Effect) -> Any:
        match effect:
            case flows.Call(name, arguments, once):
                return await self._call(name, arguments, once)
            case flows.Complete(request, model, seconds):
                return await self._ask(request, model, seconds)
            case flows.Pause(seconds):
                return await asyncio.sleep(seconds)
            case flows.Together(several):
                return await self._run_together(several)

    async def _run_together(self, several: list[flows.Flow[Any]]) -> list[Any]:
        tasks = [asyncio.ensure_future(self._run(flow)) for flow in several]
        try:
            return await asyncio.gather(*tasks)
        finally:
            # When one fails or all are cancelled, no model goes on working for nobody.
            for task in tasks:
                task.cancel()

    async def _ask(self, request: Any, model: Model, seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds) as limit:
                answer = model(request, seconds)
                if inspect.isawaitable(answer):
                    answer = await answer
            return completions.answered(answer, request)
        except LcmError:
            raise
        except TimeoutError as error:
            late = f"the model did not answer in {seconds:g} s"
            return completions.failed(TimeoutError(late) if limit.expired() else error)
        except Exception as error:
            return completions.failed(error)

    def _reconfigure(self, config_json: str) -> None:
        self._config_json = config_json
        if isinstance(self._session, AsyncSession):
            self._session.drop()
        else:
            self._session.restart(config_json)

    async def close(self) -> None:
        """Closes the store."""
        if isinstance(self._session, ThreadSession):
            return await self._session.close(self.store.close)  # type: ignore[arg-type]
        if isinstance(self._session, AsyncSession):
            self._session.drop()
        else:
            self._session.instance.drop()
        closing = self.store.close()
        if inspect.isawaitable(closing):
            await closing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
