// The one error of the package, and how foreign exceptions become one.
//
// `code` is what programs read; it is one of the engine's closed list, or `trap` when the engine
// itself failed (a bug: the instance is replaced, nothing half-written remains).

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
   * @param {{cause?: unknown}} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    this.name = "LcmError";
    this.code = code;
  }
}

/** An `invalid-input` error. */
export function invalid(message) {
  return new LcmError("invalid-input", message);
}

/** Whether `value` carries one of the engine's codes and a message. */
export function isErrorRecord(value) {
  return (
    typeof value === "object" &&
    value !== null &&
    ERROR_CODES.includes(value.code) &&
    typeof value.message === "string"
  );
}

/** The text of anything that was thrown, on one line. */
export function textOf(thrown) {
  const said = thrown instanceof Error ? thrown.message : thrown;
  let text;
  try {
    text = String(said);
  } catch {
    // An object without a text of its own.
    text = typeof said;
  }
  return text.replace(/\s+/g, " ").trim();
}
