// The handle of a conversation: the verbs of an engine without the conversation's id, with the
// handle's budget, dialect and model where a call names none.
//
// Each method calls the engine's method of the same name. A handle belongs to one caller: the
// handle passes `seqSeen` of its newest receipt with the next list. Compaction that a turn deferred
// runs in the background.

import { failureOf } from "./compact.js";
import { invalid } from "./errors.js";

/** Options that a handle takes. */
const SETTINGS = ["budget", "dialect", "model"];

/** Verbs by the settings that they take, with the number of arguments before their options. */
const VERBS = [
  [[], { grep: 1, expand: 1, iterExpand: 1, embed: 0, ask: 1, askPlan: 1, grant: 0, revoke: 1 }],
  [[], { messages: 0, iterMessages: 0, status: 0, family: 1, reset: 0, newSession: 0, archive: 1 }],
  [[], { delete: 0, calibrate: 3, focus: 0, usage: 0, check: 0, callTool: 2, export: 0 }],
  [["dialect", "seqSeen"], { append: 1, ingest: 1 }],
  [["seqSeen"], { rewind: 0, pop: 0 }],
  [["budget", "model"], { evaluate: 0, compact: 0, maintain: 0, resummarize: 0, advise: 0 }],
  [[...SETTINGS, "mayBeNew"], { assemble: 0 }],
  [[...SETTINGS, "seqSeen"], { turn: 1 }],
];

/** Options of a turn that hold for its deferred compaction, too. */
const DEFERRED = ["budget", "model", "requestsMax", "retries", "timeoutMs", "leaseMs", "now"];

/** Returns the members of an object that have a value. */
function filled(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** A conversation of an engine, with its settings. Made by `Engine.conversation`. */
export class Conversation {
  #engine;
  #settings;
  /** The deferred compaction that runs in the background; null: none runs. */
  #work = null;
  /** The failure of background work that no turn has reported yet; null: there is none. */
  #failed = null;

  /**
   * @param {import("./engine.js").Engine} engine
   * @param {string} id id of the conversation, which need not exist
   * @param {{budget?: number, dialect?: string, model?: string}} [settings]
   */
  constructor(engine, id, settings = {}) {
    if (typeof id !== "string" || id === "") throw invalid("`conversation` must be a text, not empty");
    for (const key of Object.keys(settings)) {
      if (!SETTINGS.includes(key)) throw invalid(`a conversation has no option \`${key}\``);
    }
    this.#engine = engine;
    this.#settings = { mayBeNew: true, ...filled(settings) };
    Object.defineProperty(this, "id", { value: id, enumerable: true });
  }

  static {
    for (const [keys, verbs] of VERBS) {
      for (const [name, count] of Object.entries(verbs)) {
        const method = function (...given) {
          return this.#call(name, keys, count, given);
        };
        Object.defineProperty(method, "name", { value: name });
        Object.defineProperty(Conversation.prototype, name, { value: method, writable: true });
      }
    }
  }

  #call(name, keys, count, given) {
    const options = given[count];
    const isObject = typeof options === "object" && !Array.isArray(options);
    const settings = Object.entries(this.#settings).filter(([key]) => keys.includes(key));
    // Options that are no object pass unchanged, and the engine refuses them.
    const own = options === undefined || (isObject && settings.length > 0);
    const last = own ? { ...Object.fromEntries(settings), ...filled(options ?? {}) } : options;
    const passed = Array.from({ length: count }, (_, index) => given[index]);
    const answer = this.#engine[name](this.id, ...passed, last);
    if (name === "turn") return this.#followTurn(answer, last);
    return keys.includes("seqSeen") || name === "delete" ? this.#follow(answer) : answer;
  }

  /** Keeps `seqSeen` of the receipt in an answer; resolves to the answer. */
  async #follow(answer) {
    const result = await answer;
    const { done, seqSeen } = result.receipt ?? result;
    if (done) delete this.#settings.seqSeen;
    else if (seqSeen > (this.#settings.seqSeen ?? 0)) this.#settings.seqSeen = seqSeen;
    return result;
  }

  /** Keeps `seqSeen` of a turn, and starts the compaction that the turn deferred. */
  async #followTurn(answer, options) {
    const done = await this.#follow(answer);
    const failure = done.failure ?? this.#failed;
    if (failure === this.#failed) this.#failed = null;
    if (done.deferred) this.#work ??= this.#maintain(options);
    return { ...done, failure };
  }

  async #maintain(options) {
    const asked = Object.entries(options).filter(([key]) => DEFERRED.includes(key));
    try {
      const done = await this.#engine.maintain(this.id, Object.fromEntries(asked));
      this.#failed = done.failure;
    } catch (error) {
      // A conversation that was deleted meanwhile needs no compaction.
      this.#failed = error.code === "not-found" ? null : failureOf(error);
    }
    this.#work = null;
  }

  /**
   * Waits for the deferred compaction that runs in the background, if any. A failure of the
   * compaction is `failure` of the next turn. `close` of the engine also waits for the compaction.
   */
  async settle() {
    await this.#work;
  }

  /** As `Engine.describe`; without an id the conversation itself. */
  describe(id = this.id, options) {
    return this.#engine.describe(this.id, id, options);
  }

  /** As `Engine.listing`, of `summaries`, `messages` or `grants` of the conversation. */
  listing(kind) {
    return this.#engine.listing(kind, { conversation: this.id });
  }

  /** As `Engine.estimate`, in the dialect of the handle. */
  estimate(messages, dialect = this.#settings.dialect) {
    return this.#engine.estimate(messages, dialect);
  }

  /** As `Engine.validate`, in the dialect of the handle. */
  validate(messages, dialect = this.#settings.dialect) {
    return this.#engine.validate(messages, dialect);
  }

  /** As `Engine.tools`, in the dialect of the handle. */
  tools(options) {
    return this.#engine.tools(this.#settings.dialect, options);
  }

  /** As `Engine.instructions`, in the dialect of the handle. */
  instructions(hasSummaries) {
    return this.#engine.instructions(this.#settings.dialect, hasSummaries);
  }
}
