// Calls that are not awaited one by one: their order, their arguments, for what `close` waits, and
// that a model is not asked twice for the same summary.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";

import { Component } from "../src/component.js";
import { asyncStore, MemoryStore } from "../src/index.js";
import { delay, slowStore } from "./fake.js";
import { NOW, opened } from "./opened.js";

const transcript = new URL("../../walkthrough.jsonl", import.meta.url);
const lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-order-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const slow = (inner) => asyncStore(slowStore(inner, 1));
const said = (content) => ({ role: "user", content });

/** Returns functions that make calls of several kinds; each call depends on the calls before. */
function life(lcm) {
  const many = Array.from({ length: 120 }, (_, at) => said(`number ${at}`));
  return [
    () => lcm.append("c", lines.slice(0, 20)),
    () => lcm.turn("c", lines.slice(0, 30), { budget: 100_000 }),
    () => lcm.evaluate("c", { budget: 3000 }),
    () => lcm.ingest("c", [...lines.slice(0, 30), ...many]),
    () => lcm.messages("c"),
    () => lcm.turn("c", [said("and now?")], { budget: 100_000, appendMode: "new" }),
    () => lcm.assemble("c", { budget: 100_000 }),
    () => lcm.append("c", many, { appendMode: "new" }),
    () => lcm.status("c"),
    () => lcm.grep("c", "number"),
    () => lcm.check("c"),
  ];
}

test("calls that nobody awaits end as if they had been awaited, one after the other", async () => {
  const stores = [new MemoryStore(), new MemoryStore()];
  const [first, second] = await Promise.all(stores.map((store) => opened(slow(store))));
  const awaited = [];
  for (const call of life(first)) awaited.push(await call());
  const together = await Promise.all(life(second).map((call) => call()));
  assert.deepEqual(together, awaited);
  assert.equal(await second.digest(), await first.digest());
});

test("a compaction that nobody awaits begins before what was called after it", async (t) => {
  const names = [];
  const { invoke } = Component.prototype;
  t.mock.method(Component.prototype, "invoke", function (name, args) {
    // Calls that read no store are not queued, so their order does not matter.
    const isPure = name === "compaction.complete_offline" || name.startsWith("drive.");
    if (!isPure) names.push(name.split(".")[1]);
    return invoke.call(this, name, args);
  });
  const lcm = await opened(new MemoryStore());
  const calls = [
    lcm.turn("c", lines, { budget: 100_000 }),
    lcm.compact("c", { budget: 3000 }),
    lcm.turn("c", [said("and now?")], { budget: 100_000 }),
    lcm.maintain("c", { budget: 100_000 }),
    lcm.append("c", [said("or then?")]),
  ];
  await Promise.all(calls);
  const turn = ["evaluate", "append", "evaluate"];
  // Only the maintenance waits for the compaction; all other calls run while it asks the model.
  assert.deepEqual(names.slice(0, 8), [...turn, "plan", ...turn, "append"]);
  const [apply, told] = [names.lastIndexOf("apply"), names.indexOf("call")];
  assert.ok(apply > 8 && told > apply, names.join());
});

test("what a call was given may be changed as soon as it was made", async () => {
  const lcm = await opened(slow(new MemoryStore()));
  const list = Array.from({ length: 250 }, (_, at) => said(`message ${at} of the list`));
  const settings = { dialect: "lcm", now: NOW };
  const options = { budget: 100_000, ...settings };
  // Long enough that reading it takes several milliseconds.
  const long = [said("x".repeat(8 << 20)), said("y".repeat(400))];
  const estimated = lcm.estimate(long);
  long[1].content = "changed";
  const calls = [
    lcm.append("a", list, settings),
    lcm.ingest("b", list),
    lcm.turn("d", list, options),
    lcm.assemble("e", { budget: 100_000, liveMessages: list.slice(0, 100) }),
  ];
  for (const message of list) message.content = "changed";
  list.length = 1;
  settings.dialect = "none";
  Object.assign(options, { dialect: "none", budget: 0 });
  await Promise.all(calls);
  for (const conversation of ["a", "b", "d"]) {
    const stored = (await lcm.messages(conversation)).map((text) => JSON.parse(text).content);
    assert.equal(stored.length, 250, conversation);
    assert.ok(stored.every((text, at) => text === `message ${at} of the list`), conversation);
  }
  assert.equal((await calls[3]).messages.length, 100);
  assert.equal(await estimated, (8 << 20) / 4 + 100);
});

/** A store that counts how often it was closed, and fails if it is used afterwards. */
function closable(inner) {
  const state = { closed: 0 };
  const used = (name) => async (...args) => {
    await delay(1);
    assert.equal(state.closed, 0, `${name} of a closed store`);
    return inner[name](...args);
  };
  const store = { getMany: used("getMany"), scan: used("scan"), commit: used("commit") };
  store.close = async () => {
    state.closed += 1;
  };
  return { store: asyncStore(store), state };
}

/** A model that takes 3 ms, and counts for each request id how often it was asked. */
function counting() {
  const asked = new Map();
  const complete = async ({ id, purpose }) => {
    asked.set(id, (asked.get(id) ?? 0) + 1);
    await delay(3);
    return purpose === "ask" ? "nothing was said of it" : "the tests of the module fail";
  };
  return { complete, asked };
}

