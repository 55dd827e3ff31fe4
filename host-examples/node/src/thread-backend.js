// A backend whose component and store are in a worker thread. The thread of the caller asks the
// models, and calls of the component do not block it.

import { Worker } from "node:worker_threads";

import { Component } from "./component.js";
import { invalid, LcmError, textOf } from "./errors.js";
import { adoptModules, instantiate } from "./runtime.js";
import { received } from "./thread-errors.js";

/** The store of short calls, which never read a store. */
const NO_STORE = { getMany: refuse, scan: refuse, commit: refuse };

function refuse() {
  throw new LcmError("store-unavailable", "the store is in another thread");
}

/** A backend with the methods of `Backend`; `startThread` makes it. */
export class ThreadBackend {
  /** See `Backend.events`. */
  events;
  #worker;
  #component;
  #calls = new Map();
  #count = 0;
  #closing = null;
  #ended = null;

  constructor(worker, events) {
    this.events = events;
    this.#worker = worker;
    this.#component = new Component({ instantiate, store: NO_STORE });
    worker.on("message", (answer) => this.#answer(answer));
    worker.on("error", (error) => this.#end(textOf(error)));
    worker.on("exit", (code) => this.#end(`it exited with ${code}`));
    // An idle engine does not keep the process alive, as without a thread.
    worker.unref();
  }

  /** See `Backend.restart`. */
  restart(configJson) {
    this.#component.reconfigure(configJson);
    // An error ends the thread; the next call reports the end.
    this.#send("restart", [configJson]).catch(() => {});
  }

  /** See `Backend.call`. */
  call(name, args) {
    return this.#send("call", [name, args]);
  }

  /** See `Backend.attempt`. */
  attempt(name, args) {
    return this.#send("attempt", [name, args]);
  }

  /** Makes a short call that reads no store, in this thread. */
  pure(name, args) {
    return this.#component.invoke(name, args);
  }

  /** See `Backend.compute`. */
  compute(name, args) {
    return this.#send("compute", [name, args]);
  }

  /** Closes the store and ends the thread. */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    if (this.#ended !== null) return;
    const exited = new Promise((resolve) => {
      this.#worker.once("exit", resolve);
    });
    await this.#send("close", []);
    this.#worker.ref();
    await exited;
  }

  async #send(verb, args) {
    if (this.#closing) throw invalid("the store is closed");
    if (this.#ended !== null) throw this.#lost();
    const id = this.#count++;
    try {
      this.#worker.postMessage({ id, verb, args });
    } catch (thrown) {
      throw invalid(`an argument is no plain value: ${textOf(thrown)}`);
    }
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
    });
  }

  #answer({ id, result, error, event }) {
    if (event !== undefined) return this.events?.emit(event);
    const { resolve, reject } = this.#calls.get(id);
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#worker.unref();
    if (error === undefined) resolve(result);
    else reject(received(error));
    return undefined;
  }

  #end(why) {
    this.#ended ??= why;
    for (const { reject } of this.#calls.values()) reject(this.#lost());
    this.#calls.clear();
  }

  #lost() {
    return new LcmError("store-unavailable", `the worker thread ended: ${this.#ended}`);
  }
}

/** Opens the store that a string names in a new thread; resolves to a backend over it. */
export function startThread(store, events) {
  const worker = new Worker(new URL("./thread.js", import.meta.url), {
    workerData: { store },
    // Flags of the program, such as `--input-type`, must not apply to the thread.
    execArgv: [],
  });
  return new Promise((resolve, reject) => {
    const failed = (error) => {
      reject(new LcmError("store-unavailable", `no worker thread: ${textOf(error)}`));
    };
    worker.once("error", failed);
    worker.once("message", ({ modules, error }) => {
      worker.off("error", failed);
      if (error !== undefined) return reject(received(error));
      adoptModules(modules);
      return resolve(new ThreadBackend(worker, events));
    });
  });
}
