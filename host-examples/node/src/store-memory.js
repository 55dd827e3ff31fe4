// A store in memory: for tests, for short-lived agents, and as the shortest example of a store.
//
// Everything is lost when the process ends: rule S2 (durability) of `wit/store.wit` does not hold.

import { LcmError } from "./errors.js";

/** Whether a stored value (undefined: absent) equals the value of a guard. */
export function guardHolds(stored, wanted) {
  if (wanted === undefined || wanted === null) return stored === undefined || stored === null;
  if (stored === undefined || stored === null || stored.length !== wanted.length) return false;
  return wanted.every((byte, i) => byte === stored[i]);
}

/** Returns the error of a commit whose guard did not hold. */
export function conflictAt(key) {
  return new LcmError("conflict", `\`${key}\` was changed by another commit`);
}

/** Returns a page of sorted entries within `entriesMax` and `bytesMax`, but at least one entry. */
export function pageOf(entries, entriesMax, bytesMax) {
  const page = [];
  let bytes = 0;
  for (const entry of entries) {
    bytes += entry.key.length + entry.value.length;
    if (page.length > 0 && (page.length >= entriesMax || bytes > bytesMax)) return [page, true];
    page.push(entry);
  }
  return [page, false];
}

/** Ordered key-value pairs in a map. */
export class MemoryStore {
  #map = new Map();

  /** Returns the values of `keys` in order; undefined where a key is absent. */
  getMany(keys) {
    return keys.map((key) => this.#map.get(key));
  }

  /** Returns `[entries, more]` of [start, end) in key order, or in reverse order. */
  scan(start, end, reverse, entriesMax, bytesMax) {
    const keys = [...this.#map.keys()].filter((key) => key >= start && key < end).sort();
    if (reverse) keys.reverse();
    return pageOf(
      keys.map((key) => ({ key, value: this.#map.get(key) })),
      entriesMax,
      bytesMax,
    );
  }

  /** Checks all guards, then writes all puts. Throws `conflict` and writes nothing otherwise. */
  commit(guards, puts) {
    for (const { key, value } of guards) {
      if (!guardHolds(this.#map.get(key), value)) throw conflictAt(key);
    }
    for (const { key, value } of puts) {
      if (value === undefined || value === null) this.#map.delete(key);
      else this.#map.set(key, value.slice());
    }
  }

  /** Nothing to close. */
  close() {}
}
