// Imports the lines of an export, in parts that fit a call. The engine verifies the lines.

import { invalid, LcmError } from "./errors.js";

/** Bytes of one page of an export. */
export const EXPORT_BYTES_MAX = 512 * 1024;
/** Bounds of one import call; the lines of a context, at most 33, must fit one call. */
const CALL_LINES_MAX = 128;
const CALL_BYTES_MAX = 768 * 1024;

const encoder = new TextEncoder();

/** Returns a line without its line end, checked to be a string. */
function bare(line) {
  if (typeof line !== "string") throw invalid("`lines` must be strings");
  return line.replace(/\r?\n$/, "");
}

/** Collects the lines of an iterable, asynchronous or not; an import reads them twice. */
export async function linesOf(given) {
  if (Array.isArray(given)) return given.map(bare);
  const iterable = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator];
  if (typeof given === "string" || typeof iterable !== "function") {
    throw invalid("`lines` must be an iterable of lines");
  }
  const lines = [];
  for await (const line of given) lines.push(bare(line));
  return lines;
}

/** Returns the lines of the next call, from `at` on. */
function nextLines(lines, at) {
  let bytes = 0;
  let end = at;
  for (; end < lines.length && end - at < CALL_LINES_MAX; end++) {
    bytes += encoder.encode(lines[end]).length;
    if (bytes > CALL_BYTES_MAX && end > at) break;
  }
  return lines.slice(at, end);
}

/**
 * Imports lines, from the first line again when the engine rewinds; resolves to the report.
 * `now()` returns the time of a call.
 */
export async function importLines(backend, lines, now) {
  let at = 0;
  for (let cursor = null; ; ) {
    const args = { lines: nextLines(lines, at), cursor, now: now() };
    const answer = JSON.parse(await backend.call("admin.import_page", args));
    const { cursor: next, consumed, rewind, ...report } = answer;
    if (next === null) return report;
    if (consumed === 0 && !rewind && next === cursor) {
      throw new LcmError("trap", "`admin.import_page` took none of the lines");
    }
    at = rewind ? 0 : at + consumed;
    cursor = next;
  }
}
