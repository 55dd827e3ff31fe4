// Completions: asks the caller's model functions with a timeout, with retries and with fallbacks.
//
// In: a request of the engine. Out: `{done}` or `{failed}` under the engine's names, and whether
// all models are exhausted. The engine decides what a failure means; this module only decides when
// to ask again. Model functions see the package's names.

import { U32_MAX, wellFormedOf } from "./convert.js";
import { textOf } from "./errors.js";
import { modelsFor } from "./models.js";
import { toCamel, toSnake } from "./shapes.js";

const FAILURE_CODES = [
  "auth",
  "policy",
  "rate-limited",
  "timeout",
  "context-too-long",
  "unavailable",
  "other",
];
/** Failures after which no model is asked again: another attempt would fail alike. */
const FINAL_CODES = ["auth", "policy", "context-too-long"];
const FINISHES = ["stop", "length", "refusal"];
const RETRIES_DEFAULT = 2;
const RETRY_DELAY_MS = 500;
/**
 * The longest pause before another attempt. A model that asks for a longer pause is not asked
 * again; the next model is.
 */
const RETRY_DELAY_MS_MAX = 60_000;
/** Time for one answer; the reference system's `summaryTimeoutMs`. */
const TIMEOUT_MS_DEFAULT = 60_000;

/** Returns the pause that a model asked for, in milliseconds; null: none. */
function pauseOf(ms) {
  if (typeof ms !== "number" || !(ms >= 0)) return null;
  return Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

function failure(code, message, retryAfterMs) {
  const failed = {
    code: FAILURE_CODES.includes(code) ? code : "other",
    message: textIn(message) || "the model failed",
    retryAfterMs: pauseOf(retryAfterMs),
  };
  return { failed: toSnake("CompletionFailure", failed, "error") };
}

/** Returns a text that can cross into the engine: a lone surrogate becomes U+FFFD. */
function textIn(value) {
  return typeof value === "string" ? wellFormedOf(value) : "";
}

/** Returns a number of tokens within the engine's bounds; 0 for any other value. */
function count(value) {
  return Number.isInteger(value) && value >= 0 ? Math.min(value, U32_MAX) : 0;
}

/** Returns the answer of a model function under the engine's names. */
function resultOf(answer, request) {
  if (typeof answer === "string") return resultOf({ text: answer }, request);
  if (typeof answer?.error === "object" && answer.error !== null) {
    const { code, message, retryAfterMs } = answer.error;
    return failure(code, message, retryAfterMs);
  }
  if (typeof answer?.text !== "string") {
    return failure("other", "`complete` returned no text");
  }
  const finish = answer.finish ?? "stop";
  if (!FINISHES.includes(finish)) {
    return failure("other", `\`complete\` returned finish \`${finish}\``);
  }
  const done = {
    text: textIn(answer.text),
    finish,
    model: typeof answer.model === "string" ? textIn(answer.model) : (request.model ?? "default"),
    inputTokens: count(answer.inputTokens),
    outputTokens: count(answer.outputTokens),
  };
  return { done: toSnake("Completion", done, "answer") };
}

/** Returns a thrown value as a failure; a `TimeoutError` is a timeout. */
function thrownBy(thrown) {
  const code = thrown?.name === "TimeoutError" ? "timeout" : thrown?.code;
  return failure(code, textOf(thrown), thrown?.retryAfterMs);
}

async function answered(model, request, signal) {
  try {
    return resultOf(await model(toCamel("CompletionRequest", request), { signal }), request);
  } catch (thrown) {
    return thrownBy(thrown);
  }
}

/**
 * Resolves to the answer of a model within the timeout; null when `signal` is aborted before.
 * Either event aborts the signal that the model gets, so that its request ends. A model that
 * continues is not waited for.
 */
async function ask(model, request, { signal, timeout_ms: timeoutMs = TIMEOUT_MS_DEFAULT }) {
  const own = new AbortController();
  let settle;
  const ended = new Promise((resolve) => {
    settle = resolve;
  });
  const stop = (result, reason) => {
    own.abort(reason);
    // An answer that arrived already is paid for, and taken.
    setTimeout(settle, 0, result);
  };
  const stopped = () => stop(null, signal.reason);
  const late = `the model did not answer in ${timeoutMs} ms`;
  const timer = setTimeout(() => {
    stop(failure("timeout", late), new DOMException(late, "TimeoutError"));
  }, timeoutMs);
  signal?.addEventListener("abort", stopped, { once: true });
  try {
    const result = await Promise.race([ended, answered(model, request, own.signal)]);
    // After an abort a failure is only the end of the aborted request.
    return result?.failed && own.signal.aborted ? await ended : result;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stopped);
  }
}

/** Resolves after `ms` milliseconds, or at once when `signal` is aborted. */
function wait(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Returns the pause before the next attempt of a model; null: the model is not asked again. */
function delayOf(failed, attempt) {
  const doubled = Math.min(RETRY_DELAY_MS * 2 ** attempt, RETRY_DELAY_MS_MAX);
  const delay = failed.retry_after_ms ?? doubled;
  return delay > RETRY_DELAY_MS_MAX ? null : delay;
}

/**
 * Returns a function that answers requests with the models of their purpose (see `modelsOf`), each
 * a fallback of the model before.
 *
 * The function resolves to `{result, exhausted, calls}` and never rejects; `result` is null when
 * `signal` was aborted before an answer. After every model is exhausted, no model is asked again.
 */
export function modelChain(models, options = {}) {
  const { retries = RETRIES_DEFAULT, signal } = options;
  let exhausted = null;
  return async (request) => {
    let calls = 0;
    if (exhausted) return { result: exhausted, exhausted: true, calls };
    let result = failure("unavailable", "there is no model");
    for (const model of modelsFor(models, request.purpose)) {
      for (let attempt = 0; ; attempt++) {
        if (signal?.aborted) return { result: null, exhausted: false, calls };
        calls += 1;
        result = await ask(model, request, options);
        if (result === null) return { result, exhausted: false, calls };
        if (result.done || FINAL_CODES.includes(result.failed.code)) {
          return { result, exhausted: false, calls };
        }
        const delay = attempt < retries ? delayOf(result.failed, attempt) : null;
        if (delay === null) break;
        await wait(delay, signal);
      }
    }
    if (signal?.aborted) return { result: null, exhausted: false, calls };
    exhausted = result;
    return { result, exhausted: true, calls };
  };
}

/** Returns a function that answers requests with the caller's models, or with the engine. */
export function completerOf(backend, models, options) {
  const chain = modelChain(models, options);
  return async (request) => {
    if (modelsFor(models, request.purpose).length > 0) return chain(request);
    const done = await backend.compute("compaction.complete_offline", { request });
    return { result: { done }, calls: 1 };
  };
}
