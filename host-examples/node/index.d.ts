// Types of the package. Names of options and results are those of the engine's JSON.

/** In which published shape messages come in and go out. */
export type Dialect = "lcm" | "anthropic" | "openai-chat" | "openai-responses" | "gemini";

/** The engine's closed list of codes, and `trap` for a failure of the engine itself. */
export type ErrorCode =
  | "invalid-input"
  | "not-found"
  | "exists"
  | "limit-exceeded"
  | "unsupported"
  | "denied"
  | "conflict"
  | "store-unavailable"
  | "would-block"
  | "completion-failed"
  | "corrupt"
  | "trap";

/** The closed list of codes, `trap` aside. */
export declare const ERROR_CODES: readonly ErrorCode[];

/** A failed call. Programs read `code`, people read `message`. */
export declare class LcmError extends Error {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown });
  /** What programs read. */
  readonly code: ErrorCode;
}

/** A condition of a commit: the key has exactly this value, or is absent. */
export interface Guard {
  /** Which key. */
  key: string;
  /** What it must have; absent: it must not exist. */
  value?: Uint8Array;
}

/** One write of a commit; without a value the key is deleted. */
export interface Put {
  /** Which key. */
  key: string;
  /** What it has then; absent: it is deleted. */
  value?: Uint8Array;
}

/** A key with its value. */
export interface Entry {
  /** Printable ASCII. */
  key: string;
  /** Its bytes. */
  value: Uint8Array;
}

/** What stands for a key that is absent. */
export type Absent = null | undefined;

/** An ordered key-value store that answers at once. */
export interface Store {
  /** Values in the order of the keys; null or undefined where a key is absent. */
  getMany(keys: string[]): (Uint8Array | Absent)[];
  /** Entries with start <= key < end in bytewise order, and whether more follow. At least one. */
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): [Entry[], boolean];
  /** Checks all guards and writes all puts, or throws code `conflict` and writes nothing. */
  commit(guards: Guard[], puts: Put[]): void;
  /** Called once, by `close` of the engine. */
  close?(): void;
}

/** The same with promises. */
export interface PromisedStore {
  /** As of a store that answers at once. */
  getMany(keys: string[]): Promise<(Uint8Array | Absent)[]>;
  /** As of a store that answers at once. */
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): Promise<[Entry[], boolean]>;
  /** As of a store that answers at once; a failed guard rejects with code `conflict`. */
  commit(guards: Guard[], puts: Put[]): Promise<void>;
  /** Called once, by `close` of the engine. */
  close?(): Promise<void> | void;
}

/** The mark of a store that was declared by `asyncStore`. */
declare const asynchronous: unique symbol;

/** A store that was declared by `asyncStore`. */
export interface AsyncStore {
  /** Made by `asyncStore` alone. */
  readonly [asynchronous]: true;
}

/** Declares that a store answers with promises. */
export declare function asyncStore(store: PromisedStore): AsyncStore;

/** A store in memory; lost when the process ends. */
export declare class MemoryStore implements Store {
  getMany(keys: string[]): (Uint8Array | undefined)[];
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): [Entry[], boolean];
  commit(guards: Guard[], puts: Put[]): void;
  close(): void;
}

/** Only in workers: a store in the SQLite storage of a Durable Object (`ctx.storage`). */
export declare function durableStore(storage: {
  sql: { exec(query: string, ...bindings: unknown[]): Iterable<Record<string, unknown>> };
  transactionSync<T>(work: () => T): T;
}): Store;

/** What a completion is for. */
export type Purpose = "leaf" | "condensed" | "file" | "ask" | "focus";
/** Which prompt was chosen for a summary, or that it was made without a model. */
export type Level = "normal" | "aggressive" | "fallback";

/** What the engine wants from a language model. */
export interface CompletionRequest {
  /** Names the task; opaque. */
  id: string;
  /** What the completion is for. */
  purpose: Purpose;
  /** Which prompt was chosen. */
  level: Level;
  /** System text. */
  system: string;
  /** User text: instructions, and the material between markers. */
  prompt: string;
  /** Estimated tokens of `system` and `prompt` together. */
  input_tokens: number;
  /** The most tokens that the model may write, reasoning included. */
  output_tokens_max: number;
  /** Sampling temperature in thousandths. */
  temperature_permille: number;
  /** The model that the configuration names; null: you choose. */
  model: string | null;
}

