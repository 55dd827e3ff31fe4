"""The package for asyncio programs: `open_async` and `AsyncLcm`.

The same calls as in `lcm`, awaited. The model is awaited between two engine calls, so that other
calls run while the model works. An asynchronous store is awaited inside of a call (see `sessions`).
A store that is opened by its path works in its own thread. A `Store` of the caller is called in the
thread of the event loop, which it blocks for the milliseconds of an engine call. A model whose
function may block is called in a thread.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TypeVar

from . import completions, flows
from .component import Program, load
from .errors import LcmError
from .events import Events, EventListener
from .instance import MEMORY_BYTES_MAX, Instance
from .lines import Lines, Locks, Place
from .models import Asking, Complete, Model, models_of
from .opening import (
    RETRIES,
    Clock,
    checked_dialect,
    checked_scope,
    configured,
    default_store,
    open_store,
    place_of,
    wall_clock,
    warn_of_unused_path,
)
from .results import CompletionRequest, Configuration, JsonValue, ReadDialect, ToolScope
from .sessions import AsyncSession, Repeated, Session, ThreadSession, on_loop
from .stores import AsyncStore, Store
from .verb import Awaited, Begun, begun
from .verbs import Verbs
from .verbs.handle import AsyncConversation

T = TypeVar("T")

_COMPACTIONS = Locks()
"""The locks of all stores of the process, by event loop, store and conversation."""

_AROUND: ContextVar[frozenset[Hashable]] = ContextVar("around", default=frozenset())
"""The calls of a store and the compactions that the running code is part of."""


def open_async(
    store: str | os.PathLike[str] | Store | AsyncStore | None = None,
    complete: Complete | None = None,
    config: Configuration | None = None,
    *,
    wasm: bytes | str | os.PathLike[str] | None = None,
    clock: Clock = wall_clock,
    retries: int = RETRIES,
    environment: Mapping[str, str] | None = None,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    timeout_ms: int | None = None,
    scope: ToolScope = "conversation",
    dialect: ReadDialect = "lcm",
    on_event: EventListener | None = None,
) -> Opening:
    """Opens a store for asyncio; the parameters are as for `lcm.open`.

    `complete` may be a coroutine function, and the store an `AsyncStore`.

    A store that is named by a path works in its own thread, so that the event loop continues; the
    calls of a `Store` of yours block the loop.
    `async with open_async(...) as lcm` closes the store at the end; after
    `lcm = await open_async(...)` the caller calls `close`. The component is compiled once per
    machine, in a thread.
    """

    async def opened() -> AsyncLcm:
        asking = Asking(models_of(complete), together=True).given(retries, timeout_ms)
        tool_scope, own_dialect = checked_scope(scope), checked_dialect(dialect)
        events = Events(on_event)
        program = await asyncio.to_thread(load, wasm)
        settings = configured(program, config, environment, asking)
        place: str | os.PathLike[str] | Store | AsyncStore = (
            default_store(settings) if store is None else store
        )
        if store is not None:
            warn_of_unused_path(settings)
        # The store is opened last, so that an invalid argument leaves nothing open.
        return AsyncLcm(
            program,
            open_store(place),
            asking.follow(settings.host),
            settings.config_json,
            clock,
            memory_bytes_max,
            in_thread=isinstance(place, (str, os.PathLike)),
            scope=tool_scope,
            dialect=own_dialect,
            events=events,
        )

    return Opening(opened)


class Opening:
    """A store that is being opened; await or enter the object."""

    def __init__(self, opened: Callable[[], Coroutine[object, None, AsyncLcm]]) -> None:
        self._opened = opened
        self._lcm: AsyncLcm | None = None

    def __await__(self) -> Generator[object, None, AsyncLcm]:
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
        asking: Asking,
        config_json: str | None,
        clock: Clock,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        in_thread: bool = False,
        scope: ToolScope = "conversation",
        dialect: ReadDialect = "lcm",
        events: Events | None = None,
    ) -> None:
        super().__init__(asking, clock, scope, dialect, events)
        self.store = store
        self._config_json = config_json
        self._lines = Lines()
        self._closing = asyncio.Lock()
        self._is_closed = False
        self._place = place_of(store)

        def make() -> Instance:
            return Instance(program, self._config_json, memory_bytes_max=memory_bytes_max)

        self._session: Session | ThreadSession | AsyncSession
        repeated: Repeated = self._events.repeated
        if getattr(store, "asynchronous", False):
            self._session = AsyncSession(make, store, repeated=repeated)  # type: ignore[arg-type]
        else:
            if in_thread:
                repeated = on_loop(repeated)
            session = Session(make(), store, repeated=repeated)  # type: ignore[arg-type]
            self._session = ThreadSession(session) if in_thread else session

    def conversation(
        self,
        id: str,
        *,
        budget: int | None = None,
        dialect: ReadDialect | None = None,
        model: str | None = None,
    ) -> AsyncConversation:
        """Returns the handle of a conversation, as `Lcm.conversation`; its calls are awaited."""
        return AsyncConversation(self, id, budget, dialect, model)

    async def call(self, name: str, arguments: Mapping[str, object]) -> JsonValue:
        """Calls a function of the interface by name (`admin.status`), with plain values."""
        conversation = arguments.get("conversation")
        flow = begun(flows.called(name, dict(arguments)))
        name_given = conversation if isinstance(conversation, str) else None
        answer: JsonValue = await self._run(flow, name_given)
        return answer

    async def _call(self, name: str, arguments: dict[str, Any], once: bool) -> Any:
        if not isinstance(self._session, Session):
            return await self._session.call(name, arguments, once)
        await asyncio.sleep(0)  # Other tasks run between the calls of a long one.
        return self._session.call(name, arguments, once)

    async def _run(self, begun_flow: Begun[T], conversation: str | None) -> T:
        self._owner.check()
        with self._lines.call(), _around(self._lines):
            return await self._go_on(begun_flow, conversation)

    async def _go_on(self, begun_flow: Begun[T], conversation: str | None) -> T:
        place = self._lines.place(conversation)
        try:
            flow, effect = begun_flow.going_on()
            while True:
                try:
                    result = await self._perform(effect, place, conversation)
                except (Exception, asyncio.CancelledError) as error:
                    effect = flow.throw(error)
                except BaseException as error:
                    # The flow does not see an interrupt that broke off an engine call.
                    if isinstance(effect, flows.Call) or not flows.is_stop(error):
                        raise
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            place.leave()

    async def _perform(
        self, effect: flows.Effect, place: Place, conversation: str | None
    ) -> Any:
        match effect:
            case flows.Call(name, arguments, once):
                await place.take()
                return await self._call(name, arguments, once)
            case flows.Pause(seconds):
                return await asyncio.sleep(seconds)
            case flows.Tell(event):
                return self._events.emit(event)
        place.leave()
        match effect:
            case flows.Complete(request, model, seconds):
                return await self._ask(request, model, seconds)
            case flows.Together(several):
                return await self._run_together(several, conversation)
            case flows.Alone(name, flow):
                return await self._run_alone(name, flow)

    async def _run_alone(self, conversation: str, flow: flows.Flow[Any]) -> Any:
        name = (id(asyncio.get_running_loop()), self._place, conversation)
        if name in _AROUND.get():
            raise LcmError("conflict", flows.COMPACTING)
        async with _COMPACTIONS.of(name):
            with _around(name):
                return await self._go_on(begun(flow), conversation)

    async def _run_together(
        self, several: list[flows.Flow[Any]], conversation: str | None
    ) -> list[Any]:
        tasks = [
            asyncio.ensure_future(self._go_on(begun(flow), conversation)) for flow in several
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            # After a failure or a cancellation the other answers are not needed.
            for task in tasks:
                task.cancel()

    async def _ask(
        self, request: CompletionRequest, model: Model, seconds: float
    ) -> completions.Answered:
        try:
            async with asyncio.timeout(seconds) as limit:
                answer = await _answer(request, model, seconds)
            return completions.answered(answer, request)
        except LcmError:
            raise
        except TimeoutError as error:
            late = f"the model did not answer in {seconds:g} s"
            raised = TimeoutError(late) if limit.expired() else error
            return completions.failed(raised, request)
        except Exception as error:
            return completions.failed(error, request)

    def _reconfigure(self, config_json: str) -> None:
        self._config_json = config_json
        if isinstance(self._session, AsyncSession):
            self._session.drop()
        else:
            self._session.restart(config_json)

    async def close(self) -> None:
        """Waits for all earlier calls, then closes the store; later calls are refused.

        To close without waiting for a model, cancel the tasks of the calls before. In a forked
        process nothing is closed. `conflict`: a model or a store called `close` inside of a call,
        for which `close` would wait.
        """
        if not self._owner.is_here:
            return
        if self._lines in _AROUND.get():
            raise LcmError("conflict", "`close` waits for the call that it was called from")
        await self._lines.close()
        async with self._closing:
            if not self._is_closed:
                self._is_closed = True
                await self._close()

    async def _close(self) -> None:
        if isinstance(self._session, AsyncSession):
            self._session.drop()
            await self.store.close()  # type: ignore[misc]
        elif isinstance(self._session, ThreadSession):
            await self._session.close()
        else:
            self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


@contextmanager
def _around(name: Hashable) -> Iterator[None]:
    """Marks `name` as running, for the code in the `with` block and for everything it calls."""
    token = _AROUND.set(_AROUND.get() | {name})
    try:
        yield
    except GeneratorExit:
        raise  # Closed by the garbage collector in another context, where the token is invalid.
    except BaseException:
        _AROUND.reset(token)
        raise
    else:
        _AROUND.reset(token)


async def _answer(request: CompletionRequest, model: Model, seconds: float) -> Any:
    """Returns the answer of a model; a thread runs a function that may block."""
    if model.is_awaited:
        return await model(request, seconds)

    def ask() -> tuple[Any, Exception | None]:
        try:
            return model(request, seconds), None
        except Exception as error:  # A future cannot raise every exception, such as StopIteration.
            return None, error

    answer, error = await asyncio.to_thread(ask)
    if isinstance(error, StopIteration):
        raise RuntimeError(f"`complete` raised {error!r}") from error
    if error is not None:
        raise error
    return await answer if inspect.isawaitable(answer) else answer
