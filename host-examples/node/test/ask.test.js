// Questions: the loop that tools share, and answers over the real component.

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../src/index.js";
import { completed } from "../src/ask.js";

const NOW = 1_700_000_000_000;
const QUESTION = "What is the release called?";
const said = [
  { role: "user", content: "The release is called heron." },
  { role: "user", content: "Lunch is at noon." },
];

async function withEngine(complete, body) {
  const lcm = await open({ store: "memory:", complete, now: () => NOW, environment: {} });
  try {
    await lcm.append("c", said);
    await body(lcm);
  } finally {
    await lcm.close();
  }
}

/** Returns the first message id in a prompt. */
const firstId = ({ prompt }) => /msg_[0-9a-f]{16}/.exec(prompt)[0];

/** A model that never answers, and rejects when its signal is aborted. */
const slow = (request, { signal }) =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

test("what is needed is completed until nothing is, in the order of the requests", async () => {
  const steps = [{ needs: { requests: [2, 3], continuation: "b" } }, { needs: null, done: "d" }];
  const resumed = [];
  const ended = await completed(
    { needs: { requests: [1], continuation: "a" } },
    {
      needs: (step) => step.needs,
      complete: async (request, { continuation }) => `${continuation}${request}`,
      resume: async (...args) => {
        resumed.push(args);
        return steps.shift();
      },
    },
  );
  assert.equal(ended.done, "d");
  assert.deepEqual(resumed, [
    ["a", ["a1"]],
    ["b", ["b2", "b3"]],
  ]);
});

test("without a model a question is answered by quoting", async () => {
  await withEngine(undefined, async (lcm) => {
    const asked = await lcm.ask("c", QUESTION);
    assert.equal(asked.status, "answered");
    assert.match(asked.answer, /called heron\. \[msg_[0-9a-f]{16}\]/);
    assert.equal(asked.citedIds.length, 1);
    assert.deepEqual(asked.citedConversations, ["c"]);
    assert.deepEqual([asked.completions, asked.failure], [1, null]);
    const nothing = await lcm.ask("c", "zeppelin");
    assert.deepEqual([nothing.status, nothing.answer, nothing.citedIds], ["no-evidence", null, []]);
    await assert.rejects(lcm.ask("c", "", {}), { code: "invalid-input", message: /question/ });
    await assert.rejects(lcm.ask("c", QUESTION, { deadlineMs: 0 }), { code: "invalid-input" });
    await assert.rejects(lcm.ask("c", QUESTION, { timeoutMs: 0 }), { code: "invalid-input" });
    await assert.rejects(lcm.ask("d", QUESTION), { code: "not-found" });
    await assert.rejects(lcm.ask("c", QUESTION, { dialekt: 1 }), { message: /dialekt/ });
  });
});

test("a model is asked as the engine says, a second time for a search", async () => {
  const requests = [];
  const model = async (request) => {
    requests.push(request);
    if (requests.length === 1) return "NOT FOUND\nSEARCH: lunch";
    return `Heron [${firstId(request)}], not [msg_ffffffffffffffff].`;
  };
  await withEngine({ ask: model }, async (lcm) => {
    const asked = await lcm.ask("c", QUESTION, { tokensMax: 40, answerTokensMax: 77 });
    assert.deepEqual([asked.status, asked.completions], ["answered", 2]);
    assert.deepEqual(asked.citedIds, [firstId(requests[1])]);
    assert.deepEqual(asked.rejectedIds, ["msg_ffffffffffffffff"]);
    assert.match(requests[0].prompt, /at most 77 tokens/);
    assert.ok(!requests[0].prompt.includes("noon") && requests[1].prompt.includes("noon"));
  });
});