/** Why a model did not answer; `auth` and `policy` are not asked again. */
export type CompletionErrorCode =
  "auth" | "policy" | "rate-limited" | "timeout" | "context-too-long" | "unavailable" | "other";

/** What a model wrote. */
export interface Completion {
  /** Its text. */
  text: string;
  /** Why it ended there; `stop` unless given. */
  finish?: "stop" | "length" | "refusal";
  /** Which model it was; stored with the summary. */
  model?: string;
  /** Tokens of the prompt as the provider counted them. */
  input_tokens?: number;
  /** Tokens of the answer as the provider counted them. */
  output_tokens?: number;
}

/** Why a model did not answer. */
export interface CompletionFailure {
  /** What kind of failure it is. */
  code: CompletionErrorCode;
  /** One line for a person. */
  message: string;
  /** When it wants to be asked again; null: it did not say. */
  retry_after_ms?: number | null;
}

/** That a model did not answer. */
export interface NoCompletion {
  /** Why it did not. */
  error: CompletionFailure;
}

/** What a model wrote, or why it did not; a string is a text and nothing else. */
export type Answer = string | Completion | NoCompletion;

/**
 * Answers a request with a model. `signal` is aborted when its time is up or the caller stops: pass
 * it on to `fetch`, so that the request ends. What it throws counts as a failure of the model; a
 * `code` of `CompletionErrorCode` and `retry_after_ms` on the error are read, and a `TimeoutError` is a
 * timeout.
 */
export type Complete = (
  request: CompletionRequest,
  options: { signal: AbortSignal },
) => Answer | Promise<Answer>;

/** A model, or several of which each is asked when the one before it failed. */
export type Models = Complete | Complete[];

/** Models by what they are asked for, and a default for all that is not named. */
export type ModelsByPurpose = Partial<Record<Purpose | "default", Models>>;

/** What `open` takes. */
export interface OpenOptions {
  /** Path of an SQLite file, `memory:`, or a store. */
  store: string | Store | AsyncStore;
  /**
   * The model, several as a fallback chain, or an object of these by purpose, with `default` for
   * all that it does not name. Where there is none, summaries are made without a model.
   */
  complete?: Models | ModelsByPurpose;
  /** Configuration keys of the engine. */
  config?: Record<string, unknown>;
  /** Clock in milliseconds since the epoch. */
  now?: () => number;
  /**
   * Whether engine and store run in a worker thread, so that the event loop never stands still for
   * them; `store` is then a path or `memory:`, and `complete` is called in the thread that opened.
   * False unless given; only in Node.
   */
  worker?: boolean;
  /** Where `LCM_...` configuration is read from; in Node the process's environment. */
  environment?: Record<string, string | undefined>;
}

/** Opens a store and returns an engine over it. */
export declare function open(options: OpenOptions): Promise<Engine>;

/** Time of the call in milliseconds since the epoch, in place of the clock. */
export interface Timed {
  /** Milliseconds since the epoch. */
  now?: number;
}

/** A read that a sub-agent may make, too. */
export interface Granted extends Timed {
  /** Grant of a sub-agent. */
  grant?: string;
}

/** A message as an object of its dialect, or its JSON text, which is kept byte for byte. */
export type Message = object | string;

/** How messages are stored. */
export interface IngestOptions extends Timed {
  /** In which shape they come; `lcm` unless given. */
  dialect?: Dialect;
  /** Makes the warning about a likely replay an error. */
  refuse_replay?: boolean;
  /** Key of the family that the conversation is of, or comes to. */
  family?: string;
}

/** How the newest messages are stored. */
export interface AppendOptions extends IngestOptions {
  /** `transcript` (default): what is stored already is skipped. `new`: everything is new. */
  mode?: "transcript" | "new";
  /** This call repeats one with the same `now` whose outcome is unknown. */
  repeat?: boolean;
}

/** What became of messages. */
export interface Receipt {
  /** Commits of the conversation so far. */
  revision: number;
  /** Messages that are new. */
  ingested: number;
  /** Messages that were stored already, or are none. */
  skipped: number;
  /** Place of the first new one, from 1; null: there is none. */
  seq_first: number | null;
  /** Place of the last new one. */
  seq_last: number | null;
  /** Estimated tokens of the stored context now. */
  context_tokens: number;
  /** Things worth knowing, each one line that begins with its name. */
  warnings: string[];
}

