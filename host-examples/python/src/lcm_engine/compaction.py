"""Compaction at once, later, or after the append of a turn.

In: a compaction that a caller requests, and how to ask its models. Out: one result for all passes.
The engine decides which task is due, whether an answer is good enough, and when to try again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from . import results
from .drive import drive
from .errors import LcmError
from .flows import Alone, Fields, Flow, evaluate, model_option, read_decision, read_failure
from .intake import intake
from .models import Asking


@dataclass(frozen=True)
class Work:
    """A compaction to do; `options` are members of a task of the engine."""

    conversation: str
    budget: int
    options: Fields
    now: Callable[[], int]
    """The time of each call."""
    asking: Asking

    def task(self, name: str, **more: object) -> Fields:
        """Returns the task of this name."""
        given = {"conversation": self.conversation, "budget": self.budget} | self.options | more
        chosen = {name: value for name, value in given.items() if value is not None}
        return {"task": name} | chosen

    def question(self, may_be_new: bool = False) -> Fields:
        """Returns the arguments of `evaluate`; `may_be_new`: the conversation need not exist."""
        options = {name: value for name, value in self.options.items() if name != "model"}
        options |= model_option(self.options.get("model"), may_be_new=may_be_new)
        arguments = {"conversation": self.conversation, "budget": self.budget}
        return arguments | {"options": options, "now": self.now()}


def turn(
    work: Work, texts: list[str], options: Fields, defer: bool | None, clock: Callable[[], int]
) -> Flow[results.TurnReport]:
    """Appends messages, evaluates, and compacts when compaction is due and cannot wait.

    The append has the time of `work`; the compaction reads `clock`, so that its deadline can pass.
    """
    # An invalid argument is an error before a message is stored.
    decision = yield from evaluate(work.question(may_be_new=True))
    task = {"task": "append", "conversation": work.conversation} | options
    receipt = yield from intake(task, texts, work.now())
    done = results.TurnReport(
        receipt=receipt, decision=decision, compacted=None, deferred=False, failure=None
    )
    try:
        result = (yield from drive(work.task("turn", defer=defer), work.now)).result
        done["decision"], done["deferred"] = read_decision(result["decision"]), result["deferred"]
        if result["compact"]:
            work = replace(work, now=clock)
            compacted = done["compacted"] = yield from compact(work, turn=True)
            done["failure"] = read_failure(compacted["failure"])
    except LcmError as error:
        # An exception would hide that the messages are stored.
        done["failure"] = error.failure or {"code": error.code, "message": error.message}
    return done


def compact(work: Work, turn: bool | None = None) -> Flow[results.CompactReport]:
    """Compacts until nothing is due or the engine stops; returns one report for all passes.

    `turn`: the compaction belongs to a turn. Raises `completion-failed` when the model refuses its
    key or the content; `failure` of the exception is the failure of the model.
    """
    return (yield from _compacted(work, work.task("compact", turn=turn)))


def resummarize(work: Work) -> Flow[results.CompactReport]:
    """Makes provisional summaries again; returns one report for all passes."""
    return (yield from _compacted(work, work.task("resummarize")))


def _compacted(work: Work, task: Fields) -> Flow[results.CompactReport]:
    outcome = yield Alone(work.conversation, drive(task, work.now, asking=work.asking))
    report = outcome.result | {"passes": outcome.passes, "warnings": outcome.warnings}
    return cast(results.CompactReport, report)


def maintain(work: Work) -> Flow[results.MaintainReport]:
    """Does deferred compaction if the engine decides that it is due."""
    flow = drive(work.task("maintain"), work.now, asking=work.asking)
    outcome = yield Alone(work.conversation, flow)
    result: Fields = outcome.result
    if result["compacted"] is not None:
        result["compacted"] |= {"passes": outcome.passes, "warnings": outcome.warnings}
    return cast(results.MaintainReport, result)
