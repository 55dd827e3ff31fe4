// How a turn reports a model that fails, or a model function that returns an invalid answer.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { MemoryStore } from "../src/index.js";
import { withEngine } from "./opened.js";

const transcript = new URL("../../walkthrough.jsonl", import.meta.url);
const lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");

test("what fails behind the append of a turn is said beside its receipt", async () => {
  const busy = () => Object.assign(new Error("another writer"), { code: "conflict" });
  const errors = { conflict: busy, "store-unavailable": () => new Error("disk") };
  for (const [code, thrown] of Object.entries(errors)) {
    for (const part of ["commit", "getMany"]) {
      const inner = new MemoryStore();
      let commits = 0;
      const failing = (name) => (...args) => {
        if (commits > 0 && name === part) throw thrown();
        if (name === "commit") commits += 1;
        return inner[name](...args);
      };
      const names = ["getMany", "scan", "commit"];
      const store = Object.fromEntries(names.map((name) => [name, failing(name)]));
      await withEngine(store, async (lcm) => {
        const turn = await lcm.turn("c", lines, { budget: 1000 });
        assert.equal(turn.receipt.ingested, lines.length);
        assert.deepEqual([turn.failure.code, turn.compacted], [code, null]);
        assert.equal(turn.decision?.due, part === "commit" ? true : undefined);
      });
    }
  }
});

test("a report of a model that is none is no rejection", async () => {
  const failing = (failed) => async () => {
    throw Object.assign(new Error("busy"), failed);
  };
  const odd = [
    failing({ retryAfterMs: -1 }),
    failing({ message: 7 }),
    failing({ message: "a\ud800" }),
    async () => ({ error: { code: "auth", message: { a: 1 } } }),
    async () => ({ error: { code: "auth", message: "a\ud800", retryAfterMs: -1 } }),
    async () => Promise.reject(Object.create(null)),
    async () => ({ text: "facts", outputTokens: 5e9 }),
    async () => ({ text: "facts", inputTokens: 0.5 }),
    async () => ({ text: "facts", model: "a\ud800" }),
  ];
  for (const [at, complete] of odd.entries()) {
    await withEngine(
      "memory:",
      async (lcm) => {
        const turn = await lcm.turn("c", lines, { budget: 3000, retries: 0 });
        assert.equal(turn.receipt.ingested, lines.length, `${at}`);
        const { code, message } = turn.failure ?? {};
        const model = ["auth", "other", undefined];
        assert.ok(model.includes(code), `${at}: ${code}: ${message}`);
        const status = (await lcm.ask("c", "What about the tests?", { retries: 0 })).status;
        assert.notEqual(status, "busy", `${at}`);
        const again = (await lcm.ask("c", "What about the store?", { retries: 0 })).status;
        assert.notEqual(again, "busy", `${at}`);
      },
      { complete },
    );
  }
});

test("how a model failed is said where room was made without it", async () => {
  const models = {
    boom: async () => {
      throw new Error("boom");
    },
    "the model failed": async () => ({ error: {} }),
  };
  for (const [message, complete] of Object.entries(models)) {
    await withEngine(
      "memory:",
      async (lcm) => {
        const turn = await lcm.turn("c", lines, { budget: 3000, retries: 0 });
        assert.ok(turn.compacted.passes.length > 0);
        assert.ok(turn.compacted.passes.every(({ level }) => level === "fallback"));
        assert.deepEqual(turn.failure, { code: "other", message });
        assert.deepEqual(turn.compacted.failure, { ...turn.failure, retryAfterMs: null });
        assert.deepEqual(turn.compacted.warnings.at(-1), `completion-failed: other: ${message}`);
      },
      { complete },
    );
  }
});

test("a failure with a pause that no clock has is handed on", async () => {
  for (const wanted of [-1, 1e300]) {
    const complete = async () => ({ error: { code: "auth", message: "no", retryAfterMs: wanted } });
    await withEngine(
      "memory:",
      async (lcm) => {
        const turn = await lcm.turn("c", lines, { budget: 3000 });
        assert.deepEqual(turn.failure, { code: "auth", message: "no" });
      },
      { complete },
    );
  }
});

test("a failure that another try mended is none, and a plain string is an answer", async () => {
  let asked = 0;
  const complete = async () => {
    if (asked++ === 0) throw Object.assign(new Error("busy"), { retryAfterMs: 1 });
    return "facts about the tests";
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      const turn = await lcm.turn("c", lines, { budget: 3000 });
      assert.equal(turn.compacted.status, "done");
      assert.ok(turn.compacted.passes.some(({ level }) => level === "normal"));
      assert.deepEqual([turn.failure, turn.compacted.failure], [null, null]);
      // The sources have failures that this answer leaves out, so the engine rejects it.
      const rejected = (line) => line.startsWith("answer-rejected: findings: ");
      assert.ok(turn.compacted.warnings.every(rejected), turn.compacted.warnings);
    },
    { complete },
  );
});
