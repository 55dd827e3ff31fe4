// A message of 30 MB: uploaded in bounded pieces, stored unchanged, shown as a reference.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryStore, open } from "../src/index.js";

const CALL_BYTES_MAX = 1 << 20;
const LINE = "a row of output with some words in it\n";

/** A store that records the most bytes of values that one of its calls read or wrote. */
class Measured extends MemoryStore {
  mostBytes = 0;
  commits = 0;

  getMany(keys) {
    return this.#measured(super.getMany(keys));
  }

  commit(guards, puts) {
    this.commits += 1;
    this.#measured([...guards, ...puts].map((one) => one.value));
    return super.commit(guards, puts);
  }

  #measured(values) {
    const bytes = values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    this.mostBytes = Math.max(this.mostBytes, bytes);
    return values;
  }
}

const result = (bytes) => {
  const output = LINE.repeat(Math.ceil(bytes / LINE.length));
  return JSON.stringify({ role: "tool", parts: [{ type: "tool_result", call_id: "1", output }] });
};

const said = (at, more = "") => JSON.stringify({ role: "user", content: `number ${at} ${more}` });

test("a tool result of 30 MB is staged, read back equal and shown as a reference", async () => {
  const store = new Measured();
  const lcm = await open({ store, environment: {} });
  const text = result(30_000_000);
  const { ingested } = await lcm.append("c", [text]);
  assert.equal(ingested, 1);
  const { messages, tokens } = await lcm.assemble("c", { budget: 10_000 });
  assert.ok(tokens < 1_000, `${tokens} tokens`);
  const [id] = /file_[0-9a-f]{16}/.exec(messages[0].parts[0].output);
  const range = await lcm.describe("c", id, { startLine: 700_001, endLine: 700_002 });
  assert.equal(range.content, LINE.repeat(2));
  const [back] = await lcm.messages("c");
  assert.ok(back === text, "the message came back otherwise");
  assert.ok(store.mostBytes <= CALL_BYTES_MAX, `${store.mostBytes} bytes in one call`);
  await lcm.close();
});

test("a message over 32 MiB is refused and nothing of it is part of the conversation", async () => {
  const store = new Measured();
  const lcm = await open({ store, environment: {} });
  await assert.rejects(lcm.append("c", [result(34_000_000)]), { code: "limit-exceeded" });
  assert.equal(store.commits, 0);
  await lcm.close();
});

test("a large message that comes first is staged for its family", async () => {
  const large = JSON.stringify({ role: "user", content: "x".repeat(600_000) });
  for (const [pattern, ingested] of [
    ["family", 0],
    ["c", 1],
  ]) {
    for (const method of ["append", "ingest"]) {
      const store = new Measured();
      const config = { ignore_session_patterns: [pattern] };
      const lcm = await open({ store, config, environment: {} });
      const receipt = await lcm[method]("c", [large], { family: "family" });
      assert.equal(receipt.ingested, ingested);
      assert.equal(store.commits > 0, ingested === 1);
      await lcm.close();
    }
  }
});

// 100 short messages, as many as one call takes, then long messages, more than one call takes.
const list = [
  ...Array.from({ length: 100 }, (_, at) => said(at)),
  ...Array.from({ length: 5 }, (_, at) => said(at, LINE.repeat(16_000))),
];

test("a list of new messages goes on behind those of them that one call takes", async () => {
  const store = new MemoryStore();
  const lcm = await open({ store, environment: {} });
  const how = { appendMode: "new", now: 1_700_000_000_000 };
  for (const [repeat, ingested] of [
    [false, 105],
    [true, 0],
  ]) {
    const receipt = await lcm.append("c", list, { ...how, repeat });
    assert.deepEqual([receipt.ingested, receipt.skipped], [ingested, 105 - ingested]);
    assert.deepEqual(await lcm.messages("c"), list);
  }
  const { receipt } = await lcm.turn("turn", list, { appendMode: "new", budget: 500_000 });
  assert.equal(receipt.ingested, 105);
  assert.deepEqual(await lcm.messages("turn"), list);
  await lcm.close();
});

test("what has more ids than one call takes is stored in several", async () => {
  const results = Array.from({ length: 100 }, (_, at) => {
    const call_id = `toolu_01${at}AbCdEfGhIjKlMnOpQr`;
    const parts = [{ type: "tool_result", call_id, output: `row ${at}` }];
    return JSON.stringify({ role: "tool", id: `id${at}`, event_key: `event${at}`, parts });
  });
  for (const mode of ["new", "transcript"]) {
    const lcm = await open({ store: "memory:", environment: {} });
    const how = { appendMode: mode, now: 1_700_000_000_000 };
    assert.equal((await lcm.append("c", results, how)).ingested, 100);
    assert.equal((await lcm.append("c", results, { ...how, repeat: true })).skipped, 100);
    assert.deepEqual(await lcm.messages("c"), results);
    await lcm.close();
  }
});
