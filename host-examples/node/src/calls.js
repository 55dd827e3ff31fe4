// The order of the calls of one engine.
//
// Calls of a conversation run one after the other, in the order in which they were made.
// Compactions of a conversation run one at a time. `close` waits for all calls.
//
// A verb holds the queue of its conversation during its engine calls, never during a completion:
// other calls run while a model works. Only the next compaction waits for the model, because it
// would request the same completions.

import { invalid } from "./errors.js";
import { Queue } from "./queue.js";

/** Queue of the compactions of all engines of this thread, by store and conversation. */
const compactions = new Queue();

const numbers = new WeakMap();
let count = 0;

/** Returns a name for a store object, the same for the same object. */
export function placeOfObject(store) {
  if (!numbers.has(store)) numbers.set(store, (count += 1));
  return `object ${numbers.get(store)}`;
}

/** The engine calls of a running verb. */
class Begun {
  #backend;
  #lines;
  #place;

  constructor(backend, lines, place) {
    this.#backend = backend;
    this.#lines = lines;
    this.#place = place;
  }

  /** The listener of the engine; undefined: there is none. */
  get events() {
    return this.#backend.events;
  }

  /** Makes one call in the queue of its conversation. */
  call(name, args) {
    return this.inLine(args.conversation, (backend) => backend.call(name, args));
  }

  /** See `Backend.compute`. */
  compute(name, args) {
    return this.#backend.compute(name, args);
  }

  /** Runs `work(backend)`, which asks no model, in the queue of a conversation. */
  inLine(conversation, work) {
    return this.#lines.run(conversation ?? "", () => work(this.#backend));
  }

  /**
   * Runs `work`, a compaction, after the earlier compactions of the conversation. With an aborted
   * `signal` the work asks no model, so the work does not wait.
   */
  alone(conversation, signal, work) {
    return compactions.run(`${this.#place}\n${conversation}`, work, signal);
  }
}

/** The calls of one engine, from the first to `close`. */
export class Calls {
  #backend;
  #begun;
  #running = new Set();
  #closed = null;

  /**
   * @param {object} parts
   * @param {import("./backend.js").Backend} parts.backend
   * @param {string} parts.place name of the store, equal for engines over the same store
   */
  constructor({ backend, place }) {
    this.#backend = backend;
    this.#begun = new Begun(backend, new Queue(), place);
  }

  /** Runs `work(begun)`, a whole verb, at once. */
  begin(work) {
    if (this.#closed) return Promise.reject(invalid("the store is closed"));
    const result = new Promise((resolve) => resolve(work(this.#begun)));
    const ended = Promise.allSettled([result]);
    this.#running.add(ended);
    ended.then(() => this.#running.delete(ended));
    return result;
  }

  /** Makes one call as a whole verb. */
  call(name, args) {
    return this.begin((begun) => begun.call(name, args));
  }

  /** As `call`, without a repeat after a `conflict`. */
  attempt(name, args) {
    return this.inLine(args.conversation, (backend) => backend.attempt(name, args));
  }

  /** Runs several calls as one verb; no other call of the conversation runs between. */
  inLine(conversation, work) {
    return this.begin((begun) => begun.inLine(conversation, work));
  }

  /** Waits for running verbs, then closes the store. Later verbs are refused. */
  close() {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close() {
    await Promise.all(this.#running);
    await this.#backend.close();
  }
}
