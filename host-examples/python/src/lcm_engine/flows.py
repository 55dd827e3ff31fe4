"""What takes more than one engine call, written once for the plain and the asyncio package.

Each flow is a generator: it yields what it wants done (an engine call, a completion, a pause), is
sent the result and returns its own. Nothing here decides what the engine decides: which messages
are missing. What asks models stands in `compaction`.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .errors import LcmError
from .models import Model
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

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """Call a function of the component; the result is its plain value.

    `once`: a conflict is not repeated but raised.
    """

    name: str
    arguments: dict[str, Any]
    once: bool = False


@dataclass(frozen=True)
class Complete:
    """Ask this model once; the result is a completion result, `done` or `failed`.

    `seconds`: it is waited for no longer than that.
    """

    request: dict[str, Any]
    model: Model
    seconds: float


@dataclass(frozen=True)
class Pause:
    """Wait; the result is None."""

    seconds: float


@dataclass(frozen=True)
class Together:
    """Run these flows, at the same time where the host can; the results come in their order."""

    flows: list[Generator[Any, Any, Any]]


@dataclass(frozen=True)
class Alone:
    """Run this flow when no other one of the conversation runs alone; the result is its own."""

    conversation: str
    flow: Generator[Any, Any, Any]


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a stream; without a `cursor` it is the last."""

    items: Sequence[T]
    cursor: Any


REPEATS_MAX = 8
"""How often an append of unknown outcome is repeated."""

REVISION_OF_NONE = 2**53 - 1
"""One that no conversation reaches."""

IDENTIFY_MESSAGES_MAX = 1_000
IDENTIFY_BYTES_MAX = 8 * 1024 * 1024


COMPACTING = "a model compacted the conversation whose compaction waits for it"
"""Why a flow that runs alone is refused inside of another one of its conversation."""


def is_stop(error: BaseException) -> bool:
    """Whether somebody wants the whole call to end: an interrupt, a cancelled task."""
    return not isinstance(error, (Exception, GeneratorExit))


Effect = Call | Complete | Pause | Together | Alone
Flow = Generator[Effect, Any, T]
Fields = dict[str, Any]


def _stage(conversation: str, text: str, now: int, family: str | None) -> Flow[str]:
    """Hands over one large text in pieces; returns what `append` carries in its place."""
    raw = text.encode()
    upload = upload_id(raw)
    extra: Fields = {"bytes": len(raw)}
    if family is not None:
        extra["family"] = family
    offset = 0
    while offset < len(raw):
        offset = yield Call(
            "ingest.stage",
            {
                "conversation": conversation,
                "upload": upload,
                "offset": offset,
                "text": piece(raw, offset),
                "extra_json": to_json(extra),
                "now": now,
            },
        )
    return f"@upload {upload}"


def append_batch(
    conversation: str,
    dialect: str,
    texts: Sequence[str],
    options: Fields,
    now: int,
    family: str | None = None,
    once: bool = False,
) -> Flow[Fields]:
    """One `append`; texts too large for a call are staged before.

    `family` is the one that `options` name; `once` is that of `Call`.
    """
    carried = []
    for text in texts:
        if byte_length(text) > BATCH_BYTES_MAX:
            text = yield from _stage(conversation, text, now, family)
        carried.append(text)
    receipt: Fields = yield Call(
        "ingest.append",
        {
            "conversation": conversation,
            "dialect": dialect,
            "messages": carried,
            "options": options,
            "now": now,
        },
        once,
    )
    return receipt


def _joined(receipts: list[Fields], skipped: int, warnings: list[str]) -> Fields:
    """One receipt for several, with what was skipped and said before them."""
    last = receipts[-1]
    stored = [receipt for receipt in receipts if receipt["ingested"]]
    return {
        "revision": last["revision"],
        "ingested": sum(receipt["ingested"] for receipt in receipts),
        "skipped": skipped + sum(receipt["skipped"] for receipt in receipts),
        "seq_first": stored[0]["seq_first"] if stored else None,
        "seq_last": stored[-1]["seq_last"] if stored else None,
        "context_tokens": last["context_tokens"],
        "warnings": warnings + [line for receipt in receipts for line in receipt["warnings"]],
    }


def model_option(model: str | None, mark_caches: bool = False) -> Fields:
    """The model whose tokens a call counts in, and whether caches are marked, for the engine."""
    extra: Fields = {} if model is None else {"model": model}
    if mark_caches:
        extra["mark_caches"] = True
    return {"extra_json": to_json(extra)} if extra else {}


