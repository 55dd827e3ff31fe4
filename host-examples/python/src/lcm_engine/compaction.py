"""Compaction at once, later, or after the append of a turn.

In: what a caller wants, and how its models are asked. Out: one result for all passes. The engine
decides which task is due, what an answer is worth, and when a task is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .drive import drive
from .errors import LcmError
from .flows import Alone, Call, Fields, Flow, model_option
from .intake import intake
from .models import Asking


@dataclass(frozen=True)
class Work:
    """What a compaction works on, and how. `options` are members of a task of the engine."""

    conversation: str
    budget: int
    options: Fields
    now: Callable[[], int]
    """The time of each call."""
    asking: Asking

    def task(self, name: str, **more: Any) -> Fields:
        """The task of this name."""
        given = {"conversation": self.conversation, "budget": self.budget} | self.options | more
        chosen = {name: value for name, value in given.items() if value is not None}
        return {"task": name} | chosen

    def question(self) -> Fields:
        """The arguments of `evaluate`."""
        options = {name: value for name, value in self.options.items() if name != "model"}
        options |= model_option(self.options.get("model"))
        arguments = {"conversation": self.conversation, "budget": self.budget}
        return arguments | {"options": options, "now": self.now()}


def turn(work: Work, texts: list[str], intake_options: Fields, defer: bool) -> Flow[Any]:
    """Appends, evaluates, and compacts when it is due and cannot wait."""
    if not isinstance(defer, bool):
        raise LcmError("invalid-input", "`defer` must be True or False")
    # What is wrong is said before anything is stored.
    decision = yield from evaluate(work.question())
    task = {"task": "append", "conversation": work.conversation} | intake_options
    receipt = yield from intake(task, texts, work.now())
    done: Fields = {"receipt": receipt, "decision": decision, "compacted": None}
    done |= {"deferred": False, "failure": None}
    try:
        told = (yield from drive(work.task("turn", defer=defer), work.now)).result
        done |= {"decision": _decision(told["decision"]), "deferred": told["deferred"]}
        if told["compact"]:
            compacted = done["compacted"] = yield from compact(work)
            done["failure"] = _said(compacted["failure"])
    except LcmError as error:
        # An exception would hide that the messages are stored.
        done["failure"] = {"code": error.code, "message": error.message}
    return done


def evaluate(question: Fields) -> Flow[Any]:
    """What the engine decides, its explanation parsed."""
    return _decision((yield Call("compaction.evaluate", question)))


def _decision(answered: Fields) -> Fields:
    decision = dict(answered)
    return decision | {"explanation": json.loads(decision.pop("explanation_json"))}


def _said(failure: Fields | None) -> Fields | None:
    """How the model failed."""
    return failure and {"code": failure["code"], "message": failure["message"]}


def compact(work: Work) -> Flow[Any]:
    """Compacts until nothing is due: one result for all passes.

    Raises `completion-failed` when the model refuses its key or the content.
    """
    flow = drive(work.task("compact"), work.now, asking=work.asking)
    outcome = yield Alone(work.conversation, flow)
    return outcome.result | {"passes": outcome.passes, "warnings": outcome.warnings}


def maintain(work: Work) -> Flow[Any]:
    """Does what was put off, when it is time for it; behind another compaction it asks anew."""
    flow = drive(work.task("maintain"), work.now, asking=work.asking)
    outcome = yield Alone(work.conversation, flow)
    result: Fields = outcome.result
    if result["compacted"] is not None:
        result["compacted"] |= {"passes": outcome.passes, "warnings": outcome.warnings}
    return result
