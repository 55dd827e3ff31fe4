// How the caller's model functions answer a request of the engine: in time, again, or the next one.
//
// Out: `{done}` or `{failed}` as the engine takes it, and whether all models are exhausted. The
// engine decides what a failure means; here is only the host's rule of when to ask again.

import { U32_MAX, wellFormedOf } from "./convert.js";
import { textOf } from "./errors.js";
import { modelsFor } from "./models.js";

const FAILURE_CODES = [
  "auth",
  "policy",
  "rate-limited",
  "timeout",
  "context-too-long",
  "unavailable",
  "other",
];
/** Not worth asking again: the key or the policy will not change, and the prompt not shrink. */
const FINAL_CODES = ["auth", "policy", "context-too-long"];
const FINISHES = ["stop", "length", "refusal"];
const RETRIES_DEFAULT = 2;
const RETRY_DELAY_MS = 500;
/**
 * The longest pause before another attempt. A model that wants a longer one is not asked again: it
 * would refuse in vain until then, and the next one may serve.
 */
const RETRY_DELAY_MS_MAX = 60_000;
/** From the question to the answer; the reference system's `summaryTimeoutMs`. */
const TIMEOUT_MS_DEFAULT = 60_000;

/** The pause that a model asked for, as the engine takes it; null: it asked for none. */
function pauseOf(ms) {
  if (typeof ms !== "number" || !(ms >= 0)) return null;
  return Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

function failure(code, message, retryAfterMs) {
  return {
    failed: {
      code: FAILURE_CODES.includes(code) ? code : "other",
      message: textIn(message) || "the model failed",
      retry_after_ms: pauseOf(retryAfterMs),
    },
  };
}

/** A text as it can cross into the engine, which shows a lone surrogate as U+FFFD, too. */
function textIn(value) {
  return typeof value === "string" ? wellFormedOf(value) : "";
}

/** A number of tokens as the engine takes it. */
function count(value) {
  return Number.isInteger(value) && value >= 0 ? Math.min(value, U32_MAX) : 0;
}

/** What a model function returned, as the engine takes it. */
function resultOf(answer, request) {
  if (typeof answer === "string") return resultOf({ text: answer }, request);
  if (typeof answer?.error === "object" && answer.error !== null) {
    const { code, message, retry_after_ms: retryAfterMs } = answer.error;
    return failure(code, message, retryAfterMs);
  }
  if (typeof answer?.text !== "string") {
    return failure("other", "`complete` returned no text");
  }
  const finish = answer.finish ?? "stop";
  if (!FINISHES.includes(finish)) {
    return failure("other", `\`complete\` returned finish \`${finish}\``);
  }
  return {
    done: {
      text: textIn(answer.text),
      finish,
      model: typeof answer.model === "string" ? textIn(answer.model) : (request.model ?? "default"),
      input_tokens: count(answer.input_tokens),
      output_tokens: count(answer.output_tokens),
    },
  };
}

/** What was thrown, as a failure; one of `AbortSignal.timeout` and the like is a timeout. */
function thrownBy(thrown) {
  const code = thrown?.name === "TimeoutError" ? "timeout" : thrown?.code;
  return failure(code, textOf(thrown), thrown?.retry_after_ms);
}

async function answered(model, request, signal) {
  try {
    return resultOf(await model(request, { signal }), request);
  } catch (thrown) {
    return thrownBy(thrown);
  }
}

/**
 * What a model answers in time; null when `signal` is aborted before. The signal that the model
 * gets is aborted in either case, so that its request ends; a model that goes on regardless is not
 * waited for.
 */
async function ask(model, request, { signal, timeout_ms: timeoutMs = TIMEOUT_MS_DEFAULT }) {
  const own = new AbortController();
  let settle;
  const ended = new Promise((resolve) => {
    settle = resolve;
  });
  const stop = (result, reason) => {
    own.abort(reason);
    // An answer that is there already is paid for, and taken.
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
    // A failure then is only the end of its request.
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

/** How long to wait before the next attempt of a model; null: it is not asked again. */
function delayOf(failed, attempt) {
  const delay = failed.retry_after_ms ?? Math.min(RETRY_DELAY_MS * 2 ** attempt, RETRY_DELAY_MS_MAX);
  return delay > RETRY_DELAY_MS_MAX ? null : delay;
}

/**
 * A function that answers requests with the models of their purpose (see `modelsOf`), each a
 * fallback of the one before it.
 *
 * It resolves to `{result, exhausted, calls}` and never rejects; `result` is null when `signal` was
 * aborted before there was one. Once every model is exhausted it asks none of them again.
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
