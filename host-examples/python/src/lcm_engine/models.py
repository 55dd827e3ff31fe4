"""The callbacks of the caller by purpose.

In: the parameter `complete`. Out: callbacks by purpose, each a fallback of the callback before.
Without a callback the engine makes the text itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NotRequired, Protocol, TypedDict, cast

from .completions import TIMEOUT_MS, checked
from .errors import LcmError
from .results import Completion, CompletionRequest
from .settings import HostSettings

PURPOSES = ("leaf", "condensed", "file", "ask", "focus")



class MaybeBlank(TypedDict):
    """A completion in which the model may have written nothing, as after a refusal."""

    text: str | None
    """The text; None is a blank answer."""
    finish: NotRequired[str | None]
    """The provider's word for the end of the answer, such as `length`. Default: `stop`."""
    model: NotRequired[str]
    """Name of the model that answered; stored with the summary."""
    input_tokens: NotRequired[int]
    """Tokens of the prompt, as the provider counted them; absent: unknown."""
    output_tokens: NotRequired[int]
    """Tokens of the answer, as the provider counted them; absent: unknown."""


Answer = str | Completion | MaybeBlank
"""A completion, or its text alone."""


class TimedCallback(Protocol):
    """A callback that takes the time limit of its answer."""

    def __call__(
        self, request: CompletionRequest, /, *, timeout: float
    ) -> Answer | Awaitable[Answer]:
        """Answers a request within `timeout` seconds."""
        ...


Callback = Callable[[CompletionRequest], Answer | Awaitable[Answer]] | TimedCallback
"""Answers a request; a coroutine function serves `open_async` alone."""

Complete = Callback | Sequence[Callback] | Mapping[str, Callback | Sequence[Callback]]
"""One callback, a fallback chain of callbacks, or a mapping from purposes (and `default`) to
either."""


@dataclass(frozen=True)
class Model:
    """One callback."""

    callback: Callable[..., Any]
    takes_timeout: bool
    """Whether the callback has a parameter `timeout`, the time limit in seconds."""
    is_awaited: bool
    """Whether the callback is a coroutine function; any other callback may block."""

    def __call__(self, request: CompletionRequest, timeout_seconds: float) -> Any:
        if self.takes_timeout:
            return self.callback(request, timeout=timeout_seconds)
        return self.callback(request)


@dataclass(frozen=True)
class Models:
    """All callbacks of a caller."""

    by_purpose: Mapping[str, tuple[Model, ...]]

    def of(self, purpose: str) -> tuple[Model, ...]:
        """Returns the models of a purpose in order; empty: the engine makes the text."""
        return self.by_purpose.get(purpose) or self.by_purpose.get("default", ())


@dataclass(frozen=True)
class Asking:
    """The models, and how often and how long to ask a model."""

    models: Models
    asks: int = 1
    """Largest number of requests to a failing model, including the first."""
    together: bool = False
    """Whether the models answer the requests of one plan at the same time."""
    timeout_seconds: float = TIMEOUT_MS / 1000
    """Time limit of one answer, in seconds."""
    has_timeout: bool = False
    """Whether the caller of `open` gave the time limit, which overrides the configuration."""
    fallback_models: tuple[str, ...] = ()
    """Configured names of models, requested one by one after the model of the request itself."""
    conversation: str = ""
    """Id of the conversation of the requests, for events."""

    def about(self, conversation: str) -> Asking:
        """Returns a copy for requests about a conversation."""
        return replace(self, conversation=conversation)

    def given(self, retries: int | None, timeout_ms: int | None) -> Asking:
        """Returns a copy with the options of `open`; None: not given."""
        return replace(self.with_(retries, timeout_ms), has_timeout=timeout_ms is not None)

    def follow(self, host: HostSettings) -> Asking:
        """Returns a copy with the settings of a configuration."""
        asking = replace(self, fallback_models=tuple(host["fallback_models"]))
        return asking if self.has_timeout else asking.with_(None, host["timeout_ms"] or TIMEOUT_MS)

    def requests_of(self, request: CompletionRequest) -> list[CompletionRequest]:
        """Returns a request, and a copy of the request for each fallback model."""
        others = [{**request, "model": model} for model in self.fallback_models]
        return [request, *cast(list[CompletionRequest], others)]

    def with_(self, retries: int | None, timeout_ms: int | None) -> Asking:
        """Returns a copy with the options of one call; None: as before."""
        asks = self.asks if retries is None else 1 + checked(retries, "retries", 0)
        if timeout_ms is None:
            return replace(self, asks=asks)
        seconds = checked(timeout_ms, "timeout_ms", 1) / 1000
        return replace(self, asks=asks, timeout_seconds=seconds)


def _takes_timeout(callback: Callback) -> bool:
    try:
        parameter = inspect.signature(callback).parameters.get("timeout")
    except (TypeError, ValueError):
        return False  # A built-in, or another callable without a signature.
    return parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY


def _is_awaited(callback: Callback) -> bool:
    call = getattr(callback, "__call__", None)
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(call)


def _listed(given: Callback | Sequence[Callback] | None, name: str) -> tuple[Model, ...]:
    callbacks: Sequence[Callback] = (
        [] if given is None else [given] if callable(given) else given
    )
    if not isinstance(callbacks, (list, tuple)):
        raise LcmError("invalid-input", f"`{name}` must be a function")
    for callback in callbacks:
        if not callable(callback):
            raise LcmError("invalid-input", f"`{name}` must be a function")
    return tuple(
        Model(callback, _takes_timeout(callback), _is_awaited(callback)) for callback in callbacks
    )


def models_of(complete: Complete | None) -> Models:
    """Returns the models of the parameter `complete`."""
    if not isinstance(complete, Mapping):
        return Models({"default": _listed(complete, "complete")})
    for purpose in complete:
        if purpose != "default" and purpose not in PURPOSES:
            message = f"`complete` must not name the unknown purpose `{purpose}`"
            raise LcmError("invalid-input", message)
    return Models({name: _listed(given, f"complete.{name}") for name, given in complete.items()})
