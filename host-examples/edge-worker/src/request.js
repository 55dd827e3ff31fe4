// What a request says: the lines or the JSON object in its body, and the options in its query.

import { LcmError } from "lcm-engine";

/**
 * Bytes of a body and lines of one that is a transcript: an isolate has 128 MB, in which the body
 * is held with what is made of it, at times beside other objects.
 */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
const BODY_LINES_MAX = 20_000;

/** Options that are numbers in a query, and those that are true or false; all others are texts. */
const NUMBERS = [
  ...["now", "budget", "target", "observedTokens", "reserveTokens", "leaseMs"],
  ...["retries", "timeoutMs", "deadlineMs", "seqFirst", "seqLast", "seqSeen"],
  ...["limit", "neighbours", "bytesMax", "startLine", "endLine", "startByte", "endByte"],
  ...["depthMax", "tokensMax", "answerTokensMax", "requestsMax", "passesMax", "ttlMs"],
];
const SWITCHES = [
  ...["refuseReplay", "repeat", "defer", "force", "explain", "markCaches"],
  ...["includeContent", "includeMessages", "allConversations", "only", "logical"],
  ...["hasSummaries", "mayBeNew"],
];

/** The error of a request that says what it must not. */
export function invalid(message, cause) {
  return new LcmError("invalid-input", message, { cause });
}

/** The body of a request as text, bounded. */
export async function textOf(request) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of request.body ?? []) {
      bytes += chunk.byteLength;
      // Read to its end all the same: a client that is still sending would not see the answer.
      text = bytes > BODY_BYTES_MAX ? "" : text + decoder.decode(chunk, { stream: true });
    }
    if (bytes <= BODY_BYTES_MAX) text += decoder.decode();
  } catch (error) {
    throw invalid("the body is no UTF-8", error);
  }
  if (bytes <= BODY_BYTES_MAX) return text;
  throw new LcmError("limit-exceeded", `a body has at most ${BODY_BYTES_MAX} bytes`);
}

/** The lines of a body that say something, without their ends. */
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

/** The JSON object of a body; none: an empty one. */
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
  // What is none goes as it is: the engine says what is wrong with it.
  if (NUMBERS.includes(name)) return /^\d+$/.test(text) ? Number(text) : text;
  if (SWITCHES.includes(name)) return { true: true, false: false }[text] ?? text;
  return text;
}

/** Options in the query of an address. */
export function queryOf(url) {
  const entries = [...url.searchParams].map(([name, text]) => [name, valueOf(name, text)]);
  return Object.fromEntries(entries);
}

/** The options of a request: those of its body come before those of its query. */
export async function optionsOf({ request, url }) {
  return { ...queryOf(url), ...(await objectOf(request)) };
}
