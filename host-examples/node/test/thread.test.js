// `open({ worker: true })`: the engine in a worker thread, and which calls still run in the thread
// of the caller.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

import { MemoryStore, open } from "../src/index.js";
import { Component } from "../src/component.js";
import { openWith } from "../src/open.js";
import { ThreadBackend } from "../src/thread-backend.js";
import { walkthrough } from "../src/walkthrough.js";

const transcript = fileURLToPath(new URL("../../walkthrough.jsonl", import.meta.url));
const NOW = 1_700_000_000_000;
let folder;
let lines;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-thread-"));
  lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");
});
after(() => rm(folder, { recursive: true, force: true }));

/** Runs `work` over an engine in a thread and closes it. */
async function withThread(work, options) {
  const lcm = await open({ store: "memory:", environment: {}, worker: true, ...options });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

test("a thread ends with the store that there is without one", async () => {
  const plain = await open({ store: "memory:", environment: {} });
  const expected = await walkthrough(plain, lines);
  const store = join(folder, "walkthrough.lcm.db");
  assert.deepEqual(await withThread((lcm) => walkthrough(lcm, lines), { store }), expected);
  const again = await open({ store, environment: {} });
  assert.equal(await again.digest(), expected.digest);
  await again.close();
});

test("what is the same without a store is the same in both threads", async () => {
  const plain = await open({ store: "memory:", environment: {} });
  await withThread(async (lcm) => {
    assert.equal(lcm.version, plain.version);
    assert.deepEqual(lcm.tools("anthropic"), plain.tools("anthropic"));
    assert.equal(lcm.instructions("anthropic", true), plain.instructions("anthropic", true));
    assert.equal(await lcm.estimate(lines), await plain.estimate(lines));
    const config = { fresh_tail_messages_max: 8 };
    assert.deepEqual(await lcm.configure(config), await plain.configure(config));
    await Promise.all([lcm, plain].map((one) => one.append("c", lines, { now: NOW })));
    const decide = (one) => one.evaluate("c", { budget: 3000, now: NOW });
    const [here, there] = await Promise.all([lcm, plain].map(decide));
    assert.deepEqual(here, there);
  });
});

test("models are asked in the thread that opened, and others go on meanwhile", async () => {
  const order = [];
  let think;
  const thinking = new Promise((resolve) => {
    think = resolve;
  });
  const complete = async () => {
    assert.equal(isMainThread, true);
    await thinking;
    return { text: "the tests of the module fail" };
  };
  await withThread(
    async (lcm) => {
      await lcm.append("c", lines);
      const compacting = lcm.compact("c", { budget: 3000 }).then((done) => {
        order.push("compacted");
        return done;
      });
      await lcm.append("c", [{ role: "user", content: "and now?" }], { appendMode: "new" });
      await lcm.assemble("c", { budget: 3000 });
      order.push("appended");
      think();
      assert.ok((await compacting).passes.length > 0);
      assert.deepEqual(order, ["appended", "compacted"]);
    },
    { complete },
  );
});

/** Resolves to the component's calls in this thread while a conversation is stored and read. */
async function doneHere(t, worker) {
  const names = new Set();
  const { invoke } = Component.prototype;
  t.mock.method(Component.prototype, "invoke", function (name, args) {
    names.add(name);
    return invoke.call(this, name, args);
  });
  const lcm = await open({ store: "memory:", environment: {}, worker });
  await lcm.ingest("c", [...lines, ...lines]);
  await lcm.turn("c", [{ role: "user", content: "and now?" }], { budget: 3000 });
  await lcm.maintain("c", { budget: 3000 });
  await lcm.assemble("c", { budget: 3000 });
  await lcm.grep("c", "module");
  await lcm.ask("c", "Which module?");
  await lcm.estimate(lines);
  await lcm.close();
  t.mock.restoreAll();
  return [...names];
}

test("with a thread the engine does nothing in that of the caller", async (t) => {
  const without = await doneHere(t, false);
  assert.ok(without.includes("ingest.append") && without.includes("compaction.complete_offline"));
  assert.deepEqual(await doneHere(t, true), []);
});

test("a signal ends a compaction and a question whose model never answers", async () => {
  const asked = [];
  let controller;
  const complete = (request, { signal }) => {
    asked.push(request.purpose);
    setImmediate(() => controller.abort());
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  };
  await withThread(
    async (lcm) => {
      await lcm.append("c", lines);
      controller = new AbortController();
      const { reason, passes } = await lcm.compact("c", {
        budget: 3000,
        signal: controller.signal,
      });
      assert.deepEqual([reason, passes], ["cancelled", []]);
      controller = new AbortController();
      const question = lcm.ask("c", "which module?", { signal: controller.signal });
      await assert.rejects(question, { name: "AbortError" });
      assert.deepEqual(asked, ["leaf", "ask"]);
    },
    { complete },
  );
});

test("errors cross with their code and cause", async () => {
  await withThread(async (lcm) => {
    const unknown = { name: "LcmError", code: "not-found" };
    await assert.rejects(lcm.assemble("nobody", { budget: 3000 }), unknown);
    const wrong = { name: "LcmError", code: "invalid-input" };
    await assert.rejects(lcm.compact("c", { budget: "much" }), wrong);
    await assert.rejects(lcm.compact("c", { budget: 3000, target: () => 1 }), wrong);
    // The thread still works.
    assert.equal((await lcm.append("c", lines)).ingested, lines.length);
  });
  const path = join(folder, "none", "agent.lcm.db");
  const absent = open({ store: path, worker: true });
  await assert.rejects(absent, ({ code, cause }) => {
    return code === "store-unavailable" && cause instanceof Error && cause.message !== "";
  });
  const foreign = join(folder, "foreign.db");
  await writeFile(foreign, "no store at all, but a text that is long enough".repeat(100));
  await assert.rejects(open({ store: foreign, worker: true }), { code: "unsupported" });
});

test("a store that is an object stays where it is, so there is no thread for it", async () => {
  const invalid = { code: "invalid-input" };
  await assert.rejects(open({ store: new MemoryStore(), worker: true }), invalid);
  await assert.rejects(open({ store: "memory:", worker: "yes" }), invalid);
  const none = openWith({}, { store: "memory:", worker: true });
  await assert.rejects(none, { code: "unsupported" });
});

test("close waits for what is running, and nothing is done behind it", async () => {
  const lcm = await open({ store: "memory:", environment: {}, worker: true });
  await lcm.append("c", lines);
  const status = lcm.status("c");
  await Promise.all([lcm.close(), lcm.close()]);
  assert.equal((await status).messages, lines.length);
  await assert.rejects(lcm.append("c", lines), { code: "invalid-input" });
});

test("a program ends though its engine was not closed, but not before its calls did", () => {
  const index = JSON.stringify(new URL("../src/index.js", import.meta.url).href);
  const program = `
    import { open } from ${index};
    const lcm = await open({ store: "memory:", worker: true });
    lcm.append("c", [{ role: "user", content: "x" }]).then(({ ingested }) => console.log(ingested));
  `;
  const args = ["--input-type=module", "--eval", program];
  const options = { encoding: "utf8", timeout: 60_000 };
  assert.equal(execFileSync(process.execPath, args, options), "1\n");
});

test("calls of a thread that ended are refused as of unknown outcome", async () => {
  const worker = Object.assign(new EventEmitter(), { postMessage() {}, ref() {}, unref() {} });
  const backend = new ThreadBackend(worker);
  const running = backend.call("ingest.append", { conversation: "c" });
  worker.emit("error", new Error("out of memory"));
  worker.emit("exit", 1);
  const lost = { code: "store-unavailable", message: /the worker thread ended: out of memory/ };
  await assert.rejects(running, lost);
  await assert.rejects(backend.call("ingest.append", { conversation: "c" }), lost);
  await backend.close();
});
