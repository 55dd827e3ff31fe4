// Checks the answers of a store before the component reads them.
//
// A store is foreign code. jco would read a promise as an empty list and a wrong length as damage;
// this module throws `store-unavailable` instead. It repairs nothing and retries nothing.

import { ERROR_CODES, isErrorRecord, LcmError, textOf } from "./errors.js";

function broken(message) {
  return new LcmError("store-unavailable", message);
}

/** Throws when `answer` is a promise: a synchronous import cannot await. */
export function refusePromise(answer, name) {
  if (typeof answer?.then !== "function") return;
  // Nobody awaits the promise; an unhandled rejection would end the process.
  answer.then(undefined, () => {});
  throw broken(`store answered \`${name}\` with a promise; wrap it in \`asyncStore\``);
}

function checkValue(value, name) {
  if (!(value instanceof Uint8Array)) {
    throw broken(`store answered \`${name}\` with a value that is no Uint8Array`);
  }
  return value;
}

/** Checks the answer of `getMany`: a Uint8Array, null or undefined for every key. */
export function checkValues(answer, keys) {
  if (!Array.isArray(answer)) throw broken("store answered `getMany` with no array");
  if (answer.length !== keys.length) {
    throw broken(`store answered \`getMany\` of ${keys.length} keys with ${answer.length} values`);
  }
  return Array.from(answer, (value) =>
    value === undefined || value === null ? undefined : checkValue(value, "getMany"),
  );
}

/** Checks the answer of `scan`: `[entries, more]`, keys sorted and in the range, within bounds. */
export function checkPage(answer, [start, end, reverse, entriesMax, bytesMax]) {
  if (!Array.isArray(answer) || answer.length !== 2 || !Array.isArray(answer[0])) {
    throw broken("store answered `scan` with no `[entries, more]`");
  }
  const [entries, more] = answer;
  if (typeof more !== "boolean")
    throw broken("store answered `scan` with a `more` that is no boolean");
  if (entries.length > entriesMax) {
    throw broken(`store answered \`scan\` with ${entries.length} entries, ${entriesMax} at most`);
  }
  // The engine would read an empty page as the end of the range.
  if (more && entries.length === 0) {
    throw broken("store answered `scan` with no entry, although more follow");
  }
  let last;
  let bytes = 0;
  for (const entry of entries) {
    const key = entry?.key;
    if (typeof key !== "string") throw broken("store answered `scan` with a key that is no string");
    if (key < start || key >= end) throw broken("store answered `scan` with a key out of range");
    if (last !== undefined && (reverse ? key >= last : key <= last)) {
      throw broken("store answered `scan` out of order");
    }
    bytes += key.length + checkValue(entry.value, "scan").length;
    last = key;
  }
  // A page may exceed its bytes with a single entry.
  if (entries.length > 1 && bytes > bytesMax) {
    throw broken(`store answered \`scan\` with ${bytes} bytes, ${bytesMax} at most`);
  }
  return [entries, more];
}

/** Throws when `store` lacks one of the three functions. */
export function checkStore(store) {
  for (const name of ["getMany", "scan", "commit"]) {
    if (typeof store?.[name] !== "function") {
      throw new LcmError("invalid-input", `the store has no function \`${name}\``);
    }
  }
}

/**
 * Converts anything that a store threw to an error with a code.
 *
 * An error with a code of the engine keeps the code; any other error is `store-unavailable`. After
 * a commit only `conflict` means that nothing was written; any other error is `store-unavailable`.
 */
export function storeError(thrown, name) {
  const codes = name === "commit" ? ["conflict", "store-unavailable"] : ERROR_CODES;
  if (isErrorRecord(thrown) && codes.includes(thrown.code)) {
    return thrown instanceof LcmError
      ? thrown
      : new LcmError(thrown.code, thrown.message, { cause: thrown });
  }
  const message = `store failed in \`${name}\`: ${textOf(thrown)}`;
  return new LcmError("store-unavailable", message, { cause: thrown });
}
