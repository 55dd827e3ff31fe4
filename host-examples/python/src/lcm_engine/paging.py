"""Reads whose answers are JSON documents or come in pages, each as one whole result.

In: ids, ranges, options. Out: parsed documents. Cursors are the engine's and are only handed back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import LcmError
from .flows import Call, Fields, Flow, Page, parsed
from .texts import batches, to_json

PAGE_BYTES_MAX = 1024 * 1024
EXPORT_BYTES_MAX = 512 * 1024
IMPORT_BYTES_MAX = 768 * 1024
IMPORT_LINES_MAX = 128
SEQ_MAX = 2**64 - 1
LISTS = ("file_ids", "summary_ids", "conversations")


def named(document: Mapping[str, Any] | None, **members: Any) -> Fields:
    """A document of options with the members that were given by name.

    Any iterable will do for a list but a text, which would be taken apart into characters.
    """
    if document is not None and not isinstance(document, Mapping):
        given = type(document).__name__
        raise LcmError("invalid-input", f"options must be a dict, not {given}")
    fields = dict(document or {}) | {
        name: value for name, value in members.items() if value is not None
    }
    for name in LISTS:
        if fields.get(name) is not None:
            fields[name] = _listed(name, fields[name])
    if fields.get("vector") is not None:
        fields["vector"] = _vector("vector", fields["vector"])
    return fields


def _listed(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        message = f"`{name}` must be a list, not {type(given).__name__}"
        raise LcmError("invalid-input", message)
    return list(given)


def _vector(name: str, given: Any) -> list[float]:
    """The numbers of an embedding, also of those that JSON does not write, such as of numpy."""
    try:
        return [float(number) for number in _listed(name, given)]
    except (TypeError, ValueError, OverflowError) as error:
        raise LcmError("invalid-input", f"`{name}` must be a list of numbers: {error}") from error


def describe(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Flow[Any]:
    """What is known of a summary or file, and of a file the range that is asked for."""
    document: Fields = yield from parsed(
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


def grep(conversation: str, query: Fields, grant: str | None, now: int) -> Flow[Any]:
    """One search."""
    document: Fields = yield from parsed(
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
) -> Flow[Any]:
    """Vectors by id, kept or forgotten."""
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
    document: Fields = yield from parsed(
        "recall.embed", {"conversation": conversation, "vectors_json": to_json(given)}
    )
    return document


def expanded(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Callable[[Any], Flow[Page[Any]]]:
    """How a page of what a summary was made from is read."""
    options = {name: value for name, value in options.items() if value is not None}

    def page(cursor: str | None) -> Flow[Page[Any]]:
        asked = options if cursor is None else options | {"cursor": cursor}
        arguments = {"conversation": conversation, "id": id, "grant": grant, "now": now}
        arguments["options_json"] = to_json(asked)
        document: Fields = yield from parsed("recall.expand", arguments)
        following = document.get("cursor")
        is_spent = grant is not None and document["grant"]["truncated"]
        if following is not None and following == asked.get("cursor"):
            raise LcmError("corrupt", "the pages of `expand` do not go on")
        return Page([document], None if is_spent else following)

    return page


def expand(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Flow[Any]:
    """What a summary was made from: one page when `tokens_max` is given, else everything.

    What was read on a grant is paid for: when something goes wrong behind the first page, that is
    returned, and its `cursor` leads to the page that failed.
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
        for members in ("summaries", "messages", "tokens"):
            further[members] = whole[members] + further[members]
        if "grant" in further:
            further["grant"]["tokens"] += whole["grant"]["tokens"]
        whole = further
    return whole


def grant(conversation: str, limits: Fields, now: int) -> Flow[Any]:
    """Makes a limited right to read."""
    arguments = {"conversation": conversation, "grant_json": to_json(limits), "now": now}
    document: Fields = yield from parsed("recall.grant", arguments)
    return document


def revoke(conversation: str, grant: str, now: int) -> Flow[None]:
    """Ends a grant."""
    yield Call("recall.revoke", {"conversation": conversation, "grant": grant, "now": now})


def messages_from(
    conversation: str, seq_first: int, seq_last: int | None
) -> Callable[[Any], Flow[Page[str]]]:
    """How a page of original texts is read; None: to the newest message."""
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
    """Original texts of a range; None: to the newest message."""
    return (yield from _all_of(messages_from(conversation, seq_first, seq_last)))


