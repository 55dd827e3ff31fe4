// The handle of a conversation: the methods of an engine without the conversation's id.

import type { Engine } from "./engine.js";
import type {
  AdviseOptions,
  AssembleOptions,
  CompactOptions,
  Dialect,
  EvaluateOptions,
  Grant,
  JsonObject,
  ListedSummary,
  Message,
  ReadDialect,
  StoredMessage,
  ToolListOptions,
  TurnOptions,
  TurnReport,
} from "./types.js";

/** Settings of a handle, each for the calls that name none. */
export interface ConversationSettings {
  /** Token budget of the context, for `turn`, `evaluate`, `compact`, `maintain`, `assemble`, `advise`. */
  budget?: number;
  /**
   * Dialect of the messages that come in and go out; `auto` only reads, so `assemble` then names
   * another. Default: `dialect` of `open`.
   */
  dialect?: ReadDialect;
  /** Model whose provider counts the budget, after a report by `calibrate`. */
  model?: string;
}

/** Options of a method whose budget the handle may have. */
export type WithBudget<Options extends { budget: number }> = Omit<Options, "budget"> & {
  budget?: number;
};

/** A method of an engine without its first argument, the id of the conversation. */
export type OfConversation<Method> = Method extends (
  conversation: string,
  ...rest: infer Rest
) => infer Result
  ? (...rest: Rest) => Result
  : never;

/** Methods of an engine that are the same in a handle. */
export type PlainVerb =
  | "append"
  | "ingest"
  | "grep"
  | "expand"
  | "iterExpand"
  | "embed"
  | "ask"
  | "askPlan"
  | "grant"
  | "revoke"
  | "messages"
  | "iterMessages"
  | "family"
  | "reset"
  | "newSession"
  | "archive"
  | "delete"
  | "calibrate"
  | "focus"
  | "usage"
  | "check"
  | "callTool";

/** The elements of a list of a conversation, by kind. */
export interface ConversationListings {
  /** Summaries. */
  summaries: ListedSummary;
  /** Messages. */
  messages: StoredMessage;
  /** Grants that the conversation issued. */
  grants: Grant;
}

/** The methods of `Engine` of the same name, without the id of the conversation. */
export type PlainVerbs = { [Verb in PlainVerb]: OfConversation<Engine[Verb]> };

/**
 * A conversation of an engine, with its settings; made by `Engine.conversation`. Each method is the
 * method of the engine of the same name. The engine closes the store.
 */
export declare class Conversation {
  private constructor();
  /** Id of the conversation. */
  readonly id: string;
  /** As `Engine.turn`. */
  turn(messages: Message[], options?: WithBudget<TurnOptions>): Promise<TurnReport>;
  /** As `Engine.evaluate`. */
  evaluate(options?: WithBudget<EvaluateOptions>): ReturnType<Engine["evaluate"]>;
  /** As `Engine.compact`. */
  compact(options?: WithBudget<CompactOptions>): ReturnType<Engine["compact"]>;
  /** As `Engine.maintain`. */
  maintain(options?: WithBudget<CompactOptions>): ReturnType<Engine["maintain"]>;
  /** As `Engine.assemble`. */
  assemble(options?: WithBudget<AssembleOptions>): ReturnType<Engine["assemble"]>;
  /** As `Engine.advise`. */
  advise(options: WithBudget<AdviseOptions>): ReturnType<Engine["advise"]>;
  /** As `Engine.estimate`, in the dialect of the handle. */
  estimate(messages: Message[], dialect?: ReadDialect): Promise<number>;
  /** As `Engine.validate`, in the dialect of the handle. */
  validate(messages: Message[], dialect?: Exclude<Dialect, "lcm">): Promise<string[]>;
  /** As `Engine.describe`; without an id the conversation itself. */
  describe(
    id?: string,
    options?: Parameters<Engine["describe"]>[2],
  ): ReturnType<Engine["describe"]>;
  /** As `Engine.status`. */
  status(options?: { now?: number }): Promise<import("./types.js").ConversationStatus>;
  /** As `Engine.export`. */
  export(): AsyncGenerator<string, void, undefined>;
  /** As `Engine.listing`. */
  listing<Kind extends keyof ConversationListings>(
    kind: Kind,
  ): Promise<ConversationListings[Kind][]>;
  /** As `Engine.tools`, in the dialect of the handle. */
  tools(options?: ToolListOptions): JsonObject[];
  /** As `Engine.instructions`, in the dialect of the handle. */
  instructions(hasSummaries?: boolean): string;
}

/** The methods that a handle has unchanged. */
export interface Conversation extends PlainVerbs {}
