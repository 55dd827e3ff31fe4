// The object that `open` returns: one method per thing an agent does with its conversations.
//
// Converts and forwards; every decision is the engine's. Names of options and results are those
// of the engine's JSON (snake_case), so that they are the same in every host.

import { ask, completed, completerOf } from "./ask.js";
import { batchesOf, mergeReceipts, messageTexts, severalBatches, stagedTexts } from "./batches.js";
import { toJson } from "./convert.js";
import { compact, planOptions } from "./compact.js";
import { invalid } from "./errors.js";
import { askMaintain, maintain } from "./maintain.js";
import { budgeted, checkAsking, knownOptions, optionsOf, rest } from "./options.js";
import { identitiesJson, ingestTranscript } from "./transcript.js";

/** Bytes of one page of texts. */
const PAGE_BYTES_MAX = 1024 * 1024;
const INGEST_OPTIONS = ["dialect", "refuse_replay", "family", "now"];
const APPEND_OPTIONS = [...INGEST_OPTIONS, "mode", "repeat"];

/** Calls that the engine knows again (see `wit/ingest.wit`). */
const REPEATS_MAX = 8;

function tooManyRepeats(calls) {
  const known = `\`repeat\` is known of the last ${REPEATS_MAX} calls, and these messages take`;
  return invalid(`${known} ${calls}; hand them over in mode \`transcript\``);
}

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
 * All pages of an expansion as one; `read(after)` resolves to a page.
 *
 * What was read on a grant is paid for: when something goes wrong behind the first page, that is
 * what there is, and its `next` leads to the page that failed.
 */
export async function expanded(read, { grant, token_cap }) {
  let whole = await read(null);
  while (whole.next && (token_cap ?? null) === null && !whole.grant?.truncated) {
    let page;
    try {
      page = await read(whole.next);
    } catch (error) {
      if ((grant ?? null) === null) throw error;
      return whole;
    }
    whole = {
      ...page,
      summaries: [...whole.summaries, ...page.summaries],
      messages: [...whole.messages, ...page.messages],
      tokens: whole.tokens + page.tokens,
      ...(page.grant && {
        grant: { ...page.grant, tokens: whole.grant.tokens + page.grant.tokens },
      }),
    };
  }
  return whole;
}

/** An engine over one store. */
export class Engine {
  #backend;
  #models;
  #clock;