/** When compaction is due. */
export interface CompactionOptions extends Timed {
  /** Tokens that a context may have. */
  budget: number;
  /** When to act; `threshold` unless given. */
  mode?: "threshold" | "incremental" | "sweep" | "until-under";
  /** Whether to act below the threshold. */
  force?: boolean;
  /** Tokens to reach; absent: the threshold. */
  target?: number;
  /** Tokens of the whole prompt as the provider counted them last. */
  observed_tokens?: number;
  /** After `calibrate`: the model whose tokens budget, target and observed tokens are. */
  model?: string;
}

/** How room is made. */
export interface CompactOptions extends CompactionOptions {
  /** Requests that may be asked of the model at once; 1 unless given. */
  parallel?: number;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  /** How long what is asked of the model is kept from other callers. */
  lease_ms?: number;
  /** Aborted: what is done stays, and no more is asked. */
  signal?: AbortSignal;
}

/** One summary that was made. */
export interface Pass {
  /** Its id. */
  summary: string | null;
  /** `leaf`, of messages, or `condensed`, of summaries. */
  kind: Purpose;
  /** 0 for a leaf. */
  depth: number;
  /** With which prompt it was made, or `fallback`, without a model. */
  level: Level;
  /** Whether its text was cut to its limit. */
  capped: boolean;
  /** Tokens of the stored context before. */
  tokens_before: number;
  /** Tokens of the stored context after. */
  tokens_after: number;
}

/** What compaction did. */
export interface Compacted {
  /** How it ended. */
  status: "done" | "nothing-to-do" | "partial" | "model-unavailable";
  /** Why it ended; of the closed list of the engine. */
  reason: string;
  /** Summaries that were made, in order. */
  passes: Pass[];
  /** How often a model was asked, or a summary made without one. */
  completions: number;
  /** Tokens of the stored context before. */
  tokens_before: number;
  /** Tokens of the stored context after. */
  tokens_after: number;
  /** Things worth knowing, each one line. */
  warnings: string[];
  /** The last failure of the model that another try did not mend; also among the warnings. */
  failure: CompletionFailure | null;
}

/** How messages are stored, and how room is made. */
export interface TurnOptions extends CompactOptions {
  /** In which shape the messages come; `lcm` unless given. */
  dialect?: Dialect;
  /** Makes the warning about a likely replay an error. */
  refuse_replay?: boolean;
  /** Key of the family that the conversation is of, or comes to. */
  family?: string;
  /** `mode` of the append. */
  append_mode?: "transcript" | "new";
  /** This call repeats one with the same `now` whose outcome is unknown. */
  repeat?: boolean;
  /** Whether compaction that can wait is left for `maintain`; false unless given. */
  defer?: boolean;
}

/** How a model failed, or `completion-failed` when it refused its key or the content. */
export interface Failure {
  /** For programs. */
  code: string;
  /** One line for a person. */
  message: string;
}

/**
 * What one turn did. `compacted` is null when nothing was due, when it is `deferred`, or when the
 * model refused its key or the content; `failure` is then `completion-failed`, else that of
 * `compacted`.
 */
export interface Turn {
  /** What became of the messages. */
  receipt: Receipt;
  /** Whether compaction was due, and why. */
  decision: Decision;
  /** What it did. */
  compacted: Compacted | null;
  /** Whether compaction was due and is left for `maintain`. */
  deferred: boolean;
  /** How the model failed; null: it did not. */
  failure: Failure | null;
}

/** What one kind of summary is asked for. */
export interface Prompt {
  /** Under which `prompt_overrides` replaces its text. */
  name: string;
  /** Whether the configuration replaces the text. */
  overridden: boolean;
  /** The paragraph in force, and the engine's. */
  text: string;
  /** The engine's own paragraph. */
  built_in: string;
  /** What a model is sent, with words in brackets for the material. */
  system: string;
  /** User text that a model is sent. */
  prompt: string;
  /** Estimated tokens of both. */
  tokens: number;
  /** Stored with every summary. */
  version: number;
}

