// The adapter for a store that answers with promises, over an engine that cannot await.
//
// The engine is called with a face that answers from a per-call log of fetched reads and says
// `would-block` for the first read it does not have. That read is fetched and the call repeated.
// A commit is captured and performed after the export returned; the result is handed over only
// when it succeeded. The n-th equal read of one call gets the n-th answer, so that a read which
// the engine repeats on purpose is fetched again.

import { LcmError } from "./errors.js";
import { checkPage, checkStore, checkValues, storeError } from "./store-contract.js";

/** Bound against a store and an engine that would keep each other busy for ever. */
const FETCHES_MAX = 10_000;

const MARK = Symbol("asynchronous store");

/**
 * Declares that the functions of `store` may return promises.
 *
 * `getMany`, `scan` and `commit` have the same arguments and answers as those of a synchronous
 * store. A commit must be atomic all the same, and a failed guard rejects with code `conflict`.
 */
export function asyncStore(store) {
  checkStore(store);
  return {
    [MARK]: store,
    getMany: (keys) => store.getMany(keys),
    scan: (...args) => store.scan(...args),
    commit: (guards, puts) => store.commit(guards, puts),
    close: () => store.close?.(),
  };
}

/** Whether `store` was declared by `asyncStore`. */
export function isAsyncStore(store) {
  return store?.[MARK] !== undefined;
}

/** The caller's own object behind what was given as a store; undefined: there is none. */
export function storeOf(given) {
  return typeof given === "string" ? undefined : (given[MARK] ?? given);
}

/** What the engine sees during one call: answers from the log, or `would-block`. */
export class ReadLog {
  #answers = new Map();
  #seen = new Map();
  /** The read that has to be fetched next; null: none. */
  wanted = null;
  /** The commit the engine asked for; null: none. */
  captured = null;

  /** Starts the call over; what was fetched stays. */
  rewind() {
    this.#seen.clear();
    this.wanted = null;
    this.captured = null;
  }

  /** Puts the answer of the wanted read into the log. */
  answer(value) {
    const { id } = this.wanted;
    this.#answers.set(id, [...(this.#answers.get(id) ?? []), value]);
  }

  getMany(keys) {
    return this.#read("getMany", [keys]);
  }

  scan(...args) {
    return this.#read("scan", args);
  }

  commit(guards, puts) {
    this.captured = { guards, puts };
  }

  #read(name, args) {
    const id = `${name} ${JSON.stringify(args)}`;
    const turn = this.#seen.get(id) ?? 0;
    const known = this.#answers.get(id) ?? [];
    if (turn < known.length) {
      this.#seen.set(id, turn + 1);
      return known[turn];
    }
    this.wanted = { id, name, args };
    throw new LcmError("would-block", "the store has to be asked first");
  }
}

async function fetchWanted(store, { name, args }) {
  try {
    const answer = await store[name](...args);
    if (name === "getMany") return checkValues(answer, args[0]);
    return checkPage(answer, args);
  } catch (thrown) {
    throw storeError(thrown, name);
  }
}

/** A synchronous face whose log changes from call to call. */
export class SwitchedStore {
  /** The log of the call that is running. */
  log = new ReadLog();
  getMany(keys) {
    return this.log.getMany(keys);
  }
  scan(...args) {
    return this.log.scan(...args);
  }
  commit(guards, puts) {
    this.log.commit(guards, puts);
  }
}

/**
 * Performs one engine call over an asynchronous store.
 *
 * `component` must have been made over `face`. Rejects with `conflict` when the captured commit
 * failed a guard, and with its error when its outcome is unknown; in both cases the instance, which
 * believes that the commit happened, is dropped.
 */
export async function performAsync({ component, face, store }, name, args) {
  const log = new ReadLog();
  for (let fetches = 0; fetches <= FETCHES_MAX; fetches++) {
    log.rewind();
    face.log = log;
    let result;
    try {
      result = component.invoke(name, args);
    } catch (error) {
      if (error.code !== "would-block" || log.wanted === null) throw error;
      log.answer(await fetchWanted(store, log.wanted));
      continue;
    }
    if (log.captured) await commitCaptured(component, store, log.captured);
    return result;
  }
  throw new LcmError("limit-exceeded", `one call needed more than ${FETCHES_MAX} reads`);
}

async function commitCaptured(component, store, { guards, puts }) {
  try {
    await store.commit(guards, puts);
  } catch (thrown) {
    component.drop();
    throw storeError(thrown, "commit");
  }
}
