// The handle of a conversation, the dialect of `open`, and options of `open` for all calls.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Conversation, MemoryStore, open } from "../src/index.js";
import { METHODS } from "../src/shapes.js";
import { withEngine } from "./opened.js";

const CALL = { type: "tool_use", id: "toolu_1", name: "ls", input: {} };
const RESULT = { type: "tool_result", tool_use_id: "toolu_1", content: "a.txt" };
const AGENT = [
  { role: "user", content: "Which files?" },
  { role: "assistant", content: [CALL] },
  { role: "user", content: [RESULT] },
];

test("a handle has the verbs of its conversation, with its settings", async () => {
  await withEngine("memory:", async (lcm) => {
    const chat = lcm.conversation("c", { budget: 9_000, dialect: "anthropic", model: "m" });
    const turn = await chat.turn(AGENT);
    assert.deepEqual([turn.receipt.ingested, turn.receipt.warnings], [3, []]);
    const assembled = await chat.assemble();
    assert.deepEqual(assembled.messages[1], { role: "assistant", content: [CALL] });
    assert.equal(assembled.budget, 9_000);
    const other = await chat.assemble({ budget: 5_000, dialect: "openai-chat" });
    assert.equal(other.budget, 5_000);
    assert.equal(other.messages[1].tool_calls.length, 1);
    assert.deepEqual(await chat.evaluate(), await lcm.evaluate("c", { budget: 9_000, model: "m" }));
    assert.equal((await chat.describe()).messages, 3);
    assert.deepEqual(await chat.messages(), await lcm.messages("c"));
    assert.equal((await chat.grep("files")).total, (await lcm.grep("c", "files")).total);
    assert.deepEqual(chat.tools(), lcm.tools("anthropic"));
    assert.equal(chat.instructions(), lcm.instructions("anthropic"));
    assert.equal((await chat.callTool("lcm_grep", { pattern: "files" })).isError, false);
    assert.equal((await chat.listing("messages")).length, 3);
    assert.equal((await chat.ingest(AGENT)).ingested, 0);
    assert.equal(await chat.estimate(AGENT), await lcm.estimate(AGENT, "anthropic"));
    assert.ok((await chat.check()).ok);
    const lines = [];
    for await (const line of chat.export()) lines.push(line);
    assert.ok(lines.length > 3);
    assert.equal((await chat.calibrate("m", 100, 120)).changed, true);
    assert.equal((await chat.delete()).messages, 3);
  });
});

test("a handle sets aside what its caller has seen, and nothing else", async () => {
  await withEngine("memory:", async (lcm) => {
    const chat = lcm.conversation("c", { budget: 8_000 });
    const list = (last) =>
      ["What grows in the north garden?", "Beans and peas, in four rows.", last].map((content, at) => ({
        role: ["user", "assistant"][at % 2],
        content,
      }));
    const context = async () => JSON.stringify((await chat.assemble()).messages);
    await chat.append(list("And in the orchard?"));
    await chat.turn(list("And behind the greenhouse?"));
    assert.match(await context(), /greenhouse/);
    assert.doesNotMatch(await context(), /orchard/);
    await lcm.append("c", [{ role: "user", content: "The well is dry." }]);
    await chat.turn(list("And along the south wall?"));
    assert.match(await context(), /The well is dry.*south wall/s);
    await chat.delete();
    assert.equal((await chat.ingest(list("And in the orchard?"))).seqSeen, 3);
  });
});

test("a handle takes back its newest messages and goes to them again", async () => {
  await withEngine("memory:", async (lcm) => {
    const chat = lcm.conversation("c");
    const texts = ["What grows in the north garden?", "Beans and peas.", "And in the orchard?"];
    await chat.append(texts.map((content, at) => ({ role: ["user", "assistant"][at % 2], content })));
    const popped = await chat.pop();
    assert.deepEqual([popped.setAside, popped.seqLast, popped.messages.length], [1, 2, 1]);
    assert.match(popped.messages[0].content, /orchard/);
    assert.equal((await chat.rewind({ to: 0, dryRun: true })).setAside, 2);
    assert.equal((await chat.rewind({ to: 3 })).restored, 1);
    await lcm.append("c", [{ role: "user", content: "The well is dry." }]);
    await assert.rejects(chat.pop(), { code: "conflict" });
    await assert.rejects(chat.rewind(), { code: "invalid-input" });
  });
});