/** Compaction that is due and was put off. */
export interface Debt {
  /** Whether nothing can be done until the context changes. */
  exhausted: boolean;
  /** Failures in a row. */
  failures: number;
  /** From when on it is tried again. */
  next_attempt_at: string;
  /** When it was seen first. */
  since: string;
}

/**
 * What `maintain` did. `compacted` is null when it was not time for one, or when the model refused
 * its key or the content; `failure` is then `completion-failed`, else that of `compacted`.
 */
export interface Maintained {
  /** What is still owed; null: nothing. */
  debt: Debt | null;
  /** What was done. */
  compacted: Compacted | null;
  /** How the model failed; null: it did not. */
  failure: Failure | null;
}

/** Whether compaction is due. */
export interface Decision {
  /** Whether it is. */
  due: boolean;
  /** Whether the stored context exceeds the budget: the next turn cannot wait. */
  must: boolean;
  /** Why, of the closed list of the engine. */
  reason: string;
  /** Tokens that were compared. */
  tokens: number;
  /** What they were compared with. */
  threshold: number;
  /** For people: what was known and which rule applied. */
  explanation: unknown;
}

/** What a context is to be. */
export interface AssembleOptions extends Timed {
  /** Tokens that it may have. */
  budget: number;
  /** In which shape it comes; `lcm` unless given. */
  dialect?: Dialect;
  /** Which older items are kept when not everything fits; absent: as the configuration says. */
  policy?: "chronological" | "prompt-aware" | "layered";
  /** What `prompt-aware` compares with. */
  prompt?: string;
  /** What of the budget you put into the prompt yourself. */
  reserve_tokens?: number;
  /** Marks the messages of `breakpoints` for the provider's cache, in a dialect that asks for marks (`anthropic`), and no others. */
  mark_caches?: boolean;
  /** After `calibrate`: the model whose tokens budget and reserve are. */
  model?: string;
  /** Messages of the dialect that the caller holds; those that are stored count once. */
  live_messages?: Message[];
  /** `prefix.token` of an earlier assembly. */
  previous?: string;
  /** Whether `items` lists every item of the stored context, and `explanation_text` shows them. */
  explain?: boolean;
}

/** One item of the stored context, or of what was added to it. */
export interface ContextItem {
  /** Of the summary or focus brief, or of the first message. */
  id: string;
  /** What it is. */
  kind: "message" | "leaf" | "condensed" | "withdrawn" | "focus" | "live";
  /** Whether it is in the context. */
  included: boolean;
  /** Why it is or is not, and behind a colon what was done to it. */
  why: string;
  /** Tokens that it has in a context. */
  tokens: number;
  /** The first message it stands for; null: it is not stored. */
  seq_first: number | null;
  /** The last message it stands for. */
  seq_last: number | null;
}

/** What of an assembly is equal to an earlier one. */
export interface Prefix {
  /** Tokens of the equal beginning; null: nothing to compare with. */
  stable_tokens: number | null;
  /** Id of the first item that differs. */
  broken_by: string | null;
  /** Why the equal beginning ends there. */
  broken_why: "compaction" | "eviction" | "budget" | "focus" | "edit" | null;
  /** Indexes of the messages behind which a cache may end, at most three. */
  breakpoints: number[];
  /** A chain over the messages. */
  sha256: string;
  /** For `previous` of the next assembly; opaque. */
  token: string;
}

/** A context, as it is sent to a model. */
export interface Assembled {
  /** Messages of the dialect that was asked for. */
  messages: any[];
  /** Text of the leading system messages, which are not among `messages`. */
  system: string | null;
  /** Estimated tokens of all that is returned, `system` included. */
  tokens: number;
  /** The budget that was asked for. */
  budget: number;
  /** Summaries among the messages. */
  summaries: number;
  /** Messages of the fresh tail. */
  fresh_tail_messages: number;
  /** Messages and summaries that were left out. */
  evicted: number;
  /** With `explain`: every item of the stored context, in order. */
  items?: ContextItem[];
  /** With `explain`: the same as text for people, a line for each item and a picture of the budget. */
  explanation_text?: string;
  /** How much is equal to the assembly that `previous` names. */
  prefix: Prefix;
  /** Things worth knowing, each one line that begins with its name. */
  warnings: string[];
}

