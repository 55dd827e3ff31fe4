/// <reference lib="esnext.disposable" />
// The engine over an open store: every method, with an example. In the examples `lcm` is an open
// engine whose store has a conversation `chat`.

import type { Conversation, ConversationSettings } from "./conversation.js";
import type {
  AdviseAnswer,
  AdviseOptions,
  AppendOptions,
  ArchiveAnswer,
  ArchiveCause,
  AskOptions,
  AskResult,
  AssembleOptions,
  AssembledContext,
  CalibrateAnswer,
  CallTime,
  CheckResult,
  CommandOptions,
  CompactOptions,
  CompactReport,
  Configuration,
  ConfigurationReport,
  ConversationStatus,
  Decision,
  DeletionResult,
  DescribeOptions,
  Description,
  Dialect,
  DigestOptions,
  EmbedRequest,
  EmbedResult,
  EvaluateOptions,
  ExpandOptions,
  ExpandResult,
  FamilyAnswer,
  FamilyReport,
  FocusAnswer,
  FocusOptions,
  Grant,
  GrantOptions,
  GrepOptions,
  GrepResult,
  ImportReport,
  IngestOptions,
  JsonObject,
  ListedConversation,
  ListedDeletion,
  ListedSummary,
  ListingKind,
  ListingOptions,
  LiveAnswer,
  MaintainFamilyOptions,
  MaintainReport,
  Message,
  MessageRangeOptions,
  NewSessionAnswer,
  NewSessionOptions,
  PopOptions,
  QuestionOptions,
  QuestionPlan,
  ReadDialect,
  Receipt,
  ResetAnswer,
  ResetOptions,
  ResummarizeOptions,
  RewindAnswer,
  RewindOptions,
  StoreStatus,
  StoredMessage,
  SummaryPrompt,
  ToolAnswer,
  ToolCallOptions,
  ToolListOptions,
  TurnOptions,
  TurnReport,
  UsageAnswer,
  UsageReport,
} from "./types.js";

/** The element of each kind of list. */
export interface Listings {
  /** Conversations of the store. */
  conversations: ListedConversation;
  /** Conversations whose deletion is not done. */
  deletions: ListedDeletion;
  /** Summaries of a conversation. */
  summaries: ListedSummary;
  /** Messages of a conversation. */
  messages: StoredMessage;
  /** Grants of a conversation. */
  grants: Grant;
}

/**
 * An engine over one store. Methods reject with `LcmError`; `ask` and `callTool` reject with the
 * reason of an aborted `signal`. Calls of one conversation run in the order in which they are made.
 * A call reads its arguments before it returns.
 */