test("a model that fails or is late is a status, one that is stopped is not, and none stays open", async () => {
  const refusing = async () => ({ error: { code: "auth", message: "key refused" } });
  await withEngine({ ask: refusing }, async (lcm) => {
    const asked = await lcm.ask("c", QUESTION);
    assert.equal(asked.status, "model-failed");
    assert.deepEqual(asked.failure, { code: "auth", message: "key refused" });
  });
  await withEngine({ ask: slow }, async (lcm) => {
    const late = await lcm.ask("c", QUESTION, { deadlineMs: 20 });
    assert.equal(late.status, "timed-out");
    assert.deepEqual(late.failure, { code: "timeout", message: "there was no answer in 20 ms" });
    const impatient = { timeoutMs: 10, retries: 0 };
    assert.equal((await lcm.ask("c", QUESTION, impatient)).status, "timed-out");
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 10);
    await assert.rejects(lcm.ask("c", QUESTION, { signal: stop.signal }), { name: "AbortError" });
    assert.equal((await lcm.ask("c", QUESTION, { deadlineMs: 1 })).status, "timed-out");
  });
});

test("that a model failed is said beside the text of a tool", async () => {
  const call = (lcm, name, input, options) => lcm.callTool("c", name, input, options);
  const models = {
    auth: async () => ({ error: { code: "auth", message: "key refused" } }),
    timeout: slow,
  };
  for (const [code, complete] of Object.entries(models)) {
    await withEngine({ ask: complete }, async (lcm) => {
      const options = { timeoutMs: 10, retries: 0 };
      const told = await call(lcm, "lcm_expand_query", { prompt: QUESTION }, options);
      assert.equal(told.failure.code, code);
      assert.match(told.text, code === "auth" ? /model-failed/ : /timed-out/);
    });
  }
  await withEngine({ ask: async (request) => `Heron [${firstId(request)}].` }, async (lcm) => {
    assert.equal((await call(lcm, "lcm_expand_query", { prompt: QUESTION })).failure, null);
    assert.equal((await call(lcm, "lcm_grep", { pattern: "heron" })).failure, null);
  });
});

test("an answer that is there already when a question is stopped is taken", async () => {
  const stop = new AbortController();
  const model = async (request) => {
    stop.abort();
    return `Heron [${firstId(request)}].`;
  };
  await withEngine({ ask: model }, async (lcm) => {
    assert.equal((await lcm.ask("c", QUESTION, { signal: stop.signal })).status, "answered");
  });
});

test("what is wrong with the deadline of a question is said under its name", async () => {
  await withEngine(undefined, async (lcm) => {
    for (const deadlineMs of [0, 600_001, 1.5, "x"]) {
      const wrong = { code: "invalid-input", message: /^(?!.*timeoutMs).*deadlineMs/ };
      await assert.rejects(lcm.ask("c", QUESTION, { deadlineMs }), wrong);
    }
  });
});

test("a second question of a conversation is told that it is busy", async () => {
  let inside;
  let lcm;
  const model = async (request) => {
    inside = await lcm.ask("c", "When is lunch?");
    return `Heron [${firstId(request)}].`;
  };
  await withEngine({ ask: model }, async (engine) => {
    lcm = engine;
    const [asked, beside] = [await lcm.ask("c", QUESTION), inside];
    assert.equal(asked.status, "answered");
    assert.deepEqual([beside.status, beside.answer, beside.citedIds], ["busy", null, []]);
    assert.equal(beside.expiresAt, new Date(NOW + 150_000).toISOString());
  });
});

test("a question on a grant takes what it reads", async () => {
  await withEngine(undefined, async (lcm) => {
    const { id: grant } = await lcm.grant("c", { tokensMax: 1_000 });
    const asked = await lcm.ask("c", QUESTION, { grant });
    const tokens = asked.sourceTokens;
    assert.ok(tokens > 0);
    assert.deepEqual(asked.grant, { tokens, tokensLeft: 1_000 - tokens, truncated: false });
    const [listed] = await lcm.listing("grants", { conversation: "c" });
    assert.equal(listed.tokensLeft, 1_000 - tokens);
    await lcm.revoke("c", grant);
    await assert.rejects(lcm.ask("c", QUESTION, { grant }), { code: "denied" });
  });
});
