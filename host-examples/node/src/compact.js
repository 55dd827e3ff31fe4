// `compact`: the plan-and-apply loop with the caller's models, and its result as one object.

import { modelChain } from "./completion.js";
import { drive } from "./driver.js";
import { LcmError } from "./errors.js";
import { budgeted, checkAsking, knownOptions } from "./options.js";

const PLAN_OPTIONS = ["mode", "force", "target", "observed_tokens", "lease_ms", "extra_json"];
const OWN_OPTIONS = ["model", "budget", "parallel", "retries", "signal", "now"];
/** Failures that another try cannot mend: the caller has to. */
const FATAL_REASONS = ["model-auth", "model-policy"];

/** The model whose tokens budget and target are. */
function modelOption({ model }) {
  return model === undefined ? {} : { extra_json: JSON.stringify({ model }) };
}

/** Options of `call` as the engine's plan takes them; all are checked to be ones of a compaction. */
export function planOptions(call, options) {
  checkAsking(knownOptions(call, options, [...PLAN_OPTIONS, ...OWN_OPTIONS]));
  const chosen = PLAN_OPTIONS.filter((key) => options[key] !== undefined);
  const plan = Object.fromEntries(chosen.map((key) => [key, options[key]]));
  return { ...plan, ...modelOption(options), requests_max: options.parallel ?? 1 };
}

/** Answers requests without a model, or with the chain of the caller's models. */
function completerOf(backend, models, options, tally) {
  if (models.length === 0) {
    return async (request) => {
      tally.completions += 1;
      const done = backend.pure("compaction.complete_offline", { request });
      return { result: { done }, exhausted: false };
    };
  }
  const ask = modelChain(models, options);
  return async (request) => {
    const { result, exhausted, calls } = await ask(request);
    tally.completions += calls;
    if (result?.failed) tally.failure = result.failed;
    return result === null ? null : { result, exhausted };
  };
}

function passOf(outcome) {
  const { summary, purpose, depth, level, capped, tokens_before, tokens_after } = outcome;
  return { summary, kind: purpose, depth, level, capped, tokens_before, tokens_after };
}

function statusOf(ended, passes) {
  if (ended.status === "refused") return "model-unavailable";
  if (ended.status === "nothing-due") return passes.length > 0 ? "done" : "nothing-to-do";
  return "partial";
}

/**
 * Compacts a conversation until nothing is due.
 *
 * Awaits the models outside of the conversation's queue, so `append` and `assemble` go on
 * meanwhile. Rejects with `completion-failed` when a model refuses its key or the content.
 */
export async function compact(backend, models, clock, conversation, given) {
  const options = budgeted("compact", given);
  const { budget, signal } = options;
  const now = () => options.now ?? clock();
  const plan = planOptions("compact", options);
  const tally = { completions: 0, failure: null };
  const ended = await drive({
    plan: (sweep) => {
      const args = { conversation, budget, options: { ...plan, sweep }, now: now() };
      return backend.call("compaction.plan", args);
    },
    complete: completerOf(backend, models, options, tally),
    apply: (request, { result: answer, exhausted }) => {
      const apply = { fallback_over_tokens: exhausted ? budget : null, ...modelOption(options) };
      const args = { conversation, request_id: request.id, answer, options: apply, now: now() };
      return backend.call("compaction.apply", args);
    },
    stopped: () => signal?.aborted ?? false,
  });
  if (FATAL_REASONS.includes(ended.reason) && tally.failure) {
    throw new LcmError("completion-failed", `${ended.reason}: ${tally.failure.message}`);
  }
  return resultOf(backend, conversation, ended, tally, now());
}

async function resultOf(backend, conversation, ended, tally, now) {
  const committed = ended.passes.filter((outcome) => outcome.applied === "committed");
  const passes = committed.map(passOf);
  const status = await backend.call("admin.status", { conversation, now });
  const tokens = JSON.parse(status).context.tokens;
  const { failure } = tally;
  const failed = failure ? [`completion-failed: ${failure.code}: ${failure.message}`] : [];
  return {
    status: statusOf(ended, passes),
    reason: ended.reason,
    passes,
    completions: tally.completions,
    tokens_before: passes[0]?.tokens_before ?? tokens,
    tokens_after: passes.at(-1)?.tokens_after ?? tokens,
    warnings: [...ended.passes.flatMap((outcome) => outcome.warnings), ...failed],
    failure,
  };
}
