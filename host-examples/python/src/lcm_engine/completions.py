"""Answers of models: the form that the engine takes, and when to ask a model again.

In: a completion request and what a callback returned or raised. Out: the answer in the form of the
engine. `auth` and `policy` are final; after `context-too-long` the next model is asked, and after
`rate-limited`, `timeout`, `unavailable` and `other` the model is asked again after a pause. The engine judges answers. If a
callback returns a value that is no answer, the program has a mistake, and no model is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from .errors import CompletionFailed, LcmError
from .failure_table import code_of_finish
from .model_failures import read_raised, text_of
from .results import (
    Completion,
    CompletionErrorCode,
    CompletionFailure,
    CompletionRequest,
    Finish,
)

RETRIED = ("rate-limited", "timeout", "unavailable", "other")
TOO_LONG = "context-too-long"
"""Failure of the request in one model; another model may have a larger window."""
FIRST_PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 60.0
"""Longest pause before another attempt. A model that asks for a longer pause is not asked again for
the request; the next model may answer sooner."""
TIMEOUT_MS = 60_000
"""Longest time for one answer, unless an option or the configuration sets another."""

MESSAGE_LENGTH_MAX = 300
"""Longest message of a failure, in characters."""
FINISHES = ("stop", "length", "refusal")
"""Ends of an answer; any other meaning of a provider's word is a failure."""
SDK_ANSWERS = (
    ("choices", "a Chat Completions answer", "answer.choices[0].message.content"),
    ("output_text", "a Responses answer", "answer.output_text"),
    ("output", "a Responses answer", "answer.output_text"),
    ("candidates", "a Gemini answer", "answer.text"),
    ("stop_reason", "an Anthropic message", "the texts of answer.content, joined"),
    ("content", "a message", "its text"),
)
"""Members that identify answers of SDKs, and the path of the text in such an answer."""
TOKENS_MAX = 2**32 - 1


def _text(given: object) -> str:
    """Returns a text without lone surrogates; empty: `given` is no text."""
    return given.encode("utf-8", "replace").decode() if isinstance(given, str) else ""


def _whole(given: object, most: int) -> int | None:
    """Returns a whole number from 0 to `most`; None: `given` is no such number."""
    if isinstance(given, bool) or not isinstance(given, int):
        return None
    return given if 0 <= given <= most else None


def _describe(value: object) -> str:
    """Returns a short description of a value, for an error text."""
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        return f"the number {value}"
    name = type(value).__name__
    for member, known, place in SDK_ANSWERS:
        has = member in value if isinstance(value, Mapping) else hasattr(value, member)
        if has:
            return f"{known} (return {place})"
    if isinstance(value, BaseException):
        return f"a {name} (raise it)"
    if isinstance(value, Mapping):
        if "text" in value:
            return f"a mapping whose `text` is {_describe(value['text'])}"
        return f"a mapping with {', '.join(map(str, list(value)[:5])) or 'no members'}"
    if hasattr(value, "__aiter__") or hasattr(value, "__next__"):
        return "a stream (return its whole text)"
    return f"a {name}"


class Answered(TypedDict, total=False):
    """The answer to a completion request: one of `done` and `failed`."""

    done: Completion
    """The text that the model wrote, with its counts."""
    failed: CompletionFailure
    """The failure of the model."""


def answered(answer: object, request: CompletionRequest) -> Answered:
    """Returns what a callback answered to a request, as `done`, or as `failed` by its `finish`.

    A callback returns its text, or a mapping with `text` (None, as SDKs have after a refusal, is
    blank) and optionally `finish` (the provider's word for the end), `model` (absent: the model of the
    request, else `default`), `input_tokens` and `output_tokens` (0: unknown). An invalid value of
    the last three counts as absent, because the text is paid for. Any other value is an
    `invalid-input` error.
    """
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, Mapping) or not isinstance(answer.get("text", 0), str | None):
        needed = "a text or a mapping with `text`"
        raise _mistake(f"`complete` must return {needed}, got {_describe(answer)}")
    word = answer.get("finish") or ""
    if not isinstance(word, str):
        needed = "the provider's word for its end"
        raise _mistake(f"`finish` of an answer must be {needed}, got {_describe(word)}")
    finish = code_of_finish(word) or "stop"
    if finish not in FINISHES:
        line = _text(f"the model ended with `{word}`")
        kind = cast(CompletionErrorCode, finish)
        return {"failed": {"code": kind, "message": line, "retry_after_ms": None}}
    done: Completion = {
        "text": _text(answer["text"]),
        "finish": cast(Finish, finish),
        "model": _text(answer.get("model")) or request.get("model") or "default",
        "input_tokens": _whole(answer.get("input_tokens"), TOKENS_MAX) or 0,
        "output_tokens": _whole(answer.get("output_tokens"), TOKENS_MAX) or 0,
    }
    return {"done": done}


def _mistake(message: str) -> LcmError:
    return LcmError("invalid-input", message.encode("utf-8", "replace").decode())


def failed(error: Exception, request: CompletionRequest) -> Answered:
    """Returns an exception of a callback as `failed`; a refusal becomes an answer."""
    code, pause = read_raised(error)
    if code == "refusal":
        return answered({"text": "", "finish": "refusal"}, request)
    if isinstance(error, CompletionFailed):
        message = str(error.message)
    elif type(error) is TimeoutError:
        message = text_of(error) or "the model did not answer in time"
    else:
        message = f"{type(error).__name__}: {text_of(error)}"
    line = " ".join(message.split()).encode("utf-8", "replace").decode()
    if len(line) > MESSAGE_LENGTH_MAX:
        line = f"{line[:MESSAGE_LENGTH_MAX]}..."
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
