"""The flows that ask models: compaction at once or later, questions, tools that need completions.

In: what a caller wants, and how its models are asked. Out: one result for all passes. Which task is
due, what an answer is worth, what is owed and when it is tried again is decided by the engine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from . import completions
from .errors import CompletionFailed, LcmError
from .flows import (
    Alone,
    Call,
    Complete,
    Fields,
    Flow,
    Pause,
    Together,
    is_stop,
    model_option,
    parsed,
)
from .intake import Messages, append
from .models import Asking
from .texts import to_json

FATAL_REASONS = ("model-auth", "model-policy")
"""Failures that another try cannot mend: the caller has to."""

APPEND_MODES = ("transcript", "new")


@dataclass(frozen=True)
class Work:
    """What a compaction works on, and how. `options` are those of the engine's `plan`."""

    conversation: str
    budget: int
    options: Fields
    now: Callable[[], int]
    """The time of each call."""
    asking: Asking

    def question(self, **changes: Any) -> Fields:
        """The arguments of `evaluate` and `plan`."""
        return {
            "conversation": self.conversation,
            "budget": self.budget,
            "options": self.options | changes,
            "now": self.now(),
        }


def options(
    mode: str,
    force: bool,
    target: int | None,
    observed_tokens: int | None,
    model: str | None,
    requests_max: int = 1,
    lease_ms: int = 0,
) -> Fields:
    """The options of a `Work`, as the engine takes them."""
    return {
        "mode": mode,
        "force": force,
        "target": target,
        "observed_tokens": observed_tokens,
        **model_option(model),
        "requests_max": requests_max,
        "lease_ms": lease_ms,
    }


def turn(work: Work, dialect: str, texts: list[str], intake: Fields) -> Flow[Any]:
    """Appends, evaluates, and compacts when it is due and cannot wait.

    `intake` has the options of `append` by their names there, with `append_mode` for `new`, and
    `defer`.
    """
    intake = dict(intake)
    mode, defer = intake.pop("append_mode"), intake.pop("defer")
    if mode not in APPEND_MODES:
        raise LcmError("invalid-input", f"`append_mode` must be one of {', '.join(APPEND_MODES)}")
    if not isinstance(defer, bool):
        raise LcmError("invalid-input", "`defer` must be True or False")
    # What is wrong is said before anything is stored.
    decision = yield from evaluate(work.question())
    new, now = mode == "new", work.now()
    receipt = yield from append(
        Messages(work.conversation, dialect, texts, new=new, now=now, **intake)
    )
    done: Fields = {"receipt": receipt, "decision": decision, "compacted": None}
    done |= {"deferred": False, "failure": None}
    try:
        yield from _behind(work, defer, done)
    except LcmError as error:
        # An exception would hide that the messages are stored.
        done["failure"] = {"code": error.code, "message": error.message}
    return done


def _behind(work: Work, defer: bool, done: Fields) -> Flow[None]:
    """What a turn does behind its append; `done` has at any time what was done."""
    decision = done["decision"] = yield from evaluate(work.question())
    if not decision["due"]:
        return
    if defer and not decision["must"]:
        # What the engine sees no debt in, it would never do later: a forced pass, or a mode that
        # acts below the threshold.
        done["deferred"] = (yield from _ask_maintain(work))["debt"] is not None
    if not done["deferred"]:
        _, refusal, compacted = yield Alone(work.conversation, _drain(work))
        done |= {"compacted": compacted, "failure": _said(refusal, compacted)}


def evaluate(question: Fields) -> Flow[Any]:
    """What the engine decides, its explanation parsed."""
    decision: Fields = dict((yield Call("compaction.evaluate", question)))
    return decision | {"explanation": json.loads(decision.pop("explanation_json"))}


def _said(refusal: LcmError | None, compacted: Fields | None) -> Fields | None:
    """How the model failed, of a refusal or of a compaction in spite of it."""
    if refusal is not None:
        return {"code": refusal.code, "message": refusal.message}
    failure = compacted["failure"] if compacted else None
    return failure and {"code": failure["code"], "message": failure["message"]}


def _ask_maintain(work: Work, ended: str | None = None) -> Flow[Fields]:
    """Asks what is owed and whether it is time, or tells how a compaction ended."""
    asked: Fields = {"budget": work.budget, "observed_tokens": work.options.get("observed_tokens")}
    if work.options.get("extra_json"):
        asked |= json.loads(work.options["extra_json"])
    if ended is not None:
        asked["ended"] = ended
    arguments = {"conversation": work.conversation, "verb": "maintain", "now": work.now()}
    answer: Fields = yield from parsed("admin.call", arguments | {"arguments_json": to_json(asked)})
    return answer


