// `compact`: the plan-and-apply loop with the caller's models, and its result as one object.

import { modelChain } from "./completion.js";
import { drive } from "./driver.js";
import { LcmError } from "./errors.js";
import { modelsFor } from "./models.js";
import { budgeted, checkAsking, knownOptions, rest } from "./options.js";

const PLAN_OPTIONS = ["mode", "force", "target", "observed_tokens", "lease_ms", "extra_json"];
const OWN_OPTIONS = ["model", "budget", "parallel", "retries", "timeout_ms", "signal", "now"];
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

/** What the engine decides by these options of its `evaluate`. */
export async function decide(backend, conversation, budget, options, now) {
  const args = { conversation, budget, options, now };
  const { explanation_json, ...fields } = await backend.call("compaction.evaluate", args);
  return { ...fields, explanation: JSON.parse(explanation_json) };
}

/** Answers requests without a model, or with the chain of the caller's models. */
function completerOf(begun, models, options, tally) {
  const chain = modelChain(models, options);
  return async (request) => {
    if (modelsFor(models, request.purpose).length === 0) {
      tally.completions += 1;
      const done = await begun.compute("compaction.complete_offline", { request });
      return { result: { done }, exhausted: false };
    }
    const { result, exhausted, calls } = await chain(request);
    tally.completions += calls;
    if (result?.failed) tally.failure = result.failed;
    return result === null ? null : { result, exhausted };
  };
}

/** Whether this answer became a summary. One that another made before leaves the context as it is. */
function isMade({ applied, tokens_before, tokens_after }) {
  return applied === "committed" && tokens_after < tokens_before;
}

function passOf(outcome) {
  const { summary, purpose, depth, level, capped, tokens_before, tokens_after } = outcome;
  return { summary, kind: purpose, depth, level, capped, tokens_before, tokens_after };
}

/** How it ended; `served`: a summary was made in place of exhausted models. */
function statusOf({ status, reason }, { served }, passes, stillDue) {
  if (served) return "partial";
  if (status === "refused" || reason === "breaker-open") return "model-unavailable";
  if (status !== "nothing-due") return "partial";
  if (passes.length === 0) return "nothing-to-do";
  return stillDue ? "partial" : "done";
}

/**
 * Compacts a conversation until nothing is due, and says how it ended: `compacted`, or `refusal`
 * when a model refuses its key or the content, each with the engine's `reason`.
 *
 * Awaits the models outside of the conversation's line, so `append` and `assemble` go on meanwhile.
 * Of one conversation at a time: see `Calls`.
 */
export async function drain(begun, models, clock, conversation, options) {
  const { budget, signal } = options;
  const now = () => options.now ?? clock();
  const plan = planOptions("compact", options);
  const tally = { completions: 0, failure: null, served: false };
  const ended = await drive({
    plan: (sweep) => {
      const args = { conversation, budget, options: { ...plan, sweep }, now: now() };
      return begun.call("compaction.plan", args);
    },
    complete: completerOf(begun, models, options, tally),
    apply: async (request, { result: answer, exhausted }) => {
      const apply = { fallback_over_tokens: exhausted ? budget : null, ...modelOption(options) };
      const args = { conversation, request_id: request.id, answer, options: apply, now: now() };
      const outcome = await begun.call("compaction.apply", args);
      tally.served ||= exhausted && isMade(outcome);
      return outcome;
    },
    stopped: () => signal?.aborted ?? false,
  });
  const { reason } = ended;
  if (FATAL_REASONS.includes(reason) && tally.failure) {
    const refusal = new LcmError("completion-failed", `${reason}: ${tally.failure.message}`);
    return { reason, refusal, compacted: null };
  }
  // Whether more is due after the passes: what was observed is of a context before them.
  const after = { ...rest(plan, "observed_tokens"), force: false };
  const decision = await decide(begun, conversation, budget, after, now());
  return { reason, refusal: null, compacted: resultOf(ended, tally, decision) };
}

/** Compacts; rejects with `completion-failed` when a model refuses its key or the content. */
export async function compact(begun, models, clock, conversation, given) {
  const options = budgeted("compact", given);
  planOptions("compact", options);
  const { compacted, refusal } = await begun.alone(conversation, options.signal, () => {
    return drain(begun, models, clock, conversation, options);
  });
  if (refusal) throw refusal;
  return compacted;
}

function resultOf(ended, tally, decision) {
  const passes = ended.passes.filter(isMade).map(passOf);
  const { explanation } = decision;
  const tokens = explanation.inputs.stored_tokens;
  const { failure } = tally;
  const failed = failure ? [`completion-failed: ${failure.code}: ${failure.message}`] : [];
  const said = ended.passes.flatMap((outcome) => outcome.warnings);
  return {
    status: statusOf(ended, tally, passes, decision.due),
    reason: ended.reason,
    passes,
    completions: tally.completions,
    tokens_before: passes[0]?.tokens_before ?? tokens,
    tokens_after: passes.at(-1)?.tokens_after ?? tokens,
    warnings: [...new Set([...said, ...explanation.warnings, ...failed])],
    failure,
  };
}