def _all_of(read: Callable[[Any], Flow[Page[Any]]]) -> Flow[list[Any]]:
    """The items of all pages."""
    items: list[Any] = []
    cursor = None
    while True:
        page = yield from read(cursor)
        items += page.items
        if page.cursor is None:
            return items
        cursor = page.cursor


def status(conversation: str | None, now: int) -> Flow[Fields]:
    """Counts and sizes."""
    document: Fields = yield from parsed("admin.status", {"conversation": conversation, "now": now})
    return document


def life(conversation: str, verb: str, arguments: Fields, now: int) -> Flow[Any]:
    """A verb of `admin.call`; arguments that are None are left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    call = {"conversation": conversation, "verb": verb, "now": now}
    return (yield from parsed("admin.call", call | {"arguments_json": to_json(given)}))


def prompts() -> Flow[Any]:
    """The prompts of summaries; they are of no conversation."""
    answer: Fields = yield from life("", "prompts", {}, 0)
    return answer["prompts"]


def _paged(name: str, arguments: Fields) -> Callable[[Any], Flow[Page[Fields]]]:
    """How a page of a document is read whose `cursor` is the cursor of the next one."""

    def page(cursor: str | None) -> Flow[Page[Fields]]:
        document: Fields = yield from parsed(name, arguments | {"cursor": cursor})
        following = document.get("cursor")
        if following is not None and following == cursor:
            raise LcmError("corrupt", f"the pages of `{name}` do not go on")
        return Page([document], following)

    return page


def _pages(name: str, arguments: Fields) -> Flow[list[Fields]]:
    """All pages of such a document."""
    return (yield from _all_of(_paged(name, arguments)))


def check(conversation: str) -> Flow[Any]:
    """The report of all pages."""
    pages = yield from _pages("admin.check", {"conversation": conversation})
    report = dict(pages[-1])
    report["ok"] = all(page["ok"] for page in pages)
    if len(pages) > 1:
        report["checks"] = [check for page in pages for check in page["checks"]]
    report.pop("cursor", None)
    return report


def digest(logical: bool) -> Flow[str]:
    """64 hex digits."""
    pages = yield from _pages("admin.digest", {"logical": logical})
    return str(pages[-1]["sha256"])


def listing(kind: str, conversation: str | None) -> Flow[list[Any]]:
    """All entries of a kind."""
    arguments = {"kind": kind, "conversation": conversation, "bytes_max": PAGE_BYTES_MAX}
    pages = yield from _pages("admin.listing", arguments)
    return [entry for page in pages for entry in page["items"]]


def exported(conversation: str | None) -> Callable[[Any], Flow[Page[str]]]:
    """How a page of an export is read; None: of all conversations."""
    if conversation == "":
        raise LcmError("invalid-input", "`conversation` must not be empty")
    arguments = {"conversation": conversation or "", "bytes_max": EXPORT_BYTES_MAX}
    read = _paged("admin.export_page", arguments)

    def page(cursor: str | None) -> Flow[Page[str]]:
        of_document = yield from read(cursor)
        return Page(of_document.items[0]["lines"], of_document.cursor)

    return page


def import_lines(lines: Iterable[str], now: int) -> Flow[Any]:
    """Hands over the lines of an export, twice where the engine wants to see them again."""
    lines = [_line(line) for line in _listed("lines", lines)]
    at, cursor = 0, None
    while True:
        part = next(batches(lines[at:], IMPORT_LINES_MAX, IMPORT_BYTES_MAX), [])
        arguments = {"lines": part, "cursor": cursor, "now": now}
        report: Fields = yield from parsed("admin.import_page", arguments)
        following = report.pop("cursor")
        consumed, is_rewound = report.pop("consumed"), report.pop("rewind")
        if following is None:
            return report
        if not (consumed or is_rewound) and following == cursor:
            raise LcmError("trap", "`admin.import-page` took none of the lines")
        at, cursor = 0 if is_rewound else at + consumed, following


def _line(line: Any) -> str:
    if not isinstance(line, str):
        raise LcmError("invalid-input", f"`lines` must be texts, not {type(line).__name__}")
    return line.rstrip("\r\n")