def maintain(work: Work) -> Flow[Any]:
    """Does what was put off, when it is time for it; behind another compaction it asks anew."""
    return (yield Alone(work.conversation, _maintain(work)))


def _maintain(work: Work) -> Flow[Fields]:
    answer = yield from _ask_maintain(work)
    if not answer["drain"]:
        return {"debt": answer["debt"], "compacted": None, "failure": None}
    try:
        reason, refusal, compacted = yield from _drain(work)
    except LcmError as error:
        if error.code == "conflict":
            yield from _ask_maintain(work, "conflict")
        raise
    except BaseException as error:
        if is_stop(error):
            yield from _ask_maintain(work, "cancelled")
        raise
    if compacted and compacted["passes"]:
        # What was observed is of a context before the passes.
        work = replace(work, options=work.options | {"observed_tokens": None})
    answer = yield from _ask_maintain(work, reason)
    failure = _said(refusal, compacted)
    return {"debt": answer["debt"], "compacted": compacted, "failure": failure}


PASS_KEYS = ("depth", "level", "capped", "tokens_before", "tokens_after")


def compact(work: Work) -> Flow[Any]:
    """Drives compaction as a command: one result for all passes.

    Raises `completion-failed` when the model refuses its key or the content.
    """
    _, refusal, compacted = yield Alone(work.conversation, _drain(work))
    if compacted is None:
        raise refusal or LcmError("trap", "a compaction ended without a result")
    return compacted


def _drain(work: Work) -> Flow[tuple[str, LcmError | None, Fields | None]]:
    """Compacts until nothing is due: the engine's reason, and a refusal or what was done."""
    ended = yield from drive(work, fallback=True)
    reason, failure = ended["reason"], ended["failure"]
    if reason in FATAL_REASONS and failure:
        return reason, LcmError("completion-failed", f"{reason}: {failure['message']}"), None
    # Whether more is due after the passes: what was observed is of a context before them.
    after = work.question(force=False, observed_tokens=None)
    decision = yield from evaluate(after)
    explained = decision["explanation"]
    tokens = explained["inputs"]["stored_tokens"]
    passes = []
    for outcome in filter(_is_new, ended["passes"]):
        of_pass = {"summary": outcome["summary"], "kind": outcome["purpose"]}
        passes.append(of_pass | {key: outcome[key] for key in PASS_KEYS})
    said = [line for outcome in ended["passes"] for line in outcome["warnings"]]
    warnings = list(dict.fromkeys(said + explained["warnings"]))
    if failure:
        warnings.append(f"completion-failed: {failure['code']}: {failure['message']}")
    compacted = {
        "status": _status(ended, bool(passes), decision["due"]),
        "reason": reason,
        "passes": passes,
        "completions": ended["completions"],
        "tokens_before": passes[0]["tokens_before"] if passes else tokens,
        "tokens_after": passes[-1]["tokens_after"] if passes else tokens,
        "warnings": warnings,
        "failure": failure,
    }
    return reason, None, compacted


def _is_new(outcome: Fields) -> bool:
    """Whether this call made a summary; one by an equal call before left the context as it was."""
    shrunk: bool = outcome["tokens_after"] < outcome["tokens_before"]
    return outcome["applied"] == "committed" and shrunk


def _status(ended: Fields, any_pass: bool, still_due: bool) -> str:
    """How it ended."""
    if ended["served"]:
        return "partial"
    if ended["status"] == "refused" or ended["reason"] == "breaker-open":
        return "model-unavailable"
    if ended["status"] != "nothing-due":
        return "partial"
    if not any_pass:
        return "nothing-to-do"
    return "partial" if still_due else "done"


def drive(work: Work, fallback: bool = False) -> Flow[Fields]:
    """Plans, completes and applies until nothing is due or the model is given up.

    The requests of one plan are served one after the other, or asked together and then applied in
    their order. `fallback` says to the engine, once all models are exhausted, that the budget must
    be kept without them.
    """
    passes: list[Fields] = []
    over = work.budget if fallback else None
    model = _Model(work.asking, over, work.options.get("extra_json"))
    sweep = work.options.get("sweep")
    requests_max = work.options.get("requests_max", 1)
    while True:
        question = work.question(sweep=sweep or None, requests_max=requests_max)
        plan = yield Call("compaction.plan", question)
        sweep = plan["sweep"]
        if plan["status"] != "needs-completions" and not sweep:
            return model.result(plan["status"], plan["reason"], passes)
        requests = plan["requests"]
        answers = None
        if work.asking.together:
            answers = yield Together([model.ask(one) for one in requests])
        for index, request in enumerate(requests):
            answer = answers[index] if answers else (yield from model.ask(request))
            reason = yield from _settle(work, request, answer, model, passes)
            if reason is not None:
                return model.result("refused", reason, passes)