export interface Engine {
  /**
   * Version of the engine.
   *
   * @example
   * ```js
   * assert.match(lcm.version, /^\d+\.\d+\.\d+$/);
   * ```
   */
  readonly version: string;
  /**
   * Returns the handle of a conversation, which need not exist: the methods without its id, with
   * `budget`, `dialect` and `model` for calls that name none.
   *
   * @example
   * ```js
   * const chat = lcm.conversation("chat-1", { budget: 8_000, dialect: "openai-chat" });
   * await chat.turn([{ role: "user", content: "The gate code is 4711." }]);
   * const { messages } = await chat.assemble();
   * assert.equal(messages[0].content, "The gate code is 4711.");
   * ```
   */
  conversation(id: string, settings?: ConversationSettings): Conversation;
  /**
   * Replaces the configuration and reports the treatment of each key.
   *
   * @example
   * ```js
   * const report = await lcm.configure({ enabled: true });
   * assert.deepEqual(report.accepted, ["enabled"]);
   * ```
   */
  configure(config: Configuration): Promise<ConfigurationReport>;
  /**
   * Stores the newest messages of a conversation.
   *
   * @example
   * ```js
   * const receipt = await lcm.append("new", [{ role: "user", content: "Where do logs go?" }]);
   * assert.equal(receipt.ingested, 1);
   * ```
   */
  append(conversation: string, messages: Message[], options?: AppendOptions): Promise<Receipt>;
  /**
   * Stores the missing messages of a whole transcript.
   *
   * @example
   * ```js
   * const transcript = [
   *   { role: "user", content: "Hello" },
   *   { role: "assistant", content: "Hi" },
   * ];
   * assert.equal((await lcm.ingest("new", transcript)).ingested, 2);
   * assert.equal((await lcm.ingest("new", transcript)).ingested, 0);
   * ```
   */
  ingest(conversation: string, transcript: Message[], options?: IngestOptions): Promise<Receipt>;
  /**
   * Takes one turn: stores messages, decides whether compaction is due, and compacts. A wrong
   * option rejects before a message is stored.
   *
   * @example
   * ```js
   * const messages = [{ role: "user", content: "What failed?" }];
   * const turn = await lcm.turn("chat", messages, { budget: 8_000 });
   * assert.ok(turn.receipt.ingested === 1 && !turn.decision.due);
   * ```
   */
  turn(conversation: string, messages: Message[], options: TurnOptions): Promise<TurnReport>;
  /**
   * Decides whether compaction is due, and why.
   *
   * @example
   * ```js
   * const decision = await lcm.evaluate("chat", { budget: 100_000 });
   * assert.ok(!decision.due && decision.reason === "below-threshold");
   * ```
   */
  evaluate(conversation: string, options: EvaluateOptions): Promise<Decision>;
  /**
   * Summarises old messages until nothing is due.
   *
   * @example
   * ```js
   * const done = await lcm.compact("chat", { budget: 2_000 });
   * assert.ok(done.passes.length > 0);
   * ```
   */
  compact(conversation: string, options: CompactOptions): Promise<CompactReport>;
  /**
   * Does deferred compaction when its time has come.
   *
   * @example
   * ```js
   * const done = await lcm.maintain("chat", { budget: 8_000 });
   * assert.equal(done.debt, null); // Nothing was deferred.
   * ```
   */
  maintain(conversation: string, options: CompactOptions): Promise<MaintainReport>;
  /**
   * Calls `maintain` for every conversation of a family, the latest to join first.
   *
   * After a failure of a model or an abort the rest is left, in `unserved`. Another failure concerns
   * one conversation and is in its report; only `invalid-input` rejects the call. Of an archived
   * conversation only provisional summaries are made again.
   *
   * @example
   * ```js
   * await lcm.family("chat", "orchard");
   * const { reports, unserved } = await lcm.maintainFamily("orchard", { budget: 8_000 });
   * assert.deepEqual([reports[0].conversation, unserved], ["chat", []]);
   * ```
   */
  maintainFamily(family: string, options: MaintainFamilyOptions): Promise<FamilyReport>;
  /**
   * Makes provisional summaries again, even if the model was asked for them in vain before.
   *
   * @example
   * ```js
   * const done = await lcm.resummarize("chat", { budget: 8_000 });
   * assert.equal(done.status, "nothing-to-do"); // Nothing is provisional.
   * ```
   */
  resummarize(conversation: string, options: ResummarizeOptions): Promise<CompactReport>;
  /**
   * Returns a context that fits the budget.
   *
   * @example
   * ```js
   * const context = await lcm.assemble("chat", { budget: 3_000, dialect: "anthropic" });
   * assert.ok(context.tokens <= 3_000 && context.messages[0].role === "user");
   * ```
   */
  assemble(conversation: string, options: AssembleOptions): Promise<AssembledContext>;
  /**
   * Estimates the tokens of messages that are sent beside the context; stores nothing.
   *
   * @example
   * ```js
   * const tokens = await lcm.estimate([{ role: "system", content: "Answer in one sentence." }]);
   * assert.ok(0 < tokens && tokens < 20);
   * ```
   */
  estimate(messages: Message[], dialect?: ReadDialect): Promise<number>;
  /**
   * Lists why the provider of `dialect` would refuse these messages, a line each.
   *
   * @example
   * ```js
   * const refusals = await lcm.validate([{ role: "user", content: "" }], "anthropic");
   * assert.deepEqual(refusals, ["messages[0]: blank content"]);
   * ```
   */
  validate(messages: Message[], dialect?: Exclude<Dialect, "lcm">): Promise<string[]>;
  /**
   * Searches messages and summaries.
   *
   * @example
   * ```js
   * const found = await lcm.grep("chat", "orchard weather", { limit: 5 });
   * assert.match(found.matches[0].id, /^(msg|sum)_/);
   * ```
   */
  grep(conversation: string, pattern: string, options?: GrepOptions): Promise<GrepResult>;
  /**
   * Attaches embeddings to messages and summaries; `missingIds` are the ids to embed next.
   *
   * @example
   * ```js
   * const { missingIds } = await lcm.embed("chat", { model: "small" });
   * const vector = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5];
   * const vectors = [{ id: missingIds[0], vector }];
   * assert.equal((await lcm.embed("chat", { model: "small", vectors })).stored, 1);
   * ```
   */
  embed(conversation: string, options?: EmbedRequest): Promise<EmbedResult>;
  /**
   * Describes a summary, a message, a file or, by its own id, the conversation.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * const { depth } = await lcm.describe("chat", id);
   * assert.equal(depth, 0);
   * ```
   */
  describe(conversation: string, id: string, options?: DescribeOptions): Promise<Description>;
  /**
   * Returns the sources of a summary: one page with `tokensMax`, else everything.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * const { messages } = await lcm.expand("chat", id, { includeMessages: true });
   * const originals = await lcm.messages("chat");
   * assert.ok(originals.includes(messages[0].raw)); // Byte for byte.
   * ```
   */
  expand(conversation: string, id: string, options?: ExpandOptions): Promise<ExpandResult>;
  /**
   * Yields the pages of an expansion, each read on demand; `tokensMax` bounds a page.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * for await (const page of lcm.iterExpand("chat", id, { includeMessages: true })) {
   *   assert.ok(page.messages.length > 0);
   * }
   * ```
   */
  iterExpand(
    conversation: string,
    id: string,
    options?: ExpandOptions,
  ): AsyncGenerator<ExpandResult, void, undefined>;
  /**
   * Answers a question from the conversation. A model that fails or takes too long is no rejection
   * but a `status`; an aborted `signal` rejects with its reason.
   *
   * @example
   * ```js
   * const asked = await lcm.ask("chat", "Who ate the quokka?");
   * assert.ok(asked.status === "no-evidence" && asked.answer === null);
   * ```
   */
  ask(conversation: string, question: string, options?: AskOptions): Promise<AskResult>;
  /**
   * Returns the evidence that `ask` would read, with advice whether a sub-agent should read the
   * evidence. Asks no model and writes nothing.
   *
   * @example
   * ```js
   * const plan = await lcm.askPlan("chat", "Why was the frost alert late?");
   * assert.equal(plan.status, "planned");
   * ```
   */
  askPlan(conversation: string, question: string, options?: QuestionOptions): Promise<QuestionPlan>;
  /**
   * Makes a grant, a limited right to read for a sub-agent.
   *
   * @example
   * ```js
   * const { id: grant } = await lcm.grant("chat");
   * assert.ok((await lcm.grep("chat", "orchard", { grant })).total > 0);
   * ```
   */
  grant(conversation: string, options?: GrantOptions): Promise<Grant>;
  /**
   * Revokes a grant at once, with all grants that inherit from it.
   *
   * @example
   * ```js
   * const { id: grant } = await lcm.grant("chat");
   * await lcm.revoke("chat", grant);
   * await assert.rejects(lcm.grep("chat", "orchard", { grant }), { code: "denied" });
   * ```
   */
  revoke(conversation: string, grant: string, options?: CallTime): Promise<void>;
  /**
   * Returns the original texts of a range of messages, byte for byte.
   *
   * @example
   * ```js
   * const texts = await lcm.messages("chat");
   * assert.equal(JSON.parse(texts[0]).role, "user");
   * ```
   */
  messages(
    conversation: string,
    options?: MessageRangeOptions,
  ): Promise<string[]>;
  /**
   * Yields the same texts one by one; about 1 MiB is read at once, on demand.
   *
   * @example
   * ```js
   * for await (const text of lcm.iterMessages("chat")) assert.ok(JSON.parse(text).role);
   * ```
   */
  iterMessages(
    conversation: string,
    options?: MessageRangeOptions,
  ): AsyncGenerator<string, void, undefined>;
  /**
   * Returns counts and sizes of a conversation.
   *
   * @example
   * ```js
   * assert.equal((await lcm.status("chat")).conversation, "chat");
   * ```
   */
  status(conversation: string, options?: CallTime): Promise<ConversationStatus>;
  /**
   * Returns counts and sizes of the store.
   *
   * @example
   * ```js
   * assert.equal((await lcm.status()).conversations, 1);
   * ```
   */
  status(conversation?: undefined, options?: CallTime): Promise<StoreStatus>;
  /**
   * Adds the conversation to a family, whose members are searched together.
   *
   * @example
   * ```js
   * await lcm.family("chat", "orchard");
   * await lcm.append("other", [{ role: "user", content: "A quokka." }], { family: "orchard" });
   * assert.equal((await lcm.grep("chat", "quokka")).total, 1);
   * ```
   */
  family(conversation: string, family: string, options?: CommandOptions): Promise<FamilyAnswer>;
  /**
   * Lists the `members` of a family, the latest to join first, and finds the `conversation` that is
   * not archived, of several the latest to join; null when all are archived.
   *
   * @example
   * ```js
   * await lcm.family("chat", "orchard");
   * const { conversation } = await lcm.reset("chat");
   * assert.equal((await lcm.live("orchard")).conversation, conversation);
   * ```
   */
  live(family: string): Promise<LiveAnswer>;
  /**
   * Archives the conversation; `conversation` of the answer is the empty successor.
   *
   * @example
   * ```js
   * const { conversation } = await lcm.reset("chat");
   * await lcm.append(conversation, [{ role: "user", content: "Start again." }]);
   * ```
   */
  reset(conversation: string, options?: ResetOptions): Promise<ResetAnswer>;
  /**
   * Withdraws messages and shallow summaries from the context; `grep` still finds them.
   *
   * @example
   * ```js
   * assert.ok((await lcm.newSession("chat")).messages > 0);
   * const { total } = await lcm.grep("chat", "orchard");
   * assert.ok(total > 0); // Withdrawn messages are found as before.
   * ```
   */
  newSession(conversation: string, options?: NewSessionOptions): Promise<NewSessionAnswer>;
  /**
   * Archives the conversation: later calls can read it and cannot write to it.
   *
   * @example
   * ```js
   * await lcm.archive("chat", "session-end");
   * assert.equal((await lcm.messages("chat")).length, 64);
   * ```
   */
  archive(
    conversation: string,
    cause: ArchiveCause,
    options?: CommandOptions,
  ): Promise<ArchiveAnswer>;
  /**
   * Deletes the conversation, and what other conversations have of it: grants that cover it,
   * questions and answers with evidence from it. Resolves to the receipt when nothing is left.
   *
   * After a crash the next `delete` of the id goes on; until then other calls fail with `denied`.
   *
   * @example
   * ```js
   * const { messages } = await lcm.delete("chat");
   * assert.equal(messages, 64);
   * await lcm.append("chat", [{ role: "user", content: "A new conversation." }]);
   * ```
   */
  delete(conversation: string, options?: CallTime): Promise<DeletionResult>;
  /**
   * Reports how many tokens a provider counted in a prompt, and the estimate of the same prompt:
   * `tokens` of its assembly plus the `estimate` of the host's own part.
   *
   * @example
   * ```js
   * await lcm.calibrate("chat", "gpt-5", 1_000, 1_200);
   * const context = await lcm.assemble("chat", { budget: 8_000, model: "gpt-5" });
   * ```
   */
  calibrate(
    conversation: string,
    model: string,
    estimatedTokens: number,
    promptTokens: number,
    options?: CommandOptions,
  ): Promise<CalibrateAnswer>;
  /**
   * Sets the brief that replaces summaries up to a message; without `text` removes the brief.
   *
   * @example
   * ```js
   * await lcm.focus("chat", { text: "The retry queue is fixed; the report is open." });
   * assert.equal((await lcm.focus("chat")).focus, null); // Removed again.
   * ```
   */
  focus(conversation: string, options?: FocusOptions): Promise<FocusAnswer>;
  /**
   * Sets aside the messages after the seq `to`, or the newest `units`. They stay stored, and are in
   * no context. If `to` was set aside, its branch comes back.
   *
   * @example
   * ```js
   * assert.equal((await lcm.rewind("chat", { to: 62 })).setAside, 2);
   * assert.equal((await lcm.rewind("chat", { to: 64 })).restored, 2);
   * ```
   */
  rewind(conversation: string, options: RewindOptions): Promise<RewindAnswer>;
  /**
   * Sets aside the newest message, or the newest call with its results, and returns it.
   *
   * @example
   * ```js
   * const popped = await lcm.pop("chat");
   * assert.equal(popped.seqLast, 64 - popped.setAside);
   * ```
   */
  pop(conversation: string, options?: PopOptions): Promise<RewindAnswer>;
  /**
   * Reports the usage of one answer of a model; resolves to the sums so far.
   *
   * @example
   * ```js
   * const { usage } = await lcm.usage("chat", { purpose: "turn", outputTokens: 80 });
   * assert.equal(usage.turns.calls, 1);
   * ```
   */
  usage(conversation: string, report: UsageReport): Promise<UsageAnswer>;
  /**
   * Advises whether compacting now costs less than waiting; changes nothing.
   *
   * @example
   * ```js
   * const prices = { input: 3_000_000, output: 15_000_000 };
   * const { advice } = await lcm.advise("chat", { budget: 100_000, prices });
   * assert.equal(advice, "wait");
   * ```
   */
  advise(conversation: string, options: AdviseOptions): Promise<AdviseAnswer>;
  /**
   * Returns the prompts of summaries as configured, by depth.
   *
   * @example
   * ```js
   * const names = (await lcm.prompts()).map((prompt) => prompt.name);
   * assert.ok(names.includes("leaf"));
   * ```
   */
  prompts(): Promise<SummaryPrompt[]>;
  /**
   * Checks the integrity of a conversation.
   *
   * @example
   * ```js
   * assert.ok((await lcm.check("chat")).ok);
   * ```
   */
  check(conversation: string): Promise<CheckResult>;
  /**
   * Returns the SHA-256 of the store, 64 hex digits; with `logical` of its contents alone.
   *
   * @example
   * ```js
   * const before = await lcm.digest();
   * await lcm.assemble("chat", { budget: 8_000 }); // Reads only.
   * assert.equal(await lcm.digest(), before);
   * ```
   */
  digest(options?: DigestOptions): Promise<string>;
  /**
   * Lists `conversations`, or the `summaries`, `messages` or `grants` of a conversation.
   *
   * @example
   * ```js
   * const [entry] = await lcm.listing("conversations");
   * assert.equal(entry.conversation, "chat");
   * ```
   */
  listing<Kind extends ListingKind>(
    kind: Kind,
    options?: ListingOptions,
  ): Promise<Listings[Kind][]>;
  /**
   * Yields the lines of an export of a conversation, or of all, without line ends. Fails with
   * `conflict` when another caller writes meanwhile; the lines so far are then no export.
   *
   * @example
   * ```js
   * const lines = [];
   * for await (const line of lcm.export("chat")) lines.push(line);
   * assert.match(lines[0], /^{"header":/);
   * ```
   */
  export(conversation?: string): AsyncGenerator<string, void, undefined>;
  /**
   * Imports the lines of an export. Every line is verified before the first message is stored, and
   * a repeated import changes nothing.
   *
   * @example
   * ```js
   * const { ingested } = await lcm.importLines(lcm.export("chat"));
   * assert.equal(ingested, 0); // All of it is stored already.
   * ```
   */
  importLines(
    lines: Iterable<string> | AsyncIterable<string>,
    options?: CallTime,
  ): Promise<ImportReport>;
  /**
   * Returns the definitions of an agent's tools; with `grant` the tools of a sub-agent. `scope` is
   * that of the calls.
   *
   * @example
   * ```js
   * const names = lcm.tools("anthropic").map((tool) => tool.name);
   * assert.ok(names.includes("lcm_grep"));
   * ```
   */
  tools(dialect?: Dialect, options?: ToolListOptions): JsonObject[];
  /**
   * Returns the instructions for an agent with the tools.
   *
   * @example
   * ```js
   * assert.match(lcm.instructions(), /lcm_grep/);
   * ```
   */
  instructions(dialect?: Dialect, hasSummaries?: boolean): string;
  /**
   * Answers a tool call whose name starts with `lcm_`; `input` is an object or its JSON text. The
   * tool reads the conversation and its family, or with `scope: "store"` the whole store; nothing
   * in `input` widens that.
   *
   * @example
   * ```js
   * const answer = await lcm.callTool("chat", "lcm_grep", { pattern: "orchard" });
   * assert.match(answer.text, /msg_/);
   * ```
   */
  callTool(
    conversation: string,
    name: string,
    input: object | string,
    options?: ToolCallOptions,
  ): Promise<ToolAnswer>;
  /**
   * Waits for the calls made before, models included, then closes the store. Later calls are
   * refused.
   *
   * @example
   * ```js
   * await lcm.close();
   * await assert.rejects(lcm.status("chat"));
   * ```
   */
  close(): Promise<void>;
  /**
   * Closes as `close`: `await using lcm = await open(...)` closes at the end of its block.
   *
   * @example
   * ```js
   * await lcm[Symbol.asyncDispose]();
   * await assert.rejects(lcm.status("chat"));
   * ```
   */
  [Symbol.asyncDispose](): Promise<void>;
}
