// Types of the package: errors, stores, models and the entry. Options and results are in
// `types.d.ts`, the methods of an engine in `engine.d.ts`.

import type { Engine } from "./engine.js";
import type {
  Completion,
  CompletionFailure,
  CompletionRequest,
  Configuration,
  ErrorCode,
  StoreEvent,
  ModelFailure,
  Purpose,
  ReadDialect,
  ToolScope,
} from "./types.js";

export { Conversation } from "./conversation.js";
export type * from "./conversation.js";
export type * from "./engine.js";
export type * from "./types.js";

/** The closed list of the engine's error codes. */
export declare const ERROR_CODES: readonly ErrorCode[];

/** A failed call. Programs read `code`, people read `message`. */
export declare class LcmError extends Error {
  constructor(
    code: ErrorCode | "trap",
    message: string,
    options?: ErrorOptions & { failure?: ModelFailure },
  );
  /** Kind of the failure; `trap` is a fault of the engine itself. */
  readonly code: ErrorCode | "trap";
  /** Failure of the model behind `completion-failed`, such as `auth`; absent: another error. */
  readonly failure?: ModelFailure;
}

/** A condition of a commit: the key has exactly this value, or is absent. */
export interface Guard {
  /** Key of the condition. */
  key: string;
  /** Value that the key must have; absent: the key must not exist. */
  value?: Uint8Array;
}

/** One write of a commit. */
export interface Put {
  /** Key to write. */
  key: string;
  /** New value of the key; absent: the key is deleted. */
  value?: Uint8Array;
}

/** A key with its value. */
export interface Entry {
  /** Key in printable ASCII. */
  key: string;
  /** Bytes of the value. */
  value: Uint8Array;
}

/** The value of an absent key. */
export type Absent = null | undefined;

/** An ordered key-value store that answers at once. */
export interface Store {
  /** Returns the values in the order of the keys; null or undefined for an absent key. */
  getMany(keys: string[]): (Uint8Array | Absent)[];
  /**
   * Returns the entries with start <= key < end in bytewise order, at least one if there are any,
   * and whether more entries follow.
   */
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): [Entry[], boolean];
  /** Checks all guards and writes all puts, or throws code `conflict` and writes nothing. */
  commit(guards: Guard[], puts: Put[]): void;
  /** Closes the store; the engine calls this method once, from its own `close`. */
  close?(): void;
}

/** An ordered key-value store that answers with promises. */
export interface PromisedStore {
  /** Resolves to the result of `Store.getMany`. */
  getMany(keys: string[]): Promise<(Uint8Array | Absent)[]>;
  /** Resolves to the result of `Store.scan`. */
  scan(
    start: string,
    end: string,
    reverse: boolean,
    entriesMax: number,
    bytesMax: number,
  ): Promise<[Entry[], boolean]>;
  /** Writes as `Store.commit`; a failed guard rejects with code `conflict`. */
  commit(guards: Guard[], puts: Put[]): Promise<void>;
  /** Closes the store; the engine calls this method once, from its own `close`. */
  close?(): Promise<void> | void;
}

/** The mark of a store that was declared by `asyncStore`. */
declare const asynchronous: unique symbol;

/** A store that was declared by `asyncStore`. */
export interface AsyncStore {
  /** Mark that only `asyncStore` makes. */
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

/** A value in the SQLite storage of a Durable Object. */
export type SqlValue = ArrayBuffer | string | number | null;

/** The storage of a Durable Object, `ctx.storage`, as far as `durableStore` uses it. */
export interface DurableStorage {
  /** The SQLite database of the object. */
  sql: DurableSql;
  /** Runs `work` in a transaction. */
  transactionSync<T>(work: () => T): T;
}

/** The SQLite database of a Durable Object. */
export interface DurableSql {
  /** Runs a query; returns the rows, whose members are the columns. */
  exec(query: string, ...bindings: SqlValue[]): Iterable<{ [column: string]: SqlValue }>;
}

/** Makes a store of the SQLite storage of a Durable Object; exported only in workers. */
export declare function durableStore(storage: DurableStorage): Store;

/** The answer of a model that gave no completion. */
export interface NoCompletion {
  /** Failure of the completion. */
  error: CompletionFailure;
}

/** A completion in which the model may have written nothing, as after a refusal. */
export interface MaybeBlank extends Omit<Completion, "text" | "finish"> {
  /** The text; null or undefined is a blank answer. */
  text: string | null | undefined;
  /** The provider's word for the end of the answer, such as `length`. Default: `stop`. */
  finish?: string | null;
}

/** The answer of a model: a text, a completion or a failure. */
export type Answer = string | Completion | MaybeBlank | NoCompletion;

/**
 * Answers a request with a model. `signal` is aborted after `timeoutMs` and when the caller stops:
 * hand the signal to `fetch`, so that the request ends. A thrown error is a failure of the model:
 * an error of an SDK, understood as `docs/model-failures.md` of the project says, or one with `code`
 * (a `CompletionErrorCode`) and `retryAfterMs`. Any other answer than `Answer` is an `invalid-input`
 * error of the call. The function must neither compact the same conversation nor close the engine:
 * both calls would wait for the function.
 */
export type Complete = (
  request: CompletionRequest,
  options: { signal: AbortSignal },
) => Answer | Promise<Answer>;

/** A model, or a fallback chain: each model is asked when the model before failed. */
export type Models = Complete | Complete[];

/** Models by purpose, and a default for all other purposes. */
export type ModelsByPurpose = Partial<Record<Purpose | "default", Models>>;

/** The options of `open`. */
export interface OpenOptions {
  /** Path of an SQLite file, `memory:`, or a store; absent: `database_path` of the configuration. */
  store?: string | Store | AsyncStore;
  /**
   * The model, a fallback chain of models, or models by purpose. Without a model, the engine makes
   * summaries by extraction.
   */
  complete?: Models | ModelsByPurpose;
  /** Configuration of the engine. A wrong value rejects `open`; each key without effect is a warning. */
  config?: Configuration | null;
  /** Clock in milliseconds since the epoch. */
  now?: () => number;
  /**
   * Whether engine and store run in a worker thread, so that they never block the event loop.
   * `store` must then be a path or `memory:`. `complete` is called in the thread that opened. Only
   * in Node. Default: `false`.
   */
  worker?: boolean;
  /**
   * Conversations that the tools of an agent may read, in `tools` and `callTool`; both take another
   * `scope` for one call. `conversation`: the conversation of the call and its family. `store`:
   * every conversation, which is for a store of one user. Default: `conversation`.
   */
  scope?: ToolScope;
  /**
   * Dialect of messages that come in and go out, unless a call or a handle names another; `auto`
   * finds it for each message that comes in, and a call that writes messages names another.
   * Default: `lcm`.
   */
  dialect?: ReadDialect;
  /** Ends every call that asks a model, as the `signal` of the call itself does. */
  signal?: AbortSignal;
  /**
   * Listener of events: messages stored, models called, summaries made and rejected. No call waits
   * for the listener, and a listener that fails breaks nothing.
   */
  onEvent?: (event: StoreEvent) => void;
  /**
   * Environment whose `LCM_...` variables are configuration; in Node the environment of the
   * process. A key of `config` goes before its variable, under any name.
   */
  environment?: { [name: string]: string | undefined };
}

/** Opens a store and returns an engine over it. */
export declare function open(options: OpenOptions): Promise<Engine>;
/** Opens a store and returns an engine over it; `store` is the member of the options. */
export declare function open(
  store: OpenOptions["store"],
  options?: Omit<OpenOptions, "store">,
): Promise<Engine>;