/** What of a file is read: a range of lines (from 1, inclusive) or of bytes (from 0, exclusive). */
export interface DescribeOptions extends Granted {
  /** Look for the id in every conversation of the store. */
  all?: boolean;
  /** false: only what the file is. */
  content?: boolean;
  /** The most bytes of content. */
  bytes_max?: number;
  /** The first line. */
  start_line?: number;
  /** The last line. */
  end_line?: number;
  /** The first byte. */
  start_byte?: number;
  /** The byte behind the last one. */
  end_byte?: number;
}

/** What is searched, and how. */
export interface GrepOptions extends Granted {
  /** How the pattern is read; `auto` unless given. */
  mode?: "auto" | "regex" | "full-text";
  /** Where is searched; `both` unless given. */
  scope?: "messages" | "summaries" | "both" | "files";
  /** With the scope `files`: only these. */
  file_ids?: string[];
  /** With the scope `files`: the file or message to go on with, as `unscanned_from` says. */
  start_id?: string;
  /** Where in that file to begin, or in the one of `file_ids`. */
  start_byte?: number;
  /** Messages to show before and after each one that is found, 0 to 3. */
  neighbours?: number;
  /** In which order hits come; `relevance` unless given. */
  sort?: "recency" | "relevance" | "hybrid";
  /** From when on, ISO 8601. */
  since?: string;
  /** Until when, ISO 8601. */
  before?: string;
  /** The most hits. */
  limit?: number;
  /** Every conversation of the store. */
  all?: boolean;
  /** Not the family of the conversation. */
  only?: boolean;
  /** An embedding of what is looked for, by the model of `embed`: what is near is found, too. */
  vector?: Vector;
  /** The name of the model that made it. */
  model?: string;
}

/** An embedding: 8 to 4,096 finite numbers that are not all zero. */
export type Vector = readonly number[] | Float32Array | Float64Array;

/** The vector of one message or summary. */
export interface Embedding {
  /** Of which message or summary. */
  id: string;
  /** Null: it is to have none. */
  vector: Vector | null;
}

/** What `embed` takes; nothing: it only says what has no vector. */
export interface EmbedOptions {
  /** At most 256. */
  vectors?: Embedding[];
  /** The name of the model that made them. */
  model?: string;
  /** Removes vectors; to be called until `stored` is 0. */
  forget?: boolean;
}

/** What has vectors. */
export interface Embedded {
  /** Numbers of each vector; null: there is none. */
  dimensions: number | null;
  /** Entries that were taken, from the first on. */
  kept: number;
  /** Messages and summaries of which nothing is known. */
  missing: number;
  /** The model that was named with them. */
  model: string | null;
  /** Ids of some of them, to go on with. */
  next: string[];
  /** Vectors of the conversation. */
  stored: number;
}

/** Whether something is done or only said. */
export interface VerbOptions extends Timed {
  /** Only says what would be done. */
  dry_run?: boolean;
}

/** What one answer of a model took. */
export interface UsageReport extends VerbOptions {
  /** What the answer was for. */
  purpose: "turn" | "summary";
  /** Tokens of the whole prompt, those in the provider's cache included. */
  input_tokens?: number;
  /** Of them those that were read from the cache. */
  cache_read_tokens?: number;
  /** Of them those that were written to it. */
  cache_write_tokens?: number;
  /** Tokens of the answer. */
  output_tokens?: number;
  /** Millionths of the one currency that all reports count in. */
  cost_micros?: number;
}

/** What some answers of models took, summed. */
export interface Spent {
  /** Answers. */
  calls: number;
  /** Tokens of their prompts. */
  input_tokens: number;
  /** Of them those from the provider's cache. */
  cache_read_tokens: number;
  /** Of them those that were written to it. */
  cache_write_tokens: number;
  /** Tokens of the answers. */
  output_tokens: number;
  /** What they cost, in millionths. */
  cost_micros: number;
}

/** What `usage` resolves to; `changed`: this report was new. */
export interface Reported {
  /** Whether this report was new. */
  changed: boolean;
  /** Which one. */
  conversation: string;
  /** The sums so far. */
  usage: Usage;
}

/** Sums of a conversation. */
export interface Usage {
  /** Of answers to the agent. */
  turns: Spent;
  /** Of summaries. */
  summaries: Spent;
}

