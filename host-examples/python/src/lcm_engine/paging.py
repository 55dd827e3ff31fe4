"""Reads whose answers are JSON documents or pages, each as one result.

In: ids, ranges, options. Out: parsed documents. The engine makes cursors; the host returns cursors
unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from .drive import drive
from .errors import LcmError
from .flows import Call, Fields, Flow, Page, parsed
from .results import (
    CheckResult,
    DeletionResult,
    Description,
    EmbedResult,
    ExpandResult,
    Grant,
    GrepResult,
    ImportReport,
    ListedItem,
    StatusReport,
    SummaryPrompt,
)
from .texts import batches, to_json

T = TypeVar("T")

PAGE_BYTES_MAX = 1024 * 1024
EXPORT_BYTES_MAX = 512 * 1024
IMPORT_BYTES_MAX = 768 * 1024
IMPORT_LINES_MAX = 128
SEQ_MAX = 2**64 - 1
LISTS = ("file_ids", "summary_ids", "conversations")


def named(document: Mapping[str, object] | None, **members: object) -> Fields:
    """Returns a dict of options, with the members that were given by name.

    A list may be any iterable except a text, whose items would be characters.
    """
    if document is not None and not isinstance(document, Mapping):
        given = type(document).__name__
        raise LcmError("invalid-input", f"`options` must be a dict, not {given}")
    fields = dict(document or {}) | {
        name: value for name, value in members.items() if value is not None
    }
    for name in LISTS:
        if fields.get(name) is not None:
            fields[name] = _listed(name, fields[name])
    if fields.get("vector") is not None:
        fields["vector"] = _vector("vector", fields["vector"])
    return fields


def _repeated_cursor(name: str) -> LcmError:
    message = f"`cursor` of `{name}` must differ from the cursor of the page before"
    return LcmError("corrupt", message)


def _listed(name: str, given: object) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        message = f"`{name}` must be a list, not {type(given).__name__}"
        raise LcmError("invalid-input", message)
    return list(given)


def _vector(name: str, given: object) -> list[float]:
    """Returns the numbers of an embedding as floats; numbers of numpy are converted."""
    try:
        return [float(number) for number in _listed(name, given)]
    except (TypeError, ValueError, OverflowError) as error:
        raise LcmError("invalid-input", f"`{name}` must be a list of numbers: {error}") from error


def delete(conversation: str, now: Callable[[], int]) -> Flow[DeletionResult]:
    """Deletes a conversation; returns the receipt when nothing of the conversation is left."""
    outcome = yield from drive({"task": "delete", "conversation": conversation}, now)
    return cast(DeletionResult, outcome.result)


def describe(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Flow[Description]:
    """Describes one id, and returns the range of a file."""
    document: Description = yield from parsed(
        "recall.describe",
        {
            "conversation": conversation,
            "id": id,
            "options_json": to_json(options),
            "grant": grant,
            "now": now,
        },
    )
    return document


def grep(conversation: str, query: Fields, grant: str | None, now: int) -> Flow[GrepResult]:
    """Runs one search."""
    document: GrepResult = yield from parsed(
        "recall.grep",
        {
            "conversation": conversation,
            "query_json": to_json(query),
            "grant": grant,
            "now": now,
        },
    )
    return document


def embed(
    conversation: str,
    vectors: Mapping[str, Iterable[float] | None] | None,
    model: str | None,
    forget: bool,
) -> Flow[EmbedResult]:
    """Stores or removes vectors by id."""
    given: Fields = {} if model is None else {"model": model}
    if forget:
        given["forget"] = True
    if vectors is not None:
        if not isinstance(vectors, Mapping):
            message = "`vectors` must be a dict of ids, each with a list of numbers or None"
            raise LcmError("invalid-input", message)
        given["vectors"] = [
            {"id": id, "vector": None if vector is None else _vector(f"vectors.{id}", vector)}
            for id, vector in vectors.items()
        ]
    document: EmbedResult = yield from parsed(
        "recall.embed", {"conversation": conversation, "vectors_json": to_json(given)}
    )
    return document


def expanded(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Callable[[Any], Flow[Page[ExpandResult]]]:
    """Returns the reader of the pages of an expansion."""
    options = {name: value for name, value in options.items() if value is not None}

    def page(cursor: str | None) -> Flow[Page[ExpandResult]]:
        asked = options if cursor is None else options | {"cursor": cursor}
        arguments = {"conversation": conversation, "id": id, "grant": grant, "now": now}
        arguments["options_json"] = to_json(asked)
        document: ExpandResult = yield from parsed("recall.expand", arguments)
        following = document.get("cursor")
        is_spent = grant is not None and document["grant"]["truncated"]
        if following is not None and following == asked.get("cursor"):
            raise _repeated_cursor("recall.expand")
        return Page([document], None if is_spent else following)

    return page


def expand(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Flow[ExpandResult]:
    """Returns the sources of a summary: one page with `tokens_max`, else all pages.

    With a grant, reading spends tokens. So when a later page fails, the pages before are returned,
    and `cursor` leads to the page that failed.
    """
    read = expanded(conversation, id, options, grant, now)
    page = yield from read(None)
    (whole,) = page.items
    while page.cursor and options.get("tokens_max") is None:
        try:
            page = yield from read(page.cursor)
        except LcmError:
            if grant is None:
                raise
            return whole
        (further,) = page.items
        further["summaries"] = whole["summaries"] + further["summaries"]
        further["messages"] = whole["messages"] + further["messages"]
        further["tokens"] += whole["tokens"]
        if "grant" in further:
            further["grant"]["tokens"] += whole["grant"]["tokens"]
        whole = further
    return whole


def grant(conversation: str, limits: Fields, now: int) -> Flow[Grant]:
    """Creates a grant."""
    arguments = {"conversation": conversation, "grant_json": to_json(limits), "now": now}
    document: Grant = yield from parsed("recall.grant", arguments)
    return document


def revoke(conversation: str, grant: str, now: int) -> Flow[None]:
    """Revokes a grant."""
    yield Call("recall.revoke", {"conversation": conversation, "grant": grant, "now": now})


def messages_from(
    conversation: str, seq_first: int, seq_last: int | None
) -> Callable[[Any], Flow[Page[str]]]:
    """Returns the reader of pages of original texts; None: to the newest message."""
    last = SEQ_MAX if seq_last is None else seq_last

    def page(seq: int | None) -> Flow[Page[str]]:
        seq = seq_first if seq is None else seq
        if seq > last:
            return Page([], None)
        arguments = {"conversation": conversation, "seq_first": seq, "seq_last": last}
        texts = yield Call("recall.messages", arguments | {"bytes_max": PAGE_BYTES_MAX})
        return Page(texts, seq + len(texts) if texts else None)

    return page


def messages(conversation: str, seq_first: int, seq_last: int | None) -> Flow[list[str]]:
    """Returns the original texts of a range; None: to the newest message."""
    return (yield from _all_of(messages_from(conversation, seq_first, seq_last)))


def _all_of(read: Callable[[Any], Flow[Page[T]]]) -> Flow[list[T]]:
    """Returns the items of all pages."""
    items: list[T] = []
    cursor = None
    while True:
        page = yield from read(cursor)
        items += page.items
        if page.cursor is None:
            return items
        cursor = page.cursor


def status(conversation: str | None, now: int) -> Flow[StatusReport]:
    """Returns counts and sizes of a conversation, or of the store."""
    arguments = {"conversation": conversation, "now": now}
    document: StatusReport = yield from parsed("admin.status", arguments)
    return document


def life(conversation: str, verb: str, arguments: Fields, now: int) -> Flow[Any]:
    """Runs a verb of `admin.call`; arguments that are None are left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    call = {"conversation": conversation, "verb": verb, "now": now}
    return (yield from parsed("admin.call", call | {"arguments_json": to_json(given)}))


