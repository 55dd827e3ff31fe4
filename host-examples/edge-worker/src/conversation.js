// A Durable Object that keeps one conversation: the engine over the SQLite storage of the object,
// the routes of a client, and an alarm for deferred compaction and provisional summaries.

import { DurableObject } from "cloudflare:workers";
import { durableStore, open } from "lcm-engine";

import { completeOf } from "./model.js";
import { answered, failed, ID } from "./routes.js";

/** Key under which the storage keeps the options of `maintain`, beside the table of the engine. */
const MAINTAIN = "maintain";
const MAINTAIN_OPTIONS = ["budget", "model", "observedTokens", "leaseMs"];

/** Resolves to an engine. Reading `version` makes an instance, so a wrong setup rejects here. */
async function opened(storage, env) {
  const store = durableStore(storage);
  // The console is the log of a worker.
  const onEvent = (event) => console.log(JSON.stringify(event));
  const lcm = await open({ store, complete: completeOf(env), environment: env, onEvent });
  return lcm.version && lcm;
}

/** One conversation with its engine. */
export class Conversation extends DurableObject {
  #lcm;

  constructor(ctx, env) {
    super(ctx, env);
    // The storage has everything, so an evicted object continues from the storage.
    this.#lcm = opened(ctx.storage, env);
    // A request that awaits the engine gets the error; without a request nobody handles it.
    this.#lcm.catch(() => {});
  }

  /** Answers a request of a client. */
  async fetch(request) {
    const response = this.#answered(request);
    // A request that asks a model is completed, even if the client has disconnected.
    this.ctx.waitUntil(response);
    return response;
  }

  async #answered(request) {
    let lcm;
    try {
      lcm = await this.#lcm;
    } catch ({ code = "invalid-input", message }) {
      // The client is not at fault, so the status is 500 for every code.
      return failed({ code, message: `the worker is not set up right: ${message}` }, 500);
    }
    const later = (options) => this.#later(options);
    return answered(request, lcm, { later, forget: () => this.#forget() });
  }

  /** Keeps the options of `maintain` and sets the alarm, after a turn that left work to do. */
  async #later(options) {
    const given = Object.entries(options).filter(([name]) => MAINTAIN_OPTIONS.includes(name));
    await this.ctx.storage.put(MAINTAIN, Object.fromEntries(given));
    await this.ctx.storage.setAlarm(Date.now());
  }

  /** Deletes the kept options and the alarm, after the conversation was deleted. */
  async #forget() {
    await this.ctx.storage.delete(MAINTAIN);
    await this.ctx.storage.deleteAlarm();
  }

  /** Runs `maintain`. The alarm is set again for the next attempt if compaction stays deferred. */
  async alarm() {
    const lcm = await this.#lcm;
    const { debt, failure } = await lcm.maintain(ID, await this.ctx.storage.get(MAINTAIN));
    if (debt === null || debt.exhausted) return;
    // After a refusal of the key or the content a person must act; a turn after the pause retries.
    if (failure?.code === "auth" || failure?.code === "policy") return;
    await this.ctx.storage.setAlarm(Date.parse(debt.nextAttemptAt));
  }
}
