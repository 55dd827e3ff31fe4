// Batches, staging, concurrent intake and the model chain. The engine only returns instructions;
// its store calls are faked.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";

import { Backend, CONFLICT_RETRIES_MAX } from "../src/backend.js";
import { modelChain } from "../src/completion.js";
import { Messages } from "../src/drive.js";
import { LcmError } from "../src/errors.js";
import { intake } from "../src/intake.js";
import { modelsOf } from "../src/models.js";
import { expanded } from "../src/pages.js";
import { instantiate } from "../src/runtime.js";
import { MemoryStore } from "../src/store-memory.js";

const REQUEST = { id: "r", purpose: "leaf", model: null };

/** Returns the instructions of tasks; the calls that they request are faked. */
const engine = new Backend({ instantiate, store: new MemoryStore(), configJson: null });

/** Returns the messages that one call takes of `texts`, from index `from` on. */
const cutOf = (texts, from = 0) => {
  const count = Math.min(100, texts.length - from);
  return new Messages(texts).cut({ index_first: from, count, bytes_max: 512 * 1024 });
};

test("a call holds as many messages as it may, and at least one", () => {
  assert.equal(cutOf(Array(250).fill("x")).length, 100);
  assert.equal(cutOf(Array(250).fill("x"), 200).length, 50);
  const third = "\u00e9".repeat(100 * 1024);
  assert.equal(cutOf(Array(5).fill(third)).length, 2);
  const large = ["x", "y".repeat(600 * 1024), "z"];
  assert.deepEqual([0, 1, 2].map((from) => cutOf(large, from).length), [1, 1, 1]);
  assert.deepEqual(cutOf([]), []);
  const { measures } = new Messages(["\u00e9", "abc"]);
  assert.deepEqual(measures, { count: 2, bytes: 5, bytes_longest: 3 });
});

/** Arguments of `Messages.stage` for all texts. */
const STAGE = {
  index_first: 0,
  count: 2,
  bytes_max: 512 * 1024,
  piece_bytes_max: 192 * 1024,
  arguments: { conversation: "c", family: "f", now: 5 },
};

test("a message over 512 KiB is staged in pieces that end between code points", async () => {
  const text = `a${"\u{1F327}".repeat(160 * 1024)}\ufeff`;
  const whole = Buffer.from(text);
  const calls = [];
  const backend = {
    call: async (name, args) => {
      calls.push({ name, ...args });
      return args.offset + Buffer.byteLength(args.text);
    },
  };
  const messages = new Messages(["small", text]);
  assert.equal(await messages.stage(backend, STAGE), 1);
  assert.equal(await messages.stage(backend, STAGE), 0);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  assert.deepEqual(messages.cut({ index_first: 1, count: 1, bytes_max: 1 }), [`@upload ${sha256}`]);
  assert.equal(Buffer.concat(calls.map((call) => Buffer.from(call.text))).equals(whole), true);
  assert.equal(calls.length, Math.ceil(whole.length / (192 * 1024)));
  let offset = 0;
  for (const call of calls) {
    assert.equal(call.name, "ingest.stage");
    assert.equal(call.upload, sha256);
    assert.equal(call.extra_json, JSON.stringify({ bytes: whole.length, family: "f" }));
    assert.equal(call.offset, offset);
    assert.ok(Buffer.byteLength(call.text) <= 192 * 1024);
    assert.ok(call.text.isWellFormed?.() ?? true);
    offset += Buffer.byteLength(call.text);
  }
});

test("staging goes on where the engine says and ends when it does not advance", async () => {
  const offsets = [];
  const backend = {
    call: async (_, { offset }) => {
      offsets.push(offset);
      return 600 * 1024;
    },
  };
  const texts = ["x", "y".repeat(600 * 1024)];
  await new Messages(texts).stage(backend, STAGE);
  assert.deepEqual(offsets, [0]);
  const stuck = { call: async (_, { offset }) => offset };
  await assert.rejects(new Messages(texts).stage(stuck, STAGE), /does not advance/);
});

/**
 * A fake conversation of texts without ids that knows no list, for a task. `fault` runs before and after each append:
 * it may throw, and may write as another writer would.
 */