/** Prices of a million tokens, in millionths of a currency. */
export interface Prices {
  /** Of tokens of a prompt. */
  input: number;
  /** Of tokens of an answer. */
  output: number;
  /** Absent: as `input`, as without a cache. */
  cache_read?: number;
  /** Of tokens that are written to a cache; absent: as `input`. */
  cache_write?: number;
  /** Of the model that summarises; absent: as `input` and `output`. */
  summary_input?: number;
  /** Of an answer of that model. */
  summary_output?: number;
}

/** What advice rests on. */
export interface AdviseOptions extends Timed {
  /** Tokens that a context may have. */
  budget: number;
  /** What tokens cost. */
  prices: Prices;
  /** How long the provider keeps a prefix; absent: 5 minutes. */
  cache_ms?: number;
  /** Prompts to come; absent: as many as there were. */
  turns?: number;
  /** Tokens of the whole prompt as the provider counted them last. */
  observed_tokens?: number;
  /** After `calibrate`: the model whose tokens `budget` and `observed_tokens` are. */
  model?: string;
}

/** Whether compacting now costs less than waiting. */
export interface Advice {
  /** What costs less. */
  advice: "compact" | "wait";
  /** Why. */
  reason:
    | "saves-more-than-it-costs"
    | "costs-more-than-it-saves"
    | "nothing-to-compact"
    | "over-budget";
  /** Whether the provider's cache still has the prompt. */
  cache: "warm" | "cold" | "unknown";
  /** What all turns to come cost when compaction is now. */
  cost_now_micros: number;
  /** What they cost when it is later. */
  cost_wait_micros: number;
  /** Of the first, what the summaries cost. */
  completions_cost_micros: number;
  /** After how many turns compaction cannot wait; null: it can. */
  forced_in_turns: number | null;
  /** After how many turns it would cost least; null: now. */
  wait_turns: number | null;
  /** Tokens of the context now. */
  tokens: number;
  /** Tokens of the context when compacted. */
  tokens_after: number;
  /** Tokens that a turn adds. */
  turn_tokens: number;
  /** Prompts to come that were reckoned with. */
  turns: number;
  /** Which one. */
  conversation: string;
}

/** Why a conversation is archived. */
export type ArchiveCause =
  | "manual-reset"
  | "deleted"
  | "session-end"
  | "rollover"
  | "cron-rotation"
  | "idle";

/** Limits of a grant. */
export interface GrantOptions extends Timed {
  /** Conversations that it covers, 1 to 16; absent: the one. */
  conversations?: string[];
  /** Summaries that it covers with what lies below, 1 to 64; absent: everything. */
  summaries?: string[];
  /** Most steps of one expansion, 1 to 10; absent: 3. */
  depth_max?: number;
  /** Tokens of text that may be read, 1 to 1,000,000; absent: `expand_tokens_max`. */
  tokens_max?: number;
  /** How long it is, at most a day; absent: five minutes. */
  ttl_ms?: number;
  /** A grant that it inherits from. */
  from?: string;
}

/** A limited right to read. */
export interface Grant {
  /** Pass it on as `grant` or `caller`. */
  id: string;
  /** Conversations that it covers. */
  conversations: string[];
  /** Null: all of the conversations. */
  summaries: string[] | null;
  /** Most steps of one expansion. */
  depth_max: number;
  /** Tokens of text that may be read in all. */
  tokens_max: number;
  /** Tokens that may still be read. */
  tokens_left: number;
  /** Since when it is. */
  issued_at: string;
  /** Until when it is. */
  expires_at: string;
  /** The grant that it inherits from; null: none. */
  from: string | null;
  /** Whether it was ended before. */
  revoked: boolean;
}

/** How far back a summary is followed. */
export interface ExpandOptions extends Granted {
  /** Steps; absent: one, or with `messages` all. */
  depth?: number;
  /** Whether original messages are part of the answer. */
  messages?: boolean;
  /** Tokens of one page; absent: everything, without pages. */
  token_cap?: number;
  /** `next` of the page before. */
  after?: string;
}

