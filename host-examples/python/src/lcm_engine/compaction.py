"""The flows that ask models: compaction at once or later, questions, tools that need completions.

In: what a caller wants, and how its models are asked. Out: one result for all passes. Which task is
due, what an answer is worth, what is owed and when it is tried again is decided by the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import completions
from .drive import drive
from .errors import CompletionFailed, LcmError
from .flows import Alone, Call, Fields, Flow, Together, is_stop, model_option, parsed
from .intake import intake
from .models import Asking
from .models_asking import ask as ask_model
from .texts import to_json


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


def call_tool(
    conversation: str,
    name: str,
    arguments: Any,
    grant: str | None,
    now: Callable[[], int],
    asking: Asking,
) -> Flow[Any]:
    """Answers a tool call of an agent; completions it needs are asked of the models."""
    text = arguments if isinstance(arguments, str) else to_json(arguments)
    outcome = yield Call(
        "tools.call",
        {
            "conversation": conversation,
            "name": name,
            "arguments_json": text,
            "grant": grant,
            "now": now(),
        },
    )
    def resume(continuation: str, answers: list[Fields]) -> Flow[Fields]:
        arguments = {"conversation": conversation, "continuation": continuation}
        outcome: Fields = yield Call(
            "tools.resume", arguments | {"answers": answers, "now": now()}
        )
        return outcome

    def needs(outcome: Fields) -> Fields | None:
        return outcome.get("needs-completions")

    outcome, failure = yield from _completed(outcome, needs, resume, asking)
    answer: Fields = outcome["done"]
    return answer | {"failure": failure}


def ask(
    conversation: str, question: Fields, now: Callable[[], int], asking: Asking
) -> Flow[Any]:
    """Has a question answered; how the model failed is a status."""
    place: Fields = {"conversation": conversation}
    document = {"question_json": to_json(question), "now": now()}
    step = yield from parsed("recall.ask_plan", place | document)

    def resume(continuation: str, answers: list[Fields]) -> Flow[Fields]:
        arguments = {"continuation": continuation, "answers": answers, "now": now()}
        step: Fields = yield from parsed("recall.ask_apply", place | arguments)
        return step

    def needs(step: Fields) -> Fields | None:
        return step if step["status"] == "asked" else None

    answer, _ = yield from _completed(step, needs, resume, asking)
    return answer


def ask_plan(conversation: str, question: Fields, now: int) -> Flow[Any]:
    """What a question would read."""
    document = {"question_json": to_json(question), "now": now}
    return (yield from parsed("recall.ask_plan", {"conversation": conversation} | document))


def _completed(
    step: Fields,
    needs: Callable[[Fields], Fields | None],
    resume: Callable[[str, list[Fields]], Flow[Fields]],
    asking: Asking,
) -> Flow[tuple[Fields, Fields | None]]:
    """Goes on from a step until nothing has to be completed any more.

    Returns the last step, and how the model failed that was asked for it, if it did. Whoever is
    stopped meanwhile says so to the engine: else the question would stay open.
    """
    failure: Fields | None = None
    while (asked := needs(step)) is not None:
        requests, limit_ms = asked["requests"], asked.get("deadline_ms")
        try:
            flows = [ask_model(asking, request, limit_ms) for request in requests]
            answered = yield Together(flows)
        except BaseException as error:
            if not is_stop(error):
                raise
            stopped = completions.failed(CompletionFailed("other", "cancelled"))
            yield from resume(asked["continuation"], [stopped for _ in requests])
            raise
        answers = [answer for answer, _ in answered]
        failed = [answer["failed"] for answer in answers if "failed" in answer]
        failure = {key: failed[-1][key] for key in ("code", "message")} if failed else None
        step = yield from resume(asked["continuation"], answers)
    return step, failure
