// Checks of options, under the engine's names.

import { invalid } from "./errors.js";

/** Returns the options without those that the package itself reads. */
export function rest(options, ...own) {
  return Object.fromEntries(Object.entries(options).filter(([key]) => !own.includes(key)));
}

/** Returns the options, checked to have a budget. */
export function requireBudget(options) {
  if ((options.budget ?? null) === null) throw invalid("`budget` must be given");
  return options;
}

/** The longest time that a timer can be set to. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** Checks how models are asked: `retries`, `timeout_ms` and `signal`, each may be absent. */
export function checkAsking({ retries, timeout_ms: timeout, signal }) {
  if (retries !== undefined && !(Number.isSafeInteger(retries) && retries >= 0)) {
    throw invalid("`retries` must be a whole number from 0");
  }
  const isTime = Number.isSafeInteger(timeout) && timeout >= 1 && timeout <= TIMEOUT_MS_MAX;
  if (timeout !== undefined && !isTime) {
    throw invalid(`\`timeout_ms\` must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  }
  if (signal !== undefined && typeof signal?.aborted !== "boolean") {
    throw invalid("`signal` must be an `AbortSignal`");
  }
}

/** Checks the options of a compaction; returns the members of its task. */
export function taskMembers(options) {
  checkAsking(requireBudget(options));
  const work = rest(options, "retries", "timeout_ms", "signal", "now");
  for (const [key, value] of Object.entries(work)) {
    // JSON would leave the member out.
    if (typeof value === "function") throw invalid(`\`${key}\` must not be a function`);
  }
  return work;
}

/** Checks the options of a turn; returns those of its append and those of its compaction. */
export function turnOptions(options, clock) {
  const { append_mode, repeat, undated, seq_seen, system, defer, ...rest } = options;
  const { dialect, refuse_replay, family, ...work } = rest;
  if (defer !== undefined && typeof defer !== "boolean") throw invalid("`defer` must be true or false");
  const list = { dialect, refuse_replay, family, append_mode };
  const appended = { ...list, repeat, undated, seq_seen, system };
  const now = () => options.now ?? clock();
  return { defer, work, now, appended, asked: taskMembers(work) };
}
