// The runner of golden vectors, shared by every JavaScript host. The format is described in
// tests/vectors/README.md.
//
// In: one vector, the component and an empty store. Out: `{failures, sha256}`.
// The runner uses no files and no process, so the runner also works inside a worker.

import { Backend } from "./backend.js";
import { signatureOf } from "./convert.js";
import { storeSha256 } from "./digest.js";
import { LcmError } from "./errors.js";
import { asyncStore } from "./store-async.js";

const NOW = 1_700_000_000_000;
const DEFAULTS = { conversation: "c", now: NOW, bytes_max: 1_048_576 };
const STEP_FIELDS = ["call", "args", "expect", "expect_error", "note"];
const VECTOR_FIELDS = ["description", "config", "steps", "completions", "store_sha256"];
const MESSAGE_LISTS = ["messages", "live_messages"];
const COMPLETION_DEFAULTS = {
  finish: "stop",
  model: "scripted",
  input_tokens: 0,
  output_tokens: 0,
};

function onlyFields(object, fields, what) {
  for (const key of Object.keys(object)) {
    if (!fields.includes(key)) throw new Error(`${what} has no field \`${key}\``);
  }
}

/** Returns `start`, cut or padded with `letter` to 4 x `tokens` characters; 4 fewer from 5 tokens. */
function padded(start, letter, tokens) {
  const length = 4 * (tokens < 5 ? tokens : tokens - 1);
  return start.slice(0, length).padEnd(length, letter);
}

/** Returns the messages of `{"$generate": ...}`. */
function generated({ count, tokens, roles, first = 1 }) {
  return Array.from({ length: count }, (_, i) => {
    const content = padded(`message ${first + i} `, "x", tokens);
    return JSON.stringify({ role: roles[i % roles.length], content });
  });
}

function messageList(list) {
  return list.flatMap((item) => {
    if (typeof item === "string") return [item];
    if (item.$generate) return generated(item.$generate);
    return [JSON.stringify(item)];
  });
}

function pathValue(results, reference) {
  const [step, ...path] = reference.slice(1).split(".");
  let value = results[Number(step)];
  for (const name of path) {
    if (typeof value === "string") value = JSON.parse(value);
    value = value?.[name];
  }
  if (value === undefined) throw new Error(`\`${reference}\` names nothing`);
  return value;
}

/** Returns `value` with repeats, references and lists of messages replaced. */
function resolved(value, results, name) {
  if (typeof value === "string") {
    return /^\$\d+(\.|$)/.test(value) ? pathValue(results, value) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  if (value.$repeat) return value.$repeat.text.repeat(value.$repeat.count);
  if (Array.isArray(value)) {
    const items = value.map((item) => resolved(item, results));
    return MESSAGE_LISTS.includes(name) ? messageList(items) : items;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, resolved(item, results, key)]),
  );
}

/** Returns the arguments of a function with the defaults of the vector format. */
function withDefaults(name, args) {
  const filled = { ...args };
  for (const [param, type] of signatureOf(name).params) {
    const optional = typeof type === "object" && type.option !== undefined;
    if (filled[param] === undefined && !optional && DEFAULTS[param] !== undefined) {
      filled[param] = DEFAULTS[param];
    }
    if (param === "options" && type.ref === "compaction.options") {
      filled.options = { requests_max: 1, ...filled.options };
    }
  }
  const done = filled.answer?.done;
  if (done) filled.answer = { done: { ...COMPLETION_DEFAULTS, ...done } };
  return filled;
}

function show(value) {
  const text = JSON.stringify(value);
  return text === undefined ? "nothing" : text.length > 300 ? `${text.slice(0, 300)}...` : text;
}

const MATCHERS = {
  $length: (wanted, actual) => Array.isArray(actual) && actual.length === wanted,
  $ends: (wanted, actual) => typeof actual === "string" && actual.endsWith(wanted),
  $starts: (wanted, actual) => typeof actual === "string" && actual.startsWith(wanted),
  $contains: (wanted, actual) => typeof actual === "string" && actual.includes(wanted),
  $max: (wanted, actual) => typeof actual === "number" && actual <= wanted,
  $absent: (wanted, actual) => (actual === undefined || actual === null) === wanted,
};

