// What makes room: `compact` at once, `maintain` when it is time, `turn` behind an append.

import { drive } from "./drive.js";
import { invalid } from "./errors.js";
import { intake } from "./intake.js";
import { budgeted, checkAsking, knownOptions } from "./options.js";

const PLAN_OPTIONS = ["mode", "force", "target", "observed_tokens", "lease_ms", "extra_json"];
const OWN_OPTIONS = ["model", "budget", "requests_max", "retries", "timeout_ms", "signal", "now"];

/** The members of a task that options of `call` are; all are checked to be ones of a compaction. */
function workOf(call, options) {
  checkAsking(knownOptions(call, options, [...PLAN_OPTIONS, ...OWN_OPTIONS]));
  const { retries, timeout_ms, signal, now, ...work } = options;
  for (const [key, value] of Object.entries(work)) {
    // JSON would leave it out.
    if (typeof value === "function") throw invalid(`\`${key}\` must not be a function`);
  }
  return work;
}

/** What the engine decides by these options of its `evaluate`. */
export async function decide(backend, conversation, budget, options, now) {
  const args = { conversation, budget, options, now };
  return decisionOf(await backend.call("compaction.evaluate", args));
}

function decisionOf({ explanation_json: explanation, ...decision }) {
  return { ...decision, explanation: JSON.parse(explanation) };
}

/** A task with models, alone of its conversation. */
function alone(begun, models, clock, task, options) {
  const now = () => options.now ?? clock();
  const { conversation } = task;
  const first = (work) => begun.inLine(conversation, work);
  return begun.alone(conversation, options.signal, () => {
    return drive(begun, task, { now, models, options, first });
  });
}

/** Compacts until nothing is due; rejects with `completion-failed` when a model refuses its key. */
export async function compact(begun, models, clock, conversation, given) {
  const options = budgeted("compact", given);
  const task = { task: "compact", conversation, ...workOf("compact", options) };
  const { result, ...told } = await alone(begun, models, clock, task, options);
  return { ...result, ...told };
}

/** What is owed, done when it is time: `{debt, compacted, failure}`. */
export async function maintain(begun, models, clock, conversation, given) {
  const options = budgeted("maintain", given);
  const task = { task: "maintain", conversation, ...workOf("maintain", options) };
  const { result, ...told } = await alone(begun, models, clock, task, options);
  return { ...result, compacted: result.compacted && { ...result.compacted, ...told } };
}

/** Arguments of a turn, checked as far as that is done here: those of its append and the others. */
function turnOptions(options, clock) {
  const { append_mode, repeat, defer = false, ...given } = budgeted("turn", options);
  if (typeof defer !== "boolean") throw invalid("`defer` must be true or false");
  const { dialect, refuse_replay, family, ...work } = given;
  const appended = { dialect, refuse_replay, family, append_mode, repeat };
  return { defer, work, now: () => given.now ?? clock(), appended, asked: workOf("turn", work) };
}

/** A failure behind the append, as it is told beside the receipt. */
function failureOf({ code = "trap", message }) {
  return { code, message };
}

/** What a turn does in the line of its conversation: all but the compaction. */
async function stored(backend, conversation, readTexts, { appended, defer, now, asked }) {
  const { budget, model, ...options } = asked;
  const extra_json = model === undefined ? options.extra_json : JSON.stringify({ model });
  // Rejects what the decision below would: nothing is stored yet, and an evaluation writes nothing.
  await decide(backend, conversation, budget, { ...options, extra_json }, now());
  const texts = await readTexts();
  const given = { ...appended, now: now() };
  const receipt = await intake(backend, "append", conversation, texts, given);
  const done = { receipt, decision: null, compacted: null, deferred: false, failure: null };
  try {
    const task = { task: "turn", conversation, defer, ...asked };
    const { result } = await drive(backend, task, { now });
    done.decision = decisionOf(result.decision);
    done.deferred = result.deferred;
    return { done, isDue: result.compact };
  } catch (error) {
    // A rejection would hide that the messages are stored, and they would be handed over again.
    return { done: { ...done, failure: failureOf(error) }, isDue: false };
  }
}

/** See `Engine.turn`; `readTexts` is the `reader` of its messages. */
export async function turn(begun, models, clock, conversation, readTexts, given) {
  const options = turnOptions(given, clock);
  const { done, isDue } = await begun.inLine(conversation, (backend) => {
    return stored(backend, conversation, readTexts, options);
  });
  if (!isDue) return done;
  try {
    const compacted = await compact(begun, models, clock, conversation, options.work);
    return { ...done, compacted, failure: compacted.failure && failureOf(compacted.failure) };
  } catch (error) {
    return { ...done, failure: failureOf(error) };
  }
}