/** How a question is answered. */
export interface AskOptions extends Granted {
  /** What to search for; absent: the question. */
  query?: string;
  /** Summaries to answer from; without `query` only what they stand for is read. */
  summaries?: string[];
  /** Tokens of the answer, 1 to 8,000; absent: 2,000. */
  max_tokens?: number;
  /** Tokens of what is read; absent, and at most: `expand_tokens_max`. */
  token_cap?: number;
  /** Every conversation of the store. */
  all?: boolean;
  /** Not the family of the conversation. */
  only?: boolean;
  /** How long all of it may take, 1 to 600,000; absent: 150,000. */
  deadline_ms?: number;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  /** Aborted: the model is not waited for any more. */
  signal?: AbortSignal;
}

/** How a question ended. */
export type AskStatus =
  | "answered"
  | "uncited"
  | "not-found"
  | "no-evidence"
  | "no-answer"
  | "model-failed"
  | "timed-out"
  | "busy";

/** What a question found in one conversation. */
export interface AskedConversation {
  /** Which one. */
  conversation: string;
  /** Messages and summaries that were found. */
  candidates: number;
  /** Summaries that the question named. */
  named: number;
  /** Whether something of it was read. */
  status: "used" | "skipped";
  /** Tokens that were read of it. */
  tokens: number;
}

/** What one call took of its grant. */
export interface GrantSpent {
  /** Tokens that were read. */
  tokens: number;
  /** Tokens that may still be read. */
  tokens_left: number;
  /** Whether the grant ended what would have been read. */
  truncated: boolean;
}

/** How a question ended, with what it rests on. */
export interface Asked {
  /** How it ended. */
  status: AskStatus;
  /** The answer; null: there is none. */
  answer: string | null;
  /** Ids in the answer that the model was shown. */
  cited_ids: string[];
  /** Of each cited id the conversation that it is of. */
  cited_conversations: string[];
  /** Ids in the answer that the model was not shown. */
  rejected_ids: string[];
  /** Conversations that it rests on. */
  source_conversations: string[];
  /** Summaries that were expanded for it. */
  expanded_summaries: number;
  /** Tokens that the model was shown. */
  source_tokens: number;
  /** Whether something that was found was not read, or the answer was cut. */
  truncated: boolean;
  /** What was found where. */
  conversations: AskedConversation[];
  /** How often a model was asked. */
  completions: number;
  /** How the model failed, when it did. */
  failure: CompletionFailure | null;
  /** What was taken of the grant on which it was read. */
  grant?: GrantSpent;
  /** When `busy`: until when the other question is open. */
  expires_at?: string;
}

/** How a tool is called. */
export interface ToolOptions extends Timed {
  /** The grant of a sub-agent; absent: the main agent calls. */
  caller?: string;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  /** Aborted: no model is waited for any more. */
  signal?: AbortSignal;
}

/** The answer to a tool call, for the agent's model. */
export interface ToolAnswer {
  /** What the model is shown. */
  text: string;
  /** Whether the call was wrong, and `text` says why. */
  is_error: boolean;
}

/** Results that are the engine's JSON, as `lcm --json` prints it. */
export type Json = any;