def append(
    conversation: str,
    dialect: str,
    texts: list[str],
    new: bool,
    repeat: bool,
    refuse_replay: bool,
    now: int,
    family: str | None = None,
) -> Flow[Any]:
    """Appends in one call where its bounds allow; a longer transcript is ingested."""
    parts = list(batches(texts)) or [[]]
    if len(parts) > 1 and not new:
        # What is stored already cannot be told batch by batch.
        return (yield from ingest(conversation, dialect, texts, refuse_replay, now, family))
    flags = {"repeat": repeat, "refuse_replay": refuse_replay}
    extra: Fields = {name: True for name, wanted in flags.items() if wanted}
    if family is not None:
        extra["family"] = family
    mode = "new" if new else "transcript"

    def append_part(part: list[str], extra: Fields) -> Flow[Fields]:
        options = {"mode": mode, "extra_json": to_json(extra) if extra else None}
        once = "revision" in extra
        return (yield from append_batch(conversation, dialect, part, options, now, family, once))

    if len(parts) == 1:
        return _joined([(yield from append_part(parts[0], extra))], 0, [])
    # A message that is refused is so before the batches in front of it are stored.
    entries = yield from _identities(dialect, texts)
    extra["list"] = hashlib.sha256(f"{now} {entries}".encode()).hexdigest()
    receipts = []
    at = 0
    if extra.pop("refuse_replay", False):
        # A replay cannot be told batch by batch: the first is of the state that all were asked of.
        place = {"conversation": conversation, "now": now}
        asked = f'{{"new":true,"refuse_replay":true,"entries":{entries}}}'
        first = _unless_replay(append_part, parts[0], extra, place | {"transcript_json": asked})
        receipts.append((yield from first))
        at = len(parts.pop(0))
    for part in parts:
        receipts.append((yield from _settled(append_part, part, extra | {"from": at})))
        at += len(part)
    return _joined(receipts, 0, [])


def _unless_replay(
    append: Callable[[list[str], Fields], Flow[Fields]],
    part: list[str],
    extra: Fields,
    asked: Fields,
) -> Flow[Fields]:
    """The receipt of the first batch of a list, unless all of it looks like a replay (`exists`).

    One that landed before is passed over: the list is a repetition.
    """
    repeats = 0
    while True:
        refusal: LcmError | None = None
        # At no conversation's revision: only what landed is not refused.
        revision = REVISION_OF_NONE
        try:
            revision = (yield from parsed("ingest.reconcile", asked))["revision"]
        except LcmError as error:
            if error.code != "exists" or "repeat" not in extra:
                raise
            refusal = error
        try:
            return (yield from _settled(append, part, extra | {"revision": revision}))
        except LcmError as error:
            if error.code != "conflict":
                raise
            if refusal is not None:
                raise refusal from None
            if repeats >= CONFLICTS_MAX:
                raise
        yield Pause(pause_seconds(repeats))
        repeats += 1


def _identities(dialect: str, texts: list[str]) -> Flow[str]:
    """What identifies each text, a JSON array; raises when one is no message of the dialect."""
    arrays: list[str] = []
    for part in batches(texts, IDENTIFY_MESSAGES_MAX, IDENTIFY_BYTES_MAX):
        array = yield Call("ingest.identify", {"dialect": dialect, "messages": part})
        arrays.append(array.strip()[1:-1])
    return f"[{','.join(arrays)}]"


def estimate(dialect: str, texts: list[str]) -> Flow[int]:
    """Estimated tokens of messages."""
    entries = json.loads((yield from _identities(dialect, texts)))
    return sum(entry["tokens"] for entry in entries)


def validate(dialect: str, texts: list[str]) -> Flow[list[str]]:
    """Why the provider of a dialect would refuse messages."""
    arguments = {"dialect": dialect, "messages_json": f"[{','.join(texts)}]"}
    findings: list[str] = yield from parsed("context.validate", arguments)
    return findings


def ingest(
    conversation: str,
    dialect: str,
    texts: list[str],
    refuse_replay: bool,
    now: int,
    family: str | None = None,
) -> Flow[Any]:
    """Asks which messages of the whole transcript are missing and appends only those.

    While others write, too, what is missing is asked again.
    """
    entries = yield from _identities(dialect, texts)
    intake = _Intake(conversation, dialect, texts, entries, now)
    intake.asked = {"refuse_replay": refuse_replay}
    if family is not None:
        intake.extra["family"] = family
    fewest = len(texts) + 1
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
    receipt = _joined(intake.receipts, 0, intake.warnings)
    return receipt | {"skipped": len(texts) - receipt["ingested"]}


