// Types of the package. Names of what the engine takes and answers are those of its JSON.

import type { Engine } from "./engine.js";

export type * from "./engine.js";
export type * from "./results.js";
export type * from "./verbs.js";

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
 * timeout. It must not compact the conversation that it is asked for, nor close the engine: both
 * would wait for it.
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
  /**
   * Configuration keys of the engine. A wrong value rejects `open`; a key that there is not is a
   * warning.
   */
  config?: Record<string, unknown> | null;
  /** Clock in milliseconds since the epoch. */
  now?: () => number;
  /**
   * Whether engine and store run in a worker thread, so that the event loop never stands still for
   * them; `store` is then a path or `memory:`, and `complete` is called in the thread that opened.
   * False unless given; only in Node.
   */
  worker?: boolean;
  /**
   * Where `LCM_...` configuration is read from; in Node the process's environment. It goes before
   * `config`, under whichever name of a key.
   */
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
  append_mode?: "transcript" | "new";
  /** This call repeats one with the same messages and `now` whose outcome is unknown. */
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
  requests_max?: number;
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
  summary_id: string | null;
  /** `leaf`, of messages, or `condensed`, of summaries. */
  purpose: Purpose;
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
  /** That of the append. */
  append_mode?: "transcript" | "new";
  /** This call repeats one with the same `now` whose outcome is unknown. */
  repeat?: boolean;
  /** Whether compaction that can wait is left for `maintain`; false unless given. */
  defer?: boolean;
}

/**
 * How a model failed; of a compaction `completion-failed` when it refused its key or the content.
 */
export interface Failure {
  /** For programs. */
  code: string;
  /** One line for a person. */
  message: string;
}

/**
 * What one turn did. `compacted` is null when nothing was due, when it is `deferred`, or when the
 * model refused its key or the content (`failure` is then `completion-failed`) or something else
 * failed behind the append (it is then that error); else `failure` is that of `compacted`.
 */
export interface Turn {
  /** What became of the messages. */
  receipt: Receipt;
  /** Whether compaction was due, and why; null: that could not be read, and `failure` says why. */
  decision: Decision | null;
  /** What it did. */
  compacted: Compacted | null;
  /** Whether compaction was due and is left for `maintain`. */
  deferred: boolean;
  /** What failed once the messages were stored; null: nothing did. */
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
  began_at: string;
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
  broken_why: "compaction" | "eviction" | "budget" | "focus" | "edit" | "dialect" | null;
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
  /** The same as one JSON text, in which every number is as it was appended. */
  messages_json: string;
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