def prompts() -> Flow[list[SummaryPrompt]]:
    """Returns the prompts of summaries, which belong to no conversation."""
    answer: Fields = yield from life("", "prompts", {}, 0)
    listed: list[SummaryPrompt] = answer["prompts"]
    return listed


def _paged(name: str, arguments: Fields) -> Callable[[Any], Flow[Page[Fields]]]:
    """Returns the reader of documents whose `cursor` leads to the next document."""

    def page(cursor: str | None) -> Flow[Page[Fields]]:
        document: Fields = yield from parsed(name, arguments | {"cursor": cursor})
        following = document.get("cursor")
        if following is not None and following == cursor:
            raise _repeated_cursor(name)
        return Page([document], following)

    return page


def _pages(name: str, arguments: Fields) -> Flow[list[Fields]]:
    """Returns all pages of a paged document."""
    return (yield from _all_of(_paged(name, arguments)))


def check(conversation: str) -> Flow[CheckResult]:
    """Returns one report of all pages."""
    pages = yield from _pages("admin.check", {"conversation": conversation})
    return {
        "ok": all(page["ok"] for page in pages),
        "checks": [check for page in pages for check in page["checks"]],
        "metrics": pages[-1]["metrics"],
    }


def digest(logical: bool) -> Flow[str]:
    """Returns the digest of the store, 64 hex digits."""
    pages = yield from _pages("admin.digest", {"logical": logical})
    return str(pages[-1]["sha256"])


def listing(kind: str, conversation: str | None) -> Flow[list[ListedItem]]:
    """Returns all elements of a list."""
    arguments = {"kind": kind, "conversation": conversation, "bytes_max": PAGE_BYTES_MAX}
    pages = yield from _pages("admin.listing", arguments)
    return [entry for page in pages for entry in page["items"]]


def exported(conversation: str | None) -> Callable[[Any], Flow[Page[str]]]:
    """Returns the reader of pages of an export; None: of all conversations."""
    if conversation == "":
        raise LcmError("invalid-input", "`conversation` must not be empty")
    arguments = {"conversation": conversation or "", "bytes_max": EXPORT_BYTES_MAX}
    read = _paged("admin.export_page", arguments)

    def page(cursor: str | None) -> Flow[Page[str]]:
        of_document = yield from read(cursor)
        return Page(of_document.items[0]["lines"], of_document.cursor)

    return page


def import_lines(lines: Iterable[str], now: int) -> Flow[ImportReport]:
    """Imports the lines of an export, from the first line again when the engine rewinds."""
    lines = [_line(line) for line in _listed("lines", lines)]
    at, cursor = 0, None
    while True:
        part = next(batches(lines[at:], IMPORT_LINES_MAX, IMPORT_BYTES_MAX), [])
        arguments = {"lines": part, "cursor": cursor, "now": now}
        report: Fields = yield from parsed("admin.import_page", arguments)
        following = report.pop("cursor")
        consumed, is_rewound = report.pop("consumed"), report.pop("rewind")
        if following is None:
            return cast(ImportReport, report)
        if not (consumed or is_rewound) and following == cursor:
            raise LcmError("trap", "`admin.import-page` took none of the lines")
        at, cursor = 0 if is_rewound else at + consumed, following


def _line(line: object) -> str:
    if not isinstance(line, str):
        raise LcmError("invalid-input", f"`lines` must be texts, not {type(line).__name__}")
    return line.rstrip("\r\n")
