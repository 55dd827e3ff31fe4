// Imports of exports. What the lines say, and whether they are whole, is the engine's business;
// here they are moved within the bounds of a call.

import { invalid, LcmError } from "./errors.js";

/** Bytes of one page of an export. */
export const EXPORT_BYTES_MAX = 512 * 1024;
/** Bounds of one import call. The lines of a context have to fit one; there are at most 33. */
const CALL_LINES_MAX = 128;
const CALL_BYTES_MAX = 768 * 1024;

const encoder = new TextEncoder();

/** A line without its end, checked to be one. */
function bare(line) {
  if (typeof line !== "string") throw invalid("`lines` must be strings");
  return line.replace(/\r?\n$/, "");
}

/** All lines of an iterable, asynchronous or not. They may be wanted twice, so they are kept. */
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

/** The lines of the next call, from `at` on. */
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
 * Hands the lines of an export over, as often as the engine wants to see them; resolves to its
 * report. `now()` is the time of a call.
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