function fakeConversation(fault = () => {}) {
  const stored = [];
  const log = [];
  let revision = 0;
  const write = (texts) => {
    stored.push(...texts);
    revision += texts.length > 0 ? 1 : 0;
  };
  const answers = {
    "ingest.reconcile": ({ transcript_json }) => {
      const { entries, confirmed } = JSON.parse(transcript_json);
      const is = stored.every((text, i) => entries[i].hash === text);
      const from = is ? stored.length : confirmed;
      const last = entries.length - 1;
      const missing_ranges = from <= last ? [{ index_first: from, index_last: last }] : [];
      return JSON.stringify({ missing_ranges, revision, warnings: is ? [] : ["none"] });
    },
    "ingest.stage": ({ offset, text }) => offset + Buffer.byteLength(text),
    "ingest.append": ({ messages, options }) => {
      const { revision: relied = revision } = JSON.parse(options.extra_json ?? "{}");
      if (relied !== revision) throw new LcmError("conflict", "moved");
      fault("before", stored, write);
      write(messages);
      fault("after", stored, write);
      const count = messages.length;
      const receipt = { revision, ingested: count, skipped: 0, context_tokens: 1 };
      const seq_first = count ? stored.length - count + 1 : null;
      return { ...receipt, seq_first, seq_last: count ? stored.length : null, warnings: [] };
    },
  };
  const call = async (name, args) => {
    if (args.options?.extra_json?.includes('"continues"')) {
      throw new LcmError("conflict", "the beginning of the list is unknown");
    }
    log.push(name);
    return answers[name](args);
  };
  const compute = async (name, args) => {
    if (name.startsWith("drive.")) return engine.pure(name, args);
    return JSON.stringify(args.messages.map((hash) => ({ hash })));
  };
  return { stored, log, backend: { compute, call, attempt: call } };
}

const many = Array.from({ length: 250 }, (_, i) => `"${i}"`);
const ingest = (backend, texts) => intake(backend, "ingest", "c", texts, { now: 1 });

test("two ingests of one transcript at the same time store every message once", async () => {
  const { backend, stored, log } = fakeConversation();
  const both = [0, 1].map(() => ingest(backend, many));
  const receipts = await Promise.all(both);
  assert.deepEqual(stored, many);
  assert.equal(receipts[0].ingested + receipts[1].ingested, 250);
  assert.ok(receipts.every(({ ingested, skipped }) => ingested + skipped === 250));
  assert.ok(log.filter((name) => name === "ingest.reconcile").length > 2);
});

test("what was confirmed is not stored again when others write in between", async () => {
  let other = 1;
  const { backend, stored } = fakeConversation((when, texts, write) => {
    if (when === "before" && texts.length === 100 && other-- > 0) {
      write(["other"]);
      throw new LcmError("conflict", "lost");
    }
  });
  const receipt = await ingest(backend, many);
  assert.deepEqual(stored, [...many.slice(0, 100), "other", ...many.slice(100)]);
  assert.deepEqual([receipt.ingested, receipt.skipped, receipt.warnings], [250, 0, []]);
});

test("a conflict without progress is raised after so many repetitions", async () => {
  const { backend, log } = fakeConversation(() => {
    throw new LcmError("conflict", "lost");
  });
  await assert.rejects(ingest(backend, many), { code: "conflict" });
  const appends = log.filter((name) => name === "ingest.append");
  assert.equal(appends.length, CONFLICT_RETRIES_MAX + 1);
});

test("large messages are staged before the plan that appends relies on", async () => {
  const { backend, stored, log } = fakeConversation();
  await ingest(backend, ["a", "y".repeat(600 * 1024)]);
  const name = (text) => `ingest.${text}`;
  const stages = Array(4).fill("stage");
  assert.deepEqual(log, ["reconcile", ...stages, "reconcile", "append", "append"].map(name));
  assert.match(stored[1], /^@upload /);
});

test("a model that fails is asked again, then the next one, then none any more", async () => {
  const asked = [];
  const failing = (name, code) => async () => {
    asked.push(name);
    throw Object.assign(new Error(name), { code, retryAfterMs: 1 });
  };
  const models = modelsOf([failing("one", "timeout"), failing("two", "strange")]);
  const ask = modelChain(models, { retries: 1 });
  const { result, exhausted, calls } = await ask(REQUEST);
  assert.deepEqual(asked, ["one", "one", "two", "two"]);
  assert.equal(exhausted, true);
  assert.equal(calls, 4);
  assert.deepEqual(result.failed, { code: "other", message: "two", retry_after_ms: 1 });
  assert.deepEqual(await ask(REQUEST), { result, exhausted: true, calls: 0 });
  assert.equal(asked.length, 4);
});

test("a refused key or content is not asked again", async () => {
  for (const code of ["auth", "policy"]) {
    let asked = 0;
    const models = [async () => ({ error: { code, message: `${(asked += 1)}` } }), async () => ({})];
    const ask = modelChain(modelsOf(models));
    const { result, exhausted } = await ask(REQUEST);
    assert.equal(result.failed.code, code);
    assert.equal(exhausted, false);
    assert.equal(asked, 1);
  }
});

