"""The handle of a conversation: the verbs without its id, with defaults for options left out.

In: the verbs of an open store. Out: methods of `Conversation` and `AsyncConversation`, which call
the verb of the same name. A handle belongs to one caller: the handle passes `seq_seen` of its
newest receipt with the next list. It also does the compaction that a turn deferred: an asyncio
handle in the background, a blocking handle with one pass in every later turn that also defers.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from ..errors import LcmError
from ..opening import checked_dialect
from ..results import (
    AdviseAnswer,
    AssembledContext,
    CompactReport,
    ConversationStatus,
    Decision,
    Description,
    ListedItem,
    ListingKind,
    MaintainReport,
    ReadDialect,
    TurnReport,
)
from ..verb import Opened, Stream, Verb
from .compacting import Compacting
from .intake import Intake
from .keeping import Keeping
from .reading import Reading

P = ParamSpec("P")
T = TypeVar("T")

FOLLOWED = frozenset(("append", "ingest", "turn", "delete"))
"""Verbs whose receipt changes which messages the caller has seen."""


class Bound:
    """A method of a handle that calls the verb of the same name.

    `settings`: options that the handle adds if the call leaves them out. `fixed`: whether the id
    of the conversation is the first argument of the verb.
    """

    def __init__(self, *settings: str, fixed: bool = True) -> None:
        self._settings = settings
        self._fixed = fixed

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _bind(self, handle: Handle) -> Callable[..., Any]:
        """Returns the method of a handle."""
        method = getattr(handle.lcm, self._name)
        first = (handle.id,) if self._fixed else ()
        signature = inspect.signature(method)

        def _call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*first, *args, **kwargs).arguments
            settings = {
                name: handle.settings[name]
                for name in self._settings
                if name in handle.settings and name not in given
            }
            answer = method(*first, *args, **kwargs, **settings)
            if self._name == "turn":
                return handle._follow_turn(answer, given | settings)
            return handle._follow(self._name, answer)

        _call.__name__, _call.__doc__ = self._name, method.__doc__
        # For `help` and editors: the signature of the verb without the id of the conversation.
        own = [*signature.parameters.values()][len(first) :]
        setattr(_call, "__signature__", signature.replace(parameters=own))  # noqa: B010
        return _call


class BoundVerb(Bound, Generic[P, T]):
    """A bound verb."""

    @overload
    def __get__(self, handle: Conversation, kind: Any) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, handle: AsyncConversation, kind: Any
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, handle: Any, kind: Any) -> Any: ...
    def __get__(self, handle: Any, kind: Any = None) -> Any:
        return self if handle is None else self._bind(handle)


class BoundDescribe(BoundVerb[P, T]):
    """The verb `describe`; without an id it describes the conversation itself."""

    def _bind(self, handle: Handle) -> Callable[..., Any]:
        described = super()._bind(handle)

        def _describe(id: str | None = None, *args: Any, **kwargs: Any) -> Any:
            return described(handle.id if id is None else id, *args, **kwargs)

        return _describe


class BoundListing(BoundVerb[P, T]):
    """The verb `listing` of the conversation's `summaries`, `messages` or `grants`."""

    def _bind(self, handle: Handle) -> Callable[..., Any]:
        listed = getattr(handle.lcm, self._name)
        return lambda kind: listed(kind, handle.id)


class BoundStream(Bound, Generic[P, T]):
    """A bound stream."""

    @overload
    def __get__(self, handle: Conversation, kind: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, handle: AsyncConversation, kind: Any) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, handle: Any, kind: Any) -> Any: ...
    def __get__(self, handle: Any, kind: Any = None) -> Any:
        return self if handle is None else self._bind(handle)


def bound(verb: Verb[Concatenate[str, P], T], *settings: str) -> BoundVerb[P, T]:
    """Binds a verb of a conversation."""
    return BoundVerb(*settings)


def bound_stream(stream: Stream[Concatenate[str, P], T]) -> BoundStream[P, T]:
    """Binds a stream of a conversation."""
    return BoundStream()


def shared(verb: Verb[P, T], *settings: str) -> BoundVerb[P, T]:
    """Binds a verb that names no conversation."""
    return BoundVerb(*settings, fixed=False)