def _pause(repeats: int) -> Pause:
    """Before a repetition: random, growing."""
    return Pause(random.uniform(0, 0.002 * 2**repeats))


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
        yield _pause(repeats)
        repeats += 1
        extra = extra | {"repeat": True}


class _Intake:
    """One transcript on its way in. Every append names the revision that its plan is true of.

    One of unknown outcome is not looked for among what is stored, where short messages cannot be
    told apart: it is repeated as it was, and the engine knows it again.
    """

    def __init__(
        self, conversation: str, dialect: str, texts: list[str], entries: str, now: int
    ) -> None:
        self.place: Fields = {"conversation": conversation, "now": now}
        self.dialect = dialect
        self.entries = entries
        self.texts = list(texts)
        """Large ones are replaced by what `append` carries once they are staged."""
        self.extra: Fields = {}
        self.asked: Fields = {}
        """Members of the transcript beside its entries."""
        self.receipts: list[Fields] = []
        self.warnings: list[str] = []
        self.done = 0
        """Index behind the last message that an append confirmed; every plan is told."""

    def plan(self) -> Flow[tuple[list[int], int]]:
        """Indexes of the messages that are not stored, and the revision this is true of."""
        asked = self.asked | {"confirmed": self.done}
        if self.done:  # What was stored here would look replayed.
            asked["refuse_replay"] = False
        transcript = f'{to_json(asked)[:-1]},"entries":{self.entries}}}'
        arguments = self.place | {"transcript_json": transcript}
        plan = yield from parsed("ingest.reconcile", arguments)
        if self.done == 0:  # Later ones would also speak of what was stored here.
            self.warnings = plan["warnings"]
        spans = [range(span["from"], span["to"] + 1) for span in plan["missing"]]
        return [index for span in spans for index in span], plan["revision"]

    def stage(self, missing: list[int]) -> Flow[bool]:
        """Stages those that are too large for a call; returns whether there were any."""
        large = [index for index in missing if byte_length(self.texts[index]) > BATCH_BYTES_MAX]
        for index in large:
            text = self.texts[index]
            self.texts[index] = yield from _stage(
                self.place["conversation"], text, self.place["now"], self.extra.get("family")
            )
        return bool(large)

    def append(self, missing: list[int], revision: int) -> Flow[bool]:
        """Appends these messages, each call relying on the revision that the one before left.

        Returns whether that held to the end.
        """
        if not missing:
            # An empty call writes nothing and says how things stand.
            self.receipts.append((yield from self._append([], self.extra)))
        at = 0
        while at < len(missing):
            following = missing[at : at + BATCH_MESSAGES_MAX]
            part = next(batches(self.texts[index] for index in following))
            receipt = yield from _settled(self._append, part, self.extra | {"revision": revision})
            self.receipts.append(receipt)
            taken: int = receipt["ingested"] + receipt["skipped"]
            if not taken:
                raise LcmError("trap", "`ingest.append` took none of the messages")
            at += taken
            self.done = missing[at - 1] + 1
            if receipt["revision"] > revision + 1:
                # It was known again; others may have written behind it.
                return at == len(missing)
            revision = receipt["revision"]
        return True

    def _append(self, texts: list[str], extra: Fields) -> Flow[Fields]:
        options = {"mode": "new", "partial": True, "extra_json": to_json(extra)}
        arguments = {"dialect": self.dialect, "messages": texts, "options": options}
        receipt: Fields = yield Call("ingest.append", self.place | arguments, once=True)
        return receipt


def assemble(
    conversation: str, budget: int, dialect: str, options: Fields, now: int
) -> Flow[Any]:
    """A context that fits, its messages parsed."""
    assembled: Fields = yield Call(
        "context.assemble",
        {
            "conversation": conversation,
            "budget": budget,
            "dialect": dialect,
            "options": options,
            "now": now,
        },
    )
    return {"messages": json.loads(assembled["messages_json"])} | assembled


def called(name: str, arguments: Fields) -> Flow[Any]:
    """A call and its result."""
    return (yield Call(name, arguments))


def parsed(name: str, arguments: Fields) -> Flow[Any]:
    """A call whose result is a JSON text, parsed."""
    return json.loads((yield Call(name, arguments)))


def configure(config_json: str, keep: Callable[[str], None]) -> Flow[Any]:
    """Has the engine check a configuration before all instances get it; returns its report."""
    report = yield from parsed("setup.configure", {"config_json": config_json})
    keep(config_json)
    return report