/** An engine over one store. Methods reject with `LcmError`. */
export interface Engine {
  /** Version of the engine. */
  readonly version: string;
  /** Replaces the configuration and reports what became of each key. */
  configure(config: Record<string, unknown>): Promise<Json>;
  /** Stores messages. */
  append(conversation: string, messages: Message[], options?: AppendOptions): Promise<Receipt>;
  /** Stores those messages of a whole transcript that are missing. */
  ingest(conversation: string, transcript: Message[], options?: IngestOptions): Promise<Receipt>;
  /**
   * One turn: stores messages, asks whether compaction is due, and does what is. Nothing is stored
   * when an option is wrong.
   */
  turn(conversation: string, messages: Message[], options: TurnOptions): Promise<Turn>;
  /** Whether compaction is due, and why. */
  evaluate(conversation: string, options: CompactionOptions): Promise<Decision>;
  /** Makes room: summarises old messages until nothing is due. */
  compact(conversation: string, options: CompactOptions): Promise<Compacted>;
  /** Does compaction that was put off, when it is time for it. */
  maintain(conversation: string, options: CompactOptions): Promise<Maintained>;
  /** A context that fits the budget. */
  assemble(conversation: string, options: AssembleOptions): Promise<Assembled>;
  /** Estimated tokens of messages; stores nothing. For what is sent beside the context. */
  estimate(messages: Message[], dialect?: Dialect): Promise<number>;
  /** Why the provider of `dialect` would refuse these messages, a line each; empty when not. */
  validate(messages: Message[], dialect: Exclude<Dialect, "lcm">): Promise<string[]>;
  /** Searches messages and summaries. */
  grep(conversation: string, pattern: string, options?: GrepOptions): Promise<Json>;
  /** Attaches embeddings to messages and summaries; without options it says what has none. */
  embed(conversation: string, options?: EmbedOptions): Promise<Embedded>;
  /** What a summary, a message, a file or, by its own id, the conversation is. */
  describe(conversation: string, id: string, options?: DescribeOptions): Promise<Json>;
  /** From a summary back to what it was made from: one page with `token_cap`, else everything. */
  expand(conversation: string, id: string, options?: ExpandOptions): Promise<Json>;
  /**
   * Has a question answered from what was said. A model that fails, takes too long or is stopped is
   * no rejection but a `status`.
   */
  ask(conversation: string, question: string, options?: AskOptions): Promise<Asked>;
  /** Makes a grant, a limited right to read for a sub-agent. */
  grant(conversation: string, options?: GrantOptions): Promise<Grant>;
  /** Ends a grant at once, with those that inherit from it. */
  revoke(conversation: string, grant: string, options?: Timed): Promise<void>;
  /** Original texts of a range of messages (inclusive, from 1), byte for byte. */
  messages(conversation: string, options?: { from?: number; to?: number }): Promise<string[]>;
  /** Counts and sizes of a conversation, or of the store. */
  status(conversation?: string, options?: Timed): Promise<Json>;
  /** Makes the conversation one of a family, whose members are searched together. */
  family(conversation: string, key: string, options?: VerbOptions): Promise<Json>;
  /** Archives the conversation; `conversation` of the answer is the empty one to go on in. */
  reset(conversation: string, options?: VerbOptions & { successor?: string }): Promise<Json>;
  /** Withdraws messages and shallow summaries from the context; they stay findable. */
  newSession(
    conversation: string,
    options?: VerbOptions & { retain_depth?: number },
  ): Promise<Json>;
  /** Archives the conversation: it is read as before and not written to. */
  archive(conversation: string, cause: ArchiveCause, options?: VerbOptions): Promise<Json>;
  /**
   * Reports what a provider counted of a prompt, and the estimate of the same prompt: `tokens` of
   * its assembly, and the `estimate` of what was added.
   */
  calibrate(
    conversation: string,
    model: string,
    estimated_tokens: number,
    prompt_tokens: number,
    options?: VerbOptions,
  ): Promise<Json>;
  /** Sets the brief that stands for summaries up to a message; without `text` there is none. */
  focus(
    conversation: string,
    options?: VerbOptions & { text?: string; seq_last?: number },
  ): Promise<Json>;
  /** Reports what one answer of a model took; resolves to the sums so far. */
  usage(conversation: string, report: UsageReport): Promise<Reported>;
  /** Whether compacting now costs less than waiting; changes nothing. */
  advise(conversation: string, options: AdviseOptions): Promise<Advice>;
  /** What summaries are asked for as configured, by depth. */
  prompts(): Promise<Prompt[]>;
  /** Checks what the engine promises about a conversation. */
  check(conversation: string): Promise<Json>;
  /** SHA-256 of the store, 64 hex digits; `logical`: of what it means, however it was filled. */
  digest(options?: { logical?: boolean }): Promise<string>;
  /** A list: `conversations`, or `summaries`, `messages` or `grants` of one. */
  listing(kind: string, options?: { conversation?: string }): Promise<Json[]>;
  /** Definitions of the tools an agent sees; with `caller`, a grant, those of a sub-agent. */
  tools(dialect?: Dialect, options?: { caller?: string }): Json;
  /** What to tell the agent about them. */
  instructions(dialect?: Dialect, hasSummaries?: boolean): string;
  /** Answers a tool call whose name starts with `lcm_`; `input`: an object or its JSON text. */
  callTool(
    conversation: string,
    name: string,
    input: unknown,
    options?: ToolOptions,
  ): Promise<ToolAnswer>;
  /** Waits for what is running and closes the store. */
  close(): Promise<void>;
}