class Handle:
    """The verbs of a conversation. A call may leave out `budget` if the handle has one."""

    def __init__(
        self,
        lcm: Opened,
        id: str,
        budget: int | None = None,
        dialect: ReadDialect | None = None,
        model: str | None = None,
    ) -> None:
        if not isinstance(id, str) or not id:
            raise LcmError("invalid-input", "`conversation` must be a text, not empty")
        if dialect is not None:
            checked_dialect(dialect)
        self.lcm = lcm
        self.id = id
        given = {"budget": budget, "dialect": dialect, "model": model, "may_be_new": True}
        self.settings: dict[str, object] = {
            name: value for name, value in given.items() if value is not None
        }
        self._seq_seen = 0

    def _follow(self, name: str, answer: Any) -> Any:
        """Keeps `seq_seen` of the receipt in a verb's answer; returns the answer."""
        if name not in FOLLOWED:
            return answer
        if inspect.isawaitable(answer):
            return self._follow_awaited(name, answer)
        receipt = answer.get("receipt", answer)
        if receipt.get("done"):
            self.settings.pop("seq_seen", None)
            self._seq_seen = 0
        elif receipt.get("seq_seen", 0) > self._seq_seen:
            self.settings["seq_seen"] = self._seq_seen = receipt["seq_seen"]
        return answer

    async def _follow_awaited(self, name: str, answer: Awaitable[Any]) -> Any:
        return self._follow(name, await answer)

    def _follow_turn(self, answer: Any, given: dict[str, Any]) -> Any:
        """Keeps `seq_seen` of a turn, and does or starts the compaction that it deferred."""
        raise NotImplementedError

    def _verb(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.lcm, name)
        return method

    append = bound(Intake.append, "dialect", "seq_seen")
    ingest = bound(Intake.ingest, "dialect", "seq_seen")
    estimate = shared(Intake.estimate, "dialect")
    validate = shared(Intake.validate, "dialect")
    turn: BoundVerb[..., TurnReport] = BoundVerb("budget", "dialect", "model", "seq_seen")
    evaluate: BoundVerb[..., Decision] = BoundVerb("budget", "model")
    compact: BoundVerb[..., CompactReport] = BoundVerb("budget", "model")
    maintain: BoundVerb[..., MaintainReport] = BoundVerb("budget", "model")
    resummarize: BoundVerb[..., CompactReport] = BoundVerb("budget", "model")
    advise: BoundVerb[..., AdviseAnswer] = BoundVerb("budget", "model")
    calibrate = bound(Compacting.calibrate)
    usage = bound(Compacting.usage)
    assemble: BoundVerb[..., AssembledContext] = BoundVerb(
        "budget", "dialect", "model", "may_be_new"
    )
    grep = bound(Reading.grep)
    embed = bound(Reading.embed)
    expand = bound(Reading.expand)
    iter_expand = bound_stream(Reading.iter_expand)
    ask = bound(Reading.ask)
    ask_plan = bound(Reading.ask_plan)
    messages = bound(Reading.messages)
    iter_messages = bound_stream(Reading.iter_messages)
    grant = bound(Reading.grant)
    revoke = bound(Reading.revoke)
    tools = shared(Reading.tools, "dialect")
    instructions = shared(Reading.instructions, "dialect")
    call_tool = bound(Reading.call_tool)
    status: BoundVerb[..., ConversationStatus] = BoundVerb()
    family = bound(Keeping.family)
    reset = bound(Keeping.reset)
    new_session = bound(Keeping.new_session)
    archive = bound(Keeping.archive)
    delete = bound(Keeping.delete)
    focus = bound(Keeping.focus)
    rewind = bound(Keeping.rewind, "seq_seen")
    pop = bound(Keeping.pop, "seq_seen")
    check = bound(Keeping.check)
    export: BoundStream[[], str] = BoundStream()
    describe: BoundVerb[..., Description] = BoundDescribe()
    listing: BoundVerb[[ListingKind], list[ListedItem]] = BoundListing()


DEFERRED = ("budget", "model", "requests_max", "retries", "timeout_ms", "lease_ms", "now")
"""Arguments of a turn that hold for its deferred compaction, too."""


def _deferred(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in DEFERRED if name in given}


def _failure(error: LcmError) -> Any:
    return error.failure or {"code": error.code, "message": error.message}


class Conversation(Handle):
    """A conversation of an `Lcm`, with its settings. Made by `Lcm.conversation`."""

    _was_deferred = False
    """Whether the newest turn of the handle deferred compaction."""

    def _follow_turn(self, answer: Any, given: dict[str, Any]) -> Any:
        self._follow("turn", answer)
        was_deferred, self._was_deferred = self._was_deferred, answer["deferred"]
        if was_deferred and answer["deferred"]:
            # An exception would hide that the messages are stored.
            try:
                # A user waits, so a model that fails is asked once.
                options = {"retries": 0} | _deferred(given) | {"passes_max": 1}
                made = self._verb("maintain")(self.id, **options)
                answer["compacted"], answer["failure"] = made["compacted"], made["failure"]
            except LcmError as error:
                answer["failure"] = _failure(error)
        return answer


class AsyncConversation(Handle):
    """A conversation of an `AsyncLcm`, with its settings. Made by `AsyncLcm.conversation`."""

    _work: asyncio.Task[Any] | None = None
    """The deferred compaction that runs in the background; None: no compaction runs."""
    _failed: Any = None
    """The failure of background work that no turn has reported yet; None: there is none."""

    async def _follow_turn(self, answer: Any, given: dict[str, Any]) -> Any:
        result = self._follow("turn", await answer)
        if result["failure"] is None:
            result["failure"], self._failed = self._failed, None
        if result["deferred"] and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._maintain(_deferred(given)))
            await asyncio.sleep(0)  # The work begins, so that `close` waits for it.
        return result

    async def _maintain(self, options: dict[str, Any]) -> None:
        try:
            done = await self._verb("maintain")(self.id, **options)
            self._failed = done["failure"]
        except LcmError as error:
            # A conversation that was deleted meanwhile needs no compaction.
            self._failed = None if error.code == "not-found" else _failure(error)

    async def settle(self) -> None:
        """Waits for the deferred compaction that runs in the background, if any.

        A failure of the compaction is `failure` of the next turn. `close` of the store also waits.

        ```python
        async with open_async() as lcm:
            chat = lcm.conversation("chat", budget=8_000)
            await chat.turn([{"role": "user", "content": "What failed?"}])
            await chat.settle()
        ```
        """
        if self._work is not None:
            await asyncio.wait([self._work])
