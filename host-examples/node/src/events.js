// Events for the listener of the program.
//
// In: events under the engine's names, from the engine and from this package. Out: calls of the
// listener. A listener that fails breaks nothing.

import { invalid, textOf } from "./errors.js";
import { toCamel } from "./shapes.js";

/** The listener of one engine. */
export class Events {
  #listener;
  #warn;
  #isReported = false;

  /**
   * @param {((event: object) => void)|undefined} listener undefined: nobody listens
   * @param {(line: string) => void} warn receives the first failure of the listener
   */
  constructor(listener, warn) {
    if (listener !== undefined && typeof listener !== "function") {
      throw invalid("`onEvent` must be a function");
    }
    this.#listener = listener;
    this.#warn = warn;
  }

  /** Hands an event to the listener, which is not waited for. */
  emit(event) {
    if (this.#listener === undefined) return;
    try {
      const ended = this.#listener(toCamel("StoreEvent", event));
      if (typeof ended?.then === "function") ended.then(undefined, (error) => this.#report(error));
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error) {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#warn(`onEvent failed, which stops nothing: ${textOf(error)}`);
  }
}
