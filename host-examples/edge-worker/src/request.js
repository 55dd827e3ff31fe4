// Reads a request: the lines or the JSON object in its body, and the options in its query.

import { LcmError } from "lcm-engine";

/**
 * Largest size of a body in bytes, and largest number of lines of a transcript. An isolate has
 * 128 MB for the body and the values parsed from it, and other objects may share the isolate.
 */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
const BODY_LINES_MAX = 20_000;

/** Options of a query that are numbers, and those that are true or false; all others are texts. */
const NUMBERS = [
  ...["now", "budget", "target", "observedTokens", "reserveTokens", "leaseMs"],
  ...["retries", "timeoutMs", "deadlineMs", "seqFirst", "seqLast", "seqSeen"],
  ...["limit", "neighbours", "bytesMax", "startLine", "endLine", "startByte", "endByte"],
  ...["depthMax", "tokensMax", "answerTokensMax", "requestsMax", "passesMax", "ttlMs"],
];
const SWITCHES = [
  ...["undated", "refuseReplay", "repeat", "defer", "force", "explain", "markCaches"],
  ...["includeContent", "includeMessages", "allConversations", "only", "logical"],
  ...["hasSummaries", "mayBeNew"],
];

/** Returns the error of an invalid request. */
export function invalid(message, cause) {
  return new LcmError("invalid-input", message, { cause });
}

/** Resolves to the body of a request as text; rejects over the bound, or if it is not UTF-8. */
export async function textOf(request) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      // A body over the bound is read to its end: a client sees no answer while it sends.
      text = bytes > BODY_BYTES_MAX ? "" : text + decoder.decode(chunk, { stream: true });
    }
    if (bytes <= BODY_BYTES_MAX) text += decoder.decode();
  } catch (error) {
    throw invalid("the body is no UTF-8", error);
  }
  if (bytes <= BODY_BYTES_MAX) return text;
  throw new LcmError("limit-exceeded", `a body has at most ${BODY_BYTES_MAX} bytes`);
}

/** Resolves to the lines of a body that are not blank, without their line ends. */
export async function linesOf(request) {
  const lines = [];
  for (const [line] of (await textOf(request)).matchAll(/[^\n]+/g)) {
    if (line.trim() === "") continue;
    if (lines.length === BODY_LINES_MAX) {
      throw new LcmError("limit-exceeded", `a body has at most ${BODY_LINES_MAX} messages`);
    }
    lines.push(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
  return lines;
}

/** Resolves to the JSON object in a body; without a body, to an empty object. */
async function objectOf(request) {
  const text = request.method === "GET" ? "" : await textOf(request);
  if (text.trim() === "") return {};
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid("the body is no JSON", error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalid("the body must be a JSON object");
}

function valueOf(name, text) {
  // A text that is no value of its option passes unchanged, and the engine reports the error.
  if (NUMBERS.includes(name)) return /^\d+$/.test(text) ? Number(text) : text;
  if (SWITCHES.includes(name)) return { true: true, false: false }[text] ?? text;
  return text;
}

/** Returns the options in the query of a URL. */
export function queryOf(url) {
  const entries = [...url.searchParams].map(([name, text]) => [name, valueOf(name, text)]);
  return Object.fromEntries(entries);
}

/** Resolves to the options of a request; an option in the body replaces that in the query. */
export async function optionsOf({ request, url }) {
  return { ...queryOf(url), ...(await objectOf(request)) };
}