test("a cut-off answer counts if the next model refuses, but not after an abort", async () => {
  const judge = async (_, { finish }) => (finish === "length" ? "cut-off" : undefined);
  const cut = async () => ({ text: "of a garden", finish: "length" });
  for (const code of ["auth", "policy", "context-too-long"]) {
    const refuses = async () => {
      throw Object.assign(new Error("refused"), { code });
    };
    const never = async () => assert.fail("no model is asked after a refusal");
    // After a long prompt the next model is asked.
    const last = code === "context-too-long" ? [] : [never];
    const ask = modelChain(modelsOf([cut, refuses, ...last]), { retries: 0 }, judge);
    const { result, exhausted, calls } = await ask(REQUEST);
    assert.deepEqual([result.done?.text, exhausted, calls], ["of a garden", false, 2]);

    const controller = new AbortController();
    const stops = async () => {
      controller.abort();
      return refuses();
    };
    const stopped = modelChain(modelsOf([cut, stops]), { signal: controller.signal }, judge);
    assert.deepEqual(await stopped(REQUEST), { result: null, exhausted: false, calls: 2 });
  }
});

test("an answer is completed with what the engine wants to know", async () => {
  const model = async () => ({ text: "a\ud800b", inputTokens: 3, outputTokens: -1 });
  const ask = modelChain(modelsOf(model));
  const { result } = await ask({ ...REQUEST, model: "m" });
  const done = { text: "a\ufffdb", finish: "stop", model: "m", input_tokens: 3, output_tokens: 0 };
  assert.deepEqual(result, { done });
  const plain = modelChain(modelsOf(async () => "just text"), { retries: 0 });
  const counts = { input_tokens: 0, output_tokens: 0 };
  const whole = { text: "just text", finish: "stop", model: "default", ...counts };
  assert.deepEqual((await plain(REQUEST)).result, { done: whole });
});

test("a pause that no clock has, and a count beyond all, do not fail the call", async () => {
  for (const [wanted, pause] of [
    [-1, null],
    [-1e300, null],
    [NaN, null],
    ["9", null],
    [0, 0],
    [1500.5, 1501],
    [1e300, Number.MAX_SAFE_INTEGER],
    [Infinity, Number.MAX_SAFE_INTEGER],
  ]) {
    const error = { code: "rate-limited", message: "busy", retryAfterMs: wanted };
    const thrown = async () => {
      throw Object.assign(new Error("busy"), error);
    };
    for (const model of [thrown, async () => ({ error })]) {
      const { failed } = (await modelChain(modelsOf(model), { retries: 0 })(REQUEST)).result;
      assert.equal(failed.retry_after_ms, pause, `${wanted}`);
    }
  }
  const model = async () => ({ text: "t", inputTokens: 1e300, outputTokens: 2 ** 32 });
  const { done } = (await modelChain(modelsOf(model))(REQUEST)).result;
  assert.deepEqual([done.input_tokens, done.output_tokens], [0xffff_ffff, 0xffff_ffff]);
});

test("an aborted signal ends the asking", async () => {
  const controller = new AbortController();
  const model = async () => {
    controller.abort();
    throw Object.assign(new Error("gone"), { retryAfterMs: 1 });
  };
  const { result } = await modelChain(modelsOf(model), { signal: controller.signal })(REQUEST);
  assert.equal(result, null);
});

test("the same model is asked again after 0.5 s, 1 s and so on, or when it wants to", async (t) => {
  const pauses = [];
  const later = globalThis.setTimeout;
  // The timeout of an answer (90 s) ends at once, without effect, and so does every pause.
  t.mock.method(globalThis, "setTimeout", (work, ms) => {
    if (ms === 90_000) return later(() => {}, 0);
    pauses.push(ms);
    return later(work, 0);
  });
  const options = { retries: 9, timeout_ms: 90_000 };
  const failing = (wanted) => async () => {
    throw Object.assign(new Error("busy"), { code: "rate-limited", retryAfterMs: wanted });
  };
  await modelChain(modelsOf(failing(undefined)), options)(REQUEST);
  const doubled = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
  assert.deepEqual(pauses.splice(0), doubled);
  await modelChain(modelsOf(failing(60_000)), { ...options, retries: 1 })(REQUEST);
  assert.deepEqual(pauses.splice(0), [60_000]);
  const impatient = [failing(60_001), async () => "next"];
  const { result, calls } = await modelChain(modelsOf(impatient), options)(REQUEST);
  assert.deepEqual([result.done.text, calls, pauses], ["next", 2, []]);
});

