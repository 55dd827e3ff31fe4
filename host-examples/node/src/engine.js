// The object that `open` returns: one method per thing an agent does with its conversations.
//
// Converts and forwards; every decision is the engine's. Names of what the engine takes and answers
// are those of its JSON (snake_case), so that they are the same in every host. What only the host
// does with a call has names of its own: `parallel` (the engine's `requests_max`), `retries`,
// `timeout_ms`, `signal`, `append_mode`, `defer`.

import { ask, askPlan, completed, completerOf } from "./ask.js";
import { compact, decide, maintain, turn } from "./compact.js";
import { toJson } from "./convert.js";
import { invalid } from "./errors.js";
import { identities } from "./identify.js";
import { intake } from "./intake.js";
import { messageTexts, reader } from "./messages.js";
import {
  APPEND_OPTIONS,
  budgeted,
  checkAsking,
  INGEST_OPTIONS,
  knownOptions,
  optionsOf,
  rest,
} from "./options.js";
import { collected, cursorPages, each, expanded, expansionPages, messagePages } from "./pages.js";
import { EXPORT_BYTES_MAX, importLines, linesOf } from "./portable.js";

const TOOL_OPTIONS = ["caller", "retries", "timeout_ms", "signal", "now"];

/** Bytes of one page of texts. */
const PAGE_BYTES_MAX = 1024 * 1024;

function parsed(text) {
  return JSON.parse(text);
}

/** The numbers of a vector; JSON has no typed arrays. */
function numbers(vector) {
  return ArrayBuffer.isView(vector) ? Array.from(vector) : vector;
}

/** Some options as the engine takes them: among those whose shape is not settled. */
function withExtra({ model, mark_caches, ...options }) {
  const extra = { model, mark_caches };
  const isGiven = Object.values(extra).some((value) => value !== undefined);
  return isGiven ? { ...options, extra_json: JSON.stringify(extra) } : options;
}

/**
 * An engine over one store.
 *
 * What a call is given is read before it returns its promise, and its place in the line of its
 * conversation is taken then, too.
 */
export class Engine {
  #backend;
  #calls;
  #models;
  #clock;

  /**
   * @param {object} parts
   * @param {import("./backend.js").Backend} parts.backend for what needs no store
   * @param {import("./calls.js").Calls} parts.calls over the same backend
   * @param {object} parts.models what `modelsOf` made of the caller's functions
   * @param {() => number} parts.clock milliseconds since the epoch
   */
  constructor({ backend, calls, models, clock }) {
    this.#backend = backend;
    this.#calls = calls;
    this.#models = models;
    this.#clock = clock;
  }

  /** Version of the engine. */
  get version() {
    return this.#backend.pure("setup.version", {});
  }

