"""The errors of the package: one of the engine, one for callbacks of models.

In: codes and messages of the engine. Out: exceptions.
"""

from __future__ import annotations


class LcmError(Exception):
    """A failed call. Programs read `code`, people read `message`.

    `code` is one of `invalid-input, not-found, exists, limit-exceeded, unsupported, denied,
    conflict, store-unavailable, would-block, completion-failed, corrupt`, or `trap` when the
    component itself broke off (a bug; the next call gets a new instance).
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[LcmError], tuple[str, str]]:
        return (LcmError, (self.code, self.message))


class CompletionFailed(Exception):
    """The failure of a model, raised by a `complete` callback.

    `code` is one of `auth, policy, rate-limited, timeout, context-too-long, unavailable, other`.
    `retry_after_ms` is the pause that the provider asked for; None: unknown. Any other
    exception of a callback counts as `other`.
    """

    def __init__(self, code: str, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after_ms = retry_after_ms
