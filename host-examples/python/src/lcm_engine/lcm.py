"""The package for programs whose calls may block: `open` and `Lcm`.

In: conversations, messages, budgets. Out: plain dicts. `verbs` describes the calls; this
module runs their flows to the end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from . import completions, flows
from .component import Program, load
from .errors import LcmError
from .events import Events, EventListener
from .instance import MEMORY_BYTES_MAX, Instance
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
from .sessions import Session, Turn
from .stores import Store
from .verb import Blocking
from .verbs import Verbs
from .verbs.handle import Conversation

T = TypeVar("T")

_COMPACTIONS: WeakValueDictionary[tuple[str, str], Turn] = WeakValueDictionary()
"""The locks of compactions of all stores of the process, by store and conversation."""
_COMPACTIONS_LOCK = threading.Lock()


def _forget_compactions() -> None:
    """Drops the locks that threads of the parent process hold."""
    global _COMPACTIONS_LOCK
    _COMPACTIONS_LOCK = threading.Lock()
    _COMPACTIONS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_compactions)


def _compaction(place: str, conversation: str) -> Turn:
    """Returns the lock that every compaction of a conversation holds while it runs."""
    with _COMPACTIONS_LOCK:
        turn = _COMPACTIONS.get((place, conversation))
        if turn is None:
            turn = _COMPACTIONS[place, conversation] = Turn(flows.COMPACTING)
        return turn


def open(
    store: str | os.PathLike[str] | Store | None = None,
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
) -> Lcm:
    """Opens a store with the engine over it.

    - `store`: path of a `*.lcm.db` file, made when absent; `memory:`; or any `Store`. None: the
      `database_path` of the configuration, else `memory:`.
    - `complete`: a function that asks a model (`completions.answered` lists its return values; it
      may raise `CompletionFailed`). A list is a fallback chain. A dict maps purposes to functions
      or lists, with `default` for the rest. None: the engine makes summaries without a model.
    - `config`: the configuration object; its keys override `LCM_*` variables of `environment`
      (None: the environment of the process). A key without effect is a warning.
    - `clock`: returns the time of a call without `now`, in milliseconds since the Unix epoch.
    - `retries`: how often a model is asked again after a temporary failure.
    - `memory_bytes_max`: most bytes of the memory of an instance.
    - `timeout_ms`: longest time for one answer; None: as configured, else a minute. A `complete`
      with a parameter `timeout` gets the time in seconds, for its HTTP client.
    - `scope`: what the tools of an agent may read: the conversation of the call with its family,
      or the `store`. `tools` and `call_tool` take another scope for one call.
    - `dialect`: dialect of messages to store and of contexts, unless a call or a handle names
      another. `auto` finds the dialect of each message to store; a call that writes messages must
      then name a dialect.
    - `on_event`: receives each event (`docs/events.md` of the project): messages stored, models
      called, summaries made and rejected. An exception of the function breaks nothing.
    """
    if getattr(store, "asynchronous", False):
        raise LcmError("invalid-input", "the store is asynchronous: use `open_async`")
    asking = Asking(models_of(complete)).given(retries, timeout_ms)
    tool_scope, own_dialect = checked_scope(scope), checked_dialect(dialect)
    events = Events(on_event)
    program = load(wasm)
    settings = configured(program, config, environment, asking)
    asking = asking.follow(settings.host)
    # The store is opened last, so that an invalid argument leaves nothing open.
    place: str | os.PathLike[str] | Store = default_store(settings) if store is None else store
    if store is not None:
        warn_of_unused_path(settings)
    opened = open_store(place)
    return Lcm(
        program,
        opened,
        asking,
        settings.config_json,
        clock,
        memory_bytes_max,
        tool_scope,
        own_dialect,
        events,
    )


class Lcm(Verbs, Blocking):
    """An open store. Made by `open`; usable as a context manager."""

    def __init__(
        self,
        program: Program,
        store: Store,
        asking: Asking,
        config_json: str | None,
        clock: Clock,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        scope: ToolScope = "conversation",
        dialect: ReadDialect = "lcm",
        events: Events | None = None,
    ) -> None:
        super().__init__(asking, clock, scope, dialect, events)
        self.store = store
        instance = Instance(program, config_json, memory_bytes_max=memory_bytes_max)
        self._session = Session(instance, store, repeated=self._events.repeated)
        self._place = place_of(store)

    def conversation(
        self,
        id: str,
        *,
        budget: int | None = None,
        dialect: ReadDialect | None = None,
        model: str | None = None,
    ) -> Conversation:
        """Returns the handle of a conversation, which need not exist: the verbs without its id.

        `budget`, `dialect` and `model` apply to calls that leave them out.

        ```python
        chat = lcm.conversation("chat-1", budget=8_000, dialect="openai-chat")
        chat.turn([{"role": "user", "content": "The gate code is 4711."}])
        assert chat.assemble()["messages"][0]["content"] == "The gate code is 4711."
        ```
        """
        return Conversation(self, id, budget, dialect, model)

    def call(self, name: str, arguments: Mapping[str, object]) -> JsonValue:
        """Calls a function of the interface by name (`admin.status`), with plain values."""
        self._owner.check()
        answer: JsonValue = self._session.call(name, dict(arguments))
        return answer

    def _run(self, flow: flows.Flow[T]) -> T:
        self._owner.check()
        try:
            effect = next(flow)
            while True:
                result: Any = None
                failure: BaseException | None = None
                if isinstance(effect, flows.Call):
                    # The flow does not see an exception that broke off an engine call.
                    result, failure = self._session.outcome(
                        effect.name, effect.arguments, effect.once
                    )
                else:
                    try:
                        result = self._perform(effect)
                    except BaseException as error:
                        failure = error
                effect = flow.send(result) if failure is None else flow.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _perform(self, effect: flows.Effect) -> Any:
        match effect:
            case flows.Complete(request, model, seconds):
                return self._ask(request, model, seconds)
            case flows.Pause(seconds):
                return time.sleep(seconds)
            case flows.Tell(event):
                return self._events.emit(event)
            case flows.Together(several):
                return [self._run(flow) for flow in several]
            case flows.Alone(conversation, flow):
                return _compaction(self._place, conversation).take(self._run, flow)

    def _ask(
        self, request: CompletionRequest, model: Model, seconds: float
    ) -> completions.Answered:
        try:
            answer = model(request, seconds)
            return completions.answered(completions.refuse_awaitable(answer), request)
        except LcmError:
            raise
        except Exception as error:
            return completions.failed(error, request)

    def _reconfigure(self, config_json: str) -> None:
        self._session.restart(config_json)

    def close(self) -> None:
        """Waits for the engine call of another thread and closes the store.

        Later engine calls fail with `invalid-input`, also those of a verb that another thread runs.
        In a forked process nothing is closed: the store belongs to the process that opened it.
        """
        if not self._owner.is_here:
            return
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
