// The adapter for a store that answers with promises, over an engine that cannot await.
//
// The engine reads from a log of the fetched reads of the call. The first read without an entry in
// the log returns `would-block`; this module fetches the read and repeats the call. A commit is
// captured, and performed after the export returned; the caller gets the result only after the
// commit succeeded. The n-th equal read of a call gets the n-th answer, so a read that the engine
// repeats on purpose is fetched again.

import { LcmError } from "./errors.js";
import { checkPage, checkStore, checkValues, storeError } from "./store-contract.js";

/** Largest number of fetches of one call; more would be an endless loop of store and engine. */
const FETCHES_MAX = 10_000;

const MARK = Symbol("asynchronous store");

/**
 * Declares that the functions of `store` may return promises.
 *
 * `getMany`, `scan` and `commit` have the same arguments and answers as those of a synchronous
 * store. A commit must be atomic, and a failed guard must reject with code `conflict`.
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

/** Returns the caller's store object; undefined: the store was given as a string. */
export function storeOf(given) {
  return typeof given === "string" ? undefined : (given[MARK] ?? given);
}

/** The store of the engine during one call: answers from the log, or `would-block`. */
export class ReadLog {
  #answers = new Map();
  #seen = new Map();
  /** The next read to fetch; null: no read. */
  wanted = null;
  /** The commit that the engine requested; null: no commit. */
  captured = null;

  /** Prepares a repeat of the call; fetched reads stay. */
  rewind() {
    this.#seen.clear();
    this.wanted = null;
    this.captured = null;
  }

  /** Adds the answer of the wanted read to the log. */
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

/** A synchronous store whose log is replaced at each call. */
export class SwitchedStore {
  /** The log of the running call. */
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
 * `component` must use `face` as its store. Rejects with `conflict` when a guard of the captured
 * commit failed, and with the error of the store when the outcome is unknown. Both drop the
 * instance, whose cache has the values of the commit.
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
