"""What the calls of the package return: plain dicts, described for type checkers.

Keys, units and meanings are those of the records and JSON documents of the interface.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Dialect = Literal["lcm", "anthropic", "openai-chat", "openai-responses", "gemini"]
AppendMode = Literal["transcript", "new"]
CompactionMode = Literal["threshold", "incremental", "sweep", "until-under"]
GrepMode = Literal["auto", "regex", "full-text"]
GrepScope = Literal["messages", "summaries", "both", "files"]
GrepSort = Literal["recency", "relevance", "hybrid"]
Policy = Literal["chronological", "prompt-aware", "layered"]
SpentOn = Literal["turn", "summary"]
ArchiveCause = Literal[
    "manual-reset", "deleted", "session-end", "rollover", "cron-rotation", "idle"
]
ListingKind = Literal["conversations", "summaries", "messages", "grants"]


class Receipt(TypedDict):
    """What was stored. `seq_first` and `seq_last` are None when nothing was."""

    revision: int
    ingested: int
    skipped: int
    seq_first: int | None
    seq_last: int | None
    context_tokens: int
    warnings: list[str]


class CompletionRequest(TypedDict):
    """What the engine wants from a model; handed to the `complete` callback."""

    id: str
    purpose: Literal["leaf", "condensed", "file", "ask", "focus"]
    level: Literal["normal", "aggressive", "fallback"]
    system: str
    prompt: str
    input_tokens: int
    output_tokens_max: int
    temperature_permille: int
    model: str | None


class Pass(TypedDict):
    """One summary that was made; tokens are those of the stored context around it."""

    summary_id: str
    purpose: Literal["leaf", "condensed"]
    depth: int
    level: Literal["normal", "aggressive", "fallback"]
    capped: bool
    tokens_before: int
    tokens_after: int


class Compaction(TypedDict):
    """How a compaction ended.

    `failure` is the last failure of the model that another try did not mend, if it had one; it is
    among the warnings, too.
    """

    status: Literal["done", "nothing-to-do", "partial", "model-unavailable"]
    reason: str
    passes: list[Pass]
    completions: int
    tokens_before: int
    tokens_after: int
    warnings: list[str]
    failure: dict[str, Any] | None


class Decision(TypedDict):
    """Whether compaction is `due`, and whether the next completion `must` not be made before it.

    `tokens` is the size of the context and `threshold` the bound it is held against; `explanation`
    has every number that went into it.
    """

    due: bool
    must: bool
    reason: str
    tokens: int
    threshold: int
    explanation: dict[str, Any]


class Turn(TypedDict):
    """What one turn did.

    `compacted` is None when nothing was due, when it was `deferred`, or when the model refused its
    key or the content; `failure` is then `completion-failed`, else that of `compacted`. An error
    behind the append is `failure`, too (`conflict`, ...): the messages are stored, and `decision`
    may be of before them.
    """

    receipt: Receipt
    decision: Decision
    compacted: Compaction | None
    deferred: bool
    failure: dict[str, str] | None


class Debt(TypedDict):
    """Compaction that is due and was put off.

    `exhausted`: nothing can be done until the context changes; `failures`: those in a row.
    """

    exhausted: bool
    failures: int
    next_attempt_at: str
    began_at: str


class Maintained(TypedDict):
    """What `maintain` did.

    `compacted` is None when it was not time for one, or when the model refused its key or the
    content; `failure` is then `completion-failed`, else that of `compacted`.
    """

    debt: Debt | None
    compacted: Compaction | None
    failure: dict[str, str] | None


class Spent(TypedDict):
    """What some answers of models took, summed; `cost_micros` in millionths of a currency."""

    calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_micros: int


class Usage(TypedDict):
    """What was reported of a conversation so far."""

    turns: Spent
    summaries: Spent


class Reported(TypedDict):
    """What `usage` answers; `changed`: this report was new."""

    changed: bool
    conversation: str
    usage: Usage


class Prices(TypedDict):
    """Prices of a million tokens, in millionths of a currency, each at most 1,000,000,000.

    Without `cache_read` and `cache_write` a cache saves nothing, without `summary_input` and
    `summary_output` summaries cost what turns do.
    """

    input: int
    output: int
    cache_read: NotRequired[int]
    cache_write: NotRequired[int]
    summary_input: NotRequired[int]
    summary_output: NotRequired[int]


class Advice(TypedDict):
    """Whether compacting now costs less than waiting; costs are in the currency of the prices.

    `forced_in_turns` is None when compaction can wait until the end, `wait_turns` when now is best.
    """

    advice: Literal["compact", "wait"]
    reason: Literal[
        "saves-more-than-it-costs",
        "costs-more-than-it-saves",
        "nothing-to-compact",
        "over-budget",
    ]
    cache: Literal["warm", "cold", "unknown"]
    cost_now_micros: int
    cost_wait_micros: int
    completions_cost_micros: int
    forced_in_turns: int | None
    wait_turns: int | None
    tokens: int
    tokens_after: int
    turn_tokens: int
    turns: int
    changed: bool
    conversation: str


class ContextItem(TypedDict):
    """One item of the stored context, with whether it is in an assembly, and `why`."""

    id: str
    kind: Literal["message", "leaf", "condensed", "focus", "live", "withdrawn"]
    included: bool
    why: str
    tokens: int
    seq_first: int | None
    seq_last: int | None


class Prefix(TypedDict):
    """How much of an assembly is equal to the one before; `token` is for the next one."""

    stable_tokens: int | None
    broken_by: str | None
    broken_why: (
        Literal["dialect", "focus", "compaction", "budget", "eviction", "edit"] | None
    )
    breakpoints: list[int]
    sha256: str
    token: str


class Assembled(TypedDict):
    """A context that fits: `messages` in the dialect asked for, and how it came about."""

    messages: list[Any]
    messages_json: str
    system: str | None
    tokens: int
    summaries: int
    fresh_tail_messages: int
    evicted: int
    items: list[ContextItem]
    explanation_text: str | None
    prefix: Prefix
    warnings: list[str]


class Grant(TypedDict):
    """A limited right to read; `summary_ids` is None for all of the conversations.

    `parent` is the grant that it inherits from.
    """

    id: str
    conversations: list[str]
    summary_ids: list[str] | None
    depth_max: int
    tokens_max: int
    tokens_left: int
    issued_at: str
    expires_at: str
    parent: str | None
    revoked: bool


AskStatus = Literal[
    "answered",
    "uncited",
    "not-found",
    "no-evidence",
    "no-answer",
    "model-failed",
    "timed-out",
    "busy",
]


class Asked(TypedDict):
    """How a question ended, with what it rests on.

    `cited_ids` are ids in the answer that the model was shown, `cited_conversations` that of each,
    `rejected_ids` the others that it names. `truncated`: something that was found was not read, or
    the answer was cut. `failure`: how the model failed, when it did. `grant` says what was
    taken of the one it was read on; `expires_at` is there when another question is open (`busy`):
    until when.
    """

    status: AskStatus
    answer: str | None
    cited_ids: list[str]
    cited_conversations: list[str]
    rejected_ids: list[str]
    source_conversations: list[str]
    expanded_summaries: int
    source_tokens: int
    truncated: bool
    conversations: list[dict[str, Any]]
    completions: int
    failure: dict[str, str] | None
    grant: NotRequired["Charged"]
    expires_at: NotRequired[str]


class Routing(TypedDict):
    """Whether having a sub-agent read is worth it, and why."""

    action: Literal["answer-directly", "expand-shallow", "delegate-traversal"]
    estimated_tokens: int
    reasons: list[str]
    risk: str


class Planned(TypedDict):
    """What a question would read; each of `conversations` has `ids` and a `tokens_max`.

    `grant` is there when it would be read on one.
    """

    status: Literal["planned"]
    conversations: list[dict[str, Any]]
    routing: Routing
    source_tokens: int
    truncated: bool
    grant: NotRequired["Charged"]


class Embedded(TypedDict):
    """What is known of the vectors of a conversation.

    `kept`: entries that were taken, from the first on. `missing_count`: messages and summaries
    of which nothing is known, `missing_ids` the ids of some of them. `stored`: vectors of the conversation.
    """

    dimensions: int | None
    kept: int
    missing_count: int
    model: str | None
    missing_ids: list[str]
    stored: int


class Charged(TypedDict):
    """What a read on a grant took; `truncated`: what is left cut it."""

    tokens: int
    tokens_left: int
    truncated: bool


class StoredMessage(TypedDict):
    """A message as it was handed over: `raw` is its text, byte for byte.

    `entry_id` is there when the host gave one.
    """

    id: str
    seq: int
    kind: Literal["message"]
    role: Literal["system", "user", "assistant", "tool"]
    entry_id: NotRequired[str]
    created_at: str
    tokens: int
    trust: Literal["trusted", "untrusted"]
    raw: str


class LeftOut(TypedDict):
    """What came next and did not fit the cap of an expansion."""

    id: str
    tokens: int


class Expanded(TypedDict):
    """What a summary was made from; `cursor` leads to the page that follows, or is None."""

    id: str
    summaries: list[dict[str, Any]]
    messages: list[StoredMessage]
    tokens: int
    truncated: bool
    cursor: str | None
    left_out: LeftOut | None
    grant: NotRequired[Charged]


class Found(TypedDict):
    """What a search found, best first; `notes` say how the pattern was taken, and what was cut.

    Where not everything was looked through, the same search goes on at `cursor`.
    """

    matches: list[dict[str, Any]]
    total: int
    truncated: bool
    notes: list[str]
    grant: NotRequired[Charged]
    cursor: str | None


class Checked(TypedDict):
    """Whether what is stored of a conversation agrees with itself, check by check."""

    ok: bool
    checks: list[dict[str, Any]]
    metrics: dict[str, int]


class Prompt(TypedDict):
    """What summaries of a depth are asked for; `text` is what `prompt_overrides` replaces."""

    name: str
    version: int
    overridden: bool
    text: str
    built_in: str
    system: str
    prompt: str
    tokens: int


class Imported(TypedDict):
    """What an import stored; `conversations` and `messages` are those of the export."""

    conversations: int
    messages: int
    ingested: int
    summaries: int
    contexts: int


class ToolAnswer(TypedDict):
    """What an agent is told in answer to a tool call.

    `is_error`: its model made a mistake, which `text` explains to it. `failure`: how the model
    failed that was asked for the answer, or None; `text` says that, too.
    """

    text: str
    is_error: bool
    failure: dict[str, str] | None
