"""Errors in the shapes that SDKs raise, made by hand after their sources in November 2026: openai
3.57.0, anthropic 2.14.0, google-genai 3.6.1, langchain-core 1.8.3, langchain-openai 1.7.4,
langchain-google-genai 4.4.3 and httpx 0.28.1.

An answer is `{"status", "body", "headers"}`; each function returns the error of the SDK for it.
"""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]


class Headers:
    """Headers like those of `httpx`: no `Mapping` subclass, and names are case-insensitive."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._items = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def items(self):
        return [(name.decode(), value.decode()) for name, value in self._items]

    def get(self, name, default=None):
        return dict(self.items()).get(name.lower(), default)


class Response:
    """A response of `httpx` or `requests`."""

    def __init__(self, answer: Answer) -> None:
        self.status_code = answer["status"]
        self.headers = Headers(answer["headers"])


def error_of(names: list[str], said: str = "x", /, **members: object) -> Exception:
    """Returns an exception of a class of the first name, with the other classes above it."""
    kind: type[Exception] = Exception
    for name in reversed(names):
        kind = type(name, (kind,), {})
    error = kind(said)
    for name, value in members.items():
        setattr(error, name, value)
    return error


def _message(answer: Answer) -> str:
    return f"Error code: {answer['status']} - {answer['body']!r}"


def _member(body: object, name: str) -> object:
    return body.get(name) if isinstance(body, dict) else None


def openai(answer: Answer) -> Exception:
    body = answer["body"]
    # The SDK keeps the inner object; `code` becomes a text.
    inner = _member(body, "error") or body
    code = _member(inner, "code")
    return error_of(
        ["APIStatusError", "APIError", "OpenAIError"],
        _message(answer),
        message=_message(answer),
        response=Response(answer),
        status_code=answer["status"],
        request_id=None,
        body=inner,
        code=None if code is None else str(code),
        type=_member(inner, "type"),
        param=_member(inner, "param"),
    )


def anthropic(answer: Answer) -> Exception:
    inner = _member(answer["body"], "error")
    return error_of(
        ["APIStatusError", "APIError", "AnthropicError"],
        _message(answer),
        message=_message(answer),
        response=Response(answer),
        status_code=answer["status"],
        body=answer["body"],
        api_message=_member(inner, "message"),
        type=_member(inner, "type"),
        error_code=None,
        details=_member(inner, "details"),
    )


def google(answer: Answer) -> Exception:
    body = answer["body"]
    inner = _member(body, "error")
    status = _member(inner, "status")
    return error_of(
        ["ClientError", "APIError"],
        f"{answer['status']} {status}. {body}",
        code=answer["status"],
        status=status,
        message=_member(inner, "message"),
        details=body,
        response=Response(answer),
    )


def langchain_google(answer: Answer) -> Exception:
    inner = google(answer)
    error = error_of(["ChatGoogleGenerativeAIError", "LangChainException"], f"Error: {inner}")
    error.__cause__ = inner
    return error


def requests(answer: Answer) -> Exception:
    """Returns the error that `raise_for_status` of `requests` or `httpx` raises after a read."""
    error = error_of(["HTTPError", "RequestException"], f"{answer['status']} Client Error")
    error.response = Response(answer)
    error.body = answer["body"]
    return error


def wrapped(inner: BaseException) -> Exception:
    """Returns an error of the program that wraps another error."""
    error = RuntimeError("the summary could not be made")
    error.__cause__ = inner
    return error
