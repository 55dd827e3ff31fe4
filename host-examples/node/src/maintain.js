// Compaction that was put off, done when it is time for it.
//
// The engine measures, remembers what is owed and when it is tried again; here it is asked, and
// told how a compaction ended.

import { drain, planOptions } from "./compact.js";
import { budgeted, rest } from "./options.js";

/** Asks what is owed and whether it is time, or with `ended` tells how a compaction ended. */
export async function askMaintain(backend, conversation, options, now, ended) {
  const { budget, observed_tokens, model } = options;
  const arguments_json = JSON.stringify({ budget, observed_tokens, model, ended });
  const call = { conversation, verb: "maintain", arguments_json, now };
  return JSON.parse(await backend.call("admin.call", call));
}

/** What is owed, done when it is time: `{debt, compacted, failure}`. */
export async function maintain(begun, models, clock, conversation, given) {
  const options = budgeted("maintain", given);
  planOptions("maintain", options);
  return begun.alone(conversation, options.signal, () => {
    return maintainAlone(begun, models, clock, conversation, options);
  });
}

async function maintainAlone(begun, models, clock, conversation, options) {
  const tell = (ended, asked = options) => {
    return askMaintain(begun, conversation, asked, options.now ?? clock(), ended);
  };
  const { debt, drain: isTime } = await tell();
  if (!isTime) return { debt, compacted: null, failure: null };
  let ended;
  try {
    ended = await drain(begun, models, clock, conversation, options);
  } catch (error) {
    if (error.code === "conflict") await tell("conflict");
    throw error;
  }
  const { reason, compacted, refusal } = ended;
  const { code, message } = refusal ?? compacted.failure ?? {};
  const failure = code === undefined ? null : { code, message };
  // What was observed is of a context before the passes.
  const told = compacted?.passes.length > 0 ? rest(options, "observed_tokens") : options;
  return { debt: (await tell(reason, told)).debt, compacted, failure };
}
