// Errors on their way between threads, where only plain data is handed over.

import { LcmError, textOf } from "./errors.js";

/** An error as plain data. */
export function sent(error) {
  const { code, message, stack, cause } = error;
  return { code, message, stack, cause: cause === undefined ? null : textOf(cause) };
}

/** The error that was sent. */
export function received({ code, message, stack, cause }) {
  const options = cause === null ? undefined : { cause: new Error(cause) };
  if (code !== undefined) return new LcmError(code, message, options);
  // A fault of the package: where it was thrown is what matters.
  return Object.assign(new Error(message, options), { stack });
}
