"""The host's rule for a model: how it is asked, when it is asked again, when it is given up.

In: a completion request and a callback. Out: the answer as the engine takes it. `auth` and
`policy` are final at once; `rate-limited`, `timeout`, `unavailable` and `other` are asked again
after a pause. What an answer is worth is judged by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import CompletionFailed, LcmError

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


def _text(given: Any) -> str:
    """A text as it can be handed over; empty: it is none."""
    return given.encode("utf-8", "replace").decode() if isinstance(given, str) else ""


def _whole(given: Any, most: int) -> int | None:
    """A whole number from 0; None: it is none, or more than can be."""
    is_number = isinstance(given, int) and not isinstance(given, bool)
    return int(given) if is_number and 0 <= given <= most else None


def _pause_ms(given: Any) -> int | None:
    """The pause that was asked for; None: none was that can be."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not given >= 0:
        return None
    return int(min(given, MS_MAX))


def answered(answer: Any, request: Any) -> dict[str, Any]:
    """What a callback returned for a request, as a `done` result.

    A callback returns its text, or a mapping with `text` and optionally `finish` (`stop, length,
    refusal`), `model` (absent: that of the request, else `default`),
    `input_tokens` and `output_tokens` (0: unknown). A report of these three that cannot be counts
    as absent: the text is paid for.
    """
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, Mapping) or not isinstance(answer.get("text"), str):
        raise CompletionFailed("other", "`complete` returned no text")
    done = {
        "text": _text(answer["text"]),
        "finish": answer.get("finish") or "stop",
        "model": _text(answer.get("model")) or request.get("model") or "default",
        "input_tokens": _whole(answer.get("input_tokens"), TOKENS_MAX) or 0,
        "output_tokens": _whole(answer.get("output_tokens"), TOKENS_MAX) or 0,
    }
    if done["finish"] not in ("stop", "length", "refusal"):
        raise CompletionFailed("other", f"`complete` returned finish `{done['finish']}`")
    return {"done": done}


def failed(error: Exception) -> dict[str, Any]:
    """What a callback raised, as a `failed` result."""
    if isinstance(error, CompletionFailed) and error.code in CODES:
        code, message = error.code, str(error.message)
        pause = _pause_ms(error.retry_after_ms)
    elif isinstance(error, TimeoutError):
        code, message, pause = "timeout", str(error) or "the model did not answer in time", None
    else:
        code, message, pause = "other", f"{type(error).__name__}: {error}", None
    line = " ".join(message.split()).encode("utf-8", "replace").decode()
    return {"failed": {"code": code, "message": line, "retry_after_ms": pause}}


def failure_code(answer: dict[str, Any]) -> str | None:
    """Code of a failed answer; None: the model answered."""
    return answer["failed"]["code"] if "failed" in answer else None


def pause_seconds(answer: dict[str, Any], attempt: int) -> float | None:
    """How long to wait after attempt number `attempt` (from 1); None: it is not repeated."""
    wanted = answer["failed"]["retry_after_ms"]
    if wanted is None:
        return min(FIRST_PAUSE_SECONDS * float(2 ** (attempt - 1)), PAUSE_SECONDS_MAX)
    pause = float(wanted) / 1000
    return pause if pause <= PAUSE_SECONDS_MAX else None


def checked(number: Any, name: str, least: int) -> int:
    """A number that the caller gave, checked."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise LcmError("invalid-input", f"`{name}` must be a whole number from {least}")
    return number


def refuse_awaitable(answer: Any) -> Any:
    """The answer of a callback that may not be awaited."""
    if hasattr(answer, "__await__"):
        if hasattr(answer, "close"):
            answer.close()
        raise LcmError("invalid-input", "`complete` returned an awaitable: use `open_async`")
    return answer
