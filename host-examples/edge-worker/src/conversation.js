// A Durable Object that keeps one conversation: the engine over its SQLite storage, the routes of a
// client, and an alarm for what can wait.

import { DurableObject } from "cloudflare:workers";
import { durableStore, open } from "lcm-engine";

import { completeOf } from "./model.js";
import { answered, ID } from "./routes.js";

/** Under which the storage keeps how to maintain, beside the engine's own table. */
const MAINTAIN = "maintain";
const MAINTAIN_OPTIONS = ["budget", "model", "observed_tokens"];

/** One conversation with its memory. */
export class Conversation extends DurableObject {
  #lcm;

  constructor(ctx, env) {
    super(ctx, env);
    // Nothing is held in memory that matters: an evicted object goes on where it was.
    this.#lcm = open({
      store: durableStore(ctx.storage),
      complete: completeOf(env),
      environment: env,
    });
  }

  /** Answers a request of a client. */
  async fetch(request) {
    const response = answered(request, await this.#lcm, (options) => this.#later(options));
    // What a model is asked for goes to its end, though the client may be gone by then.
    this.ctx.waitUntil(response);
    return response;
  }

  /** Has compaction that a turn put off done when nobody waits. */
  async #later(options) {
    const given = Object.entries(options).filter(([name]) => MAINTAIN_OPTIONS.includes(name));
    await this.ctx.storage.put(MAINTAIN, Object.fromEntries(given));
    await this.ctx.storage.setAlarm(Date.now());
  }

  /** Does what was put off; the engine says what is left and when it is tried again. */
  async alarm() {
    const lcm = await this.#lcm;
    const { debt, failure } = await lcm.maintain(ID, await this.ctx.storage.get(MAINTAIN));
    if (debt === null || debt.exhausted) return;
    // A refused key or content is for a person to mend; the next turn tries again.
    if (failure?.code === "completion-failed") return;
    await this.ctx.storage.setAlarm(Date.parse(debt.next_attempt_at));
  }
}
