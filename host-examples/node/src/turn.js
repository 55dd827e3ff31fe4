// One turn: stores messages, asks whether compaction is due, and does what is.

import { append } from "./append.js";
import { compact, decide, planOptions } from "./compact.js";
import { invalid } from "./errors.js";
import { askMaintain } from "./maintain.js";
import { budgeted } from "./options.js";

/** Arguments of a turn, checked as far as that is done here: those of its append and the others. */
function turnOptions(options, clock) {
  const { append_mode: mode, repeat, defer = false, ...given } = budgeted("turn", options);
  if (typeof defer !== "boolean") throw invalid("`defer` must be true or false");
  const { dialect, refuse_replay, family, ...work } = given;
  const now = () => given.now ?? clock();
  const appended = { dialect, refuse_replay, family, mode, repeat };
  return { defer, work, now, appended, plan: planOptions("turn", work) };
}

/** A failure behind the append, as it is told beside the receipt. */
function failureOf({ code = "trap", message }) {
  return { code, message };
}

/** What a turn does in the line of its conversation: all but the compaction. */
async function stored(backend, conversation, readTexts, options) {
  const { appended, defer, now, plan, work } = options;
  // Rejects what the decision below would: nothing is stored yet, and an evaluation writes nothing.
  await decide(backend, conversation, work.budget, plan, now());
  const texts = await readTexts();
  const receipt = await append(backend, conversation, texts, { ...appended, now: now() });
  const done = { receipt, decision: null, compacted: null, deferred: false, failure: null };
  try {
    done.decision = await decide(backend, conversation, work.budget, plan, now());
    if (done.decision.due && !done.decision.must && defer) {
      const { debt } = await askMaintain(backend, conversation, work, now());
      // What the engine sees no debt in, it would never do later: a forced pass, or a mode that
      // acts below the threshold.
      done.deferred = debt !== null;
    }
  } catch (error) {
    // A rejection would hide that the messages are stored, and they would be handed over again.
    done.failure = failureOf(error);
  }
  return done;
}

/** See `Engine.turn`; `readTexts` is the `reader` of its messages. */
export async function turn(begun, models, clock, conversation, readTexts, given) {
  const options = turnOptions(given, clock);
  const done = await begun.inLine(conversation, (backend) => {
    return stored(backend, conversation, readTexts, options);
  });
  if (done.failure || !done.decision.due || done.deferred) return done;
  try {
    const compacted = await compact(begun, models, clock, conversation, options.work);
    return { ...done, compacted, failure: compacted.failure && failureOf(compacted.failure) };
  } catch (error) {
    return { ...done, failure: failureOf(error) };
  }
}
