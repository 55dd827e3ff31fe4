// What a model function threw, as a failure of the engine.
//
// In: any thrown value, such as an error of an SDK, read defensively. Out: `{code, message,
// retryAfterMs}` or a refusal. `docs/model-failures.md` has the order of the evidence and the
// table; `failure-table.js` has the table as data.

import { textOf } from "./errors.js";
import { codeOfCode, codeOfName, codeOfStatus, codeOfWords } from "./failure-table.js";

export const FAILURE_CODES = Object.freeze([
  "auth",
  "policy",
  "rate-limited",
  "timeout",
  "context-too-long",
  "unavailable",
  "other",
]);
/** Codes that decide before the answer of a provider if the name of an error has them. */
const SURE_NAMES = ["timeout", "context-too-long", "policy", "refusal"];
/** With this number of errors in a chain of causes, no further causes are read. */
const CHAIN_MAX = 16;
/** Deepest member of a body that is read. */
const DEPTH_MAX = 5;
/** Longest text that is parsed as JSON, in UTF-16 units. */
const JSON_UNITS_MAX = 1 << 16;
/** Longest message of a failure, in UTF-16 units. */
const MESSAGE_UNITS_MAX = 300;
/** Longest pause that a provider can ask for: a day. */
const PAUSE_MS_MAX = 86_400_000;
const STATUS_IN_TEXT = /(?:^\W?|\bhttp |status(?: code)?:? |error code: )([45]\d\d)\b/i;

/** Returns a member of any value; a getter that throws has no value. */
function get(value, key) {
  try {
    return value?.[key] ?? undefined;
  } catch {
    return undefined;
  }
}

const isObject = (value) => typeof value === "object" && value !== null;

/** Returns the errors that one error names as its cause. */
function causesOf(error) {
  const errors = get(error, "errors");
  const last = Array.isArray(errors) ? errors.at(-1) : undefined;
  const causes = [get(error, "cause"), get(error, "lastError"), last];
  return causes.filter((cause) => cause !== undefined);
}

/** Returns a thrown value and its causes, the outermost first. */
function chainOf(thrown) {
  const chain = [thrown];
  for (let at = 0; at < chain.length && chain.length < CHAIN_MAX; at++) {
    chain.push(...causesOf(chain[at]).filter((cause) => !chain.includes(cause)));
  }
  return chain;
}

/** Returns the names of the classes of an error, its own name first. */
function namesOf(error) {
  const names = [get(error, "name")];
  if (!isObject(error)) return [];
  let prototype = Object.getPrototypeOf(error);
  for (let at = 0; prototype && at < CHAIN_MAX; at++) {
    names.push(get(get(prototype, "constructor"), "name"));
    prototype = Object.getPrototypeOf(prototype);
  }
  return names.filter((name) => typeof name === "string");
}

/** Returns the HTTP status in a number or in a text of three digits; 0: the value is no status. */
function statusIn(value) {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return Number.isInteger(status) && status >= 200 && status < 600 ? status : 0;
}

function parsed(text) {
  if (typeof text !== "string" || text.length > JSON_UNITS_MAX) return undefined;
  const from = text.indexOf("{");
  if (from < 0) return undefined;
  try {
    return JSON.parse(text.slice(from, text.lastIndexOf("}") + 1));
  } catch {
    return undefined;
  }
}

/** Adds the codes, texts, status and pause of a body to `facts`. */
function addBody(facts, body, depth = 0) {
  if (typeof body === "string") facts.texts.push(body);
  if (!isObject(body) || depth > DEPTH_MAX) return;
  if (Array.isArray(body)) {
    for (const element of body.slice(0, CHAIN_MAX)) addBody(facts, element, depth + 1);
    return;
  }
  for (const key of ["code", "type", "status", "reason", "error_code"]) {
    const value = get(body, key);
    facts.bodyStatus ||= statusIn(value);
    if (typeof value === "string") facts.codes.push(value);
  }
  for (const key of ["message", "msg", "detail", "error_description", "raw"]) {
    const value = get(body, key);
    if (typeof value === "string") facts.texts.push(value);
  }
  facts.delay ??= get(body, "retryDelay");
  for (const key of ["error", "innererror", "metadata", "details"]) {
    addBody(facts, get(body, key), depth + 1);
  }
}

/** Reads one error of a chain. */
function factsOf(error) {
  const response = get(error, "response");
  const facts = { codes: [], texts: [], bodyStatus: 0, delay: undefined };
  const stated = ["status", "statusCode", "status_code", "code"].map((key) => get(error, key));
  const answered = ["status", "statusCode", "status_code"].map((key) => get(response, key));
  const status = [...stated, ...answered].map(statusIn).find((found) => found > 0) ?? 0;
  const message = get(error, "message");
  const text = get(error, "responseBody");
  const bodies = ["error", "body", "data", "details"].map((key) => get(error, key));
  bodies.push(parsed(text) ?? text, get(response, "data"));
  // A wrapper that quotes its cause does not have the status of the cause.
  if (status > 0 || causesOf(error).length === 0) bodies.push(parsed(message));
  for (const body of bodies) addBody(facts, body);
  const hasBody = bodies.some((body) => body !== undefined && body !== "");
  for (const key of ["code", "type", "status", "lc_error_code"]) {
    const value = get(error, key);
    if (typeof value === "string") facts.codes.push(value);
  }
  if (typeof message === "string") facts.texts.push(message);
  return { ...facts, status, hasBody };
}