test("close waits for what began before, models included, and refuses what comes later", async () => {
  const { complete, asked } = counting();
  const { store, state } = closable(new MemoryStore());
  const lcm = await opened(store, { complete });
  await lcm.append("c", lines);
  await lcm.append("d", lines);
  const running = [
    lcm.compact("c", { budget: 3000 }),
    lcm.turn("d", [said("and now?")], { budget: 3000, defer: false }),
    lcm.maintain("c", { budget: 3000 }),
    lcm.ask("c", "What was decided about the batch window?"),
    lcm.callTool("d", "lcm_expand_query", { prompt: "Which module?" }),
    lcm.ingest("e", [...lines, ...lines]),
    lcm.messages("c"),
  ];
  const closing = lcm.close();
  const closed = { code: "invalid-input", message: "the store is closed" };
  const late = [
    () => lcm.append("c", lines),
    () => lcm.compact("c", { budget: 3000 }),
    () => lcm.ask("c", "Which module?"),
    () => lcm.estimate(lines),
    () => lcm.configure({}),
    () => lcm.digest(),
  ];
  for (const call of late) await assert.rejects(call(), closed);
  assert.equal(state.closed, 0);
  const [compacted, turn] = await Promise.all(running);
  assert.deepEqual([compacted.status, turn.compacted.status], ["done", "done"]);
  await closing;
  assert.equal(await lcm.close(), undefined);
  assert.equal(state.closed, 1);
  assert.ok(asked.size > 2);
});

/** Runs overlapping calls on one engine for each of `stores`; resolves to results and counts. */
async function overlapping(stores, calls, worker = false) {
  const { complete, asked } = counting();
  const handles = await Promise.all(stores.map((store) => opened(store, { complete, worker })));
  await handles[0].append("c", lines);
  const done = await Promise.all(calls.map((call, at) => call(handles[at % handles.length])));
  const left = await handles[0].evaluate("c", { budget: 3000 });
  const made = (await handles[0].listing("summaries", { conversation: "c" })).length;
  await Promise.all(handles.map((handle) => handle.close()));
  return { done, asked, left, made };
}

const compact = (lcm) => lcm.compact("c", { budget: 3000 });
const passes = (done) => done.flatMap((one) => (one.compacted ?? one).passes ?? []);

test("of compactions that overlap one waits for the other, in two handles, too", async () => {
  const memory = new MemoryStore();
  const late = slowStore(new MemoryStore(), 1);
  const path = join(folder, "overlap.lcm.db");
  const linked = join(folder, "linked.lcm.db");
  await symlink(path, linked);
  const stores = {
    object: [memory, memory],
    declared: [asyncStore(late), asyncStore(late)],
    file: [path, linked],
    thread: [join(folder, "thread.lcm.db"), join(folder, "..", basename(folder), "thread.lcm.db")],
  };
  for (const [name, both] of Object.entries(stores)) {
    const calls = [compact, (lcm) => lcm.maintain("c", { budget: 3000 }), compact];
    const { done, asked, left, made } = await overlapping(both, calls, name === "thread");
    assert.ok(asked.size > 0 && [...asked.values()].every((times) => times === 1), name);
    assert.equal(left.due, false);
    assert.equal(passes(done).length, made, name);
    assert.deepEqual([done[0].status, done[2].status], ["done", "nothing-to-do"], name);
    assert.deepEqual(done[1], { debt: null, compacted: null, failure: null }, name);
  }
});

test("what another made is no pass, wherever it was made", async () => {
  const inner = new MemoryStore();
  // Two objects over one store, which the package cannot recognise as one, like two processes.
  const view = () => ({
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => inner.commit(guards, puts),
  });
  const unleased = (lcm) => lcm.compact("c", { budget: 3000, leaseMs: 0 });
  const { done, asked, made } = await overlapping([view(), view()], [unleased, unleased]);
  assert.ok([...asked.values()].some((times) => times === 2), "both asked for the same");
  const summaries = passes(done).map(({ summaryId }) => summaryId);
  assert.equal(new Set(summaries).size, summaries.length);
  assert.equal(summaries.length, made);
  assert.ok(passes(done).every((pass) => pass.tokensAfter < pass.tokensBefore));
});

test("of compactions in several processes each has requests of its own", async () => {
  const inner = new MemoryStore();
  const view = () => ({
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => inner.commit(guards, puts),
  });
  const stores = [view(), view(), view()];
  const { done, asked, made } = await overlapping(stores, [compact, compact, compact]);
  assert.ok(made > 2);
  assert.ok([...asked.values()].every((times) => times === 1), "no request was made twice");
  assert.equal(passes(done).length, made);
  for (const { status, reason } of done) assert.ok(status === "done" || reason === "conflict");
});

test("a compaction that waits for another is ended by its signal", async () => {
  let answer;
  const thinking = new Promise((resolve) => {
    answer = resolve;
  });
  const lcm = await opened(new MemoryStore(), { complete: () => thinking });
  await lcm.append("c", lines);
  const first = compact(lcm);
  const controller = new AbortController();
  const options = { budget: 3000, signal: controller.signal };
  const second = lcm.compact("c", options);
  const turn = lcm.turn("c", [said("and now?")], options);
  controller.abort();
  assert.deepEqual([(await second).reason, (await second).passes], ["cancelled", []]);
  assert.equal((await turn).compacted.reason, "cancelled");
  assert.equal((await turn).receipt.ingested, 1);
  answer("the tests of the module fail");
  assert.equal((await first).status, "done");
});
