// The object that `open` returns: one method per thing an agent does with its conversations.
//
// Converts and forwards; the engine decides everything. `mapCall` and its siblings put options
// under the engine's names (snake_case) and results under the package's names (camelCase). All
// other modules use the engine's names.

import { ask, askPlan, completed, completerOf } from "./ask.js";
import { Conversation } from "./conversation.js";
import { compact, decide, maintain, resummarize, turn } from "./compact.js";
import { toJson } from "./convert.js";
import { drive } from "./drive.js";
import { invalid } from "./errors.js";
import { maintainFamily } from "./family.js";
import { identities } from "./identify.js";
import { intake } from "./intake.js";
import { messageTexts, reader } from "./messages.js";
import { mapCall, mapStream, mapSyncCall } from "./names.js";
import { checkAsking, requireBudget, rest } from "./options.js";
import { collected, cursorPages, each, expanded, expansionPages, messagePages } from "./pages.js";
import { EXPORT_BYTES_MAX, importLines, linesOf } from "./portable.js";
import { resolveSettings } from "./settings.js";
import { LISTINGS } from "./shapes.js";

/** The name of the method that `await using` calls; older runtimes lack the symbol. */
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** Bytes of one page of texts. */
const PAGE_BYTES_MAX = 1024 * 1024;

/** Returns the numbers of a vector; JSON has no typed arrays. */
function numbers(vector) {
  return ArrayBuffer.isView(vector) ? Array.from(vector) : vector;
}

/** Returns options with `model`, `mark_caches` and `may_be_new` as members of `extra_json`. */
function withExtra({ model, mark_caches, may_be_new, ...options }) {
  const extra = { model, mark_caches, may_be_new };
  const isGiven = Object.values(extra).some((value) => value !== undefined);
  return isGiven ? { ...options, extra_json: JSON.stringify(extra) } : options;
}

/**
 * An engine over one store.
 *
 * A call reads its arguments, and takes its place in the queue of its conversation, before it
 * returns its promise.
 */
export class Engine {
  #backend;
  #calls;
  #models;
  #clock;
  #scope;
  #dialect;
  #signal;

  /**
   * @param {object} parts
   * @param {import("./backend.js").Backend} parts.backend for calls that need no store
   * @param {import("./calls.js").Calls} parts.calls over the same backend
   * @param {object} parts.models result of `modelsOf`
   * @param {() => number} parts.clock milliseconds since the epoch
   * @param {string} parts.scope conversations that tools may read, unless a call names others
   * @param {string} [parts.dialect] dialect of messages, unless a call names another
   * @param {AbortSignal} [parts.signal] ends every call that asks a model
   */
  constructor({ backend, calls, models, clock, scope, dialect = "lcm", signal }) {
    this.#backend = backend;
    this.#calls = calls;
    this.#models = models;
    this.#clock = clock;
    this.#scope = scope;
    this.#dialect = dialect;
    this.#signal = signal;
  }

  /**
   * Returns the handle of a conversation, which need not exist: the verbs without its id, with
   * `budget`, `dialect` and `model` for calls that name none.
   */
  conversation(id, settings) {
    return new Conversation(this, id, settings);
  }

  /** Version of the engine. */
  get version() {
    return this.#backend.pure("setup.version", {});
  }