/** Returns the code that follows from an answer of a provider; undefined: no code follows. */
function codeOfAnswer({ status: stated, bodyStatus, codes, texts, hasBody }) {
  const failing = [stated, bodyStatus].find((found) => found >= 400);
  const status = failing ?? (stated > 0 && stated < 300 ? 200 : stated);
  const isAnswer = status >= 400 || hasBody;
  const text = [...codes, ...texts].join("\n");
  if (isAnswer && [0, 200, 400, 413, 422, 500].includes(status)) {
    const isLong = codeOfWords(text, "context-too-long");
    if (isLong) return isLong;
  }
  if (status === 413) return codeOfStatus(status);
  const known = codes.map(codeOfCode).find((code) => code !== undefined);
  if (known) return known;
  const worded = isAnswer && [0, 200, 400, 422].includes(status) ? codeOfWords(text) : undefined;
  if (worded) return worded;
  if (status >= 300) return codeOfStatus(status) ?? "other";
  return status === 200 && hasBody ? "unavailable" : undefined;
}

/** Returns the code that follows from one error of a chain; undefined: no code follows. */
function codeOf(error) {
  const own = get(error, "code");
  if (FAILURE_CODES.includes(own)) return own;
  const named = namesOf(error).map(codeOfName).find((code) => code !== undefined);
  if (SURE_NAMES.includes(named)) return named;
  return codeOfAnswer(factsOf(error)) ?? named;
}

/** Returns the code from the texts of a chain; for a chain without an error that has a code. */
function codeOfTexts(chain) {
  const texts = chain.map((error) => get(error, "message") ?? error);
  const text = texts.filter((said) => typeof said === "string").join("\n");
  const status = STATUS_IN_TEXT.exec(text)?.[1];
  const words = status && ["400", "422"].includes(status) ? codeOfWords(text) : undefined;
  if (status) return words ?? codeOfStatus(Number(status)) ?? "other";
  return codeOfWords(text) ?? "other";
}

/** Returns the entries of headers in any container. */
function entriesOf(headers) {
  try {
    if (typeof headers[Symbol.iterator] !== "function") return Object.entries(headers);
    const entries = [...headers];
    if (entries.every(Array.isArray)) return entries;
    // Names and values take turns, as in `rawHeaders` of Node.
    return entries.flatMap((name, at) => (at % 2 === 0 ? [[name, entries[at + 1]]] : []));
  } catch {
    return [];
  }
}

function headerOf(entries, name) {
  const entry = entries.find(([key]) => String(key).toLowerCase() === name);
  const value = Array.isArray(entry?.[1]) ? entry[1][0] : entry?.[1];
  return value === undefined || value === null ? "" : String(value).trim();
}

const isNumber = (text) => /^\d+(?:\.\d+)?(?:e\d+)?$/i.test(text);

/** Returns the pause of the headers of an answer, in milliseconds; undefined: none. */
function pauseOfHeaders(headers) {
  if (!isObject(headers)) return undefined;
  const entries = entriesOf(headers);
  const ms = headerOf(entries, "retry-after-ms");
  if (isNumber(ms)) return Number(ms);
  const after = headerOf(entries, "retry-after");
  if (isNumber(after)) return Number(after) * 1000;
  const then = /^[a-z]{3,9},? /i.test(after) ? Date.parse(after) : NaN;
  if (Number.isNaN(then)) return undefined;
  // The provider's clock may differ from this one.
  const now = Date.parse(headerOf(entries, "date"));
  return Math.max(then - (Number.isNaN(now) ? Date.now() : now), 0);
}

/** Returns the pause that one error asks for, in milliseconds; undefined: none. */
function pauseOf(error) {
  const own = get(error, "retryAfterMs");
  if (typeof own === "number" && own >= 0) return Math.min(own, Number.MAX_SAFE_INTEGER);
  const holders = [get(error, "headers"), get(error, "responseHeaders")];
  for (const headers of [...holders, get(get(error, "response"), "headers")]) {
    const pause = pauseOfHeaders(headers);
    if (pause !== undefined) return Math.min(pause, PAUSE_MS_MAX);
  }
  const delay = /^(\d+(?:\.\d+)?)s$/.exec(factsOf(error).delay ?? "");
  return delay ? Math.min(Number(delay[1]) * 1000, PAUSE_MS_MAX) : undefined;
}

function messageOf(thrown) {
  const said = get(thrown, "message");
  if (isObject(thrown) && !(thrown instanceof Error) && typeof said !== "string") return "";
  const text = textOf(typeof said === "string" ? said : thrown);
  return text.length > MESSAGE_UNITS_MAX ? `${text.slice(0, MESSAGE_UNITS_MAX)}...` : text;
}

/** Returns `{code, message, retryAfterMs}`; `code` is a failure code or `refusal`. */
export function readThrown(thrown) {
  const chain = chainOf(thrown);
  let code;
  let pause;
  for (const error of chain) {
    code ??= codeOf(error);
    pause ??= pauseOf(error);
  }
  const retryAfterMs = pause === undefined ? null : Math.ceil(pause);
  return { code: code ?? codeOfTexts(chain), message: messageOf(thrown), retryAfterMs };
}
