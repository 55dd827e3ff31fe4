// The options of a call: an object, of names that the call knows.

import { invalid } from "./errors.js";

/** Options without the ones the package itself reads. */
export function rest(options, ...own) {
  return Object.fromEntries(Object.entries(options).filter(([key]) => !own.includes(key)));
}

/** What was given as the options of `call`, as an object of its own; none: an empty one. */
export function optionsOf(call, options) {
  const given = options ?? {};
  if (typeof given !== "object" || Array.isArray(given)) {
    throw invalid(`the options of ${call} must be an object`);
  }
  return { ...given };
}

/** The same, checked to have no other names than these. */
export function knownOptions(call, options, names) {
  const given = optionsOf(call, options);
  for (const key of Object.keys(given)) {
    if (!names.includes(key)) throw invalid(`${call} has no option \`${key}\``);
  }
  return given;
}

/** The same, checked to name a budget. */
export function budgeted(call, options) {
  const given = optionsOf(call, options);
  if ((given.budget ?? null) === null) throw invalid(`${call} needs \`budget\``);
  return given;
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

export const INGEST_OPTIONS = ["dialect", "refuse_replay", "family", "now"];
export const APPEND_OPTIONS = [...INGEST_OPTIONS, "mode", "repeat"];
const PLAN_OPTIONS = ["mode", "force", "target", "observed_tokens", "lease_ms", "extra_json"];
const OWN_OPTIONS = ["model", "budget", "parallel", "retries", "timeout_ms", "signal", "now"];

/** Checks the options of a compaction; returns the members of its task. */
export function workOf(call, options) {
  checkAsking(knownOptions(call, options, [...PLAN_OPTIONS, ...OWN_OPTIONS]));
  const { parallel, retries, timeout_ms, signal, now, ...work } = options;
  for (const [key, value] of Object.entries(work)) {
    // JSON would leave it out.
    if (typeof value === "function") throw invalid(`\`${key}\` must not be a function`);
  }
  return { ...work, requests_max: parallel };
}

/** Checks the options of a turn; returns those of its append and those of its compaction. */
export function turnOptions(options, clock) {
  const { append_mode: mode, repeat, defer = false, ...given } = budgeted("turn", options);
  if (typeof defer !== "boolean") throw invalid("`defer` must be true or false");
  const { dialect, refuse_replay, family, ...work } = given;
  const appended = { dialect, refuse_replay, family, mode, repeat };
  return { defer, work, now: () => given.now ?? clock(), appended, asked: workOf("turn", work) };
}
