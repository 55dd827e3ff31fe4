"""Questions and tool calls that need completions.

In: what a caller wants, and how its models are asked. Out: the answer, and how the model failed.
The engine decides what to read, what to ask a model, and what an answer is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import completions
from .errors import CompletionFailed
from .flows import Call, Fields, Flow, Together, is_stop, parsed
from .models import Asking
from .models_asking import ask as ask_model
from .texts import to_json


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
