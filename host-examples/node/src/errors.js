// The error class of the package, and the conversion of foreign exceptions.
//
// Programs read `code`: a code of the engine, or `trap` after a fault of the engine. A fault
// replaces the instance and leaves no partial write.

/** The closed list of the engine's error codes, as in `wit/types.wit`. */
export const ERROR_CODES = Object.freeze([
  "invalid-input",
  "not-found",
  "exists",
  "limit-exceeded",
  "unsupported",
  "denied",
  "conflict",
  "store-unavailable",
  "would-block",
  "completion-failed",
  "corrupt",
]);

/** A failed call. `message` is one line for a person. */
export class LcmError extends Error {
  /**
   * @param {string} code one of `ERROR_CODES`, or `trap`
   * @param {string} message one lower-case line without full stop
   * @param {{cause?: unknown, failure?: {code: string, message: string}}} [options] `failure`: the
   *   failure of the model behind a `completion-failed`
   */
  constructor(code, message, options) {
    super(message, options);
    this.name = "LcmError";
    this.code = code;
    if (options?.failure) this.failure = options.failure;
  }
}

/** Returns an `invalid-input` error. */
export function invalid(message) {
  return new LcmError("invalid-input", message);
}

/** Whether `value` has a code of the engine and a message. */
export function isErrorRecord(value) {
  return (
    typeof value === "object" &&
    value !== null &&
    ERROR_CODES.includes(value.code) &&
    typeof value.message === "string"
  );
}

/** Returns the text of a thrown value, on one line. */
export function textOf(thrown) {
  const said = thrown instanceof Error ? thrown.message : thrown;
  let text;
  try {
    text = String(said);
  } catch {
    // The object has no text.
    text = typeof said;
  }
  return text.replace(/\s+/g, " ").trim();
}
