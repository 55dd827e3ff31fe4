"""The types of verbs whose result depends on an argument, for type checkers.

At run time each of these verbs is a `Verb`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Literal, Protocol, cast, overload

from ..flows import Flow
from ..results import (
    ConversationStatus,
    Grant,
    ListedConversation,
    ListedDeletion,
    ListedItem,
    ListedSummary,
    StatusReport,
    StoredMessage,
    StoreStatus,
)
from ..verb import Awaited, Blocking, Verb


class BlockingStatus(Protocol):
    """The method `status` of `Lcm`."""

    @overload
    def __call__(self, conversation: None = None, *, now: int | None = None) -> StoreStatus: ...
    @overload
    def __call__(self, conversation: str, *, now: int | None = None) -> ConversationStatus: ...


class AwaitedStatus(Protocol):
    """The method `status` of `AsyncLcm`."""

    @overload
    def __call__(
        self, conversation: None = None, *, now: int | None = None
    ) -> Coroutine[object, None, StoreStatus]: ...
    @overload
    def __call__(
        self, conversation: str, *, now: int | None = None
    ) -> Coroutine[object, None, ConversationStatus]: ...


class StatusVerb(Protocol):
    """The verb `status`: the status of a conversation, or of the store."""

    @overload
    def __get__(self, opened: Blocking, kind: object) -> BlockingStatus: ...
    @overload
    def __get__(self, opened: Awaited, kind: object) -> AwaitedStatus: ...


class BlockingListing(Protocol):
    """The method `listing` of `Lcm`."""

    @overload
    def __call__(
        self, kind: Literal["conversations"], conversation: None = None
    ) -> list[ListedConversation]: ...
    @overload
    def __call__(
        self, kind: Literal["deletions"], conversation: None = None
    ) -> list[ListedDeletion]: ...
    @overload
    def __call__(self, kind: Literal["summaries"], conversation: str) -> list[ListedSummary]: ...
    @overload
    def __call__(self, kind: Literal["messages"], conversation: str) -> list[StoredMessage]: ...
    @overload
    def __call__(self, kind: Literal["grants"], conversation: str) -> list[Grant]: ...


class AwaitedListing(Protocol):
    """The method `listing` of `AsyncLcm`."""

    @overload
    def __call__(
        self, kind: Literal["conversations"], conversation: None = None
    ) -> Coroutine[object, None, list[ListedConversation]]: ...
    @overload
    def __call__(
        self, kind: Literal["deletions"], conversation: None = None
    ) -> Coroutine[object, None, list[ListedDeletion]]: ...
    @overload
    def __call__(
        self, kind: Literal["summaries"], conversation: str
    ) -> Coroutine[object, None, list[ListedSummary]]: ...
    @overload
    def __call__(
        self, kind: Literal["messages"], conversation: str
    ) -> Coroutine[object, None, list[StoredMessage]]: ...
    @overload
    def __call__(
        self, kind: Literal["grants"], conversation: str
    ) -> Coroutine[object, None, list[Grant]]: ...


class ListingVerb(Protocol):
    """The verb `listing`: the elements of one kind."""

    @overload
    def __get__(self, opened: Blocking, kind: object) -> BlockingListing: ...
    @overload
    def __get__(self, opened: Awaited, kind: object) -> AwaitedListing: ...


def status_verb(described: Callable[..., Flow[StatusReport]]) -> StatusVerb:
    """Makes the verb `status`."""
    return cast(StatusVerb, Verb(described))


def listing_verb(described: Callable[..., Flow[list[ListedItem]]]) -> ListingVerb:
    """Makes the verb `listing`."""
    return cast(ListingVerb, Verb(described))
