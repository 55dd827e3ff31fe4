// How a call reaches the component: straight for a store that answers at once, through the adapter
// for one that does not; again after a conflict. In which order calls are made is `calls.js`.

import { Component } from "./component.js";
import { pause } from "./queue.js";
import { isAsyncStore, performAsync, SwitchedStore } from "./store-async.js";
import { checkStore } from "./store-contract.js";

/** How often a call that met another commit is repeated. */
export const CONFLICT_RETRIES_MAX = 8;
const CONFLICT_PAUSE_MS = 4;

/** Waits before the repetition after `attempt` others; jitter keeps two writers from meeting. */
export function conflictPause(attempt) {
  return pause(Math.random() * CONFLICT_PAUSE_MS * 2 ** attempt);
}

/** A component over a store of either kind. */
export class Backend {
  #component;
  #perform;
  #store;

  /**
   * @param {object} parts
   * @param {(imports: object) => object} parts.instantiate makes an instance, synchronously
   * @param {object} parts.store synchronous, or declared by `asyncStore`
   * @param {string|null} parts.configJson configuration of every instance
   * @param {(request: object) => object} [parts.model] answers the `llm` import
   */
  constructor({ instantiate, store, configJson, model }) {
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

  /** Drops the instance; with an argument, the next ones get another configuration. */
  restart(configJson) {
    if (configJson === undefined) this.#component.drop();
    else this.#component.reconfigure(configJson);
  }

  /** Calls `interface.function`. A `conflict` is retried; any other error is the caller's. */
  async call(name, args) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#perform(name, args);
      } catch (error) {
        if (error.code !== "conflict" || attempt >= CONFLICT_RETRIES_MAX) throw error;
        await conflictPause(attempt);
      }
    }
  }

  /** As `call`, but a `conflict` is the caller's, too. */
  attempt(name, args) {
    return this.#perform(name, args);
  }

  /** A call that reads no store and blocks on nothing; for short ones. */
  pure(name, args) {
    return this.#component.invoke(name, args);
  }

  /** The same for those that take their time: they run where all others do. */
  async compute(name, args) {
    return this.pure(name, args);
  }

  /** Closes the store. */
  async close() {
    await this.#store.close?.();
  }
}
