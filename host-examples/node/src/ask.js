// Questions: completes the requests of an engine call until the call needs no more completions.
//
// The engine decides what to read, what to ask a model, and whether to ask again. Options have the
// engine's names.

import { callReporter, modelChain } from "./completion.js";
import { toJson } from "./convert.js";
import { checkAsking, rest } from "./options.js";

/** Answer that the engine gets for a request without a completion, when the question is ended. */
const CANCELLED = Object.freeze({ failed: { code: "other", message: "cancelled" } });

/**
 * Completes the requests of each step until the last step, and resolves to the last step.
 *
 * - `needs(step)`: returns `{requests, continuation}`; null or undefined for the last step.
 * - `complete(request, needs)`: resolves to an answer. When it rejects, the function rejects with
 *   the same reason; the engine gets the answer `cancelled` first, so that the question does not
 *   stay open.
 * - `resume(continuation, answers)`: resolves to the next step.
 */
export async function completed(step, { needs, complete, resume }) {
  const asked = needs(step);
  if (!asked) return step;
  const ended = await Promise.allSettled(
    asked.requests.map((request) => complete(request, asked)),
  );
  const answers = ended.map(({ status, value }) => (status === "rejected" ? CANCELLED : value));
  const next = await resume(asked.continuation, answers);
  const broken = ended.find(({ status }) => status === "rejected");
  if (broken) throw broken.reason;
  return completed(next, { needs, complete, resume });
}

/** Returns a signal that is aborted with `signal`, or after `ms` milliseconds. */
function deadline(ms, signal) {
  const own = new AbortController();
  const stop = () => own.abort(signal.reason);
  const timer = setTimeout(() => own.abort(), ms);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  };
  return { signal: own.signal, end };
}

/**
 * Returns a function that answers a request with the caller's models, or without one. An answer
 * takes at most `deadline_ms` of the step. The function rejects with the reason of an aborted
 * `signal`, and with `invalid-input` when a model function returned no answer.
 */
export function completerOf(begun, models, options, conversation) {
  const called = callReporter(begun, conversation);
  return async (request, { deadline_ms: limit }) => {
    if (models.for(request.purpose).length === 0) {
      return { done: await begun.compute("compaction.complete_offline", { request }) };
    }
    const { signal, end } =
      limit === undefined ? { signal: options.signal, end() {} } : deadline(limit, options.signal);
    try {
      const { result } = await modelChain(models, { ...options, signal, called })(request);
      if (result !== null) return result;
    } finally {
      end();
    }
    if (options.signal?.aborted) throw options.signal.reason;
    return { failed: { code: "timeout", message: `there was no answer in ${limit} ms` } };
  };
}

/** Reads the evidence of a question; see `Engine.askPlan`. */
export async function askPlan(begun, { clock }, conversation, question, given) {
  const asked = { ...rest(given, "now"), question, plan_only: true };
  const question_json = toJson(asked, "options");
  const call = { conversation, question_json, now: given.now ?? clock() };
  return JSON.parse(await begun.call("recall.ask_plan", call));
}

/** Answers a question; see `Engine.ask`. */
export async function ask(begun, { models, clock }, conversation, question, given) {
  checkAsking(given);
  if (given.signal?.aborted) throw given.signal.reason;
  const now = () => given.now ?? clock();
  const asked = { ...rest(given, "retries", "timeout_ms", "signal", "now"), question };
  const question_json = toJson(asked, "options");
  const call = async (name, args) => {
    return JSON.parse(await begun.call(name, { conversation, ...args, now: now() }));
  };
  const first = await call("recall.ask_plan", { question_json });
  return completed(first, {
    needs: (step) => (step.status === "asked" ? step : null),
    complete: completerOf(begun, models, given, conversation),
    resume: (continuation, answers) => call("recall.ask_apply", { continuation, answers }),
  });
}
