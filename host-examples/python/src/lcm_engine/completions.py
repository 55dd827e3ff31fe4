"""Answers of models: the form that the engine takes, and when to ask a model again.

In: a completion request and a callback. Out: the answer in the form of the engine. `auth` and
`policy` are final; after `rate-limited`, `timeout`, `unavailable` and `other` the model is asked
again after a pause. The engine judges answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from .errors import CompletionFailed, LcmError
from .results import (
    Completion,
    CompletionErrorCode,
    CompletionFailure,
    CompletionRequest,
    Finish,
)

CODES = ("auth", "policy", "rate-limited", "timeout", "context-too-long", "unavailable", "other")
RETRIED = ("rate-limited", "timeout", "unavailable", "other")
FIRST_PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 60.0
"""The longest pause. A model that wants a longer one is not asked again: it would refuse in vain
until then, and the next one may serve."""
TIMEOUT_MS = 60_000
"""From the question to the answer; the reference system's `summaryTimeoutMs`."""


TOKENS_MAX = 2**32 - 1
MS_MAX = 2**53 - 1


def _text(given: object) -> str:
    """Returns a text without lone surrogates; empty: `given` is no text."""
    return given.encode("utf-8", "replace").decode() if isinstance(given, str) else ""


def _whole(given: object, most: int) -> int | None:
    """Returns a whole number from 0 to `most`; None: `given` is no such number."""
    if isinstance(given, bool) or not isinstance(given, int):
        return None
    return given if 0 <= given <= most else None


def _pause_ms(given: object) -> int | None:
    """Returns a pause in milliseconds; None: `given` is no number from 0."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not given >= 0:
        return None
    return int(min(given, MS_MAX))


class Answered(TypedDict, total=False):
    """The answer to a completion request: one of `done` and `failed`."""

    done: Completion
    """What the model wrote."""
    failed: CompletionFailure
    """How the model failed."""


def answered(answer: object, request: CompletionRequest) -> Answered:
    """Returns what a callback answered to a request, as `done`.

    A callback returns its text, or a mapping with `text` and optionally `finish` (`stop, length,
    refusal`), `model` (absent: that of the request, else `default`),
    `input_tokens` and `output_tokens` (0: unknown). A report of these three that cannot be counts
    as absent: the text is paid for.
    """
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, Mapping) or not isinstance(answer.get("text"), str):
        raise CompletionFailed("other", "`complete` returned no text")
    finish = answer.get("finish") or "stop"
    if finish not in ("stop", "length", "refusal"):
        raise CompletionFailed("other", f"`complete` returned finish `{finish}`")
    done: Completion = {
        "text": _text(answer["text"]),
        "finish": cast(Finish, finish),
        "model": _text(answer.get("model")) or request.get("model") or "default",
        "input_tokens": _whole(answer.get("input_tokens"), TOKENS_MAX) or 0,
        "output_tokens": _whole(answer.get("output_tokens"), TOKENS_MAX) or 0,
    }
    return {"done": done}


def failed(error: Exception) -> Answered:
    """Returns what a callback raised, as `failed`."""
    if isinstance(error, CompletionFailed) and error.code in CODES:
        code, message = error.code, str(error.message)
        pause = _pause_ms(error.retry_after_ms)
    elif isinstance(error, TimeoutError):
        code, message, pause = "timeout", str(error) or "the model did not answer in time", None
    else:
        code, message, pause = "other", f"{type(error).__name__}: {error}", None
    line = " ".join(message.split()).encode("utf-8", "replace").decode()
    kind = cast(CompletionErrorCode, code)
    return {"failed": {"code": kind, "message": line, "retry_after_ms": pause}}


def failure_code(answer: Answered) -> str | None:
    """Returns the code of a failed answer; None: the model answered."""
    return answer["failed"]["code"] if "failed" in answer else None


def pause_seconds(answer: Answered, attempt: int) -> float | None:
    """Returns the pause after the failed attempt `attempt`, from 1; None: do not ask again."""
    wanted = answer["failed"].get("retry_after_ms")
    if wanted is None:
        return min(FIRST_PAUSE_SECONDS * float(2 ** (attempt - 1)), PAUSE_SECONDS_MAX)
    pause = float(wanted) / 1000
    return pause if pause <= PAUSE_SECONDS_MAX else None


def checked(number: object, name: str, least: int) -> int:
    """Returns a number of the caller; raises unless it is whole and at least `least`."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise LcmError("invalid-input", f"`{name}` must be a whole number from {least}")
    return number


def refuse_awaitable(answer: Any) -> Any:
    """Returns the answer of a callback; raises when the answer must be awaited."""
    if hasattr(answer, "__await__"):
        if hasattr(answer, "close"):
            answer.close()
        raise LcmError("invalid-input", "`complete` returned an awaitable: use `open_async`")
    return answer