  /** What became of every key of a configuration: accepted, defaulted, deprecated, unknown. */
  async configure(config) {
    const json = toJson(config, "config");
    return this.#calls.begin(() => {
      const report = parsed(this.#backend.pure("setup.configure", { config_json: json }));
      this.#backend.restart(json);
      return report;
    });
  }

  /**
   * Stores messages. A list that is too long for one commit is cut into several.
   *
   * In mode `transcript` (default) what is stored already is recognised and skipped.
   */
  async append(conversation, messages, options) {
    const given = knownOptions("append", options, APPEND_OPTIONS);
    const texts = reader(messages);
    const now = given.now ?? this.#clock();
    return this.#calls.inLine(conversation, async (backend) => {
      return intake(backend, "append", conversation, await texts(), { ...given, now });
    });
  }

  /** Stores those messages of a whole transcript that are missing. */
  async ingest(conversation, transcript, options) {
    const given = knownOptions("ingest", options, INGEST_OPTIONS);
    const texts = reader(transcript);
    const now = given.now ?? this.#clock();
    return this.#calls.inLine(conversation, async (backend) => {
      return intake(backend, "ingest", conversation, await texts(), { ...given, now });
    });
  }

  /** Makes room: summarises old messages until nothing is due. */
  async compact(conversation, options) {
    return this.#calls.begin((begun) => {
      return compact(begun, this.#models, this.#clock, conversation, options);
    });
  }

  /**
   * One turn: stores messages, asks whether compaction is due, and does what is.
   *
   * All options are checked before a message is stored. What fails once they are stored, a model or
   * anything else, is `failure` beside the receipt. `compacted` says what was done in spite of
   * that; it is null when the model refused its key or the content, or the store failed.
   * With `defer` compaction that can wait is left for `maintain`, and `deferred` says so.
   */
  async turn(conversation, messages, options) {
    const texts = reader(messages);
    return this.#calls.begin((begun) => {
      return turn(begun, this.#models, this.#clock, conversation, texts, options);
    });
  }

  /**
   * Does compaction that was put off, when it is time for it: after a turn, when nobody waits.
   * Resolves to `{debt, compacted, failure}`; `compacted` is null when it was not time, or the model
   * refused its key or the content. The engine pauses after failures.
   */
  async maintain(conversation, options) {
    return this.#calls.begin((begun) => {
      return maintain(begun, this.#models, this.#clock, conversation, options);
    });
  }

  /** Whether compaction is due, and why. */
  async evaluate(conversation, options) {
    const given = budgeted("evaluate", options);
    const asked = withExtra(rest(given, "budget", "now"));
    const now = given.now ?? this.#clock();
    return this.#calls.inLine(conversation, (backend) => {
      return decide(backend, conversation, given.budget, asked, now);
    });
  }

  /** A context that fits `budget`, as messages of `dialect`. */
  async assemble(conversation, options) {
    const given = budgeted("assemble", options);
    const { budget, dialect = "lcm", live_messages = [] } = given;
    const call = {
      conversation,
      budget,
      dialect,
      options: {
        ...withExtra(rest(given, "budget", "dialect", "now")),
        live_messages: messageTexts(live_messages),
      },
      now: given.now ?? this.#clock(),
    };
    const assembled = await this.#calls.call("context.assemble", call);
    const { items, explanation_text, ...fields } = assembled;
    const explained = given.explain ? { items, explanation_text } : {};
    return { messages: parsed(fields.messages_json), ...fields, budget, ...explained };
  }

  /**
   * Estimated tokens of messages, of which nothing is stored: what a host puts into a prompt
   * beside the assembled context, such as its system prompt and its tools.
   */
  async estimate(messages, dialect = "lcm") {
    const texts = reader(messages);
    return this.#calls.begin(async (begun) => {
      const entries = await identities(begun, dialect, await texts());
      return entries.reduce((total, { tokens }) => total + tokens, 0);
    });
  }

  /**
   * Why the provider of `dialect` would refuse these messages, a line each; empty when it would
   * not. Nothing is stored or read.
   */
  async validate(messages, dialect) {
    const messages_json = `[${messageTexts(messages).join(",")}]`;
    return parsed(await this.#calls.call("context.validate", { dialect, messages_json }));
  }

  /** Searches messages and summaries, or the texts of large payloads. */
  async grep(conversation, pattern, options) {
    const given = optionsOf("grep", options);
    const { vector, ...wanted } = rest(given, "grant", "now");
    const near = vector === undefined ? {} : { vector: numbers(vector) };
    const query_json = toJson({ pattern, ...wanted, ...near }, "options");
    return this.#json("recall.grep", conversation, { query_json }, given);
  }

  /**
   * Attaches embeddings to messages and summaries, by id, for `vector` of `grep`; `forget` removes
   * those that are there. Resolves to `{stored, missing, next, ...}`, where `next` are ids to go on
   * with.
   */
  async embed(conversation, options) {
    const given = knownOptions("embed", options, ["vectors", "model", "forget"]);
    const { vectors, ...others } = given;
    // What has another shape goes as it is: the engine says what is wrong with it.
    const entry = (one) => (one?.vector ? { ...one, vector: numbers(one.vector) } : one);
    const listed = Array.isArray(vectors) ? vectors.map(entry) : vectors;
    const vectors_json = toJson({ ...others, vectors: listed }, "options");
    return parsed(await this.#calls.call("recall.embed", { conversation, vectors_json }));
  }

  /** What a summary, a message or a file is. */
  async describe(conversation, id, options) {
    const given = optionsOf("describe", options);
    const options_json = toJson(rest(given, "grant", "now"), "options");
    return this.#json("recall.describe", conversation, { id, options_json }, given);
  }

  /** From a summary back to what it was made from: one page with `token_cap`, else everything. */
  async expand(conversation, id, options) {
    const { given, readBy } = this.#expansion("expand", conversation, id, options);
    return this.#calls.inLine(conversation, (backend) => expanded(readBy(backend), given));
  }

  /** The pages of an expansion, each read when it is taken; `token_cap` is that of a page. */
  iterExpand(conversation, id, options) {
    const { readBy } = this.#expansion("iterExpand", conversation, id, options);
    return expansionPages(readBy(this.#calls));
  }

  /** How pages of an expansion are read through what has `call`. */
  #expansion(call, conversation, id, options) {
    const given = optionsOf(call, options);
    const { after: first, ...wanted } = rest(given, "grant", "now");
    // Checks what is given now, not when a page is taken.
    toJson(wanted, "options");
    const fixed = { conversation, id, grant: given.grant ?? null, now: given.now ?? this.#clock() };
    const readBy = (caller) => async (after) => {
      const options_json = toJson({ ...wanted, after: after ?? first }, "options");
      return parsed(await caller.call("recall.expand", { ...fixed, options_json }));
    };
    return { given, readBy };
  }

  /**
   * Has a question answered from what was said: `{status, answer, cited_ids, ...}`.
   *
   * A model that fails or takes too long is no rejection but a `status`, with `failure`. At most
   * `deadline_ms` are waited for all of it. An aborted `signal` rejects with its reason; the
   * question is over then, for the engine, too.
   */
  async ask(conversation, question, options) {
    return this.#calls.begin((begun) => {
      return ask(begun, this.#models, this.#clock, conversation, question, options);
    });
  }

  /**
   * What `ask` would read, and whether that is worth it, for hosts whose own sub-agents read. Asks
   * no model and writes nothing.
   */
  async askPlan(conversation, question, options) {
    return this.#calls.begin((begun) => {
      return askPlan(begun, this.#clock, conversation, question, options);
    });
  }

  /**
   * Makes a grant, a limited right to read for a sub-agent: `conversations`, `summaries`,
   * `depth_max`, `tokens_max`, `ttl_ms`, `from`. Its `id` is the `grant` of `grep`, `describe`,
   * `expand` and `ask`, and the `caller` of `callTool`.
   */
  async grant(conversation, options) {
    const { now, ...limits } = optionsOf("grant", options);
    const grant_json = toJson(limits, "options");
    const call = { conversation, grant_json, now: now ?? this.#clock() };
    return parsed(await this.#calls.call("recall.grant", call));
  }

  /** Ends a grant at once, with those that inherit from it. */
  async revoke(conversation, grant, options) {
    const { now } = knownOptions("revoke", options, ["now"]);
    const call = { conversation, grant, now: now ?? this.#clock() };
    await this.#calls.call("recall.revoke", call);
  }

  /** Original texts of the messages `from` to `to` (inclusive, from 1), byte for byte. */
  async messages(conversation, options) {
    const { from, to, readBy } = this.#range("messages", conversation, options);
    return this.#calls.inLine(conversation, async (backend) => {
      return (await collected(messagePages(readBy(backend), from, to))).flat();
    });
  }

  /** The same one by one; about 1 MiB is read when the first of it is taken. */
  iterMessages(conversation, options) {
    const { from, to, readBy } = this.#range("iterMessages", conversation, options);
    return each(messagePages(readBy(this.#calls), from, to), (page) => page);
  }

  /** How messages of a range are read through what has `call`. */
  #range(call, conversation, options) {
    const { from = 1, to = Number.MAX_SAFE_INTEGER } = knownOptions(call, options, ["from", "to"]);
    const fixed = { conversation, seq_to: to, bytes_max: PAGE_BYTES_MAX };
    const readBy = (caller) => (seq_from) => {
      return caller.call("recall.messages", { ...fixed, seq_from });
    };
    return { from, to, readBy };
  }

  /** Counts and sizes of a conversation, or of the store when none is given. */
  async status(conversation, options) {
    const { now } = knownOptions("status", options, ["now"]);
    const args = { conversation, now: now ?? this.#clock() };
    return parsed(await this.#calls.call("admin.status", args));
  }

  /** Makes the conversation one of a family, whose members are searched together. */
  async family(conversation, key, options) {
    return this.#verb("family", conversation, options, { key });
  }

  /** Archives the conversation; resolves to the empty one to go on in, as `conversation`. */
  async reset(conversation, options) {
    return this.#verb("reset", conversation, options);
  }

  /** Withdraws messages and shallow summaries from the context; they stay findable. */
  async newSession(conversation, options) {
    return this.#verb("new", conversation, options);
  }

  /** Archives the conversation: it is read as before and not written to. */
  async archive(conversation, cause, options) {
    return this.#verb("archive", conversation, options, { cause });
  }

  /**
   * Reports what the provider of `model` counted of a prompt (`prompt_tokens`), and the estimate of
   * the same prompt: `tokens` of its assembly, and the `estimate` of what was added.
   */
  async calibrate(conversation, model, estimated_tokens, prompt_tokens, options) {
    const report = { model, estimated_tokens, prompt_tokens };
    return this.#verb("calibrate", conversation, options, report);
  }

  /**
   * Sets the focus brief: `text` stands for the summaries of messages up to `seq_last` (absent: the
   * newest). Without `text` there is none any more.
   */
  async focus(conversation, options) {
    return this.#verb("focus", conversation, options);
  }

  /**
   * Reports what one answer of a model took: `purpose` (`turn` or `summary`), `input_tokens` with
   * those in the provider's cache, `cache_read_tokens`, `cache_write_tokens`, `output_tokens`,
   * `cost_micros`. Resolves to the sums so far, `{usage: {turns, summaries}}`.
   */
  async usage(conversation, report) {
    return this.#verb("usage", conversation, report);
  }

  /**
   * Whether compacting now costs less than waiting, for the `prices` of a million tokens in
   * millionths of a currency: `{advice: "compact" or "wait", reason, ...}`. Changes nothing.
   */
  async advise(conversation, options) {
    return this.#verb("advise", conversation, budgeted("advise", options));
  }

  /** What summaries are asked for as configured, by depth: `name`, `version`, `text` and more. */
  async prompts() {
    return (await this.#verb("prompts", "")).prompts;
  }

  async #verb(verb, conversation, options, fixed = {}) {
    const { now, ...given } = optionsOf(verb, options);
    const arguments_json = toJson({ ...given, ...fixed }, "options");
    const call = { conversation, verb, arguments_json, now: now ?? this.#clock() };
    return parsed(await this.#calls.call("admin.call", call));
  }

  /**
   * Definitions of the tools an agent sees, in the tool format of `dialect`; with `caller`, a grant,
   * those of a sub-agent.
   */
  tools(dialect = "lcm", options) {
    const { caller = null } = knownOptions("tools", options, ["caller"]);
    return parsed(this.#backend.pure("tools.definitions", { dialect, caller }));
  }

  /** What to tell the agent about these tools. */
  instructions(dialect = "lcm", has_summaries = true) {
    return this.#backend.pure("tools.instructions", { dialect, has_summaries });
  }

  /**
   * Answers a tool call whose name starts with `lcm_`: `{text, is_error, failure}`. `input` is an
   * object or its JSON text. When a model that was asked for it failed, `failure` says how; the
   * text says it, too, to the agent's model.
   */
  async callTool(conversation, name, input, options) {
    const given = knownOptions("callTool", options, TOOL_OPTIONS);
    checkAsking(given);
    if (given.signal?.aborted) throw given.signal.reason;
    const now = () => given.now ?? this.#clock();
    // OpenAI hands the arguments over as JSON text, the others as an object.
    const arguments_json = typeof input === "string" ? input : toJson(input ?? {}, "input");
    const call = { conversation, name, arguments_json, caller: given.caller ?? null };
    return this.#calls.begin(async (begun) => {
      const first = await begun.call("tools.call", { ...call, now: now() });
      const answered = completerOf(begun, this.#models, given);
      let failed;
      const { done } = await completed(first, {
        needs: (outcome) => outcome["needs-completions"],
        complete: async (request, needs) => {
          const answer = await answered(request, needs);
          failed = answer.failed;
          return answer;
        },
        resume: (continuation, answers) => {
          const args = { conversation, continuation, answers, now: now() };
          return begun.call("tools.resume", args);
        },
        signal: given.signal,
      });
      const failure = failed ? { code: failed.code, message: failed.message } : null;
      return { ...done, failure };
    });
  }

  async #json(name, conversation, args, options) {
    const call = { conversation, ...args, grant: options.grant ?? null };
    return parsed(await this.#calls.call(name, { ...call, now: options.now ?? this.#clock() }));
  }

  /** All pages of a call that continues at a cursor. */
  #pages(name, args) {
    return this.#calls.inLine(args.conversation, (backend) => {
      const read = async (cursor) => parsed(await backend.call(name, { ...args, cursor }));
      return collected(cursorPages(read));
    });
  }

  /** A list of the engine (`kind`: conversations, summaries, ...), all of it. */
  async listing(kind, options) {
    const { conversation } = knownOptions("listing", options, ["conversation"]);
    const args = { kind, bytes_max: PAGE_BYTES_MAX, ...(conversation && { conversation }) };
    return (await this.#pages("admin.listing", args)).flatMap((page) => page.items);
  }

  /** SHA-256 of the whole store: of its bytes, or with `logical` of what they mean. */
  async digest(options) {
    const { logical = false } = knownOptions("digest", options, ["logical"]);
    const pages = await this.#pages("admin.digest", { logical });
    return pages.at(-1).sha256;
  }

  /** Checks every promise the engine makes about a conversation: `{ok, checks, metrics}`. */
  async check(conversation) {
    const pages = await this.#pages("admin.check", { conversation });
    return {
      ok: pages.every((page) => page.ok),
      checks: pages.flatMap((page) => page.checks),
      metrics: pages.at(-1).metrics,
    };
  }

  /**
   * The lines of an export of a conversation, or of all, without line ends, one by one. It fails
   * with `conflict` when somebody writes to it meanwhile; what was taken is then no export.
   */
  export(conversation) {
    if (conversation === "") throw invalid("`conversation` must not be empty");
    const fixed = { conversation: conversation ?? "", bytes_max: EXPORT_BYTES_MAX };
    const read = async (cursor) => {
      return parsed(await this.#calls.attempt("admin.export_page", { ...fixed, cursor }));
    };
    return each(cursorPages(read), (page) => page.lines);
  }

  /**
   * Takes the lines of an export in. All of it is verified before the first message is stored, and
   * repeating it changes nothing.
   */
  async importLines(lines, options) {
    const { now } = knownOptions("importLines", options, ["now"]);
    return this.#calls.begin(async (begun) => {
      // Outside of a line: the source may ask this engine, too.
      const whole = await linesOf(lines);
      return begun.inLine("", (backend) => {
        return importLines(backend, whole, () => now ?? this.#clock());
      });
    });
  }

  /**
   * Waits for the calls that began before, models included, and closes the store; calls that come
   * later are refused.
   */
  close() {
    return this.#calls.close();
  }
}
