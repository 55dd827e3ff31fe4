"""Verbs and streams: calls of the package, described once for programs that block and for asyncio.

A verb is a method that returns a flow: `Lcm` runs the flow, `AsyncLcm` awaits the flow. A stream is
a method that returns a reader of pages: pages are read while items are taken. `verbs` has the verbs
of the package.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .errors import LcmError
from .events import Events
from .flows import Effect, Flow, Page
from .models import Asking
from .opening import Clock, check_named_models
from .processes import Owner
from .results import ReadDialect, ToolScope
from .settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
Pages = Callable[[Any], Flow[Page[T]]]
"""Reads the page that begins at a cursor; None: the first page."""


class Opened:
    """The state of an open store that verbs use: the clock, the models, and default arguments."""

    def __init__(
        self,
        asking: Asking,
        clock: Clock,
        scope: ToolScope,
        dialect: ReadDialect = "lcm",
        events: Events | None = None,
    ) -> None:
        self._asking = asking
        self._clock = clock
        self._scope = scope
        self._dialect = dialect
        self._events = events or Events(None)
        self._owner = Owner()

    def _reconfigure(self, config_json: str) -> None:
        raise NotImplementedError

    def _follow(self, settings: Settings) -> None:
        """Applies the settings of a new configuration."""
        check_named_models(settings, self._asking)
        self._asking = self._asking.follow(settings.host)
        self._reconfigure(settings.config_json or "{}")

    def _now(self, now: int | None) -> int:
        return self._clock() if now is None else now


class Blocking(Opened):
    """Runs flows to their end."""

    def __init_subclass__(cls) -> None:
        _make_methods(cls, awaited=False)

    def _run(self, flow: Flow[T]) -> T:
        raise NotImplementedError


class Begun(Generic[T]):
    """A flow that has run to its first effect, so that it has read its arguments."""

    def __init__(self, begin: Callable[[], Flow[T]]) -> None:
        self._end: LcmError | StopIteration | None = None
        try:
            self._flow = begin()
            self._effect = next(self._flow)
        except (LcmError, StopIteration) as end:
            self._end = end  # `going_on` raises it when the call is awaited.

    def going_on(self) -> tuple[Flow[T], Effect]:
        """Returns the flow and its first effect; raises the end of a flow without effects."""
        if self._end is not None:
            raise self._end
        return self._flow, self._effect


def begun(flow: Flow[T]) -> Begun[T]:
    """Runs a flow to its first effect."""
    return Begun(lambda: flow)


class Awaited(Opened):
    """Awaits flows."""

    def __init_subclass__(cls) -> None:
        _make_methods(cls, awaited=True)

    async def _run(self, begun_flow: Begun[T], conversation: str | None) -> T:
        raise NotImplementedError


class Verb(Generic[P, T]):
    """A method that returns a flow."""

    def __init__(self, described: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.described = described

    if TYPE_CHECKING:

        @overload
        def __get__(self, opened: None, kind: Any) -> Verb[P, T]: ...
        @overload
        def __get__(self, opened: Blocking, kind: Any) -> Callable[P, T]: ...
        @overload
        def __get__(
            self, opened: Awaited, kind: Any
        ) -> Callable[P, Coroutine[Any, Any, T]]: ...
        def __get__(self, opened: Any, kind: Any) -> Any: ...

    def method(self, awaited: bool) -> Callable[..., Any]:
        """Returns the method for a class that awaits flows, or for a class that runs flows."""
        described: Any = self.described

        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._run(described(self, *args, **kwargs))

        conversation_of = _conversation_of(described)

        # Not a coroutine function: the caller may change arguments before awaiting the coroutine.
        def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            flow: Begun[Any] = Begun(lambda: described(self, *args, **kwargs))
            return self._run(flow, conversation_of(args, kwargs))

        return _named(wait if awaited else run, described)


class Stream(Generic[P, T]):
    """A method that returns a reader of pages."""

    def __init__(self, described: Callable[Concatenate[Any, P], Pages[T]]) -> None:
        self.described = described

    if TYPE_CHECKING:

        @overload
        def __get__(self, opened: None, kind: Any) -> Stream[P, T]: ...
        @overload
        def __get__(self, opened: Blocking, kind: Any) -> Callable[P, Iterator[T]]: ...
        @overload
        def __get__(self, opened: Awaited, kind: Any) -> Callable[P, AsyncIterator[T]]: ...
        def __get__(self, opened: Any, kind: Any) -> Any: ...

    def method(self, awaited: bool) -> Callable[..., Any]:
        """Returns the method for a class that awaits flows, or for a class that runs flows."""
        described: Any = self.described

        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            pages = described(self, *args, **kwargs)
            page: Page[Any] = Page([], None)
            while True:
                page = self._run(pages(page.cursor))
                yield from page.items
                if page.cursor is None:
                    return

        conversation_of = _conversation_of(described)

        async def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            pages = described(self, *args, **kwargs)
            conversation = conversation_of(args, kwargs)
            page: Page[Any] = Page([], None)
            while True:
                page = await self._run(begun(pages(page.cursor)), conversation)
                for item in page.items:
                    yield item
                if page.cursor is None:
                    return

        if awaited:
            return _named(wait, described, AsyncIterator)
        return _named(run, described, Iterator)


def _conversation_of(described: Any) -> Callable[[Any, Any], str | None]:
    """Returns a function that finds the conversation among the arguments of a call."""
    names = list(inspect.signature(described).parameters)[1:]
    at = names.index("conversation") if "conversation" in names else len(names)

    def conversation_of(args: Any, kwargs: Any) -> str | None:
        given = args[at] if at < len(args) else kwargs.get("conversation")
        return given if isinstance(given, str) else None

    return conversation_of


def _make_methods(cls: type, awaited: bool) -> None:
    """Replaces the verbs of a class by plain methods, for `inspect` and `help`."""
    for name in dir(cls):
        described = inspect.getattr_static(cls, name)
        if isinstance(described, (Verb, Stream)):
            setattr(cls, name, described.method(awaited))


def _named(method: Any, described: Any, wrapped: Any = None) -> Callable[..., Any]:
    """Returns the method with the name, the docstring and the signature of its description."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(method, name, getattr(described, name))
    returns: Any = str(described.__annotations__["return"]).partition("[")[2].removesuffix("]")
    if wrapped is not None:
        returns = wrapped[eval(returns, vars(sys.modules[described.__module__]))]
    method.__annotations__ = described.__annotations__ | {"return": returns}
    # Tools that read the annotations resolve names in the module of the described verb.
    method.__wrapped__ = described
    method.__signature__ = inspect.signature(described).replace(return_annotation=returns)
    made: Callable[..., Any] = method
    return made
