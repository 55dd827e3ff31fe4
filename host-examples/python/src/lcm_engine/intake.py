"""How messages enter a conversation: in one call, in several, or as a whole transcript.

A transcript cannot be aligned batch by batch, so the identities of all its messages go to
`reconcile` first; the engine computes and compares them. What it answers holds for one revision,
which every append names: once the conversation moved on the engine is asked again. An append of
unknown outcome is not looked for among what is stored, where short messages cannot be told apart:
it is repeated as it was, and the engine knows it again. So that a caller can repeat the whole, too,
its calls are parts of a list that the engine knows by its name.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import LcmError
from .flows import Call, Fields, Flow, Pause, parsed
from .sessions import CONFLICTS_MAX, pause_seconds
from .texts import (
    BATCH_BYTES_MAX,
    BATCH_MESSAGES_MAX,
    batches,
    byte_length,
    piece,
    to_json,
    upload_id,
)

REPEATS_MAX = 8
"""How often an append of unknown outcome is repeated."""

IDENTIFY_MESSAGES_MAX = 1_000
IDENTIFY_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class Messages:
    """Messages that a caller wants stored, and how; see `append` of the package."""

    conversation: str
    dialect: str
    texts: list[str]
    now: int
    new: bool = False
    repeat: bool = False
    refuse_replay: bool = False
    family: str | None = None

    def extra(self) -> Fields:
        """What every append of them says."""
        return {} if self.family is None else {"family": self.family}

    def call(self, texts: list[str], mode: str, extra: Fields, *, partial: bool = True) -> Call:
        """An append of these texts; one that names a revision is not repeated in a conflict."""
        options: Fields = {"mode": mode, "extra_json": to_json(extra) if extra else None}
        if partial:
            options["partial"] = True
        arguments = {
            "conversation": self.conversation,
            "dialect": self.dialect,
            "messages": texts,
            "options": options,
            "now": self.now,
        }
        return Call("ingest.append", arguments, once="revision" in extra)


def append(given: Messages) -> Flow[Any]:
    """Appends in one call where its bounds allow, else as a list."""
    first = next(batches(given.texts), [])
    if len(first) < len(given.texts):
        return (yield from _append_several(given))
    flags = {"repeat": given.repeat, "refuse_replay": given.refuse_replay}
    extra = given.extra() | {name: True for name, wanted in flags.items() if wanted}
    carried = yield from _staged(given, given.texts)
    mode = "new" if given.new else "transcript"
    try:
        receipt: Fields = yield given.call(carried, mode, extra, partial=False)
        return receipt
    except LcmError as error:
        # A call has further bounds than those by which batches are cut, such as that of ids.
        if error.code != "limit-exceeded" or len(given.texts) < 2:
            raise
    return (yield from _append_several(given))


def _append_several(given: Messages) -> Flow[Any]:
    """Stores what one call does not take, so that a later call may `repeat` it."""
    # What is stored already cannot be told batch by batch, and a replay neither.
    if not given.new or given.refuse_replay:
        return (yield from ingest(given, is_list=True))
    # A message that is refused is so before the batches in front of it are stored.
    entries = yield from _identities(given.dialect, given.texts)
    extra = given.extra() | {"list": _list_name(given, entries)}
    if given.repeat:
        extra["repeat"] = True
    carried = yield from _staged(given, given.texts)

    def append_part(texts: list[str], extra: Fields) -> Flow[Fields]:
        receipt: Fields = yield given.call(texts, "new", extra)
        return receipt

    receipts = []
    at = 0
    while at < len(carried):
        # Cut as before the staging: what a reference stands for takes its room, too.
        count = len(next(batches(given.texts[at : at + BATCH_MESSAGES_MAX])))
        part = carried[at : at + count]
        receipts.append((yield from _settled(append_part, part, extra | {"from": at})))
        at += _taken(receipts[-1])
    return _joined(receipts)


def ingest(given: Messages, *, is_list: bool = False) -> Flow[Any]:
    """Asks which messages of the whole transcript are missing and appends only those.

    While others write, too, what is missing is asked again. `is_list`: a later call may repeat it.
    """
    entries = yield from _identities(given.dialect, given.texts)
    intake = _Intake(given, entries, _list_name(given, entries) if is_list else None)
    fewest = len(given.texts) + 1
    repeats = 0
    while True:
        missing, revision = yield from intake.plan()
        if len(missing) < fewest:
            fewest, repeats = len(missing), 0
        if (yield from intake.stage(missing)):
            continue  # Staging moved the conversation on.
        try:
            if (yield from intake.append(missing, revision)):
                break
        except LcmError as error:
            if error.code != "conflict" or repeats >= CONFLICTS_MAX:
                raise
        yield Pause(pause_seconds(repeats))
        repeats += 1
    receipt = _joined(intake.receipts)
    skipped = len(given.texts) - receipt["ingested"]
    return receipt | {"skipped": skipped, "warnings": intake.warnings + receipt["warnings"]}


def estimate(dialect: str, texts: list[str]) -> Flow[int]:
    """Estimated tokens of messages."""
    entries = json.loads((yield from _identities(dialect, texts)))
    return sum(entry["tokens"] for entry in entries)


def validate(dialect: str, texts: list[str]) -> Flow[list[str]]:
    """Why the provider of a dialect would refuse messages."""
    arguments = {"dialect": dialect, "messages_json": f"[{','.join(texts)}]"}
    findings: list[str] = yield from parsed("context.validate", arguments)
    return findings


def _identities(dialect: str, texts: list[str]) -> Flow[str]:
    """What identifies each text, a JSON array; raises when one is no message of the dialect."""
    arrays: list[str] = []
    for part in batches(texts, IDENTIFY_MESSAGES_MAX, IDENTIFY_BYTES_MAX):
        array = yield Call("ingest.identify", {"dialect": dialect, "messages": part})
        arrays.append(array.strip()[1:-1])
    return f"[{','.join(arrays)}]"


def _list_name(given: Messages, entries: str) -> str:
    """What names a list: its messages, their time, and whether all of them are new."""
    kind = "" if given.new else "transcript "
    return hashlib.sha256(f"{kind}{given.now} {entries}".encode()).hexdigest()


def _staged(given: Messages, texts: list[str]) -> Flow[list[str]]:
    """The texts, with references in place of those that are too large for a call."""
    carried = []
    for text in texts:
        is_large = byte_length(text) > BATCH_BYTES_MAX
        carried.append((yield from _stage(given, text)) if is_large else text)
    return carried


def _stage(given: Messages, text: str) -> Flow[str]:
    """Hands over one large text in pieces; returns what `append` carries in its place."""
    raw = text.encode()
    upload = upload_id(raw)
    offset = 0
    while offset < len(raw):
        offset = yield Call(
            "ingest.stage",
            {
                "conversation": given.conversation,
                "upload": upload,
                "offset": offset,
                "text": piece(raw, offset),
                "extra_json": to_json({"bytes": len(raw)} | given.extra()),
                "now": given.now,
            },
        )
    return f"@upload {upload}"


def _taken(receipt: Fields) -> int:
    """How many messages of its call a receipt speaks of: the next call begins behind them."""
    taken: int = receipt["ingested"] + receipt["skipped"]
    if not taken:
        raise LcmError("trap", "`ingest.append` took none of the messages")
    return taken


def _joined(receipts: list[Fields]) -> Fields:
    """One receipt for several."""
    last = receipts[-1]
    stored = [receipt for receipt in receipts if receipt["ingested"]]
    return {
        "revision": last["revision"],
        "ingested": sum(receipt["ingested"] for receipt in receipts),
        "skipped": sum(receipt["skipped"] for receipt in receipts),
        "seq_first": stored[0]["seq_first"] if stored else None,
        "seq_last": stored[-1]["seq_last"] if stored else None,
        "context_tokens": last["context_tokens"],
        "warnings": [line for receipt in receipts for line in receipt["warnings"]],
    }


def _settled(
    append: Callable[[list[str], Fields], Flow[Fields]], texts: list[str], extra: Fields
) -> Flow[Fields]:
    """The receipt of an append, which is repeated as it was while its outcome is unknown."""
    repeats = 0
    while True:
        try:
            receipt: Fields = yield from append(texts, extra)
            return receipt
        except LcmError as error:
            if error.code != "store-unavailable" or repeats >= REPEATS_MAX:
                raise
        yield Pause(random.uniform(0, 0.002 * 2**repeats))
        repeats += 1
        extra = extra | {"repeat": True}


class _Intake:
    """One transcript on its way in. Every append names the revision that its plan is true of."""

    def __init__(self, given: Messages, entries: str, list_name: str | None) -> None:
        self.given = given
        self.entries = entries
        self.list_name = list_name
        self.texts = list(given.texts)
        """Large ones are replaced by what `append` carries once they are staged."""
        self.receipts: list[Fields] = []
        self.warnings: list[str] = []
        self.done = 0
        """Index behind the last message that an append confirmed; every plan is told."""

    def plan(self) -> Flow[tuple[list[int], int]]:
        """Indexes of the messages that are not stored, and the revision this is true of."""
        asked: Fields = {"confirmed": self.done, "new": self.given.new}
        asked["refuse_replay"] = self.given.refuse_replay
        if self.given.repeat and self.list_name is not None:
            asked["list"] = self.list_name
        transcript = f'{to_json(asked)[:-1]},"entries":{self.entries}}}'
        arguments = {"conversation": self.given.conversation, "transcript_json": transcript}
        plan = yield from parsed("ingest.reconcile", arguments | {"now": self.given.now})
        if self.done == 0:  # Later ones would also speak of what was stored here.
            self.warnings = plan["warnings"]
        spans = [range(span["from"], span["to"] + 1) for span in plan["missing"]]
        return [index for span in spans for index in span], plan["revision"]

    def stage(self, missing: list[int]) -> Flow[bool]:
        """Stages those that are too large for a call; returns whether there were any."""
        before = [self.texts[index] for index in missing]
        after = yield from _staged(self.given, before)
        for index, text in zip(missing, after, strict=True):
            self.texts[index] = text
        return before != after

    def append(self, missing: list[int], revision: int) -> Flow[bool]:
        """Appends these messages, each call relying on the revision that the one before left.

        Returns whether that held to the end.
        """
        if not missing:
            # An empty call writes nothing and says how things stand.
            self.receipts.append((yield from self._append([], self.given.extra())))
        at = 0
        while at < len(missing):
            following = missing[at : at + BATCH_MESSAGES_MAX]
            part = next(batches(self.texts[index] for index in following))
            extra = self.given.extra() | {"revision": revision}
            if self.list_name is not None:
                extra |= {"list": self.list_name, "from": missing[at]}
            receipt = yield from _settled(self._append, part, extra)
            self.receipts.append(receipt)
            at += _taken(receipt)
            self.done = missing[at - 1] + 1
            if receipt["revision"] > revision + 1:
                # It was known again; others may have written behind it.
                return at == len(missing)
            revision = receipt["revision"]
        return True

    def _append(self, texts: list[str], extra: Fields) -> Flow[Fields]:
        receipt: Fields = yield self.given.call(texts, "new", extra)
        return receipt
