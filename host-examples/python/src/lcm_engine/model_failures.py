"""Converts an exception of a model callback to a failure of the engine.

In: any exception, such as one of an SDK, read defensively and by its names, so that no SDK is
imported. Out: a failure code or `refusal`, and the pause that the provider asked for.
`docs/model-failures.md` has the order of the evidence and the table; `failure_table` has the table
as data.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from .failure_table import code_of_code, code_of_name, code_of_status, code_of_words

CODES = ("auth", "policy", "rate-limited", "timeout", "context-too-long", "unavailable", "other")
SURE_NAMES = ("timeout", "context-too-long", "policy", "refusal")
"""Codes that decide before the answer of a provider if the name of an exception has them."""
CHAIN_MAX = 16
"""Largest number of exceptions to read of a chain of causes."""
DEPTH_MAX = 5
"""Deepest member of a body that is read."""
JSON_LENGTH_MAX = 1 << 16
"""Longest text that is parsed as JSON, in characters."""
OWN_PAUSE_MS_MAX = 2**53 - 1
PAUSE_MS_MAX = 86_400_000
"""Longest pause that a provider can ask for: a day."""
_STATUS_IN_TEXT = re.compile(
    r"(?:^\W?|\bhttp |status(?: code)?:? |error code: )([45]\d\d)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e\d+)?", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_STATED = ("status", "statusCode", "status_code", "code")


@dataclass
class _Facts:
    """Evidence of one exception about the answer of a provider."""

    codes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    status: int = 0
    """Status of the answer; 0: unknown."""
    body_status: int = 0
    """Status that the body names; 0: none."""
    has_body: bool = False
    delay: str = ""
    """`retryDelay` of a Google body."""


def _get(value: object, key: str) -> Any:
    """Returns a member or an attribute of any value; None: it has none, or raises."""
    try:
        return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
    except Exception:
        return None


def _causes(error: object) -> list[BaseException]:
    errors = _get(error, "exceptions") or _get(error, "errors")
    last = errors[-1] if isinstance(errors, (list, tuple)) and errors else None
    causes = [_get(error, key) for key in ("__cause__", "cause", "lastError", "reason")]
    return [cause for cause in [*causes, last] if isinstance(cause, BaseException)]


def _chain(raised: BaseException) -> list[BaseException]:
    """Returns an exception and its causes, the outermost first."""
    chain = [raised]
    for error in chain:
        if len(chain) < CHAIN_MAX:
            chain += [one for one in _causes(error) if all(one is not known for known in chain)]
    return chain


def _status(value: object) -> int:
    """Returns the HTTP status in a number or in a text of three digits; 0: no status."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{3}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return int(value) if 200 <= value < 600 else 0


def _parsed(text: object) -> Any:
    """Returns the JSON object that a text holds; None: it holds none."""
    if not isinstance(text, str) or len(text) > JSON_LENGTH_MAX or "{" not in text:
        return None
    try:
        return json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return None


def _add_body(facts: _Facts, body: object, depth: int = 0) -> None:
    """Adds the codes, texts, status and pause of a body to `facts`."""
    if isinstance(body, str):
        facts.texts.append(body)
    elif depth > DEPTH_MAX:
        return
    elif isinstance(body, (list, tuple)):
        for element in body[:CHAIN_MAX]:
            _add_body(facts, element, depth + 1)
    elif isinstance(body, Mapping):
        for key in ("code", "type", "status", "reason", "error_code"):
            value = _get(body, key)
            facts.body_status = facts.body_status or _status(value)
            if isinstance(value, str):
                facts.codes.append(value)
        texts = [_get(body, key) for key in ("message", "msg", "detail", "error_description", "raw")]
        facts.texts += [text for text in texts if isinstance(text, str)]
        delay = _get(body, "retryDelay")
        facts.delay = facts.delay or (delay if isinstance(delay, str) else "")
        for key in ("error", "innererror", "metadata", "details"):
            _add_body(facts, _get(body, key), depth + 1)


def text_of(error: BaseException) -> str:
    """Returns the text of an exception; empty: it has none, or raises."""
    try:
        return str(error)
    except Exception:
        return ""


def _message(error: BaseException) -> str:
    said = _get(error, "message")
    return said if isinstance(said, str) else text_of(error)


def _facts(error: BaseException) -> _Facts:
    facts, response = _Facts(), _get(error, "response")
    stated = [_get(error, key) for key in _STATED] + [_get(response, key) for key in _STATED[:3]]
    facts.status = next(filter(None, map(_status, stated)), 0)
    message = _message(error)
    bodies = [_get(error, key) for key in ("error", "body", "data", "details")]
    text = _get(error, "responseBody")
    bodies += [_parsed(text) or text, _get(response, "data")]
    # A wrapper that quotes its cause does not have the status of the cause.
    if facts.status or not _causes(error):
        bodies.append(_parsed(message))
    for body in bodies:
        _add_body(facts, body)
    facts.has_body = any(isinstance(body, (Mapping, list)) or body for body in bodies)
    codes = [_get(error, key) for key in ("code", "type", "status", "lc_error_code")]
    facts.codes += [code for code in codes if isinstance(code, str)]
    facts.texts.append(message)
    return facts


