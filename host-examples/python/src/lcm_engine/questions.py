"""Questions and tool calls that need completions.

In: a question or a tool call, and how to ask the models. Out: the answer, and the model's failure.
The engine decides what to read, what to ask a model, and whether an answer is good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from . import completions
from .completions import Answered
from .errors import CompletionFailed, LcmError
from .flows import Call, Fields, Flow, Together, is_stop, parsed, read_failure
from .models import Asking
from .models_asking import ask as ask_model
from .results import AskResult, ModelFailure, QuestionPlan, ToolAnswer
from .texts import to_json


def call_tool(
    conversation: str,
    name: str,
    arguments: Mapping[str, object] | str,
    access: Fields,
    now: Callable[[], int],
    asking: Asking,
) -> Flow[ToolAnswer]:
    """Answers a tool call of an agent; the models complete what the answer needs.

    `access` has the `grant` and the `scope` of the call.
    """
    text = arguments if isinstance(arguments, str) else to_json(arguments)
    outcome = yield Call(
        "tools.call",
        {
            "conversation": conversation,
            "name": name,
            "arguments_json": text,
            **access,
            "now": now(),
        },
    )

    def resume(continuation: str, answers: list[Answered]) -> Flow[Fields]:
        arguments = {"conversation": conversation, "continuation": continuation}
        rest = {"answers": answers, "scope": access["scope"], "now": now()}
        outcome: Fields = yield Call("tools.resume", arguments | rest)
        return outcome

    def needs(outcome: Fields) -> Fields | None:
        return outcome.get("needs-completions")

    outcome, failure = yield from _completed(outcome, needs, resume, asking.about(conversation))
    done: Fields = outcome["done"]
    return {"text": done["text"], "is_error": done["is_error"], "failure": failure}


def ask(
    conversation: str, question: Fields, now: Callable[[], int], asking: Asking
) -> Flow[AskResult]:
    """Answers a question; the failure of a model is a status of the result."""
    place: Fields = {"conversation": conversation}
    document = {"question_json": to_json(question), "now": now()}
    step = yield from parsed("recall.ask_plan", place | document)

    def resume(continuation: str, answers: list[Answered]) -> Flow[Fields]:
        arguments = {"continuation": continuation, "answers": answers, "now": now()}
        step: Fields = yield from parsed("recall.ask_apply", place | arguments)
        return step

    def needs(step: Fields) -> Fields | None:
        return step if step["status"] == "asked" else None

    answer, _ = yield from _completed(step, needs, resume, asking.about(conversation))
    return cast(AskResult, answer)


def ask_plan(conversation: str, question: Fields, now: int) -> Flow[QuestionPlan]:
    """Returns the evidence that a question would read."""
    document = {"question_json": to_json(question), "now": now}
    arguments = {"conversation": conversation} | document
    plan: QuestionPlan = yield from parsed("recall.ask_plan", arguments)
    return plan


def _completed(
    step: Fields,
    needs: Callable[[Fields], Fields | None],
    resume: Callable[[str, list[Answered]], Flow[Fields]],
    asking: Asking,
) -> Flow[tuple[Fields, ModelFailure | None]]:
    """Completes the requests of each step until a step needs no completion.

    Returns the last step, and the last failure of a model that was asked for this step. After an
    interrupt or an error the engine gets failed answers, because without answers the question
    would stay open.
    """
    failure: ModelFailure | None = None
    answers: list[Answered]
    while (asked := needs(step)) is not None:
        requests, limit_ms = asked["requests"], asked.get("deadline_ms")
        try:
            flows = [ask_model(asking, request, limit_ms) for request in requests]
            answered = yield Together(flows)
        except BaseException as error:
            # A wrong answer of a callback ends the question, too.
            if not is_stop(error) and not isinstance(error, LcmError):
                raise
            cancelled = CompletionFailed("other", "cancelled")
            answers = [completions.failed(cancelled, request) for request in requests]
            yield from resume(asked["continuation"], answers)
            raise
        answers = [answer for answer, _ in answered]
        failed = [answer["failed"] for answer in answers if "failed" in answer]
        failure = read_failure(failed[-1] if failed else None)
        step = yield from resume(asked["continuation"], answers)
    return step, failure
