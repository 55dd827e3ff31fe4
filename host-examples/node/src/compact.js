// Compaction: `compact` at once, `maintain` when deferred compaction is due, `turn` after an
// append; `resummarize` makes provisional summaries again.
//
// `host` is `{models, clock}`; options have the engine's names.

import { drive } from "./drive.js";
import { intake } from "./intake.js";
import { taskMembers, turnOptions } from "./options.js";

/** Resolves to the decision of `evaluate`. */
export async function decide(backend, conversation, budget, options, now) {
  const args = { conversation, budget, options, now };
  return decisionOf(await backend.call("compaction.evaluate", args));
}

function decisionOf({ explanation_json: explanation, ...decision }) {
  return { ...decision, explanation: JSON.parse(explanation) };
}

/** Carries out a task with models while no other such task of the conversation runs. */
function alone(name, begun, { models, clock }, conversation, options, more = {}) {
  const task = { task: name, conversation, ...taskMembers(options), ...more };
  const now = () => options.now ?? clock();
  const first = (work) => begun.inLine(conversation, work);
  const run = () => drive(begun, task, { now, models, options, first });
  return begun.alone(conversation, options.signal, run);
}

/**
 * Compacts until nothing is due, or the engine stops for another reason. Rejects with
 * `completion-failed` when a model refuses its key or the content.
 */
export async function compact(...given) {
  const { result, ...details } = await alone("compact", ...given);
  return { ...result, ...details };
}

/** Makes provisional summaries again. */
export async function resummarize(...given) {
  const { result, ...details } = await alone("resummarize", ...given);
  return { ...result, ...details };
}

/** Does deferred compaction when it is due; resolves to `{debt, compacted, failure}`. */
export async function maintain(...given) {
  const { result, ...details } = await alone("maintain", ...given);
  return { ...result, compacted: result.compacted && { ...result.compacted, ...details } };
}

/** Returns a failure after the append, as a member beside the receipt: the model's own, if any. */
export function failureOf({ code = "trap", message, failure }) {
  return failure ?? { code, message };
}

/** Stores the messages of a turn in `done` and decides; resolves to whether to compact now. */
async function stored(backend, conversation, readTexts, { appended, defer, now, asked }, done) {
  const { budget, model, ...options } = asked;
  options.extra_json = JSON.stringify({ model, may_be_new: true });
  // Options that the decision below refuses are refused before anything is stored.
  await decide(backend, conversation, budget, options, now());
  const texts = await readTexts();
  const given = { ...appended, now: now() };
  done.receipt = await intake(backend, "append", conversation, texts, given);
  const task = { task: "turn", conversation, defer, ...asked };
  const { result } = await drive(backend, task, { now });
  done.decision = decisionOf(result.decision);
  done.deferred = result.deferred;
  return result.compact;
}

/** Takes a turn, as `Engine.turn` describes; `readTexts` is the `reader` of its messages. */
export async function turn(begun, host, conversation, readTexts, given) {
  const options = turnOptions(given, host.clock);
  const done = { receipt: null, decision: null, compacted: null, deferred: false, failure: null };
  const store = (backend) => stored(backend, conversation, readTexts, options, done);
  try {
    if (await begun.inLine(conversation, store)) {
      done.compacted = await compact(begun, host, conversation, options.work, { turn: true });
      done.failure = done.compacted.failure && failureOf(done.compacted.failure);
    }
  } catch (error) {
    // A rejection would hide that the messages are stored, and the caller would pass them again.
    if (done.receipt === null) throw error;
    done.failure = failureOf(error);
  }
  return done;
}