def _code_of_answer(facts: _Facts) -> str | None:
    """Returns the code that follows from an answer of a provider; None: no code follows."""
    failing = next((one for one in (facts.status, facts.body_status) if one >= 400), None)
    status = failing or (200 if 0 < facts.status < 300 else facts.status)
    is_answer = status >= 400 or facts.has_body
    text = "\n".join(facts.codes + facts.texts)
    if is_answer and status in (0, 200, 400, 413, 422, 500):
        if code_of_words(text, "context-too-long"):
            return "context-too-long"
    if status == 413:
        return code_of_status(status)
    if known := next(filter(None, map(code_of_code, facts.codes)), None):
        return known
    if is_answer and status in (0, 200, 400, 422) and (worded := code_of_words(text)):
        return worded
    if status >= 300:
        return code_of_status(status) or "other"
    return "unavailable" if status == 200 and facts.has_body else None


def _code(error: BaseException) -> str | None:
    """Returns the code that follows from one exception of a chain; None: no code follows."""
    own = _get(error, "code")
    if isinstance(own, str) and own in CODES:
        return own
    names = [one.__name__ for one in type(error).__mro__]
    name = _get(error, "name")
    named = map(code_of_name, [name, *names] if isinstance(name, str) else names)
    code = next(filter(None, named), None)
    return code if code in SURE_NAMES else _code_of_answer(_facts(error)) or code


def _code_of_texts(chain: list[BaseException]) -> str:
    """Returns the code from the texts of a chain, for a chain without an exception with a code."""
    text = "\n".join(map(_message, chain))
    if found := _STATUS_IN_TEXT.search(text):
        worded = code_of_words(text) if found[1] in ("400", "422") else None
        return worded or code_of_status(int(found[1])) or "other"
    return code_of_words(text) or "other"


def _entries(headers: object) -> list[tuple[str, str]]:
    """Returns the entries of headers in any container, the names in lower case."""

    def text(value: object) -> str:
        if isinstance(value, (list, tuple)):
            value = value[0] if value else ""
        decoded = value.decode("latin-1") if isinstance(value, bytes) else str(value)
        return decoded.strip()

    try:
        items = getattr(headers, "items", None)
        pairs: Iterable[Any] = items() if callable(items) else iter(headers)  # type: ignore[call-overload]
        return [(text(name).lower(), text(value)) for name, value in pairs]
    except Exception:
        return []


def _time(text: str) -> float | None:
    """Returns the time of an HTTP date in seconds since the epoch; None: the text is no date."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _pause_of_headers(headers: object) -> float | None:
    """Returns the pause of the headers of an answer, in milliseconds; None: none."""
    if headers is None or isinstance(headers, (str, bytes)):
        return None
    found = dict(reversed(_entries(headers)))
    if _NUMBER.fullmatch(found.get("retry-after-ms", "")):
        return float(found["retry-after-ms"])
    after = found.get("retry-after", "")
    if _NUMBER.fullmatch(after):
        return float(after) * 1000
    then = _time(after)
    if then is None:
        return None
    # The provider's clock may differ from this one.
    now = _time(found.get("date", ""))
    return max(then - (time.time() if now is None else now), 0) * 1000


def _pause_ms(error: BaseException) -> int | None:
    """Returns the pause that one exception asks for, in milliseconds; None: none."""
    own = _get(error, "retry_after_ms")
    if isinstance(own, (int, float)) and not isinstance(own, bool) and own >= 0:
        return int(min(own, OWN_PAUSE_MS_MAX))
    holders = [_get(error, "headers"), _get(_get(error, "response"), "headers")]
    for headers in holders:
        pause = _pause_of_headers(headers)
        if pause is not None:
            return math.ceil(min(pause, PAUSE_MS_MAX))
    delay = _DELAY.fullmatch(_facts(error).delay)
    return math.ceil(min(float(delay[1]) * 1000, PAUSE_MS_MAX)) if delay else None


def read_raised(raised: BaseException) -> tuple[str, int | None]:
    """Returns the code of an exception, or `refusal`, and the pause in milliseconds if any."""
    chain = _chain(raised)
    code = next(filter(None, map(_code, chain)), None)
    pauses = (_pause_ms(error) for error in chain)
    pause = next((one for one in pauses if one is not None), None)
    return code or _code_of_texts(chain), pause
