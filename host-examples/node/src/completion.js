// How the caller's model functions answer a request of the engine: retries, then the next model.
//
// Out: `{done}` or `{failed}` as the engine takes it, and whether all models are exhausted. The
// engine decides what a failure means; here is only the host's rule of when to ask again.

import { pause } from "./queue.js";
import { textOf } from "./errors.js";

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

function failure(code, message, retryAfterMs) {
  return {
    failed: {
      code: FAILURE_CODES.includes(code) ? code : "other",
      message: message || "the model failed",
      retry_after_ms: Number.isSafeInteger(retryAfterMs) ? retryAfterMs : null,
    },
  };
}

function count(value) {
  return Number.isInteger(value) && value >= 0 ? value : 0;
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
      // A lone surrogate cannot cross into the engine; the engine shows it as U+FFFD, too.
      text: answer.text.toWellFormed?.() ?? answer.text.replace(/\p{Surrogate}/gu, "\u{fffd}"),
      finish,
      model: typeof answer.model === "string" ? answer.model : (request.model ?? "default"),
      input_tokens: count(answer.input_tokens),
      output_tokens: count(answer.output_tokens),
    },
  };
}

async function ask(model, request, signal) {
  try {
    return resultOf(await model(request, { signal }), request);
  } catch (thrown) {
    return failure(thrown?.code, textOf(thrown), thrown?.retry_after_ms);
  }
}

/**
 * A function that answers requests with the given model functions, each a fallback of the one
 * before it.
 *
 * It resolves to `{result, exhausted, calls}` and never rejects; `result` is null when `signal` was
 * aborted before there was one. Once every model is exhausted it asks none of them again.
 */
export function modelChain(models, { retries = RETRIES_DEFAULT, signal } = {}) {
  let exhausted = null;
  return async (request) => {
    let calls = 0;
    if (exhausted) return { result: exhausted, exhausted: true, calls };
    let result = failure("unavailable", "there is no model");
    for (const model of models) {
      for (let attempt = 0; attempt <= retries; attempt++) {
        if (signal?.aborted) return { result: null, exhausted: false, calls };
        if (attempt > 0) {
          await pause(result.failed.retry_after_ms ?? RETRY_DELAY_MS * 2 ** (attempt - 1));
        }
        calls += 1;
        result = await ask(model, request, signal);
        if (result.done || FINAL_CODES.includes(result.failed.code)) {
          return { result, exhausted: false, calls };
        }
      }
    }
    exhausted = result;
    return { result, exhausted: true, calls };
  };
}
