"""The errors of the package: one of the engine, one for callbacks of models.

In: codes and messages of the engine. Out: exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import ModelFailure


class LcmError(Exception):
    """A failed call. Programs read `code`, people read `message`.

    `code` is one of `invalid-input, not-found, exists, limit-exceeded, unsupported, denied,
    conflict, store-unavailable, would-block, completion-failed, corrupt`, or `trap` when the
    component itself broke off (a bug; the next call gets a new instance).
    `failure` is the failure of the model behind `completion-failed`, with its code and message;
    None: the error has another cause.
    """

    def __init__(self, code: str, message: str, failure: ModelFailure | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.failure = failure

    def __reduce__(self) -> tuple[type[LcmError], tuple[str, str, ModelFailure | None]]:
        return (LcmError, (self.code, self.message, self.failure))


class CompletionFailed(Exception):
    """The failure of a model, raised by a `complete` callback.

    `code` is one of `auth, policy, rate-limited, timeout, context-too-long, unavailable, other`.
    `retry_after_ms` is the pause that the provider asked for; None: unknown. Exceptions of SDKs
    need no conversion: `docs/model-failures.md` of the project says what they mean.
    """

    def __init__(self, code: str, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after_ms = retry_after_ms
