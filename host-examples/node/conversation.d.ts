// The handle of a conversation: the methods of an engine without the conversation's id.

import type { Engine } from "./engine.js";
import type {
  AdviseOptions,
  AssembleOptions,
  CallTime,
  CompactOptions,
  ConversationStatus,
  Dialect,
  EvaluateOptions,
  Grant,
  JsonObject,
  ListedSummary,
  Message,
  ReadDialect,
  ResummarizeOptions,
  StoredMessage,
  ToolListOptions,
  TurnOptions,
  TurnReport,
} from "./types.js";

/** Settings of a handle: each is the default of an option that a call leaves out. */
export interface ConversationSettings {
  /** Token budget of the context, for `turn`, `evaluate`, `compact`, `maintain`, `assemble`, `advise`. */
  budget?: number;
  /**
   * Dialect of the messages that come in and go out. `auto` can only read messages, so a call of
   * `assemble` must then name a dialect. Default: `dialect` of `open`.
   */
  dialect?: ReadDialect;
  /** Model whose provider counts the budget, after a report by `calibrate`. */
  model?: string;
}

/** Options with a budget. */
export interface Budgeted {
  /** Token budget. */
  budget: number;
}

/** Options of a method whose budget the handle may have. */
export type WithBudget<Options extends Budgeted> = Omit<Options, "budget"> & {
  /** Token budget; absent: that of the handle. */
  budget?: number;
};

/** A method of an engine without its first argument, the id of the conversation. */
export type OfConversation<Method> = Method extends (
  conversation: string,
  ...rest: infer Rest
) => infer Result
  ? (...rest: Rest) => Result
  : never;

/** The elements of a list of a conversation, by kind. */
export interface ConversationListings {
  /** Summaries. */
  summaries: ListedSummary;
  /** Messages. */
  messages: StoredMessage;
  /** Grants that the conversation issued. */
  grants: Grant;
}

/**
 * A conversation of an engine, with its settings; made by `Engine.conversation`. Each method is the
 * method of the engine of the same name. The engine closes the store.
 */
export declare class Conversation {
  private constructor();
  /** Id of the conversation. */
  readonly id: string;
  /** As `Engine.append`. */
  readonly append: OfConversation<Engine["append"]>;
  /** As `Engine.ingest`. */
  readonly ingest: OfConversation<Engine["ingest"]>;
  /** As `Engine.grep`. */
  readonly grep: OfConversation<Engine["grep"]>;
  /** As `Engine.expand`. */
  readonly expand: OfConversation<Engine["expand"]>;
  /** As `Engine.iterExpand`. */
  readonly iterExpand: OfConversation<Engine["iterExpand"]>;
  /** As `Engine.embed`. */
  readonly embed: OfConversation<Engine["embed"]>;
  /** As `Engine.ask`. */
  readonly ask: OfConversation<Engine["ask"]>;
  /** As `Engine.askPlan`. */
  readonly askPlan: OfConversation<Engine["askPlan"]>;
  /** As `Engine.grant`. */
  readonly grant: OfConversation<Engine["grant"]>;
  /** As `Engine.revoke`. */
  readonly revoke: OfConversation<Engine["revoke"]>;
  /** As `Engine.messages`. */
  readonly messages: OfConversation<Engine["messages"]>;
  /** As `Engine.iterMessages`. */
  readonly iterMessages: OfConversation<Engine["iterMessages"]>;
  /** As `Engine.family`. */
  readonly family: OfConversation<Engine["family"]>;
  /** As `Engine.reset`. */
  readonly reset: OfConversation<Engine["reset"]>;
  /** As `Engine.newSession`. */
  readonly newSession: OfConversation<Engine["newSession"]>;
  /** As `Engine.archive`. */
  readonly archive: OfConversation<Engine["archive"]>;
  /** As `Engine.delete`. */
  readonly delete: OfConversation<Engine["delete"]>;
  /** As `Engine.calibrate`. */
  readonly calibrate: OfConversation<Engine["calibrate"]>;
  /** As `Engine.focus`. */
  readonly focus: OfConversation<Engine["focus"]>;
  /** As `Engine.rewind`. */
  readonly rewind: OfConversation<Engine["rewind"]>;
  /** As `Engine.pop`. */
  readonly pop: OfConversation<Engine["pop"]>;
  /** As `Engine.usage`. */
  readonly usage: OfConversation<Engine["usage"]>;
  /** As `Engine.check`. */
  readonly check: OfConversation<Engine["check"]>;
  /** As `Engine.callTool`. */
  readonly callTool: OfConversation<Engine["callTool"]>;
  /**
   * As `Engine.turn`. The compaction that the turn deferred begins in the background; its failure
   * is `failure` of the next turn.
   */
  turn(messages: Message[], options?: WithBudget<TurnOptions>): Promise<TurnReport>;
  /** Waits for the deferred compaction that runs in the background, if any, as `close` does. */
  settle(): Promise<void>;
  /** As `Engine.evaluate`. */
  evaluate(options?: WithBudget<EvaluateOptions>): ReturnType<Engine["evaluate"]>;
  /** As `Engine.compact`. */
  compact(options?: WithBudget<CompactOptions>): ReturnType<Engine["compact"]>;
  /** As `Engine.maintain`. */
  maintain(options?: WithBudget<CompactOptions>): ReturnType<Engine["maintain"]>;
  /** As `Engine.resummarize`. */
  resummarize(options?: WithBudget<ResummarizeOptions>): ReturnType<Engine["resummarize"]>;
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
  status(options?: CallTime): Promise<ConversationStatus>;
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