class _Model:
    """The models of one command: how often they were asked, and whether they were given up."""

    def __init__(
        self, asking: Asking, fallback_over_tokens: int | None, extra_json: str | None
    ) -> None:
        self.asking = asking
        self.fallback_over_tokens = fallback_over_tokens
        self.extra_json = extra_json
        self.completions = 0
        self.exhausted: Fields | None = None
        self.served = False
        """Whether a summary was made in place of exhausted models."""
        self.failure: Fields | None = None

    def ask(self, request: Fields, limit_ms: int | None = None) -> Flow[Fields]:
        """The answer of the first model that has one in so much time, or the last failure."""
        if self.exhausted is not None:
            return self.exhausted
        models = self.asking.models.of(request["purpose"])
        if not models:
            self.completions += 1
            done = yield Call("compaction.complete_offline", {"request": request})
            return {"done": done}
        end = None if limit_ms is None else time.monotonic() + limit_ms / 1000
        answer: Fields = {}
        for model in models:
            for attempt in range(1, self.asking.asks + 1):
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    late = TimeoutError(f"there was no answer in {limit_ms} ms")
                    return completions.failed(late)
                self.completions += 1
                seconds = self.asking.timeout_seconds
                answer = yield Complete(request, model, min(seconds, left or seconds))
                code = completions.failure_code(answer)
                if code not in completions.RETRIED:
                    self.failure = answer.get("failed") or self.failure
                    return answer
                pause = completions.pause_seconds(answer, attempt)
                if pause is None or attempt == self.asking.asks:
                    break
                yield Pause(pause if left is None else min(pause, left))
        self.failure = answer["failed"]
        if self.fallback_over_tokens is not None:
            self.exhausted = answer
        return answer

    def apply_options(self) -> Fields:
        """What is said with an answer when it is applied."""
        over = self.fallback_over_tokens if self.exhausted is not None else None
        return {"fallback_over_tokens": over, "extra_json": self.extra_json}

    def result(self, status: str, reason: str, passes: list[Fields]) -> Fields:
        """How the command ended."""
        return {
            "status": status,
            "reason": reason,
            "passes": passes,
            "completions": self.completions,
            "served": self.served,
            "failure": self.failure,
        }


def _settle(
    work: Work, request: Fields, answer: Fields, model: _Model, passes: list[Fields]
) -> Flow[str | None]:
    """Applies an answer and follows retries; a reason when the model failed for good."""
    while True:
        outcome: Fields = yield Call(
            "compaction.apply",
            {
                "conversation": work.conversation,
                "request_id": request["id"],
                "answer": answer,
                "options": model.apply_options(),
                "now": work.now(),
            },
        )
        passes.append(outcome)
        model.served |= model.exhausted is not None and _is_new(outcome)
        if outcome["applied"] == "refused" and outcome["reason"].startswith("model-"):
            return str(outcome["reason"])
        if outcome["applied"] != "retry" or outcome["next"] is None:
            return None
        request = outcome["next"]
        answer = yield from model.ask(request)


def call_tool(
    conversation: str,
    name: str,
    arguments: Any,
    caller: str | None,
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
            "caller": caller,
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
    try:
        step = yield from parsed("recall.ask_plan", place | document)
    except LcmError as error:
        if error.code != "invalid-input" or not error.message.startswith("timeout_ms:"):
            raise
        # Here `timeout_ms` is that of one answer.
        message = "deadline_ms" + error.message.removeprefix("timeout_ms")
        raise LcmError(error.code, message) from error

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
    model = _Model(asking, None, None)
    failure: Fields | None = None
    while (asked := needs(step)) is not None:
        requests, limit_ms = asked["requests"], asked.get("timeout_ms")
        try:
            answers = yield Together([model.ask(request, limit_ms) for request in requests])
        except BaseException as error:
            if not is_stop(error):
                raise
            stopped = completions.failed(CompletionFailed("other", "cancelled"))
            yield from resume(asked["continuation"], [stopped for _ in requests])
            raise
        failed = [answer["failed"] for answer in answers if "failed" in answer]
        failure = {key: failed[-1][key] for key in ("code", "message")} if failed else None
        step = yield from resume(asked["continuation"], answers)
    return step, failure