test("every verb of a conversation is in the handle, and refuses what the engine refuses", async () => {
  const elsewhere = ["importLines", "digest", "prompts", "configure", "live", "maintainFamily"];
  for (const method of Object.keys(METHODS).filter((name) => !elsewhere.includes(name))) {
    assert.equal(typeof Conversation.prototype[method], "function", method);
  }
  await withEngine("memory:", async (lcm) => {
    const invalid = (message) => ({ code: "invalid-input", message });
    assert.throws(() => lcm.conversation(""), invalid("`conversation` must be a text, not empty"));
    assert.throws(() => lcm.conversation("c", { bugdet: 1 }), invalid("a conversation has no option `bugdet`"));
    const chat = lcm.conversation("c", { dialect: "auto" });
    await assert.rejects(chat.turn(AGENT), invalid("`budget` must be given"));
    await assert.rejects(chat.append(AGENT, { dialekt: "lcm" }), invalid("`options` has no `dialekt`"));
    assert.equal((await chat.append(AGENT)).ingested, 3);
    await assert.rejects(chat.assemble({ budget: 100 }), /for messages that the engine writes, got `auto`/);
    const unknown = lcm.conversation("d", { budget: 1_000 });
    assert.deepEqual((await unknown.assemble()).messages, []);
    const summary = "sum_0123456789abcdef";
    const counted = { purpose: "turn", outputTokens: 8 };
    for (const call of [
      () => unknown.assemble({ mayBeNew: false }),
      () => unknown.status(),
      () => unknown.check(),
      () => unknown.messages(),
      () => unknown.listing("grants"),
      () => unknown.evaluate(),
      () => unknown.compact(),
      () => unknown.maintain(),
      () => unknown.advise({ prices: { input: 1, output: 1 } }),
      () => unknown.usage(counted),
      () => unknown.calibrate("m", 10, 12),
      () => unknown.grep("a"),
      () => unknown.embed(),
      () => unknown.ask("What?"),
      () => unknown.askPlan("What?"),
      () => unknown.describe(),
      () => unknown.describe(summary),
      () => unknown.expand(summary),
      () => unknown.grant(),
      () => unknown.revoke("grant_0123456789abcdef"),
      () => unknown.reset(),
      () => unknown.newSession(),
      () => unknown.archive("idle"),
      () => unknown.focus(),
      () => unknown.delete(),
      () => unknown.export().next(),
    ]) {
      const message = "conversation `d` does not exist";
      await assert.rejects(call(), { code: "not-found", message }, `${call}`);
    }
  });
});

test("the dialect is given once, and one that loses a call is refused", async () => {
  await withEngine("memory:", async (lcm) => {
    await assert.rejects(lcm.append("c", AGENT), {
      code: "invalid-input",
      message:
        "messages[1]: `dialect` must be `anthropic` or `auto`, got `lcm`, which loses a tool call or a tool result of the message",
    });
    await assert.rejects(lcm.turn("c", AGENT, { budget: 100 }), { code: "invalid-input" });
    await assert.rejects(lcm.status("c"), { code: "not-found" });
  });
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", AGENT);
    const { messages } = await lcm.assemble("c", { budget: 9_000 });
    assert.deepEqual(messages[2], { role: "user", content: [RESULT] });
    assert.ok(lcm.tools()[0].input_schema);
    // `messages` returns what `append` takes, byte for byte.
    const texts = await lcm.messages("c");
    assert.equal((await lcm.append("d", texts)).ingested, 3);
    assert.deepEqual(await lcm.messages("d"), texts);
  }, { dialect: "anthropic" });
  await assert.rejects(open("memory:", { dialect: "klingon" }), /`dialect` must be one of lcm, /);
});