/** A server that never answers, as a model; `gone` resolves when a connection is closed. */
async function silentServer(t) {
  const server = createServer(() => {});
  const gone = new Promise((resolve) => {
    server.on("connection", (socket) => socket.on("close", resolve));
  });
  const asked = new Promise((resolve) => {
    server.on("request", resolve);
  });
  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  const model = async (request, { signal }) => (await fetch(url, { signal })).text();
  return { model, asked, gone };
}

test("an answer that does not come in time is a timeout and its request ends", async (t) => {
  const { model, gone } = await silentServer(t);
  const options = { retries: 0, timeout_ms: 50 };
  const { result } = await modelChain(modelsOf(model), options)(REQUEST);
  const message = "the model did not answer in 50 ms";
  assert.deepEqual(result.failed, { code: "timeout", message, retry_after_ms: null });
  await gone;
  const deaf = () => new Promise(() => {});
  const { result: other } = await modelChain(modelsOf(deaf), options)(REQUEST);
  assert.equal(other.failed.code, "timeout");
  const own = (request) => Promise.reject(new DOMException(request.id, "TimeoutError"));
  assert.equal((await modelChain(modelsOf(own), options)(REQUEST)).result.failed.code, "timeout");
});

test("an aborted signal ends a request and a pause at once", async (t) => {
  const { model, asked, gone } = await silentServer(t);
  const controller = new AbortController();
  asked.then(() => controller.abort());
  const ask = modelChain(modelsOf(model), { signal: controller.signal });
  assert.deepEqual(await ask(REQUEST), { result: null, exhausted: false, calls: 1 });
  await gone;

  const later = new AbortController();
  const busy = async () => {
    setImmediate(() => later.abort());
    throw Object.assign(new Error("in a minute"), { retryAfterMs: 60_000 });
  };
  const began = performance.now();
  const waiting = modelChain(modelsOf([busy, model]), { signal: later.signal });
  assert.deepEqual(await waiting(REQUEST), { result: null, exhausted: false, calls: 1 });
  assert.ok(performance.now() - began < 30_000);
});

test("each purpose has models of its own, and the rest the default", async () => {
  const named = (name) => async () => name;
  const down = async () => {
    throw Object.assign(new Error("down"), { code: "unavailable", retryAfterMs: 1 });
  };
  const models = modelsOf({ default: named("any"), leaf: [down, named("leaf")], condensed: null });
  const ask = modelChain(models, { retries: 0 });
  for (const [purpose, text] of [
    ["leaf", "leaf"],
    ["condensed", "any"],
    ["ask", "any"],
  ]) {
    assert.equal((await ask({ ...REQUEST, purpose })).result.done.text, text);
  }
  for (const [wrong, message] of [
    [{ leaves: down }, /unknown purpose `leaves`/],
    [{ leaf: "model" }, /`complete.leaf` must be a function/],
    ["model", /`complete` must be a function/],
    [[1], /`complete` must be a function/],
  ]) {
    assert.throws(() => modelsOf(wrong), { code: "invalid-input", message });
  }
});

test("an expansion follows its pages, and what was paid for is not lost with the next", async () => {
  const page = (number, note, next) => {
    const grant = note && { tokens: 3, tokens_left: 9 - 3 * number, truncated: note === "spent" };
    const lists = { summaries: [number], messages: [-number] };
    const ending = { truncated: next !== null, cursor: next };
    return { id: "s", ...lists, tokens: 3, ...ending, ...(grant && { grant }) };
  };
  const reading = (pages) => async (after) => {
    const found = pages[after === null ? 0 : Number(after)];
    if (found instanceof Error) throw found;
    return found;
  };
  const all = await expanded(reading([page(1, "g", "1"), page(2, "g", null)]), { grant: "g" });
  assert.deepEqual([all.summaries, all.messages, all.tokens, all.cursor], [[1, 2], [-1, -2], 6, null]);
  assert.deepEqual(all.grant, { tokens: 6, tokens_left: 3, truncated: false });
  const broken = [page(1, "g", "1"), new Error("gone")];
  assert.equal((await expanded(reading(broken), { grant: "g" })).cursor, "1");
  await assert.rejects(expanded(reading([page(1, null, "1"), new Error("gone")]), {}), /gone/);
  const spent = [page(1, "spent", "1"), new Error("not read")];
  assert.deepEqual((await expanded(reading(spent), { grant: "g" })).summaries, [1]);
  const one = await expanded(reading([page(1, null, "1"), page(2, null, null)]), { tokens_max: 3 });
  assert.deepEqual([one.summaries, one.cursor], [[1], "1"]);
});