  /**
   * @param {object} parts
   * @param {import("./backend.js").Backend} parts.backend
   * @param {object} parts.models what `modelsOf` made of the caller's functions
   * @param {() => number} parts.clock milliseconds since the epoch
   */
  constructor({ backend, models, clock }) {
    this.#backend = backend;
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
    const report = parsed(this.#backend.pure("setup.configure", { config_json: json }));
    this.#backend.restart(json);
    return report;
  }

  /**
   * Stores messages. A list that is too long for one commit is cut into several.
   *
   * In mode `transcript` (default) what is stored already is recognised and skipped.
   */
  async append(conversation, messages, options) {
    const given = knownOptions("append", options, APPEND_OPTIONS);
    const { dialect = "lcm", repeat = false } = given;
    const mode = given.mode ?? "transcript";
    const { refuse_replay = false, family } = given;
    const now = given.now ?? this.#clock();
    const texts = await messageTexts(messages);
    if (severalBatches(texts)) {
      if (mode === "transcript" || given.refuse_replay === true) {
        // What is stored already cannot be told batch by batch.
        return ingestTranscript(this.#backend, conversation, texts, { ...given, dialect, now });
      }
      // A message that is refused is so before the batches in front of it are stored.
      await identitiesJson(this.#backend, dialect, texts);
    }
    const staged = await stagedTexts(this.#backend, conversation, texts, now, family);
    const batches = staged.length > 0 ? [...batchesOf(staged)] : [[]];
    if (repeat && batches.length > REPEATS_MAX) throw tooManyRepeats(batches.length);
    const extra = {
      ...(repeat && { repeat }),
      ...(refuse_replay && { refuse_replay }),
      ...(family !== undefined && { family }),
    };
    const extra_json = Object.keys(extra).length > 0 ? JSON.stringify(extra) : null;
    const receipts = [];
    for (const batch of batches) {
      const call = { conversation, dialect, messages: batch, options: { mode, extra_json }, now };
      receipts.push(await this.#backend.call("ingest.append", call));
    }
    return mergeReceipts(receipts);
  }

  /** Stores those messages of a whole transcript that are missing. */
  async ingest(conversation, transcript, options) {
    const given = knownOptions("ingest", options, INGEST_OPTIONS);
    const { dialect = "lcm" } = given;
    const now = given.now ?? this.#clock();
    const texts = await messageTexts(transcript);
    return ingestTranscript(this.#backend, conversation, texts, { ...given, dialect, now });
  }

  /** Makes room: summarises old messages until nothing is due. */
  async compact(conversation, options) {
    return compact(this.#backend, this.#models, this.#clock, conversation, options);
  }

  /**
   * One turn: stores messages, asks whether compaction is due, and does what is.
   *
   * All options are checked before a message is stored. The messages are then stored whatever the
   * model does: how it failed is `failure` beside the receipt. `compacted` says what was done in
   * spite of that; it is null when the model refused its key or the content. With `defer`
   * compaction that can wait is left for `maintain`, and `deferred` says so.
   */
  async turn(conversation, messages, options) {
    const { append_mode: mode, repeat, defer = false, ...given } = budgeted("turn", options);
    if (typeof defer !== "boolean") throw invalid("`defer` must be true or false");
    const { dialect, refuse_replay, family, ...work } = given;
    const append = { dialect, refuse_replay, family, mode, repeat, now: given.now };
    const plan = planOptions("turn", work);
    const texts = await messageTexts(messages);
    await this.#check(conversation, work, plan);
    const receipt = await this.append(conversation, texts, append);
    const decision = await this.#decide(conversation, work, plan);
    const done = { receipt, decision, compacted: null, deferred: false, failure: null };
    if (!decision.due) return done;
    if (defer && !decision.must) {
      const now = work.now ?? this.#clock();
      const { debt } = await askMaintain(this.#backend, conversation, work, now);
      // What the engine sees no debt in, it would never do later: a forced pass, or a mode that
      // acts below the threshold.
      if (debt !== null) return { ...done, deferred: true };
    }
    try {
      const compacted = await this.compact(conversation, work);
      const { code, message } = compacted.failure ?? {};
      return { ...done, compacted, failure: compacted.failure && { code, message } };
    } catch (error) {
      if (error.code !== "completion-failed") throw error;
      const { code, message } = error;
      return { ...done, failure: { code, message } };
    }
  }

  /**
   * Does compaction that was put off, when it is time for it: after a turn, when nobody waits.
   * Resolves to `{debt, compacted, failure}`; `compacted` is null when it was not time, or the model
   * refused its key or the content. The engine pauses after failures.
   */
  async maintain(conversation, options) {
    return maintain(this.#backend, this.#models, this.#clock, conversation, options);
  }

  /** Whether compaction is due, and why. */
  async evaluate(conversation, options) {
    const given = budgeted("evaluate", options);
    return this.#decide(conversation, given, withExtra(rest(given, "budget", "now")));
  }

  /** What the engine decides by these options of its `evaluate`. */
  async #decide(conversation, { budget, now }, options) {
    const { explanation_json, ...fields } = await this.#backend.call("compaction.evaluate", {
      conversation,
      budget,
      options,
      now: now ?? this.#clock(),
    });
    return { ...fields, explanation: parsed(explanation_json) };
  }

  /** Rejects what `#decide` would; it writes nothing. */
  async #check(conversation, work, options) {
    try {
      await this.#decide(conversation, work, options);
    } catch (error) {
      // Said only when all arguments are right: nothing is stored yet.
      if (error.code !== "not-found") throw error;
    }
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
        live_messages: await messageTexts(live_messages),
      },
      now: given.now ?? this.#clock(),
    };
    const assembled = await this.#backend.call("context.assemble", call);
    const { messages_json, items, explanation_text, ...fields } = assembled;
    const explained = given.explain ? { items, explanation_text } : {};
    return { messages: parsed(messages_json), ...fields, budget, ...explained };
  }

  /**
   * Estimated tokens of messages, of which nothing is stored: what a host puts into a prompt
   * beside the assembled context, such as its system prompt and its tools.
   */
  async estimate(messages, dialect = "lcm") {
    const texts = await messageTexts(messages);
    const entries = parsed(await identitiesJson(this.#backend, dialect, texts));
    return entries.reduce((total, { tokens }) => total + tokens, 0);
  }

  /**
   * Why the provider of `dialect` would refuse these messages, a line each; empty when it would
   * not. Nothing is stored or read.
   */
  async validate(messages, dialect) {
    const messages_json = `[${(await messageTexts(messages)).join(",")}]`;
    return parsed(await this.#backend.call("context.validate", { dialect, messages_json }));
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
    return parsed(await this.#backend.call("recall.embed", { conversation, vectors_json }));
  }

  /** What a summary, a message or a file is. */
  async describe(conversation, id, options) {
    const given = optionsOf("describe", options);
    const options_json = toJson(rest(given, "grant", "now"), "options");
    return this.#json("recall.describe", conversation, { id, options_json }, given);
  }

  /** From a summary back to what it was made from: one page with `token_cap`, else everything. */
  async expand(conversation, id, options) {
    const given = optionsOf("expand", options);
    const wanted = rest(given, "grant", "now");
    const read = (after) => {
      const options_json = toJson(after === null ? wanted : { ...wanted, after }, "options");
      return this.#json("recall.expand", conversation, { id, options_json }, given);
    };
    return expanded(read, given);
  }

  /**
   * Has a question answered from what was said: `{status, answer, cited_ids, ...}`.
   *
   * A model that fails, takes too long or is stopped by `signal` is no rejection but a `status`,
   * with `failure`. At most `deadline_ms` are waited for all of it.
   */
  async ask(conversation, question, options) {
    return ask(this.#backend, this.#models, this.#clock, conversation, question, options);
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
    return parsed(await this.#backend.call("recall.grant", call));
  }

  /** Ends a grant at once, with those that inherit from it. */
  async revoke(conversation, grant, options) {
    const { now } = knownOptions("revoke", options, ["now"]);
    const call = { conversation, grant, now: now ?? this.#clock() };
    await this.#backend.call("recall.revoke", call);
  }

  /** Original texts of the messages `from` to `to` (inclusive, from 1), byte for byte. */
  async messages(conversation, options) {
    const given = knownOptions("messages", options, ["from", "to"]);
    const { from = 1, to = Number.MAX_SAFE_INTEGER } = given;
    const texts = [];
    for (;;) {
      const seq_from = from + texts.length;
      if (seq_from > to) return texts;
      const args = { conversation, seq_from, seq_to: to, bytes_max: PAGE_BYTES_MAX };
      const page = await this.#backend.call("recall.messages", args);
      if (page.length === 0) return texts;
      texts.push(...page);
    }
  }

  /** Counts and sizes of a conversation, or of the store when none is given. */
  async status(conversation, options) {
    const { now } = knownOptions("status", options, ["now"]);
    const args = { conversation, now: now ?? this.#clock() };
    return parsed(await this.#backend.call("admin.status", args));
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
    return parsed(await this.#backend.call("admin.call", call));
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
   * Answers a tool call whose name starts with `lcm_`: `{text, is_error}`. `input` is an object or
   * its JSON text.
   */
  async callTool(conversation, name, input, options) {
    const given = knownOptions("callTool", options, ["caller", "retries", "timeout_ms", "signal", "now"]);
    checkAsking(given);
    const now = () => given.now ?? this.#clock();
    // OpenAI hands the arguments over as JSON text, the others as an object.
    const arguments_json = typeof input === "string" ? input : toJson(input ?? {}, "input");
    const call = { conversation, name, arguments_json };
    const caller = given.caller ?? null;
    const first = await this.#backend.call("tools.call", { ...call, caller, now: now() });
    const outcome = await completed(first, {
      needs: (outcome) => outcome["needs-completions"],
      complete: completerOf(this.#backend, this.#models, given),
      resume: (continuation, answers) => {
        const args = { conversation, continuation, answers, now: now() };
        return this.#backend.call("tools.resume", args);
      },
    });
    return outcome.done;
  }

  async #json(name, conversation, args, options) {
    const call = { conversation, ...args, grant: options.grant ?? null };
    return parsed(await this.#backend.call(name, { ...call, now: options.now ?? this.#clock() }));
  }

  /** All pages of a call that continues at a cursor. */
  async #pages(name, args) {
    const pages = [];
    do {
      const cursor = pages.at(-1)?.cursor ?? null;
      pages.push(parsed(await this.#backend.call(name, { ...args, cursor })));
    } while (pages.at(-1).cursor);
    return pages;
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

  /** Waits for what is running and closes the store. */
  async close() {
    await this.#backend.close();
  }
}
