// The engine over an open store: every verb, with an example. In the examples `lcm` is an open
// engine whose store has a conversation `chat`.

import type {
  Advice,
  AdviseOptions,
  AppendOptions,
  ArchiveCause,
  ArchiveChanged,
  AskOptions,
  Asked,
  AssembleOptions,
  Assembled,
  CalibrationChanged,
  Checked,
  CompactOptions,
  Compacted,
  CompactionOptions,
  Configured,
  Decision,
  DescribeOptions,
  Described,
  Dialect,
  EmbedOptions,
  Embedded,
  ExpandOptions,
  Expanded,
  FamilyChanged,
  FocusChanged,
  Found,
  Grant,
  GrantOptions,
  GrepOptions,
  Imported,
  IngestOptions,
  Listed,
  Maintained,
  Message,
  Planned,
  Prompt,
  QuestionOptions,
  Receipt,
  Reported,
  ResetChanged,
  SessionChanged,
  Status,
  StoreStatus,
  Timed,
  ToolAnswer,
  ToolOptions,
  Turn,
  TurnOptions,
  UsageReport,
  VerbOptions,
} from "./index.js";

/**
 * An engine over one store. Methods reject with `LcmError`; `ask` and `callTool`, when an aborted
 * `signal` ends them, with its reason. Calls of one conversation are done in the order in which they
 * are made, and read what they are given before they return.
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
   * Replaces the configuration and reports what became of each key.
   *
   * @example
   * ```js
   * const report = await lcm.configure({ enabled: true });
   * assert.deepEqual(report.accepted, ["enabled"]);
   * ```
   */
  configure(config: Record<string, unknown>): Promise<Configured>;
  /**
   * Stores messages.
   *
   * @example
   * ```js
   * const receipt = await lcm.append("new", [{ role: "user", content: "Where do logs go?" }]);
   * assert.equal(receipt.ingested, 1);
   * ```
   */
  append(conversation: string, messages: Message[], options?: AppendOptions): Promise<Receipt>;
  /**
   * Stores those messages of a whole transcript that are missing.
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
   * One turn: stores messages, asks whether compaction is due, and does what is. Nothing is stored
   * when an option is wrong.
   *
   * @example
   * ```js
   * const messages = [{ role: "user", content: "What failed?" }];
   * const turn = await lcm.turn("chat", messages, { budget: 8_000 });
   * assert.ok(turn.receipt.ingested === 1 && !turn.decision.due);
   * ```
   */
  turn(conversation: string, messages: Message[], options: TurnOptions): Promise<Turn>;
  /**
   * Whether compaction is due, and why.
   *
   * @example
   * ```js
   * const decision = await lcm.evaluate("chat", { budget: 100_000 });
   * assert.ok(!decision.due && decision.reason === "below-threshold");
   * ```
   */
  evaluate(conversation: string, options: CompactionOptions): Promise<Decision>;
  /**
   * Makes room: summarises old messages until nothing is due.
   *
   * @example
   * ```js
   * const done = await lcm.compact("chat", { budget: 2_000 });
   * assert.ok(done.passes.length > 0);
   * ```
   */
  compact(conversation: string, options: CompactOptions): Promise<Compacted>;
  /**
   * Does compaction that was put off, when it is time for it.
   *
   * @example
   * ```js
   * const done = await lcm.maintain("chat", { budget: 8_000 });
   * assert.equal(done.debt, null); // Nothing was put off.
   * ```
   */
  maintain(conversation: string, options: CompactOptions): Promise<Maintained>;
  /**
   * A context that fits the budget.
   *
   * @example
   * ```js
   * const context = await lcm.assemble("chat", { budget: 3_000, dialect: "anthropic" });
   * assert.ok(context.tokens <= 3_000 && context.messages[0].role === "user");
   * ```
   */
  assemble(conversation: string, options: AssembleOptions): Promise<Assembled>;
  /**
   * Estimated tokens of messages; stores nothing. For what is sent beside the context.
   *
   * @example
   * ```js
   * const tokens = await lcm.estimate([{ role: "system", content: "Answer in one sentence." }]);
   * assert.ok(0 < tokens && tokens < 20);
   * ```
   */
  estimate(messages: Message[], dialect?: Dialect): Promise<number>;
  /**
   * Why the provider of `dialect` would refuse these messages, a line each; empty when not.
   *
   * @example
   * ```js
   * const refusals = await lcm.validate([{ role: "user", content: "" }], "anthropic");
   * assert.deepEqual(refusals, ["messages[0]: blank content"]);
   * ```
   */
  validate(messages: Message[], dialect: Exclude<Dialect, "lcm">): Promise<string[]>;
  /**
   * Searches messages and summaries.
   *
   * @example
   * ```js
   * const found = await lcm.grep("chat", "orchard weather", { limit: 5 });
   * assert.match(found.matches[0].id, /^(msg|sum)_/);
   * ```
   */
  grep(conversation: string, pattern: string, options?: GrepOptions): Promise<Found>;
  /**
   * Attaches embeddings to messages and summaries; without options it says what has none.
   *
   * @example
   * ```js
   * const { missing_ids } = await lcm.embed("chat", { model: "small" });
   * const vector = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5];
   * const vectors = [{ id: missing_ids[0], vector }];
   * assert.equal((await lcm.embed("chat", { model: "small", vectors })).stored, 1);
   * ```
   */
  embed(conversation: string, options?: EmbedOptions): Promise<Embedded>;
  /**
   * What a summary, a message, a file or, by its own id, the conversation is.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * const { depth } = await lcm.describe("chat", id);
   * assert.equal(depth, 0);
   * ```
   */
  describe(conversation: string, id: string, options?: DescribeOptions): Promise<Described>;
  /**
   * From a summary back to what it was made from: one page with `tokens_max`, else everything.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * const { messages } = await lcm.expand("chat", id, { include_messages: true });
   * const originals = await lcm.messages("chat");
   * assert.ok(originals.includes(messages[0].raw)); // Byte for byte.
   * ```
   */
  expand(conversation: string, id: string, options?: ExpandOptions): Promise<Expanded>;
  /**
   * The pages of an expansion, each read when it is taken; `tokens_max` is that of a page.
   *
   * @example
   * ```js
   * const [{ id }] = await lcm.listing("summaries", { conversation: "chat" });
   * for await (const page of lcm.iterExpand("chat", id, { include_messages: true })) {
   *   assert.ok(page.messages.length > 0);
   * }
   * ```
   */
  iterExpand(
    conversation: string,
    id: string,
    options?: ExpandOptions,
  ): AsyncGenerator<Expanded, void, undefined>;
  /**
   * Has a question answered from what was said. A model that fails or takes too long is no
   * rejection but a `status`; an aborted `signal` rejects with its reason.
   *
   * @example
   * ```js
   * const asked = await lcm.ask("chat", "Who ate the quokka?");
   * assert.ok(asked.status === "no-evidence" && asked.answer === null);
   * ```
   */
  ask(conversation: string, question: string, options?: AskOptions): Promise<Asked>;
  /**
   * What `ask` would read, and whether that is worth it, for hosts whose own sub-agents read. Asks
   * no model and writes nothing.
   *
   * @example
   * ```js
   * const plan = await lcm.askPlan("chat", "Why was the frost alert late?");
   * assert.equal(plan.status, "planned");
   * ```
   */
  askPlan(conversation: string, question: string, options?: QuestionOptions): Promise<Planned>;
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
   * Ends a grant at once, with those that inherit from it.
   *
   * @example
   * ```js
   * const { id: grant } = await lcm.grant("chat");
   * await lcm.revoke("chat", grant);
   * await assert.rejects(lcm.grep("chat", "orchard", { grant }), { code: "denied" });
   * ```
   */
  revoke(conversation: string, grant: string, options?: Timed): Promise<void>;
  /**
   * Original texts of a range of messages (inclusive, from 1), byte for byte.
   *
   * @example
   * ```js
   * const texts = await lcm.messages("chat");
   * assert.equal(JSON.parse(texts[0]).role, "system");
   * ```
   */
  messages(
    conversation: string,
    options?: { seq_first?: number; seq_last?: number },
  ): Promise<string[]>;
  /**
   * The same one by one; about 1 MiB is read when the first of it is taken.
   *
   * @example
   * ```js
   * for await (const text of lcm.iterMessages("chat")) assert.ok(JSON.parse(text).role);
   * ```
   */
  iterMessages(
    conversation: string,
    options?: { seq_first?: number; seq_last?: number },
  ): AsyncGenerator<string, void, undefined>;
  /**
   * Counts and sizes of a conversation.
   *
   * @example
   * ```js
   * assert.equal((await lcm.status("chat")).conversation, "chat");
   * ```
   */
  status(conversation: string, options?: Timed): Promise<Status>;
  /**
   * Counts and sizes of the store.
   *
   * @example
   * ```js
   * assert.equal((await lcm.status()).conversations, 1);
   * ```
   */
  status(conversation?: undefined, options?: Timed): Promise<StoreStatus>;
  /**
   * Makes the conversation one of a family, whose members are searched together.
   *
   * @example
   * ```js
   * await lcm.family("chat", "orchard");
   * await lcm.append("other", [{ role: "user", content: "A quokka." }], { family: "orchard" });
   * assert.equal((await lcm.grep("chat", "quokka")).total, 1);
   * ```
   */
  family(conversation: string, family: string, options?: VerbOptions): Promise<FamilyChanged>;
  /**
   * Archives the conversation; `conversation` of the answer is the empty one to go on in.
   *
   * @example
   * ```js
   * const { conversation } = await lcm.reset("chat");
   * await lcm.append(conversation, [{ role: "user", content: "Start again." }]);
   * ```
   */
  reset(
    conversation: string,
    options?: VerbOptions & { successor?: string },
  ): Promise<ResetChanged>;
  /**
   * Withdraws messages and shallow summaries from the context; they stay findable.
   *
   * @example
   * ```js
   * assert.ok((await lcm.newSession("chat")).messages > 0);
   * const { total } = await lcm.grep("chat", "orchard");
   * assert.ok(total > 0); // Withdrawn messages are found as before.
   * ```
   */
  newSession(
    conversation: string,
    options?: VerbOptions & { retain_depth?: number },
  ): Promise<SessionChanged>;
  /**
   * Archives the conversation: it is read as before and not written to.
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
    options?: VerbOptions,
  ): Promise<ArchiveChanged>;
  /**
   * Reports what a provider counted of a prompt, and the estimate of the same prompt: `tokens` of
   * its assembly, and the `estimate` of what was added.
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
    estimated_tokens: number,
    prompt_tokens: number,
    options?: VerbOptions,
  ): Promise<CalibrationChanged>;
  /**
   * Sets the brief that stands for summaries up to a message; without `text` there is none.
   *
   * @example
   * ```js
   * await lcm.focus("chat", { text: "The retry queue is fixed; the report is open." });
   * assert.equal((await lcm.focus("chat")).focus, null); // Removed again.
   * ```
   */
  focus(
    conversation: string,
    options?: VerbOptions & { text?: string; seq_last?: number },
  ): Promise<FocusChanged>;
  /**
   * Reports what one answer of a model took; resolves to the sums so far.
   *
   * @example
   * ```js
   * const { usage } = await lcm.usage("chat", { purpose: "turn", output_tokens: 80 });
   * assert.equal(usage.turns.calls, 1);
   * ```
   */
  usage(conversation: string, report: UsageReport): Promise<Reported>;
  /**
   * Whether compacting now costs less than waiting; changes nothing.
   *
   * @example
   * ```js
   * const prices = { input: 3_000_000, output: 15_000_000 };
   * const { advice } = await lcm.advise("chat", { budget: 100_000, prices });
   * assert.equal(advice, "wait");
   * ```
   */
  advise(conversation: string, options: AdviseOptions): Promise<Advice>;
  /**
   * What summaries are asked for as configured, by depth.
   *
   * @example
   * ```js
   * const names = (await lcm.prompts()).map((prompt) => prompt.name);
   * assert.ok(names.includes("leaf"));
   * ```
   */
  prompts(): Promise<Prompt[]>;
  /**
   * Checks what the engine promises about a conversation.
   *
   * @example
   * ```js
   * assert.ok((await lcm.check("chat")).ok);
   * ```
   */
  check(conversation: string): Promise<Checked>;
  /**
   * SHA-256 of the store, 64 hex digits; `logical`: of what it means, however it was filled.
   *
   * @example
   * ```js
   * const before = await lcm.digest();
   * await lcm.assemble("chat", { budget: 8_000 }); // Reads only.
   * assert.equal(await lcm.digest(), before);
   * ```
   */
  digest(options?: { logical?: boolean }): Promise<string>;
  /**
   * A list: `conversations`, or `summaries`, `messages` or `grants` of one.
   *
   * @example
   * ```js
   * const [entry] = await lcm.listing("conversations");
   * assert.equal(entry.conversation, "chat");
   * ```
   */
  listing<Kind extends keyof Listed>(
    kind: Kind,
    options?: { conversation?: string },
  ): Promise<Listed[Kind][]>;
  /**
   * The lines of an export of a conversation, or of all, without line ends. It fails with
   * `conflict` when somebody writes to it meanwhile; what was taken is then no export.
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
   * Takes the lines of an export in. All of it is verified before the first message is stored, and
   * repeating it changes nothing.
   *
   * @example
   * ```js
   * const { ingested } = await lcm.importLines(lcm.export("chat"));
   * assert.equal(ingested, 0); // All of it is stored already.
   * ```
   */
  importLines(lines: Iterable<string> | AsyncIterable<string>, options?: Timed): Promise<Imported>;
  /**
   * Definitions of the tools an agent sees; with `grant` those of a sub-agent.
   *
   * @example
   * ```js
   * const names = lcm.tools("anthropic").map((tool) => tool.name);
   * assert.ok(names.includes("lcm_grep"));
   * ```
   */
  tools(dialect?: Dialect, options?: { grant?: string }): any[];
  /**
   * What to tell the agent about them.
   *
   * @example
   * ```js
   * assert.match(lcm.instructions(), /lcm_grep/);
   * ```
   */
  instructions(dialect?: Dialect, hasSummaries?: boolean): string;
  /**
   * Answers a tool call whose name starts with `lcm_`; `input`: an object or its JSON text.
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
    input: unknown,
    options?: ToolOptions,
  ): Promise<ToolAnswer>;
  /**
   * Waits for the calls that were made before, models included, and closes the store. Those that
   * come later are refused.
   *
   * @example
   * ```js
   * await lcm.close();
   * await assert.rejects(lcm.status("chat"));
   * ```
   */
  close(): Promise<void>;
}
