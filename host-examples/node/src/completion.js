// Completions: asks the caller's model functions with a timeout, with retries and with fallbacks.
//
// In: a request of the engine. Out: `{done}` or `{failed}` under the engine's names, and whether
// all models are exhausted. The engine decides what a failure means; this module only decides when
// to ask again. Model functions see the package's names.

import { readAnswer } from "./answer.js";
import { U32_MAX, wellFormedOf } from "./convert.js";
import { codeOfFinish } from "./failure-table.js";
import { FAILURE_CODES, readThrown } from "./model-failures.js";
import { toCamel, toSnake } from "./shapes.js";

/** Failures of the key or the content, after which no model is asked for the request again. */
const FINAL_CODES = ["auth", "policy"];
/** Failure of the request in one model; another model may have a larger window. */
const TOO_LONG = "context-too-long";
const RETRIES_DEFAULT = 2;
const RETRY_DELAY_MS = 500;
/**
 * The longest pause before another attempt. If a model asks for a longer pause, the next model is
 * asked instead.
 */
const RETRY_DELAY_MS_MAX = 60_000;
/** Longest time for one answer, unless an option or the configuration sets another. */
const TIMEOUT_MS_DEFAULT = 60_000;

function failure(code, message, retryAfterMs = null) {
  const failed = { code, message: textIn(message) || "the model failed", retryAfterMs };
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

/**
 * Returns an answer with `text` under the engine's names; a failure if the provider's word for its
 * end means one.
 */
function doneOf({ text, finish, model, inputTokens, outputTokens }, request) {
  const end = codeOfFinish(finish ?? "") ?? "stop";
  if (FAILURE_CODES.includes(end)) return failure(end, `the model ended with \`${finish}\``);
  const done = {
    text: textIn(text),
    finish: end,
    model: typeof model === "string" ? textIn(model) : (request.model ?? "default"),
    inputTokens: count(inputTokens),
    outputTokens: count(outputTokens),
  };
  return { done: toSnake("Completion", done, "answer") };
}

/** Returns a thrown value as a failure; a refusal is an answer. */
function thrownBy(thrown, request) {
  const { code, message, retryAfterMs } = readThrown(thrown);
  if (code === "refusal") return doneOf({ text: "", finish: "refusal" }, request);
  return failure(code, message, retryAfterMs);
}

/**
 * Resolves to the answer of a model function under the engine's names. Rejects with
 * `invalid-input` when the function returned no answer.
 */
async function answered(model, request, signal) {
  let read;
  try {
    read = readAnswer(await model(toCamel("CompletionRequest", request), { signal }));
    if (read.answer) return doneOf(read.answer, request);
  } catch (thrown) {
    return thrownBy(thrown, request);
  }
  if (read.mistake) throw read.mistake;
  return thrownBy(read.failed, request);
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
    // An answer that has already arrived is paid for, so it still counts.
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

/** Returns the event of one call of a model; `result` is null after an abort. */
function eventOf({ purpose, model }, attempt, result, ms) {
  const { done, failed } = result ?? { failed: { code: "other" } };
  return {
    kind: "model-called",
    purpose,
    attempt,
    model: done?.model ?? model ?? null,
    ms: Math.round(ms),
    input_tokens: done?.input_tokens ?? 0,
    output_tokens: done?.output_tokens ?? 0,
    finish: done?.finish ?? null,
    error: failed?.code ?? null,
  };
}

/** Returns a function that reports the calls of models about a conversation to the listener. */
export function callReporter({ events }, conversation) {
  return ({ kind, ...rest }) => events?.emit({ kind, conversation, ...rest });
}

/** Lists the calls to try: all functions with the request, then with each fallback model's name. */
function attemptsOf(models, request) {
  return models.requestsOf(request).flatMap((asked) => {
    return models.for(request.purpose).map((model) => ({ model, asked }));
  });
}

/**
 * Returns a function that answers requests with the models of their purpose (see `modelsOf`), each
 * a fallback of the model before, and then with the fallback models of the configuration. `judge`
 * resolves to the reason why an answer is faulty and the next model is asked, or to undefined. If
 * no model gives an answer without such a reason, the first faulty answer is the result, else the
 * failure of a prompt that was too long, unless `signal` is aborted meanwhile.
 *
 * The function resolves to `{result, exhausted, calls}`; `result` is null when `signal` was aborted
 * before an answer. After every model is exhausted, no model is asked again. It rejects with
 * `invalid-input` when a model function returned something else than an answer. `options.called`
 * receives the event of each call of a model.
 */
export function modelChain(models, options = {}, judge = async () => undefined) {
  const { retries = RETRIES_DEFAULT, signal, timeout_ms = models.timeoutMs, called } = options;
  const asking = { ...options, timeout_ms };
  let exhausted = null;
  return async (request) => {
    let calls = 0;
    if (exhausted) return { result: exhausted, exhausted: true, calls };
    let result = failure("unavailable", "there is no model");
    let faulty = null;
    let tooLong = null;
    const chain = attemptsOf(models, request);
    for (const { model, asked } of chain) {
      for (let attempt = 0; ; attempt++) {
        if (signal?.aborted) return { result: null, exhausted: false, calls };
        calls += 1;
        const began = performance.now();
        result = await ask(model, asked, asking);
        called?.(eventOf(asked, calls, result, performance.now() - began));
        if (result === null) return { result, exhausted: false, calls };
        if (result.done && chain.length > 1 && (await judge(request, result.done))) {
          faulty ??= result;
          break;
        }
        if (result.done) return { result, exhausted: false, calls };
        if (FINAL_CODES.includes(result.failed.code)) {
          return { result: faulty ?? tooLong ?? result, exhausted: false, calls };
        }
        if (result.failed.code === TOO_LONG) {
          tooLong ??= result;
          break;
        }
        const delay = attempt < retries ? delayOf(result.failed, attempt) : null;
        if (delay === null) break;
        await wait(delay, signal);
      }
    }
    if (signal?.aborted) return { result: null, exhausted: false, calls };
    // The engine rejects a faulty answer by its rules; a long prompt concerns this request alone.
    if (faulty ?? tooLong) return { result: faulty ?? tooLong, exhausted: false, calls };
    exhausted = result;
    return { result, exhausted: true, calls };
  };
}

/** Returns a function that answers requests with the caller's models, or with the engine. */
export function completerOf(backend, models, options, conversation) {
  const called = callReporter(backend, conversation);
  const judge = (request, answer) => {
    return backend.compute("compaction.judge_answer", { request, answer });
  };
  const chain = modelChain(models, { ...options, called }, judge);
  return async (request) => {
    if (models.for(request.purpose).length > 0) return chain(request);
    const done = await backend.compute("compaction.complete_offline", { request });
    return { result: { done }, calls: 1 };
  };
}
