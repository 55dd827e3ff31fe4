"""What takes more than one engine call, written once for the plain and the asyncio package.

Each flow is a generator: it yields what it wants done (an engine call, a completion, a pause), is
sent the result and returns its own. `intake` stores messages, `compaction` and `questions` ask
models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .models import Model
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

    `seconds`: it is waited for no longer than that.
    """

    request: dict[str, Any]
    model: Model
    seconds: float


@dataclass(frozen=True)
class Pause:
    """Wait; the result is None."""

    seconds: float


@dataclass(frozen=True)
class Together:
    """Run these flows, at the same time where the host can; the results come in their order."""

    flows: list[Generator[Any, Any, Any]]


@dataclass(frozen=True)
class Alone:
    """Run this flow when no other one of the conversation runs alone; the result is its own."""

    conversation: str
    flow: Generator[Any, Any, Any]


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a stream; without a `cursor` it is the last."""

    items: Sequence[T]
    cursor: Any


COMPACTING = "a model compacted the conversation whose compaction waits for it"
"""Why a flow that runs alone is refused inside of another one of its conversation."""


def is_stop(error: BaseException) -> bool:
    """Whether somebody wants the whole call to end: an interrupt, a cancelled task."""
    return not isinstance(error, (Exception, GeneratorExit))


Effect = Call | Complete | Pause | Together | Alone
Flow = Generator[Effect, Any, T]
Fields = dict[str, Any]


def model_option(model: str | None, mark_caches: bool = False) -> Fields:
    """The model whose tokens a call counts in, and whether caches are marked, for the engine."""
    extra: Fields = {} if model is None else {"model": model}
    if mark_caches:
        extra["mark_caches"] = True
    return {"extra_json": to_json(extra)} if extra else {}


def assemble(
    conversation: str, budget: int, dialect: str, options: Fields, now: int
) -> Flow[Any]:
    """A context that fits, its messages parsed."""
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
    return {"messages": json.loads(assembled["messages_json"])} | assembled


def called(name: str, arguments: Fields) -> Flow[Any]:
    """A call and its result."""
    return (yield Call(name, arguments))


def parsed(name: str, arguments: Fields) -> Flow[Any]:
    """A call whose result is a JSON text, parsed."""
    return json.loads((yield Call(name, arguments)))


def configure(config_json: str, keep: Callable[[str], None]) -> Flow[Any]:
    """Has the engine check a configuration before all instances get it; returns its report."""
    report = yield from parsed("setup.configure", {"config_json": config_json})
    keep(config_json)
    return report


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
