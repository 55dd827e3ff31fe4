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

export declare const ERROR_CODES: readonly ErrorCode[];

/** A failed call. Programs read `code`, people read `message`. */
export declare class LcmError extends Error {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown });
  readonly code: ErrorCode;
}

/** A condition of a commit: the key has exactly this value, or is absent. */
export interface Guard {
  key: string;
  value?: Uint8Array;
}

/** One write of a commit; without a value the key is deleted. */
export interface Put {
  key: string;
  value?: Uint8Array;
}

export interface Entry {
  key: string;
  value: Uint8Array;
}

type Absent = null | undefined;

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
  close?(): void;
}

/** The same with promises. */
export interface PromisedStore {
  getMany(keys: string[]): Promise<(Uint8Array | Absent)[]>;
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): Promise<[Entry[], boolean]>;
  commit(guards: Guard[], puts: Put[]): Promise<void>;
  close?(): Promise<void> | void;
}

declare const asynchronous: unique symbol;

/** A store that was declared by `asyncStore`. */
export interface AsyncStore {
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

export type Purpose = "leaf" | "condensed" | "file" | "ask" | "focus";
export type Level = "normal" | "aggressive" | "fallback";

/** What the engine wants from a language model. */
export interface CompletionRequest {
  id: string;
  purpose: Purpose;
  level: Level;
  system: string;
  prompt: string;
  input_tokens: number;
  output_tokens_max: number;
  temperature_permille: number;
  model: string | null;
}

export type CompletionErrorCode =
  "auth" | "policy" | "rate-limited" | "timeout" | "context-too-long" | "unavailable" | "other";

/** What a model wrote, or why it did not; a string is a text and nothing else. */
export type Answer =
  | string
  | {
      text: string;
      finish?: "stop" | "length" | "refusal";
      model?: string;
      input_tokens?: number;
      output_tokens?: number;
    }
  | { error: { code: CompletionErrorCode; message: string; retry_after_ms?: number } };

/**
 * Answers a request with a model. `signal` is aborted when its time is up or the caller stops: pass
 * it on to `fetch`, so that the request ends. What it throws counts as a failure of the model; a `code` of
 * `CompletionErrorCode` and `retry_after_ms` on the error are read, and a `TimeoutError` is a
 * timeout.
 */
export type Complete = (
  request: CompletionRequest,
  options: { signal: AbortSignal },
) => Answer | Promise<Answer>;

/** A model, or several of which each is asked when the one before it failed. */
export type Models = Complete | Complete[];

export interface OpenOptions {
  /** Path of an SQLite file, `memory:`, or a store. */
  store: string | Store | AsyncStore;
  /**
   * The model, several as a fallback chain, or an object of these by purpose, with `default` for
   * all that it does not name. Where there is none, summaries are made without a model.
   */
  complete?: Models | ({ default?: Models } & { [purpose in Purpose]?: Models });
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
interface Timed {
  now?: number;
}

interface Granted extends Timed {
  /** Grant of a sub-agent. */
  grant?: string;
}

/** A message as an object of its dialect, or its JSON text, which is kept byte for byte. */
export type Message = object | string;

export interface IngestOptions extends Timed {
  dialect?: Dialect;
  /** Makes the warning about a likely replay an error. */
  refuse_replay?: boolean;
  /** Key of the family that the conversation is of, or comes to. */
  family?: string;
}

export interface AppendOptions extends IngestOptions {
  /** `transcript` (default): what is stored already is skipped. `new`: everything is new. */
  mode?: "transcript" | "new";
  /** This call repeats one with the same `now` whose outcome is unknown. */
  repeat?: boolean;
}

export interface Receipt {
  revision: number;
  ingested: number;
  skipped: number;
  seq_first: number | null;
  seq_last: number | null;
  context_tokens: number;
  warnings: string[];
}

interface CompactionOptions extends Timed {
  budget: number;
  mode?: "threshold" | "incremental" | "sweep" | "until-under";
  force?: boolean;
  target?: number;
  observed_tokens?: number;
  /** After `calibrate`: the model whose tokens budget, target and observed tokens are. */
  model?: string;
}

export interface CompactOptions extends CompactionOptions {
  /** Requests that may be asked of the model at once; 1 unless given. */
  parallel?: number;
  /** How often a failing model is asked again; 2 unless given. */
  retries?: number;
  /** How long one answer is waited for; 60,000 unless given. */
  timeout_ms?: number;
  lease_ms?: number;
  signal?: AbortSignal;
}

export interface Pass {
  summary: string | null;
  kind: Purpose;
  depth: number;
  level: Level;
  capped: boolean;
  tokens_before: number;
  tokens_after: number;
}

export interface Compacted {
  status: "done" | "nothing-to-do" | "partial" | "model-unavailable";
  reason: string;
  passes: Pass[];
  completions: number;
  tokens_before: number;
  tokens_after: number;
  warnings: string[];
  /** The last failure of the model that another try did not mend; also among the warnings. */
  failure: { code: CompletionErrorCode; message: string; retry_after_ms: number | null } | null;
}

export interface TurnOptions extends CompactOptions {
  dialect?: Dialect;
  refuse_replay?: boolean;
  family?: string;
  /** `mode` of the append. */
  append_mode?: "transcript" | "new";
  /** This call repeats one with the same `now` whose outcome is unknown. */
  repeat?: boolean;
  /** Whether compaction that can wait is left for `maintain`; false unless given. */
  defer?: boolean;
}

/**
 * What one turn did. `compacted` is null when nothing was due, when it is `deferred`, or when the
 * model refused its key or the content; `failure` is then `completion-failed`, else that of
 * `compacted`.
 */
export interface Turn {
  receipt: Receipt;
  decision: Decision;
  compacted: Compacted | null;
  /** Whether compaction was due and is left for `maintain`. */
  deferred: boolean;
  failure: { code: string; message: string } | null;
}

/** What one kind of summary is asked for. */
export interface Prompt {
  /** Under which `prompt_overrides` replaces its text. */
  name: string;
  overridden: boolean;
  /** The paragraph in force, and the engine's. */
  text: string;
  built_in: string;
  /** What a model is sent, with words in brackets for the material. */
  system: string;
  prompt: string;
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
  debt: Debt | null;
  compacted: Compacted | null;
  failure: { code: string; message: string } | null;
}

export interface Decision {
  due: boolean;
  must: boolean;
  reason: string;
  tokens: number;
  threshold: number;
  explanation: unknown;
}

export interface AssembleOptions extends Timed {
  budget: number;
  dialect?: Dialect;
  /** Which older items are kept when not everything fits; default: `eviction_policy` of the configuration. */
  policy?: "chronological" | "prompt-aware" | "layered";
  /** What `prompt-aware` compares with. */
  prompt?: string;
  /** What of the budget you put into the prompt yourself. */
  reserve_tokens?: number;
  /** After `calibrate`: the model whose tokens budget and reserve are. */
  model?: string;
  /** Messages of the dialect that the caller holds; those that are stored count once. */
  live_messages?: Message[];
  /** `prefix.token` of an earlier assembly. */
  previous?: string;
  /** Whether `items` lists every item of the stored context. */
  explain?: boolean;
}

export interface ContextItem {
  id: string;
  kind: "message" | "leaf" | "condensed" | "withdrawn" | "focus" | "live";
  included: boolean;
  why: string;
  tokens: number;
  seq_first: number | null;
  seq_last: number | null;
}

export interface Assembled {
  /** Messages of the dialect that was asked for. */
  messages: any[];
  system: string | null;
  tokens: number;
  budget: number;
  summaries: number;
  fresh_tail_messages: number;
  evicted: number;
  items?: ContextItem[];
  /** How much is equal to the assembly that `previous` names. */
  prefix: {
    /** Tokens of the equal beginning; null: nothing to compare with. */
    stable_tokens: number | null;
    /** Id of the first item that differs. */
    broken_by: string | null;
    broken_why: "compaction" | "eviction" | "budget" | "focus" | "edit" | null;
    /** Indexes of the messages behind which a cache may end, at most three. */
    breakpoints: number[];
    /** A chain over the messages. */
    sha256: string;
    /** For `previous` of the next assembly; opaque. */
    token: string;
  };
  warnings: string[];
}

/** What of a file is read: a range of lines (from 1, inclusive) or of bytes (from 0, exclusive). */
export interface DescribeOptions extends Granted {
  /** Look for the id in every conversation of the store. */
  all?: boolean;
  /** false: only what the file is. */
  content?: boolean;
  bytes_max?: number;
  start_line?: number;
  end_line?: number;
  start_byte?: number;
  end_byte?: number;
}

export interface GrepOptions extends Granted {
  mode?: "auto" | "regex" | "full-text";
  scope?: "messages" | "summaries" | "both" | "files";
  /** With the scope `files`: only these. */
  file_ids?: string[];
  /** With the scope `files`: the file or message to go on with, as `unscanned_from` says. */
  start_id?: string;
  /** Where in that file to begin, or in the one of `file_ids`. */
  start_byte?: number;
  /** Messages to show before and after each one that is found, 0 to 3. */
  neighbours?: number;
  sort?: "recency" | "relevance" | "hybrid";
  since?: string;
  before?: string;
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

export interface EmbedOptions {
  /** At most 256. Null: the message or summary is to have none. */
  vectors?: { id: string; vector: Vector | null }[];
  /** The name of the model that made them. */
  model?: string;
  /** Removes vectors; to be called until `stored` is 0. */
  forget?: boolean;
}

export interface Embedded {
  dimensions: number | null;
  /** Entries that were taken, from the first on. */
  kept: number;
  /** Messages and summaries of which nothing is known. */
  missing: number;
  model: string | null;
  /** Ids of some of them, to go on with. */
  next: string[];
  /** Vectors of the conversation. */
  stored: number;
}

export interface VerbOptions extends Timed {
  /** Only says what would be done. */
  dry_run?: boolean;
}

/** What one answer of a model took. */
export interface UsageReport extends VerbOptions {
  purpose: "turn" | "summary";
  /** Tokens of the whole prompt, those in the provider's cache included. */
  input_tokens?: number;
  /** Of them those that were read from the cache. */
  cache_read_tokens?: number;
  /** Of them those that were written to it. */
  cache_write_tokens?: number;
  output_tokens?: number;
  /** Millionths of the one currency that all reports count in. */
  cost_micros?: number;
}

/** What some answers of models took, summed. */
export interface Spent {
  calls: number;
  input_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  cost_micros: number;
}

/** What `usage` resolves to; `changed`: this report was new. */
export interface Reported {
  changed: boolean;
  conversation: string;
  usage: { turns: Spent; summaries: Spent };
}

/** Prices of a million tokens, in millionths of a currency. */
export interface Prices {
  input: number;
  output: number;
  /** Absent: as `input`, as without a cache. */
  cache_read?: number;
  cache_write?: number;
  /** Of the model that summarises; absent: as `input` and `output`. */
  summary_input?: number;
  summary_output?: number;
}

export interface AdviseOptions extends Timed {
  budget: number;
  prices: Prices;
  /** How long the provider keeps a prefix; absent: 5 minutes. */
  cache_ms?: number;
  /** Prompts to come; absent: as many as there were. */
  turns?: number;
  /** Tokens of the whole prompt as the provider counted them last. */
  observed_tokens?: number;
  model?: string;
}

export interface Advice {
  advice: "compact" | "wait";
  reason:
    | "saves-more-than-it-costs"
    | "costs-more-than-it-saves"
    | "nothing-to-compact"
    | "over-budget";
  cache: "warm" | "cold" | "unknown";
  cost_now_micros: number;
  cost_wait_micros: number;
  completions_cost_micros: number;
  /** After how many turns compaction cannot wait; null: it can. */
  forced_in_turns: number | null;
  /** After how many turns it would cost least; null: now. */
  wait_turns: number | null;
  tokens: number;
  tokens_after: number;
  turn_tokens: number;
  turns: number;
  conversation: string;
}

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
  id: string;
  conversations: string[];
  /** Null: all of the conversations. */
  summaries: string[] | null;
  depth_max: number;
  tokens_max: number;
  tokens_left: number;
  issued_at: string;
  expires_at: string;
  from: string | null;
  revoked: boolean;
}

export interface ExpandOptions extends Granted {
  depth?: number;
  messages?: boolean;
  token_cap?: number;
  after?: string;
}

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
  signal?: AbortSignal;
}

export type AskStatus =
  | "answered"
  | "uncited"
  | "not-found"
  | "no-evidence"
  | "no-answer"
  | "model-failed"
  | "timed-out"
  | "busy";

/** How a question ended, with what it rests on. */
export interface Asked {
  status: AskStatus;
  answer: string | null;
  /** Ids in the answer that the model was shown. */
  cited_ids: string[];
  /** Of each cited id the conversation that it is of. */
  cited_conversations: string[];
  /** Ids in the answer that the model was not shown. */
  rejected_ids: string[];
  source_conversations: string[];
  expanded_summaries: number;
  source_tokens: number;
  /** Whether something that was found was not read, or the answer was cut. */
  truncated: boolean;
  conversations: {
    conversation: string;
    candidates: number;
    named: number;
    status: "used" | "skipped";
    tokens: number;
  }[];
  completions: number;
  /** How the model failed, when it did. */
  failure: { code: CompletionErrorCode; message: string } | null;
  /** What was taken of the grant on which it was read. */
  grant?: { tokens: number; tokens_left: number; truncated: boolean };
  /** When `busy`: until when the other question is open. */
  expires_at?: string;
}

/** Results that are the engine's JSON, as `lcm --json` prints it. */
type Json = any;

/** An engine over one store. Methods reject with `LcmError`. */
export interface Engine {
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
  /** Sets the focus brief that stands for summaries up to a message; without `text` there is none. */
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
    options?: Timed & {
      caller?: string;
      retries?: number;
      timeout_ms?: number;
      signal?: AbortSignal;
    },
  ): Promise<{ text: string; is_error: boolean }>;
  /** Waits for what is running and closes the store. */
  close(): Promise<void>;
}
