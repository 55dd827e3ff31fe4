// The calls of one engine: those of a conversation one after the other, in the order in which they
// were made; compactions of it one at a time; and all of them before the store is closed.
//
// A place in the line of a conversation is held for the engine calls of one verb, never for a
// completion: while a model is asked, others go on. Only the next compaction waits for it, since it
// would ask the same.

import { invalid } from "./errors.js";
import { Queue } from "./queue.js";

/** Compactions of this thread, whichever engine makes them. */
const compactions = new Queue();

const numbers = new WeakMap();
let count = 0;

/** What names an object that is a store, for `Calls`. */
export function placeOfObject(store) {
  if (!numbers.has(store)) numbers.set(store, (count += 1));
  return `object ${numbers.get(store)}`;
}

/** What a verb that has begun calls the engine by. */
class Begun {
  #backend;
  #lines;
  #place;

  constructor(backend, lines, place) {
    this.#backend = backend;
    this.#lines = lines;
    this.#place = place;
  }

  /** One call in the line of its conversation. */
  call(name, args) {
    return this.inLine(args.conversation, (backend) => backend.call(name, args));
  }

  /** See `Backend.compute`. */
  compute(name, args) {
    return this.#backend.compute(name, args);
  }

  /** Runs `work(backend)` in the line of a conversation; it asks no model. */
  inLine(conversation, work) {
    return this.#lines.run(conversation ?? "", () => work(this.#backend));
  }

  /**
   * Runs `work`, which compacts, after the compactions of the conversation that began before. With
   * an aborted `signal` it will ask no model, so it need not wait.
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
   * @param {string} parts.place names the store: equal for engines over the same one
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

  /** A verb that is one call. */
  call(name, args) {
    return this.begin((begun) => begun.call(name, args));
  }

  /** The same, but that a `conflict` is the caller's. */
  attempt(name, args) {
    return this.inLine(args.conversation, (backend) => backend.attempt(name, args));
  }

  /** A verb that is several calls with no other of the conversation between. */
  inLine(conversation, work) {
    return this.begin((begun) => begun.inLine(conversation, work));
  }

  /** Waits for the verbs that began before, then closes the store. None begins any more. */
  close() {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close() {
    await Promise.all(this.#running);
    await this.#backend.close();
  }
}