/** Lists the differences between an expected and an actual value, each one line. */
export function differences(expected, actual, path = "result") {
  const mismatch = [`${path}: expected ${show(expected)}, found ${show(actual)}`];
  let found = actual;
  if (typeof expected === "object" && expected !== null && !Array.isArray(expected)) {
    const [key] = Object.keys(expected);
    if (Object.keys(expected).length === 1 && MATCHERS[key]) {
      const value = key === "$length" && typeof found === "string" ? parseOr(found) : found;
      return MATCHERS[key](expected[key], value) ? [] : mismatch;
    }
  }
  if (typeof found === "string" && typeof expected !== "string" && expected !== null) {
    found = parseOr(found);
  }
  if (typeof expected !== "object" || expected === null) {
    const absent = expected === null && found === undefined;
    return expected === found || absent ? [] : mismatch;
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || found.length !== expected.length) return mismatch;
    return expected.flatMap((item, i) => differences(item, found[i], `${path}.${i}`));
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) return mismatch;
  return Object.entries(expected).flatMap(([key, item]) =>
    differences(item, found[key], `${path}.${key}`),
  );
}

function parseOr(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The scripted completions of a vector. A request gets the first that fits and has uses left. */
class Script {
  constructor(completions) {
    this.entries = completions.map((entry) => ({ entry, left: entry.times ?? 1 }));
    this.used = 0;
  }
  next(request) {
    const found = this.entries.find(
      ({ entry, left }) => left !== -1 && (!entry.purpose || entry.purpose === request.purpose),
    );
    if (!found)
      throw new Error(`no scripted completion fits a request of purpose ${request.purpose}`);
    // 0: any number of uses; -1: no use is left.
    if (found.left > 0) found.left = found.left === 1 ? -1 : found.left - 1;
    this.used += 1;
    const { text, tokens, error, finish = "stop", model = "scripted" } = found.entry;
    if (error) return { failed: { code: error.code, message: error.message ?? "" } };
    const spoken = text ?? padded(`summary ${this.used} `, "s", tokens);
    return { done: { text: spoken, finish, model, input_tokens: 0, output_tokens: 0 } };
  }
  /** Returns a mark of the uses so far, for `rewind`. */
  mark() {
    return { used: this.used, left: this.entries.map(({ left }) => left) };
  }
  /** Undoes the uses since `mark`. */
  rewind({ used, left }) {
    this.used = used;
    this.entries.forEach((entry, i) => {
      entry.left = left[i];
    });
  }
}

/** One run of one vector. */
class Run {
  constructor(vector, makeBackend, repeats) {
    onlyFields(vector, VECTOR_FIELDS, "the vector");
    this.vector = vector;
    this.repeats = repeats;
    this.script = new Script(resolved(vector.completions ?? [], []));
    this.mark = this.script.mark();
    this.results = [];
    this.backend = makeBackend({
      configJson: vector.config === undefined ? null : JSON.stringify(vector.config),
      model: (request) => this.script.next(request),
    });
  }

  async step(step) {
    onlyFields(step, STEP_FIELDS, "a step");
    if (step.call === "compaction.run" && step.note === "blocking") {
      this.results.push(null);
      return [];
    }
    const args = resolved(step.args ?? {}, this.results);
    try {
      const result = await this.call(step.call, args);
      this.results.push(result);
      if (step.expect_error) return [`expected ${show(step.expect_error)}, found ${show(result)}`];
      return step.expect === undefined ? [] : differences(step.expect, result);
    } catch (error) {
      if (!(error instanceof LcmError)) throw error;
      this.results.push(null);
      const found = { code: error.code, message: error.message };
      if (!step.expect_error) return [`failed with ${show(found)}`];
      return differences(step.expect_error, found, "error");
    }
  }

  async call(name, args) {
    if (name === "restart") {
      const { config } = args;
      this.backend.restart(config === undefined ? undefined : JSON.stringify(config));
      return null;
    }
    if (name === "drive") return this.drive(args, (request) => this.script.next(request));
    if (name === "offline") {
      return this.drive(args, (request) => this.done("compaction.complete_offline", { request }));
    }
    return this.perform(name, withDefaults(name, args));
  }

  async perform(name, args) {
    if (!this.repeats) return this.backend.attempt(name, args);
    this.mark = this.script.mark();
    const result = await this.backend.call(name, args);
    // A refused commit replaces the instance; the next instance gets the same configuration.
    const { config_json: config } = args;
    if (name === "setup.configure") {
      this.backend.restart(typeof config === "string" ? config : JSON.stringify(config));
    }
    return result;
  }

  /** Undoes the uses of a call that is repeated after a refused commit. */
  refused() {
    this.script.rewind(this.mark);
  }

  done(name, args) {
    return { done: this.backend.pure(name, args) };
  }

  /** Plans, completes and applies until nothing is left, with the options of the step alone. */
  async drive({ conversation = "c", budget, now = NOW, options = {} }, answer) {
    const passes = [];
    for (let sweep = options.sweep; ; ) {
      const chosen = { requests_max: 1, ...options, ...(sweep && { sweep }) };
      const asked = { conversation, budget, options: chosen, now };
      const plan = await this.perform("compaction.plan", asked);
      for (let request of plan.requests) {
        while (request !== null) {
          // Requested here and not earlier: the script returns answers in the order of use.
          const args = { conversation, request_id: request.id, answer: answer(request), now };
          const outcome = await this.perform("compaction.apply", args);
          passes.push(outcome);
          const { reason } = outcome;
          if (outcome.applied === "refused" && reason.startsWith("model-")) {
            return { status: "refused", reason, passes, completions: passes.length };
          }
          request = outcome.applied === "retry" ? outcome.next : null;
        }
      }
      sweep = plan.sweep;
      if (plan.status !== "needs-completions" && sweep === "") {
        return { status: plan.status, reason: plan.reason, passes, completions: passes.length };
      }
    }
  }
}

/** Returns the store behind promises, so that every first read of a call is `would-block`. */
function promised(store) {
  return asyncStore({
    getMany: async (keys) => store.getMany(keys),
    scan: async (...args) => store.scan(...args),
    commit: async (guards, puts) => store.commit(guards, puts),
  });
}

/** Modes: `face(store, refused)` wraps the store; `repeats`: whether to repeat after conflicts. */
const MODES = {
  normal: { face: (store) => store, repeats: false },
  "would-block": { face: promised, repeats: false },
};

/**
 * Runs one vector over an empty synchronous store.
 *
 * `mode` is `normal`, `would-block` (the store behind the adapter for asynchronous stores), or an
 * object as in `MODES`, whose `face` calls `refused` for every conflict that `face` makes. Resolves
 * to `{failures, sha256}`: lines of text, none when the vector passed, and the digest of the store
 * at the end.
 */
export async function runVector(vector, mode, instantiate, store) {
  const failures = [];
  const { face, repeats } = MODES[mode] ?? mode;
  try {
    let run;
    const faced = face(store, () => run.refused());
    run = new Run(vector, (parts) => new Backend({ instantiate, store: faced, ...parts }), repeats);
    for (const [i, step] of vector.steps.entries()) {
      const found = await run.step(step);
      failures.push(...found.map((line) => `step ${i} (${step.call}): ${line}`));
    }
  } catch (thrown) {
    failures.push(`the runner failed: ${thrown.message}`);
  }
  const sha256 = await storeSha256(store);
  const wanted = vector.store_sha256;
  if (wanted !== undefined && wanted !== sha256) {
    failures.push(`the store has ${sha256}, expected ${wanted}`);
  }
  return { failures, sha256 };
}
