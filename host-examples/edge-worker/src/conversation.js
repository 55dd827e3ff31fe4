// A Durable Object that keeps one conversation: the engine over its SQLite storage, the routes of a
// client, and an alarm for what can wait.

import { DurableObject } from "cloudflare:workers";
import { durableStore, open } from "lcm-engine";

import { completeOf } from "./model.js";
import { answered, failed, ID } from "./routes.js";

/** Under which the storage keeps how to maintain, beside the engine's own table. */
const MAINTAIN = "maintain";
const MAINTAIN_OPTIONS = ["budget", "model", "observedTokens", "leaseMs"];

/** An engine that has an instance, and so a configuration that is right. */
async function opened(storage, env) {
  const store = durableStore(storage);
  // A worker logs what it writes to the console.
  const onEvent = (event) => console.log(JSON.stringify(event));
  const lcm = await open({ store, complete: completeOf(env), environment: env, onEvent });
  return lcm.version && lcm;
}

/** One conversation with its memory. */
export class Conversation extends DurableObject {
  #lcm;

  constructor(ctx, env) {
    super(ctx, env);
    // Nothing is held in memory that matters: an evicted object goes on where it was.
    this.#lcm = opened(ctx.storage, env);
    // Whoever waits for it is told; nobody may.
    this.#lcm.catch(() => {});
  }

  /** Answers a request of a client. */
  async fetch(request) {
    const response = this.#answered(request);
    // What a model is asked for goes to its end, though the client may be gone by then.
    this.ctx.waitUntil(response);
    return response;
  }

  async #answered(request) {
    let lcm;
    try {
      lcm = await this.#lcm;
    } catch ({ code = "invalid-input", message }) {
      // No fault of this client, whatever the code.
      return failed({ code, message: `the worker is not set up right: ${message}` }, 500);
    }
    const later = (options) => this.#later(options);
    return answered(request, lcm, { later, forget: () => this.#forget() });
  }

  /** Sets the alarm, which does what a turn deferred and what a model failed at. */
  async #later(options) {
    const given = Object.entries(options).filter(([name]) => MAINTAIN_OPTIONS.includes(name));
    await this.ctx.storage.put(MAINTAIN, Object.fromEntries(given));
    await this.ctx.storage.setAlarm(Date.now());
  }

  /** Forgets what a turn of a deleted conversation put off. */
  async #forget() {
    await this.ctx.storage.delete(MAINTAIN);
    await this.ctx.storage.deleteAlarm();
  }

  /** Does what was put off; the engine says what is left and when it is tried again. */
  async alarm() {
    const lcm = await this.#lcm;
    const { debt, failure } = await lcm.maintain(ID, await this.ctx.storage.get(MAINTAIN));
    if (debt === null || debt.exhausted) return;
    // A refused key or content is for a person to mend; a turn after the pause tries again.
    if (failure?.code === "auth" || failure?.code === "policy") return;
    await this.ctx.storage.setAlarm(Date.parse(debt.nextAttemptAt));
  }
}
