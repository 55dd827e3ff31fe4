"""Reads whose answers are JSON documents or come in pages, each as one whole result.

In: ids, ranges, options. Out: parsed documents. Cursors are the engine's and are only handed back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import LcmError
from .flows import Call, Fields, Flow, parsed
from .texts import to_json

PAGE_BYTES_MAX = 1024 * 1024
LISTS = ("file_ids", "summaries", "conversations")


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
) -> Flow[Fields]:
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


def grep(conversation: str, query: Fields, grant: str | None, now: int) -> Flow[Fields]:
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
) -> Flow[Fields]:
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


def expand(
    conversation: str, id: str, options: Fields, grant: str | None, now: int
) -> Flow[Fields]:
    """What a summary was made from: one page when `token_cap` is given, else everything.

    What was read on a grant is paid for: when something goes wrong behind the first page, that is
    returned, and its `next` leads to the page that failed.
    """
    options = {name: value for name, value in options.items() if value is not None}
    whole: Fields | None = None
    while True:
        arguments = {"conversation": conversation, "id": id, "grant": grant, "now": now}
        arguments["options_json"] = to_json(options)
        try:
            page: Fields = yield from parsed("recall.expand", arguments)
        except LcmError:
            if grant is None or whole is None:
                raise
            return whole
        if whole is not None:
            for members in ("summaries", "messages", "tokens"):
                page[members] = whole[members] + page[members]
            if "grant" in page:
                page["grant"]["tokens"] += whole["grant"]["tokens"]
        whole = page
        after = page.get("next")
        is_spent = grant is not None and page["grant"]["truncated"]
        if not after or is_spent or "token_cap" in options:
            return whole
        if after == options.get("after"):
            raise LcmError("corrupt", "the pages of `expand` do not go on")
        options = options | {"after": after}


def grant(conversation: str, limits: Fields, now: int) -> Flow[Fields]:
    """Makes a limited right to read."""
    arguments = {"conversation": conversation, "grant_json": to_json(limits), "now": now}
    document: Fields = yield from parsed("recall.grant", arguments)
    return document


def revoke(conversation: str, grant: str, now: int) -> Flow[None]:
    """Ends a grant."""
    yield Call("recall.revoke", {"conversation": conversation, "grant": grant, "now": now})


def messages(conversation: str, seq_from: int, seq_to: int | None) -> Flow[list[str]]:
    """Original texts of a range; None: to the newest message."""
    texts: list[str] = []
    last = 2**64 - 1 if seq_to is None else seq_to
    seq = seq_from
    while seq <= last:
        page = yield Call(
            "recall.messages",
            {
                "conversation": conversation,
                "seq_from": seq,
                "seq_to": last,
                "bytes_max": PAGE_BYTES_MAX,
            },
        )
        if not page:
            break
        texts += page
        seq += len(page)
    return texts


def status(conversation: str | None, now: int) -> Flow[Fields]:
    """Counts and sizes."""
    document: Fields = yield from parsed("admin.status", {"conversation": conversation, "now": now})
    return document


def life(conversation: str, verb: str, arguments: Fields, now: int) -> Flow[Fields]:
    """A verb of `admin.call`; arguments that are None are left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    call = {"conversation": conversation, "verb": verb, "now": now}
    answer: Fields = yield from parsed("admin.call", call | {"arguments_json": to_json(given)})
    return answer


def prompts() -> Flow[list[Fields]]:
    """The prompts of summaries; they are of no conversation."""
    answer: Fields = yield from life("", "prompts", {}, 0)
    prompts: list[Fields] = answer["prompts"]
    return prompts


def _pages(name: str, arguments: Fields) -> Flow[list[Fields]]:
    """All pages of a document whose `cursor` is the cursor of the next one."""
    pages: list[Fields] = []
    cursor: str | None = None
    while True:
        page: Fields = yield from parsed(name, arguments | {"cursor": cursor})
        pages.append(page)
        following = page.get("cursor")
        if not following:
            return pages
        if following == cursor:
            raise LcmError("corrupt", f"the pages of `{name}` do not go on")
        cursor = following


def check(conversation: str) -> Flow[Fields]:
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