test("a path or a store alone opens as in Python", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lcm-open-"));
  try {
    const path = join(folder, "x.db");
    const lcm = await open(path);
    await lcm.append("c", [{ role: "user", content: "One." }]);
    await lcm.close();
    const again = await open(path, { environment: {} });
    assert.equal((await again.status("c")).messages, 1);
    await again[Symbol.asyncDispose]();
    await assert.rejects(again.status("c"), { code: "invalid-input", message: "the store is closed" });
    const memory = await open(new MemoryStore());
    assert.equal((await memory.status()).conversations, 0);
    await memory.close();
    await assert.rejects(open(join(folder, "missing", "x.db")), { code: "store-unavailable" });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("one signal of the engine ends every call that asks a model", async () => {
  const lines = Array.from({ length: 60 }, (_, index) => {
    return { role: index % 2 ? "assistant" : "user", content: `Line ${index} of the log. `.repeat(40) };
  });
  const control = new AbortController();
  let asked = 0;
  const complete = (_, { signal }) => {
    asked += 1;
    control.abort(new Error("over"));
    return new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  };
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    const stopped = await lcm.compact("c", { budget: 2_000 });
    assert.deepEqual([stopped.reason, stopped.passes, asked], ["cancelled", [], 1]);
    await assert.rejects(lcm.ask("c", "Which log?"), { message: "over" });
    const own = new AbortController();
    const again = await lcm.compact("c", { budget: 2_000, signal: own.signal });
    assert.deepEqual([again.reason, asked], ["cancelled", 1]);
    // Calls that ask no model still work.
    assert.equal((await lcm.status("c")).messages, 60);
  }, { complete, signal: control.signal });
  await assert.rejects(open("memory:", { signal: "soon" }), /`signal` must be an `AbortSignal`/);
});

/** Messages of about 100 tokens each. */
const LONG = Array.from({ length: 42 }, (_, at) => ({
  role: ["user", "assistant"][at % 2],
  content: `${at} ${"a garden, a river and a letter ".repeat(14)}`,
}));

test("a handle does what a turn deferred in the background, and close waits for it", async () => {
  let answer;
  const model = { fails: false, asked: 0 };
  const complete = async () => {
    model.asked += 1;
    if (model.fails) throw Object.assign(new Error("no model"), { status: 503 });
    await new Promise((resolve) => {
      answer = resolve;
      setTimeout(resolve, 20);
    });
    return "They spoke of a garden, a river and a letter.";
  };
  const work = async (lcm) => {
    await lcm.append("measure", LONG.slice(0, 40));
    const { tokens } = await lcm.evaluate("measure", { budget: 100_000 });
    // The context exceeds the threshold (three quarters of the budget), but not the budget.
    const chat = lcm.conversation("c", { budget: Math.floor((tokens * 5) / 4) });
    const first = await chat.turn(LONG.slice(0, 40));
    assert.deepEqual([first.deferred, first.compacted, first.failure], [true, null, null]);
    assert.equal(answer === undefined || model.asked === 1, true);
    await chat.settle();
    assert.ok(model.asked > 0);
    assert.equal((await chat.evaluate()).due, false);
    const asked = model.asked;
    const next = await chat.turn(LONG.slice(0, 41));
    assert.deepEqual([next.deferred, next.failure, model.asked], [false, null, asked]);

    // The next turn reports the failure of the background compaction, and only once.
    model.fails = true;
    const other = lcm.conversation("d", { budget: Math.floor((tokens * 5) / 4) });
    assert.equal((await other.turn(LONG.slice(0, 40), { retries: 0 })).failure, null);
    await other.settle();
    const told = await other.turn(LONG.slice(0, 41), { retries: 0 });
    assert.deepEqual([told.failure.code, told.deferred], ["unavailable", true]);
    await other.settle();
    assert.equal((await other.turn(LONG.slice(0, 41), { retries: 0 })).failure, null);

    model.fails = false;
    const last = lcm.conversation("e", { budget: Math.floor((tokens * 5) / 4) });
    assert.ok((await last.turn(LONG.slice(0, 40))).deferred);
    const before = model.asked;
    await lcm.close();
    assert.ok(model.asked > before, "`close` waited");
  };
  const lcm = await open("memory:", { complete, environment: {} });
  await work(lcm);
});
