// Calls of the component: directly over a synchronous store, through the adapter over an
// asynchronous store, and again after a conflict. `calls.js` keeps the order of calls.

import { Component } from "./component.js";
import { pause } from "./queue.js";
import { isAsyncStore, performAsync, SwitchedStore } from "./store-async.js";
import { checkStore } from "./store-contract.js";

/** Largest number of repeats after conflicts; at each conflict another writer succeeded. */
export const CONFLICT_RETRIES_MAX = 256;
const CONFLICT_PAUSE_MS_MAX = 8;

/** Waits a random time, at most 8 ms, so that two writers do not repeat at the same time. */
export function conflictPause(attempt) {
  return pause(Math.random() * Math.min(2 ** attempt, CONFLICT_PAUSE_MS_MAX));
}

/** A component over a store of either kind. */
export class Backend {
  /** The listener of the engine; undefined: there is none. */
  events;
  #component;
  #perform;
  #store;

  /**
   * @param {object} parts
   * @param {(imports: object) => object} parts.instantiate makes an instance, synchronously
   * @param {object} parts.store synchronous, or declared by `asyncStore`
   * @param {string|null} parts.configJson configuration of every instance
   * @param {(request: object) => object} [parts.model] answers the `llm` import
   * @param {import("./events.js").Events} [parts.events]
   */
  constructor({ instantiate, store, configJson, model, events }) {
    this.events = events;
    this.#store = store;
    if (isAsyncStore(store)) {
      const face = new SwitchedStore();
      const component = new Component({ instantiate, store: face, configJson, model });
      this.#component = component;
      this.#perform = (name, args) => performAsync({ component, face, store }, name, args);
    } else {
      checkStore(store);
      const component = new Component({ instantiate, store, configJson, model });
      this.#component = component;
      this.#perform = async (name, args) => component.invoke(name, args);
    }
  }

  /** Drops the instance; with an argument, later instances get this configuration. */
  restart(configJson) {
    if (configJson === undefined) this.#component.drop();
    else this.#component.reconfigure(configJson);
  }

  /** Calls `interface.function`, and repeats the call after a `conflict`. */
  async call(name, args) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#perform(name, args);
      } catch (error) {
        if (error.code !== "conflict" || attempt >= CONFLICT_RETRIES_MAX) throw error;
        const conversation = args.conversation ?? "";
        const repeated = { conversation, call: name, attempt: attempt + 1 };
        this.events?.emit({ kind: "conflict-repeated", ...repeated });
        await conflictPause(attempt);
      }
    }
  }

  /** As `call`, without a repeat after a `conflict`. */
  attempt(name, args) {
    return this.#perform(name, args);
  }

  /** Makes a short call that reads no store. */
  pure(name, args) {
    return this.#component.invoke(name, args);
  }

  /** Makes a long call that reads no store, in the thread of all calls. */
  async compute(name, args) {
    return this.pure(name, args);
  }

  /** Closes the store. */
  async close() {
    await this.#store.close?.();
  }
}