  /**
   * Replaces the configuration; reports the treatment of each key. The store stays the one that
   * was opened, and `LCM_...` variables do not count.
   */
  async configure(config) {
    const given = toJson(config, "config");
    return this.#calls.begin(async () => {
      const call = (name, args) => this.#backend.pure(name, args);
      const { json, host, report } = await resolveSettings(given, {}, call);
      this.#models.follow(host);
      this.#backend.restart(json);
      return report;
    });
  }

  /**
   * Stores the newest messages of a conversation, in several commits when the list is long.
   *
   * With `appendMode` `transcript` (default) messages that are already stored are skipped.
   */
  async append(conversation, messages, options) {
    return this.#intake("append", conversation, messages, options);
  }

  /** Stores the missing messages of a whole transcript. */
  async ingest(conversation, transcript, options) {
    return this.#intake("ingest", conversation, transcript, options);
  }

  #intake(method, conversation, messages, options) {
    return mapCall(method, options, (given) => {
      const texts = reader(messages);
      const now = this.#timeOf(given);
      return this.#calls.inLine(conversation, async (backend) => {
        const asked = { ...given, dialect: given.dialect ?? this.#dialect, now };
        return intake(backend, method, conversation, await texts(), asked);
      });
    });
  }

  /** Summarises old messages until nothing is due. */
  async compact(conversation, options) {
    return mapCall("compact", options, (given) => {
      const asked = this.#withSignal(given);
      return this.#calls.begin((begun) => compact(begun, this.#host, conversation, asked));
    });
  }

  /**
   * Takes one turn: stores messages, decides whether compaction is due, and compacts.
   *
   * All options are checked before a message is stored. `failure` is a failure after the messages
   * were stored, beside the receipt. `compacted` is what was done in spite of the failure; null
   * when nothing was due, the compaction was deferred, the model refused its key or the content, or
   * the store failed.
   * With `defer`, the default unless the configuration says `inline`, compaction that can wait is
   * left for `maintain`, and `deferred` is true.
   */
  async turn(conversation, messages, options) {
    return mapCall("turn", options, (given) => {
      const texts = reader(messages);
      const asked = this.#withSignal({ ...given, dialect: given.dialect ?? this.#dialect });
      return this.#calls.begin((begun) => turn(begun, this.#host, conversation, texts, asked));
    });
  }

  /**
   * Does deferred compaction if it is due; for calls after a turn, when no user waits. Resolves to
   * `{debt, compacted, failure}`; `compacted` is null if nothing was due, or the model refused its
   * key or the content. After failures the engine waits longer and longer before the next attempt.
   */
  async maintain(conversation, options) {
    return mapCall("maintain", options, (given) => {
      const asked = this.#withSignal(given);
      return this.#calls.begin((begun) => maintain(begun, this.#host, conversation, asked));
    });
  }

  /**
   * Calls `maintain` for every conversation of a family, the latest to join first. Resolves to
   * `{reports, unserved}`; `unserved` has the ids that were left, because a model failed or
   * `signal` was aborted.
   */
  async maintainFamily(family, options) {
    return mapCall("maintainFamily", options, async (given) => {
      const asked = this.#withSignal(requireBudget(given));
      const one = (id) => this.#calls.begin((begun) => maintain(begun, this.#host, id, asked));
      const { members } = await this.#verb("live", "", { family });
      return maintainFamily(members, asked.signal, one);
    });
  }

  /**
   * Makes provisional summaries again: `summaryIds`, or all, even if earlier attempts failed. A
   * summary is provisional if the configured model failed to write its text, or that of a source.
   * `compact` and `maintain` also make provisional summaries again.
   */
  async resummarize(conversation, options) {
    return mapCall("resummarize", options, (given) => {
      const asked = this.#withSignal(given);
      return this.#calls.begin((begun) => resummarize(begun, this.#host, conversation, asked));
    });
  }

  /** Decides whether compaction is due, and why. */
  async evaluate(conversation, options) {
    return mapCall("evaluate", options, (given) => {
      const { budget, ...others } = requireBudget(given);
      const asked = withExtra(rest(others, "now"));
      const now = this.#timeOf(given);
      return this.#calls.inLine(conversation, (backend) => {
        return decide(backend, conversation, budget, asked, now);
      });
    });
  }

  /** Returns a context as messages of `dialect`; only its protected part can exceed `budget`. */
  async assemble(conversation, options) {
    return mapCall("assemble", options, async (given) => {
      const { budget, dialect = this.#dialect, live_messages, ...others } = requireBudget(given);
      const asked = {
        ...withExtra(rest(others, "now")),
        live_messages: messageTexts(live_messages ?? []),
      };
      const now = this.#timeOf(given);
      const call = { conversation, budget, dialect, options: asked, now };
      const assembled = await this.#calls.call("context.assemble", call);
      return { messages: JSON.parse(assembled.messages_json), ...assembled, budget };
    });
  }

  /**
   * Estimates the tokens of messages, and stores nothing. For the messages that a host adds to the
   * assembled context, such as its system prompt and its tools.
   */
  async estimate(messages, dialect = this.#dialect) {
    const texts = reader(messages);
    return this.#calls.begin(async (begun) => {
      const entries = await identities(begun, dialect, await texts());
      return entries.reduce((total, { tokens }) => total + tokens, 0);
    });
  }

  /**
   * Lists why the provider of `dialect` would refuse these messages, a line each; the list is empty
   * when the provider would not. Stores and reads nothing.
   */
  async validate(messages, dialect = this.#dialect) {
    const messages_json = `[${messageTexts(messages).join(",")}]`;
    return JSON.parse(await this.#calls.call("context.validate", { dialect, messages_json }));
  }

  /** Searches messages and summaries, or the texts of large payloads. */
  async grep(conversation, pattern, options) {
    return mapCall("grep", options, (given) => {
      const { vector, ...wanted } = rest(given, "grant", "now");
      const near = vector === undefined ? {} : { vector: numbers(vector) };
      const query_json = toJson({ pattern, ...wanted, ...near }, "options");
      return this.#read("recall.grep", conversation, { query_json }, given);
    });
  }

  /**
   * Attaches embeddings to messages and summaries, by id, for `vector` of `grep`; `forget` removes
   * the embeddings. Resolves to `{stored, missingCount, missingIds, ...}`; `missingIds` are the ids
   * to embed next.
   */
  async embed(conversation, options) {
    return mapCall("embed", options, async ({ vectors, ...others }) => {
      // A value of another shape passes unchanged, and the engine reports the error.
      const entry = (one) => (one?.vector ? { ...one, vector: numbers(one.vector) } : one);
      const listed = Array.isArray(vectors) ? vectors.map(entry) : vectors;
      const vectors_json = toJson({ ...others, vectors: listed }, "options");
      return JSON.parse(await this.#calls.call("recall.embed", { conversation, vectors_json }));
    });
  }

  /** Describes a summary, message, file, conversation or version of the system messages by id. */
  async describe(conversation, id, options) {
    return mapCall("describe", options, (given) => {
      const options_json = toJson(rest(given, "grant", "now"), "options");
      return this.#read("recall.describe", conversation, { id, options_json }, given);
    });
  }

  /** Returns the sources of a summary: one page with `tokensMax`, else everything. */
  async expand(conversation, id, options) {
    return mapCall("expand", options, (given) => {
      const readBy = this.#expansion(conversation, id, given);
      return this.#calls.inLine(conversation, (backend) => expanded(readBy(backend), given));
    });
  }

  /** Yields the pages of an expansion, each read on demand; `tokensMax` bounds a page. */
  iterExpand(conversation, id, options) {
    return mapStream("iterExpand", options, (given) => {
      return expansionPages(this.#expansion(conversation, id, given)(this.#calls));
    });
  }

  /** Returns a function that reads pages of an expansion through an object with `call`. */
  #expansion(conversation, id, given) {
    const { cursor: first, ...wanted } = rest(given, "grant", "now");
    // Checks the options now, not when a page is read.
    toJson(wanted, "options");
    const fixed = { conversation, id, grant: given.grant ?? null, now: this.#timeOf(given) };
    return (caller) => async (cursor) => {
      const options_json = toJson({ ...wanted, cursor: cursor ?? first }, "options");
      return JSON.parse(await caller.call("recall.expand", { ...fixed, options_json }));
    };
  }

  /**
   * Answers a question from the conversation: `{status, answer, citedIds, ...}`.
   *
   * A model that fails or takes too long is no rejection but a `status`, with `failure`. The call
   * takes at most `deadlineMs`. An aborted `signal` rejects with its reason, and closes the
   * question in the engine.
   */
  async ask(conversation, question, options) {
    return mapCall("ask", options, (given) => {
      const asked = this.#withSignal(given);
      return this.#calls.begin((begun) => ask(begun, this.#host, conversation, question, asked));
    });
  }

  /**
   * Returns the evidence that `ask` would read, with advice whether a sub-agent should read the
   * evidence. Asks no model and writes nothing.
   */
  async askPlan(conversation, question, options) {
    return mapCall("askPlan", options, (given) => {
      return this.#calls.begin((begun) => {
        return askPlan(begun, this.#host, conversation, question, given);
      });
    });
  }

  /**
   * Makes a grant, a limited right to read for a sub-agent. `id` of the grant is the `grant` of
   * `grep`, `describe`, `expand`, `ask`, `tools` and `callTool`.
   */
  async grant(conversation, options) {
    return mapCall("grant", options, async (given) => {
      const grant_json = toJson(rest(given, "now"), "options");
      const call = { conversation, grant_json, now: this.#timeOf(given) };
      return JSON.parse(await this.#calls.call("recall.grant", call));
    });
  }

  /** Revokes a grant at once, with all grants that inherit from it. */
  async revoke(conversation, grant, options) {
    return mapCall("revoke", options, async (given) => {
      const now = this.#timeOf(given);
      await this.#calls.call("recall.revoke", { conversation, grant, now });
    });
  }

  /** Returns the original texts of a range of messages, byte for byte. */
  async messages(conversation, options) {
    return mapCall("messages", options, (given) => {
      const { first, last, readBy } = this.#range(conversation, given);
      return this.#calls.inLine(conversation, async (backend) => {
        return (await collected(messagePages(readBy(backend), first, last))).flat();
      });
    });
  }

  /** Yields the same texts one by one; about 1 MiB is read at once, on demand. */
  iterMessages(conversation, options) {
    return mapStream("iterMessages", options, (given) => {
      const { first, last, readBy } = this.#range(conversation, given);
      return each(messagePages(readBy(this.#calls), first, last), (page) => page);
    });
  }

  /** Returns a range, and a function that reads its messages through an object with `call`. */
  #range(conversation, { seq_first: first = 1, seq_last: last = Number.MAX_SAFE_INTEGER }) {
    const fixed = { conversation, seq_last: last, bytes_max: PAGE_BYTES_MAX };
    const readBy = (caller) => (seq_first) => {
      return caller.call("recall.messages", { ...fixed, seq_first });
    };
    return { first, last, readBy };
  }

  /** Returns counts and sizes of a conversation, or of the store without one. */
  async status(conversation, options) {
    return mapCall("status", options, async (given) => {
      const now = this.#timeOf(given);
      return JSON.parse(await this.#calls.call("admin.status", { conversation, now }));
    });
  }

  /** Adds the conversation to a family, whose members are searched together. */
  async family(conversation, family, options) {
    return this.#command("family", conversation, options, { family });
  }

  /** Lists a family, and finds its conversation that is not archived. */
  async live(family) {
    return mapCall("live", undefined, () => this.#verb("live", "", { family }));
  }

  /** Archives the conversation; `conversation` of the result is the empty successor. */
  async reset(conversation, options) {
    return this.#command("reset", conversation, options);
  }

  /** Withdraws messages and shallow summaries from the context; `grep` still finds them. */
  async newSession(conversation, options) {
    return this.#command("newSession", conversation, options);
  }

  /** Archives the conversation: later calls can read it and cannot write to it. */
  async archive(conversation, cause, options) {
    return this.#command("archive", conversation, options, { cause });
  }

  /** Deletes the conversation; resolves to the receipt when nothing of it is left. */
  async delete(conversation, options) {
    return mapCall("delete", options, (given) => {
      const now = () => this.#timeOf(given);
      return this.#calls.inLine(conversation, async (backend) => {
        return (await drive(backend, { task: "delete", conversation }, { now })).result;
      });
    });
  }

  /**
   * Reports how many tokens the provider of `model` counted in a prompt, and the estimate of the
   * same prompt: `tokens` of its assembly plus the `estimate` of the host's own part.
   */
  async calibrate(conversation, model, estimatedTokens, promptTokens, options) {
    const report = { model, estimated_tokens: estimatedTokens, prompt_tokens: promptTokens };
    return this.#command("calibrate", conversation, options, report);
  }

  /**
   * Sets the focus brief: `text` replaces the summaries of messages up to `seqLast` (absent: the
   * newest). Without `text` the brief is removed.
   */
  async focus(conversation, options) {
    return this.#command("focus", conversation, options);
  }

  /**
   * Sets aside the newest messages: those after the seq `to`, or the newest `units`. They stay
   * stored, and are in no context. If `to` was set aside, its branch comes back.
   */
  async rewind(conversation, options) {
    return this.#command("rewind", conversation, options);
  }

  /** Sets aside the newest message, or the newest call with its results, and returns it. */
  async pop(conversation, options) {
    return this.#command("rewind", conversation, options, { units: 1 });
  }

  /** Reports the usage of one answer of a model; resolves to the sums so far. */
  async usage(conversation, report) {
    return this.#command("usage", conversation, report);
  }

  /**
   * Advises whether compacting now costs less than waiting, at `prices` of a million tokens in
   * millionths of a currency: `{advice: "compact" or "wait", reason, ...}`. Changes nothing.
   */
  async advise(conversation, options) {
    return this.#command("advise", conversation, requireBudget(options ?? {}));
  }

  /** Returns the prompts of summaries as configured, by depth. */
  async prompts() {
    return mapCall("prompts", undefined, async () => (await this.#verb("prompts", "")).prompts);
  }

  /** Calls a verb with its options and its positional arguments. */
  #command(method, conversation, options, fixed) {
    const verb = method === "newSession" ? "new" : method;
    return mapCall(method, options, (given) => {
      return this.#verb(verb, conversation, { ...given, ...fixed });
    });
  }

  async #verb(verb, conversation, given = {}) {
    const arguments_json = toJson(rest(given, "now"), "options");
    const call = { conversation, verb, arguments_json, now: this.#timeOf(given) };
    return JSON.parse(await this.#calls.call("admin.call", call));
  }

  /**
   * Returns the definitions of an agent's tools, in the tool format of `dialect`; with `grant` the
   * tools of a sub-agent. `scope` is that of the calls.
   */
  tools(dialect = this.#dialect, options) {
    return mapSyncCall("tools", options, ({ grant, scope = this.#scope }) => {
      return JSON.parse(this.#backend.pure("tools.definitions", { dialect, grant, scope }));
    });
  }

  /** Returns the instructions for an agent with these tools. */
  instructions(dialect = this.#dialect, hasSummaries = true) {
    return this.#backend.pure("tools.instructions", { dialect, has_summaries: hasSummaries });
  }

  /**
   * Answers a tool call whose name starts with `lcm_`: `{text, isError, failure}`. `input` is an
   * object or its JSON text, and passes untouched. `failure` is the failure of the model that was
   * asked for the answer; `text` reports the failure to the agent's model, too. `scope` bounds what
   * the tool reads: no argument of a model widens it.
   */
  async callTool(conversation, name, input, options) {
    return mapCall("callTool", options, (options) => {
      const given = this.#withSignal(options);
      checkAsking(given);
      if (given.signal?.aborted) throw given.signal.reason;
      // OpenAI hands the arguments over as JSON text, the others as an object.
      const arguments_json = typeof input === "string" ? input : toJson(input ?? {}, "input");
      const { grant = null, scope = this.#scope } = given;
      const call = { conversation, name, arguments_json, grant, scope };
      return this.#calls.begin((begun) => this.#answerTool(begun, call, given));
    });
  }

  async #answerTool(begun, call, given) {
    const now = () => this.#timeOf(given);
    const first = await begun.call("tools.call", { ...call, now: now() });
    const complete = completerOf(begun, this.#models, given, call.conversation);
    let failed;
    const { done } = await completed(first, {
      needs: (outcome) => outcome["needs-completions"],
      complete: async (request, needs) => {
        const answer = await complete(request, needs);
        failed = answer.failed;
        return answer;
      },
      resume: (continuation, answers) => {
        const { conversation, scope } = call;
        const next = { conversation, continuation, answers, scope, now: now() };
        return begun.call("tools.resume", next);
      },
    });
    const failure = failed ? { code: failed.code, message: failed.message } : null;
    return { ...done, failure };
  }

  /** The models and the clock of the host, which a task needs in addition to the engine. */
  get #host() {
    return { models: this.#models, clock: this.#clock };
  }

  /** Returns options whose `signal` is aborted with the signal of the engine, too. */
  #withSignal(given) {
    if (this.#signal === undefined) return given;
    checkAsking(given);
    const signals = [this.#signal, given.signal].filter((signal) => signal !== undefined);
    return { ...given, signal: signals.length > 1 ? AbortSignal.any(signals) : signals[0] };
  }

  /** Returns the time of a call: as given, else of the clock. */
  #timeOf(given) {
    return given.now ?? this.#clock();
  }

  async #read(name, conversation, args, given) {
    const call = { conversation, ...args, grant: given.grant ?? null, now: this.#timeOf(given) };
    return JSON.parse(await this.#calls.call(name, call));
  }

  /** Returns all pages of a call that continues at a cursor. */
  #pages(name, args) {
    return this.#calls.inLine(args.conversation, (backend) => {
      const read = async (cursor) => JSON.parse(await backend.call(name, { ...args, cursor }));
      return collected(cursorPages(read));
    });
  }

  /** Returns a whole list of the engine: `kind` is `conversations`, `summaries`, ... */
  async listing(kind, options) {
    const list = async ({ conversation }) => {
      const args = { kind, bytes_max: PAGE_BYTES_MAX, ...(conversation && { conversation }) };
      return (await this.#pages("admin.listing", args)).flatMap((page) => page.items);
    };
    return mapCall("listing", options, list, LISTINGS[kind]);
  }

  /** Returns the SHA-256 of the whole store: of its bytes, or with `logical` of its contents. */
  async digest(options) {
    return mapCall("digest", options, async ({ logical = false }) => {
      const pages = await this.#pages("admin.digest", { logical });
      return pages.at(-1).sha256;
    });
  }

  /** Checks the integrity of a conversation: `{ok, checks, metrics}`. */
  async check(conversation) {
    return mapCall("check", undefined, async () => {
      const pages = await this.#pages("admin.check", { conversation });
      return {
        ok: pages.every((page) => page.ok),
        checks: pages.flatMap((page) => page.checks),
        metrics: pages.at(-1).metrics,
      };
    });
  }

  /**
   * Yields the lines of an export of a conversation, or of all, without line ends. Fails with
   * `conflict` when another caller writes meanwhile; the lines so far are then no export.
   */
  export(conversation) {
    if (conversation === "") throw invalid("`conversation` must not be empty");
    const fixed = { conversation: conversation ?? "", bytes_max: EXPORT_BYTES_MAX };
    const read = async (cursor) => {
      return JSON.parse(await this.#calls.attempt("admin.export_page", { ...fixed, cursor }));
    };
    return each(cursorPages(read), (page) => page.lines);
  }

  /**
   * Imports the lines of an export. Every line is verified before the first message is stored, and
   * a repeated import changes nothing.
   */
  async importLines(lines, options) {
    return mapCall("importLines", options, (given) => {
      return this.#calls.begin(async (begun) => {
        // Not inside a queue: the source of the lines may call this engine, too.
        const whole = await linesOf(lines);
        return begun.inLine("", (backend) => {
          return importLines(backend, whole, () => this.#timeOf(given));
        });
      });
    });
  }

  /** Waits for the calls made before, then closes the store. Later calls are refused. */
  close() {
    return this.#calls.close();
  }

  /** `await using lcm = await open(...)` closes the engine at the end of its block. */
  [ASYNC_DISPOSE]() {
    return this.close();
  }
}
