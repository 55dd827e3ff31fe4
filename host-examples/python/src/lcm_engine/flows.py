"""Flows: tasks of one or more engine calls, written once for both packages.

A flow is a generator. The flow yields effects (an engine call, a completion, a pause), receives the
result of each effect and returns the result of the task. `intake` stores messages, `compaction` and
`questions` ask models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from .models import Model
from .results import (
    AssembledContext,
    CompletionFailure,
    CompletionRequest,
    ConfigurationReport,
    Decision,
    ModelFailure,
)
from .settings import ResolvedConfiguration, Settings, settings_of
from .texts import batches, to_json

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """Call a function of the component; the result is its plain value.

    `once`: a conflict is not repeated but raised.
    """

    name: str
    arguments: dict[str, Any]
    once: bool = False


@dataclass(frozen=True)
class Complete:
    """Ask this model once; the result is a completion result, `done` or `failed`.

    `seconds`: longest time to wait for the answer.
    """

    request: CompletionRequest
    model: Model
    seconds: float


@dataclass(frozen=True)
class Pause:
    """Wait; the result is None."""

    seconds: float


@dataclass(frozen=True)
class Tell:
    """Hand an event to the listener of the program; the result is None."""

    event: dict[str, Any]


@dataclass(frozen=True)
class Together:
    """Run these flows, at the same time where possible; the results keep the order."""

    flows: list[Generator[Any, Any, Any]]


@dataclass(frozen=True)
class Alone:
    """Run this flow while no other flow of the conversation runs alone."""

    conversation: str
    flow: Generator[Any, Any, Any]


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a stream; the last page has no `cursor`."""

    items: Sequence[T]
    cursor: Any


COMPACTING = "a model compacted the conversation whose compaction waits for it"
"""The error of a flow that runs alone inside another such flow of the conversation."""


def is_stop(error: BaseException) -> bool:
    """Whether an exception ends the whole call: an interrupt, a cancelled task."""
    return not isinstance(error, (Exception, GeneratorExit))


Effect = Call | Complete | Pause | Tell | Together | Alone
Flow = Generator[Effect, Any, T]
Fields = dict[str, Any]


def model_option(
    model: str | None, mark_caches: bool = False, may_be_new: bool = False
) -> Fields:
    """Returns the options `model`, `mark_caches` and `may_be_new` as the engine takes them."""
    extra: Fields = {} if model is None else {"model": model}
    if mark_caches:
        extra["mark_caches"] = True
    if may_be_new:
        extra["may_be_new"] = True
    return {"extra_json": to_json(extra)} if extra else {}


def assemble(
    conversation: str, budget: int, dialect: str, options: Fields, now: int
) -> Flow[AssembledContext]:
    """Returns a context with the messages parsed; only its protected part can exceed the budget."""
    assembled: Fields = yield Call(
        "context.assemble",
        {
            "conversation": conversation,
            "budget": budget,
            "dialect": dialect,
            "options": options,
            "now": now,
        },
    )
    messages = json.loads(assembled["messages_json"])
    return cast(AssembledContext, {"messages": messages} | assembled)


def called(name: str, arguments: Fields) -> Flow[Any]:
    """Calls a function; returns its result."""
    return (yield Call(name, arguments))


def parsed(name: str, arguments: Fields) -> Flow[Any]:
    """Calls a function whose result is a JSON text; returns the parsed result."""
    return json.loads((yield Call(name, arguments)))


def told(name: str, arguments: Fields) -> Flow[Fields]:
    """Calls a function of `drive`; emits the events of the instruction, and returns it."""
    instruction: Fields = yield from parsed(name, arguments)
    for event in instruction.get("events", []):
        yield Tell(event)
    return instruction


def configure(config_json: str, keep: Callable[[Settings], None]) -> Flow[ConfigurationReport]:
    """Checks a configuration, gives the settings to `keep`, returns the report."""
    arguments = {"config_json": config_json, "variables_json": "{}"}
    resolved: ResolvedConfiguration = yield from parsed("setup.resolve", arguments)
    keep(settings_of(resolved))
    return resolved["report"]


def estimate(dialect: str, texts: list[str]) -> Flow[int]:
    """Estimates the tokens of messages."""
    tokens = 0
    for part in batches(texts):
        entries = yield Call("ingest.identify", {"dialect": dialect, "messages": part})
        tokens += sum(entry["tokens"] for entry in json.loads(entries))
    return tokens


def validate(dialect: str, texts: list[str]) -> Flow[list[str]]:
    """Returns the reasons why the provider of a dialect would refuse messages."""
    arguments = {"dialect": dialect, "messages_json": f"[{','.join(texts)}]"}
    findings: list[str] = yield from parsed("context.validate", arguments)
    return findings


def evaluate(question: Fields) -> Flow[Decision]:
    """Returns the decision of the engine, with the explanation parsed."""
    return read_decision((yield Call("compaction.evaluate", question)))


def read_decision(answer: Fields) -> Decision:
    """Returns a decision with the explanation parsed."""
    decision = dict(answer)
    decision["explanation"] = json.loads(decision.pop("explanation_json"))
    return cast(Decision, decision)


def read_failure(failure: CompletionFailure | None) -> ModelFailure | None:
    """Returns the code and the message of a failed completion; None: no completion failed."""
    if failure is None:
        return None
    return {"code": failure["code"], "message": failure["message"]}
