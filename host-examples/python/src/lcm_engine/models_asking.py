"""Asks the models of a caller, with a time limit, retries after failures, and fallback models."""

from __future__ import annotations

import time
from itertools import product

from . import completions
from .completions import Answered
from .flows import Call, Complete, Fields, Flow, Pause, Tell, Together
from .models import Asking
from .results import CompletionRequest


def _complete(effect: Complete, conversation: str, attempt: int) -> Flow[Answered]:
    """Asks a model once, and emits the event of the call."""
    began = time.monotonic()
    answer: Answered = yield effect
    ms = round((time.monotonic() - began) * 1000)
    done, failed = answer.get("done"), answer.get("failed")
    told: Fields = dict(done or {"model": effect.request.get("model")})
    event = {
        "kind": "model-called",
        "conversation": conversation,
        "purpose": effect.request["purpose"],
        "attempt": attempt,
        "model": told.get("model"),
        "ms": ms,
        "input_tokens": told.get("input_tokens", 0),
        "output_tokens": told.get("output_tokens", 0),
        "finish": told.get("finish"),
        "error": failed["code"] if failed else None,
    }
    yield Tell(event)
    return answer


def ask(
    asking: Asking, request: CompletionRequest, limit_ms: int | None = None
) -> Flow[tuple[Answered, int]]:
    """Returns the first answer within `limit_ms`, else the last failure, and the count of tries.

    After an answer that the engine judges as blank or cut off, the next model is asked. The first
    such answer is returned if no later model gives a good answer, else the failure of a prompt that
    was too long.
    """
    models = asking.models.of(request["purpose"])
    if not models:
        done = yield Call("compaction.complete_offline", {"request": request})
        return {"done": done}, 1
    asked = 0
    faulty: Answered | None = None
    too_long: Answered | None = None
    end = None if limit_ms is None else time.monotonic() + limit_ms / 1000
    answer: Answered = {}
    chain = list(product(asking.requests_of(request), models))
    for asked_for, model in chain:
        for attempt in range(1, asking.asks + 1):
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                late = TimeoutError(f"there was no answer in {limit_ms} ms")
                return faulty or completions.failed(late, request), asked
            asked += 1
            seconds = asking.timeout_seconds
            effect = Complete(asked_for, model, min(seconds, left or seconds))
            answer = yield from _complete(effect, asking.conversation, asked)
            if "done" in answer and len(chain) > 1:
                judged = {"request": request, "answer": answer["done"]}
                if (yield Call("compaction.judge_answer", judged)) is not None:
                    faulty = faulty or answer
                    break
            if "done" in answer:
                return answer, asked
            if completions.failure_code(answer) == completions.TOO_LONG:
                too_long = too_long or answer
                break
            if completions.failure_code(answer) not in completions.RETRIED:
                return faulty or too_long or answer, asked
            pause = completions.pause_seconds(answer, attempt)
            if pause is None or attempt == asking.asks:
                break
            yield Pause(pause if left is None else min(pause, left))
    # The engine rejects a faulty answer by its rules; a long prompt concerns this request alone.
    return faulty or too_long or answer, asked


def ask_all(
    asking: Asking, requests: list[CompletionRequest]
) -> Flow[list[tuple[Answered, int]]]:
    """Asks for every request as `ask` does; returns what `ask` returns, in the same order."""
    flows = [ask(asking, request) for request in requests]
    answers: list[tuple[Answered, int]] = []
    if asking.together:
        answers = yield Together(flows)
    else:
        for flow in flows:
            answers.append((yield from flow))
    return answers
