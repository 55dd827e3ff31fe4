// Errors between threads, which exchange plain data only.

import { LcmError, textOf } from "./errors.js";

/** Converts an error to plain data. */
export function sent(error) {
  const { code, message, stack, cause } = error;
  return { code, message, stack, cause: cause === undefined ? null : textOf(cause) };
}

/** Converts plain data to the error that was sent. */
export function received({ code, message, stack, cause }) {
  const options = cause === null ? undefined : { cause: new Error(cause) };
  if (code !== undefined) return new LcmError(code, message, options);
  // A fault of the package keeps its stack.
  return Object.assign(new Error(message, options), { stack });
}
