// Exports and imports between stores, and results that are read as streams.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { NOW, opened } from "./opened.js";

const transcript = new URL("../../walkthrough.jsonl", import.meta.url);
const lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");

async function collected(stream) {
  const all = [];
  for await (const one of stream) all.push(one);
  return all;
}

/** Resolves to an engine with the walkthrough as `c`, compacted, and 400 messages as `d`. */
async function filled(worker = false) {
  const lcm = await opened("memory:", { worker });
  await lcm.append("c", lines);
  await lcm.compact("c", { budget: 3000 });
  const many = Array.from({ length: 400 }, (_, at) => ({ role: "user", content: `number ${at}` }));
  await lcm.append("d", many, { appendMode: "new" });
  return lcm;
}

const empty = () => opened("memory:");

test("an export makes the same conversations in another store, and once", async () => {
  for (const worker of [false, true]) {
    const [lcm, other] = [await filled(worker), await empty()];
    const exported = await collected(lcm.export());
    assert.ok(exported.length > 464 && exported.every((line) => !line.includes("\n")));
    const report = await other.importLines(exported);
    const { summaries } = report;
    assert.ok(summaries > 0);
    const all = { conversations: 2, messages: 464 };
    assert.deepEqual(report, { ...all, ingested: 464, summaries, contexts: 1 });
    assert.equal(await other.digest({ logical: true }), await lcm.digest({ logical: true }));
    assert.deepEqual(await other.messages("c"), lines);
    const none = { ...all, ingested: 0, summaries: 0, contexts: 0 };
    assert.deepEqual(await other.importLines(exported), none);
    // The lines may come from the same engine that imports them.
    assert.deepEqual(await lcm.importLines(lcm.export()), none);
    await lcm.close();
  }
});

test("one conversation comes from a stream, with the ends of its lines", async () => {
  const [lcm, other] = [await filled(), await empty()];
  async function* ended() {
    for await (const line of lcm.export("d")) yield `${line}\r\n`;
  }
  const { conversations, ingested } = await other.importLines(ended());
  assert.deepEqual([conversations, ingested], [1, 400]);
  assert.deepEqual(await other.messages("d"), await lcm.messages("d"));
  await assert.rejects(other.messages("c"), { code: "not-found" });
});

test("an export during which somebody writes, and half of one, are none", async () => {
  const [lcm, other] = [await filled(), await empty()];
  const long = { role: "user", content: "x".repeat(300_000) };
  await lcm.append("d", [long, long, long], { appendMode: "new", now: NOW + 1 });
  const stream = lcm.export("d");
  await stream.next();
  await lcm.append("d", [{ role: "user", content: "between" }]);
  await assert.rejects(collected(stream), { code: "conflict" });
  const half = (await collected(lcm.export("c"))).slice(0, -1);
  await assert.rejects(other.importLines(half), { code: "invalid-input" });
  assert.deepEqual(await other.listing("conversations"), []);
});

test("what cannot be exported or imported is said", async () => {
  const lcm = await filled();
  assert.throws(() => lcm.export(""), { code: "invalid-input" });
  await assert.rejects(lcm.export("e").next(), { code: "not-found" });
  for (const wrong of [undefined, "a line", 7, [7], ["no export"], []]) {
    await assert.rejects(lcm.importLines(wrong), { code: "invalid-input" }, `${wrong}`);
  }
  await assert.rejects(lcm.importLines([], { dialekt: 1 }), { message: /dialekt/ });
});

test("a stream has what the call has, and is read as it is taken", async () => {
  const lcm = await filled();
  assert.deepEqual(await collected(lcm.iterMessages("c")), lines);
  const range = { seqFirst: 3, seqLast: 5 };
  assert.deepEqual(await collected(lcm.iterMessages("c", range)), lines.slice(2, 5));
  assert.throws(() => lcm.iterMessages("c", { form: 3 }), { message: /form/ });
  const stream = lcm.iterMessages("d", { seqFirst: 399 });
  assert.match((await stream.next()).value, /number 398/);
  await stream.return();

  const [first] = await lcm.listing("summaries", { conversation: "c" });
  const options = { includeMessages: true, depthMax: 10 };
  const whole = await lcm.expand("c", first.id, options);
  // Pages of the smallest size: just large enough for the largest summary or message.
  const tokensMax = Math.max(...[...whole.summaries, ...whole.messages].map(({ tokens }) => tokens));
  const pages = await collected(lcm.iterExpand("c", first.id, { ...options, tokensMax }));
  assert.ok(pages.length > 1 && whole.messages.length > 1);
  assert.deepEqual(
    pages.flatMap(({ messages }) => messages),
    whole.messages,
  );
  const { cursor } = pages[0];
  const rest = await collected(lcm.iterExpand("c", first.id, { ...options, cursor }));
  assert.deepEqual(
    rest.flatMap(({ messages }) => messages),
    whole.messages.slice(pages[0].messages.length),
  );
  await lcm.close();
  await assert.rejects(lcm.iterMessages("c").next(), { message: "the store is closed" });
});

test("a plan of a question says what would be read, and writes nothing", async () => {
  const complete = () => assert.fail("a model was asked");
  const lcm = await opened("memory:", { complete });
  await lcm.append("c", lines);
  const before = await lcm.digest();
  const planned = await lcm.askPlan("c", "What was decided about the batch window?", {
    tokensMax: 500,
  });
  assert.equal(planned.status, "planned");
  const [read, ...others] = planned.conversations;
  assert.deepEqual([read.conversation, read.tokensMax, others], ["c", 500, []]);
  assert.ok(read.ids.length > 0 && planned.sourceTokens <= 500);
  assert.ok(["expand-shallow", "delegate-traversal"].includes(planned.routing.action));
  assert.equal((await lcm.askPlan("c", "zeppelin")).routing.action, "answer-directly");
  assert.equal(await lcm.digest(), before);
  await assert.rejects(lcm.askPlan("c", "Why?", { deadlineMs: 1 }), { message: /deadlineMs/ });
});

const program = fileURLToPath(new URL("../../../dist/lcm", import.meta.url));
const skip = existsSync(program) ? false : "dist/lcm is not built";

test("the program writes the same export, and takes in one of here", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "lcm-portable-"));
  const run = (store, ...args) => {
    const all = ["--store", join(folder, store), "--conversation", "c", ...args];
    return execFileSync(program, all, { encoding: "utf8" });
  };
  const store = join(folder, "here.lcm.db");
  const lcm = await opened(store);
  await lcm.append("c", lines);
  await lcm.compact("c", { budget: 3000 });
  const exported = await collected(lcm.export("c"));
  await lcm.close();
  assert.equal(run("here.lcm.db", "export"), exported.map((line) => `${line}\n`).join(""));
  const file = join(folder, "export.jsonl");
  await writeFile(file, exported.join("\n"));
  run("there.lcm.db", "import", file);
  assert.equal(run("there.lcm.db", "messages", "--raw"), `${lines.join("\n")}\n`);
  await rm(folder, { recursive: true });
});
