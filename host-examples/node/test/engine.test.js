// Tests of the package with the real component, through its public interface.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { asyncStore, MemoryStore, open } from "../src/index.js";
import { storeSha256 } from "../src/digest.js";
import { walkthrough } from "../src/walkthrough.js";
import { slowStore } from "./fake.js";
import { NOW, withEngine } from "./opened.js";

const program = fileURLToPath(new URL("../../../dist/lcm", import.meta.url));
const transcript = fileURLToPath(new URL("../../walkthrough.jsonl", import.meta.url));
let folder;
let lines;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-node-"));
  lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");
});
after(() => rm(folder, { recursive: true, force: true }));

test("the walkthrough ends with the same store over every kind of store", async () => {
  const memory = new MemoryStore();
  const first = await withEngine(memory, (lcm) => walkthrough(lcm, lines));
  assert.equal(first.equal, true);
  assert.equal(await storeSha256(memory), first.digest);

  const path = join(folder, "walkthrough.lcm.db");
  const second = await withEngine(path, (lcm) => walkthrough(lcm, lines));
  assert.equal(second.digest, first.digest);
  assert.equal(await withEngine(path, (lcm) => lcm.digest()), first.digest);

  let conflicts = 3;
  const fail = {
    commit: () => {
      if (conflicts-- > 0) throw Object.assign(new Error("lost"), { code: "conflict" });
    },
  };
  const slow = asyncStore(slowStore(new MemoryStore(), 5, fail));
  const third = await withEngine(slow, (lcm) => walkthrough(lcm, lines));
  assert.equal(third.digest, first.digest);
  assert.deepEqual(third.said, first.said);
});

test("the five lines of the documentation work with a model, asked in parallel", async () => {
  let running = 0;
  let most = 0;
  const complete = async (request) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    assert.equal(typeof request.prompt, "string");
    // The engine rejects an answer that leaves out the failures of the sources, and asks again.
    return { text: "the tests of the module fail", model: "m" };
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("chat-1", lines);
      const compacted = await lcm.compact("chat-1", { budget: 3000, requestsMax: 4 });
      assert.equal(compacted.status, "done");
      assert.ok(compacted.passes.length > 0);
      assert.ok(compacted.tokensAfter < compacted.tokensBefore);
      assert.ok(most > 1, "requests of one plan are asked at once");
      const { messages, tokens } = await lcm.assemble("chat-1", { budget: 3000 });
      assert.ok(Array.isArray(messages) && messages.length > 0);
      assert.ok(tokens <= 3000);
      assert.deepEqual(await lcm.messages("chat-1"), lines);
      const range = { seqFirst: 3, seqLast: 4 };
      assert.deepEqual(await lcm.messages("chat-1", range), lines.slice(2, 4));
      assert.equal((await lcm.compact("chat-1", { budget: 1_000_000 })).status, "nothing-to-do");
    },
    { complete },
  );
});

test("append and assemble go on while a model thinks", async () => {
  const order = [];
  let think;
  const thinking = new Promise((resolve) => {
    think = resolve;
  });
  const complete = async () => {
    await thinking;
    return { text: "short facts" };
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const compacting = lcm.compact("c", { budget: 3000 }).then(() => order.push("compacted"));
      await new Promise((resolve) => setTimeout(resolve, 5));
      await lcm.append("c", [{ role: "user", content: "and now?" }], { appendMode: "new" });
      await lcm.assemble("c", { budget: 3000 });
      order.push("appended");
      think();
      await compacting;
      assert.deepEqual(order, ["appended", "compacted"]);
    },
    { complete },
  );
});

test("a model without a key ends compaction at once and changes nothing", async () => {
  const complete = async () => {
    throw Object.assign(new Error("no such key"), { code: "auth" });
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const before = await lcm.digest({ logical: true });
      const failure = { code: "auth", message: "no such key" };
      const expected = { code: "completion-failed", message: /no such key/, failure };
      await assert.rejects(lcm.compact("c", { budget: 3000 }), expected);
      assert.equal(await lcm.digest({ logical: true }), before);
    },
    { complete },
  );
});

test("a turn appends, and compacts when it is due", async () => {
  await withEngine("memory:", async (lcm) => {
    const first = await lcm.turn("c", lines.slice(0, 2), { budget: 100_000 });
    assert.equal(first.receipt.ingested, 2);
    assert.deepEqual([first.decision.due, first.compacted, first.failure], [false, null, null]);
    const second = await lcm.turn("c", lines, { budget: 3000 });
    assert.equal(second.receipt.ingested, lines.length - 2);
    assert.equal(second.compacted.status, "done");
    assert.ok(second.compacted.passes.length > 0);
    assert.equal((await lcm.evaluate("c", { budget: 3000 })).due, false);
  });
});

test("a turn keeps its messages when the model fails", async () => {
  const complete = async () => {
    throw Object.assign(new Error("no such key"), { code: "auth" });
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      const turn = await lcm.turn("c", lines, { budget: 3000 });
      assert.equal(turn.receipt.ingested, lines.length);
      assert.equal(turn.compacted, null);
      assert.deepEqual(turn.failure, { code: "auth", message: "no such key" });
      assert.equal((await lcm.messages("c")).length, lines.length);
    },
    { complete },
  );
});

test("what was spent is summed, and advice weighs the prices", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    const spent = {
      inputTokens: 9000,
      cacheReadTokens: 8000,
      cacheWriteTokens: 900,
      outputTokens: 70,
      costMicros: 45,
    };
    const now = 1_700_000_000_000;
    const { usage } = await lcm.usage("c", { purpose: "turn", ...spent, now });
    assert.deepEqual(usage.turns, { calls: 1, ...spent });
    const again = await lcm.usage("c", { purpose: "turn", ...spent, now });
    assert.deepEqual([again.changed, again.usage], [false, usage]);
    await lcm.usage("c", { purpose: "summary", costMicros: 7 });
    assert.equal((await lcm.status("c")).usage.summaries.costMicros, 7);

    const prices = { input: 3_000_000, output: 15_000_000, cacheRead: 300_000 };
    const asked = { budget: 100_000, prices, now };
    const few = await lcm.advise("c", { ...asked, turns: 1 });
    assert.deepEqual([few.advice, few.cache, few.turns], ["wait", "warm", 1]);
    const cold = await lcm.advise("c", { ...asked, cacheMs: 1000, now: now + 2000 });
    assert.equal(cold.cache, "cold");
    const over = await lcm.advise("c", { ...asked, budget: 1000, turns: 1 });
    assert.deepEqual([over.advice, over.reason], ["compact", "over-budget"]);
    const dear = { ...prices, input: 2_000_000_000 };
    const refused = { code: "invalid-input", message: /prices/ };
    await assert.rejects(lcm.advise("c", { ...asked, prices: dear }), refused);
  });
});

test("a turn keeps its budget in the tokens of its model", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    await lcm.calibrate("c", "m", 1000, 3000);
    const plain = await lcm.turn("c", lines, { budget: 30_000 });
    const { decision } = await lcm.turn("c", lines, { budget: 30_000, model: "m" });
    assert.equal(decision.explanation.calibration.model, "m");
    assert.ok(decision.threshold < plain.decision.threshold);
  });
});

test("a host adds a brief and what it has not stored, and is told what its cache keeps", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    await lcm.compact("c", { budget: 8000 });
    const options = { budget: 8000, explain: true };
    const before = await lcm.assemble("c", options);
    assert.ok(before.summaries > 1);
    const { changed, focus } = await lcm.focus("c", { text: "What matters now." });
    assert.deepEqual([changed, focus.seqLast], [true, lines.length]);
    const liveMessages = [{ role: "user", content: "not stored" }];
    const previous = before.prefix.token;
    const after = await lcm.assemble("c", { ...options, liveMessages, previous });
    assert.deepEqual([after.summaries, after.prefix.brokenWhy], [1, "focus"]);
    assert.deepEqual(after.messages.at(-1), liveMessages[0]);
    assert.deepEqual(after.prefix.breakpoints, [0, after.messages.length - 1]);
    assert.deepEqual([after.items[0].kind, after.items.at(-1).kind], ["focus", "live"]);
    assert.equal((await lcm.focus("c")).focus, null);
    assert.equal((await lcm.assemble("c", options)).prefix.sha256, before.prefix.sha256);
  });
});

test("what summaries are asked for is known, and replaced by the configuration", async () => {
  const config = { prompt_overrides: { leaf: "Task: only prices." } };
  await withEngine(
    "memory:",
    async (lcm) => {
      const [leaf, aggressive, ...others] = await lcm.prompts();
      assert.deepEqual([leaf.name, leaf.overridden, leaf.text], ["leaf", true, "Task: only prices."]);
      assert.ok(leaf.prompt.startsWith("Task: only prices.\n") && leaf.version >= 2 ** 31);
      assert.equal(aggressive.overridden, false);
      assert.deepEqual(others.map(({ name }) => name), ["session", "phase", "durable"]);
    },
    { config },
  );
});

test("a turn with a wrong argument stores nothing, so that it can be repeated", async () => {
  const told = ["a", "b", "c"].map((content) => JSON.stringify({ role: "user", content }));
  const wrong = [
    [undefined, /budget/],
    [{ mode: "sweep" }, /budget/],
    [{ budget: 1000, mode: "new" }, /mode/],
    [{ budget: "x" }, /budget/],
    [{ budget: 0 }, /budget/],
    [{ budget: 1000, dialekt: "lcm" }, /dialekt/],
    [{ budget: 1000, dialect: "lmc" }, /dialect/],
    [{ budget: 1000, requestsMax: "many" }, /requestsMax/],
    [{ budget: 1000, leaseMs: -1 }, /leaseMs/],
    [{ budget: 1000, retries: "twice" }, /retries/],
    [{ budget: 1000, signal: 1 }, /signal/],
    [{ budget: 1000, target: 0 }, /target/],
    [{ budget: 1000, model: "" }, /model/],
    [{ budget: 1000, appendMode: "old" }, /appendMode/],
    [{ budget: 1000, repeat: "x" }, /repeat/],
    [{ budget: 1000, defer: "later" }, /defer/],
    [{ budget: 1000, timeoutMs: 0 }, /timeoutMs/],
  ];
  await withEngine("memory:", async (lcm) => {
    for (const stored of [0, 3]) {
      for (const [options, message] of wrong) {
        const given = options && { appendMode: "new", ...options };
        const expected = { name: "LcmError", code: "invalid-input", message };
        await assert.rejects(lcm.turn("c", told, given), expected);
        if (stored === 0) await assert.rejects(lcm.messages("c"), { code: "not-found" });
        else assert.equal((await lcm.messages("c")).length, stored);
      }
      const now = NOW + stored;
      const turn = { budget: 100_000, appendMode: "new", now };
      assert.equal((await lcm.turn("c", told, turn)).receipt.ingested, 3);
      assert.equal((await lcm.turn("c", told, { ...turn, repeat: true })).receipt.ingested, 0);
    }
    assert.deepEqual(await lcm.messages("c"), [...told, ...told]);
  });
});

test("of a list of new messages that has a wrong one nothing is stored", async () => {
  const many = Array.from({ length: 150 }, (_, i) => ({ role: "user", content: `turn ${i}` }));
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", many.slice(0, 1));
    const wrong = [...many, { content: "no role" }];
    await assert.rejects(lcm.append("c", wrong, { appendMode: "new" }), { code: "invalid-input" });
    const wrongs = { appendMode: "old", repeat: "x", refuseReplay: 1 };
    for (const [option, value] of Object.entries(wrongs)) {
      const options = { appendMode: "new", [option]: value };
      const expected = { code: "invalid-input", message: new RegExp(option) };
      await assert.rejects(lcm.append("c", many, options), expected);
    }
    assert.equal((await lcm.messages("c")).length, 1);
    assert.equal((await lcm.append("c", many, { appendMode: "new" })).ingested, 150);
  });
});

test("exhausted models leave alone what fits and make room where it does not", async () => {
  const complete = async () => {
    throw Object.assign(new Error("overloaded"), { code: "unavailable", retryAfterMs: 1 });
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const { context } = await lcm.status("c");
      const fits = await lcm.compact("c", { budget: context.tokens + 1, retries: 0 });
      assert.equal(fits.status, "model-unavailable");
      assert.equal(fits.passes.length, 0);
      const over = await lcm.compact("c", { budget: 3000, retries: 0, now: NOW + 3_600_000 });
      assert.ok(over.passes.length > 0, JSON.stringify(over));
      assert.ok(over.passes.every(({ level }) => level === "fallback"));
      assert.equal(over.completions, 1);
    },
    { complete },
  );
});

test("one leaf at a time is made when enough lies outside the fresh tail", async () => {
  const config = { leaf_chunk_tokens_max: 1000, fresh_tail_messages_max: 8 };
  await withEngine(
    "memory:",
    async (lcm) => {
      const options = { budget: 100_000, mode: "incremental" };
      const { decision, compacted, deferred } = await lcm.turn("c", lines, {
        ...options,
        defer: true,
      });
      assert.equal(decision.reason, "leaf-chunk");
      // Below the threshold the engine defers no compaction, so the leaf is made at once.
      assert.equal(deferred, false);
      assert.deepEqual([compacted.passes.length, compacted.passes[0].purpose], [1, "leaf"]);
      assert.equal(compacted.tokensBefore, compacted.passes[0].tokensBefore);
      assert.equal((await lcm.compact("c", { budget: 100_000 })).status, "nothing-to-do");
    },
    { config },
  );
});

test("a turn leaves for maintain what can wait, and maintain pauses after failures", async () => {
  let failing = true;
  const complete = async () => {
    if (failing) throw Object.assign(new Error("down"), { code: "unavailable" });
    return "facts";
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const { context } = await lcm.status("c");
      const budget = Math.floor(context.tokens * 1.25);
      const turn = await lcm.turn("c", lines, { budget, defer: true });
      assert.deepEqual([turn.deferred, turn.compacted, turn.failure], [true, null, null]);
      const owed = { exhausted: false, failures: 0, beganAt: "2023-11-14T22:13:20.000Z" };
      const at = { nextAttemptAt: owed.beganAt };
      assert.deepEqual((await lcm.status("c")).debt, { ...owed, ...at });
      for (const [minutes, failures, tried] of [
        [0, 1, true],
        [4, 1, false],
        [5, 2, true],
        [14, 2, false],
      ]) {
        const now = NOW + minutes * 60_000;
        const done = await lcm.maintain("c", { budget, retries: 0, now });
        assert.equal(done.debt.failures, failures, `${minutes}`);
        assert.equal(done.compacted?.status, tried ? "model-unavailable" : undefined);
        assert.equal(done.failure?.code, tried ? "unavailable" : undefined);
      }
      failing = false;
      const { compacted } = await lcm.maintain("c", { budget, now: NOW + 15 * 60_000 });
      assert.equal(compacted.status, "done");
      // The summaries whose answers were rejected are requested once more.
      const { debt } = await lcm.maintain("c", { budget, now: NOW + 17 * 60_000 });
      assert.equal(debt, null);
      const idle = { debt: null, compacted: null, failure: null };
      assert.deepEqual(await lcm.maintain("c", { budget, now: NOW + 19 * 60_000 }), idle);
      const must = await lcm.turn("c", lines, { budget: 1000, defer: true });
      assert.equal(must.deferred, false);
      assert.ok(must.compacted !== null);
    },
    { complete },
  );
});

test("what was observed counts until a summary was made", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    const { tokens } = (await lcm.status("c")).context;
    // The observed tokens are 50 above the threshold (three quarters of the budget).
    const observed = { budget: 2 * tokens, observedTokens: Math.ceil(1.5 * tokens) + 50 };
    const turn = await lcm.turn("c", lines, { ...observed, defer: true });
    assert.deepEqual([turn.deferred, turn.decision.tokens], [true, observed.observedTokens]);
    const { debt, compacted } = await lcm.maintain("c", observed);
    assert.deepEqual([debt, compacted.status, compacted.reason], [null, "done", "reached-target"]);
  });
});

test("maintain says that a key was refused, and that it was stopped", async () => {
  const controller = new AbortController();
  let refuse = true;
  const complete = async () => {
    if (refuse) return { error: { code: "auth", message: "bad key" } };
    controller.abort();
    return "facts";
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const refused = await lcm.maintain("c", { budget: 3000 });
      assert.deepEqual(refused.failure, { code: "auth", message: "bad key" });
      assert.deepEqual([refused.compacted, refused.debt.failures], [null, 1]);
      refuse = false;
      const now = NOW + 6 * 60_000;
      const stopped = await lcm.maintain("c", { budget: 3000, signal: controller.signal, now });
      assert.deepEqual([stopped.compacted.reason, stopped.debt.failures], ["cancelled", 1]);
      assert.ok(Date.parse(stopped.debt.nextAttemptAt) > NOW);
    },
    { complete },
  );
});

test("a pause after answers in vain leaves work, and an open breaker no model", async () => {
  const config = { leaf_chunk_tokens_max: 1000, summary_max_calls_per_window: 1 };
  const ends = (complete, turns) => {
    const work = async (lcm) => {
      let last;
      for (let i = 0; i < turns; i++) last = await lcm.turn("c", lines, { budget: 3000 });
      return last.compacted;
    };
    return withEngine("memory:", work, { complete, config });
  };
  const vain = await ends(async () => "long ".repeat(50_000), 1);
  assert.deepEqual([vain.status, vain.reason], ["partial", "spend-limit"]);
  const names = vain.warnings.map((line) => line.split(": ").slice(0, line.startsWith("answer") ? 2 : 1));
  assert.deepEqual(names, [["answer-rejected", "too-large"], ["models-paused"]]);
  const until = new Date(NOW + 1_800_000).toISOString();
  assert.ok(vain.warnings[1].includes(until), vain.warnings[1]);
  const refuse = async () => ({ error: { code: "auth", message: "no" } });
  const work = async (lcm) => {
    await lcm.append("c", lines);
    for (let i = 0; i < 5; i++) await assert.rejects(lcm.compact("c", { budget: 3000 }));
    return lcm.compact("c", { budget: 3000 });
  };
  const open = await withEngine("memory:", work, { complete: refuse, config });
  assert.deepEqual([open.status, open.reason], ["model-unavailable", "breaker-open"]);
});

test("an aborted compaction stops with what was done", async () => {
  const controller = new AbortController();
  const complete = async () => {
    controller.abort();
    return { text: "the tests of the module fail" };
  };
  await withEngine(
    "memory:",
    async (lcm) => {
      await lcm.append("c", lines);
      const stopped = await lcm.compact("c", { budget: 3000, signal: controller.signal });
      assert.equal(stopped.status, "partial");
      assert.equal(stopped.reason, "cancelled");
      assert.equal(stopped.passes.length, 1);
    },
    { complete },
  );
});

test("a transcript is stored once, however often it is handed over", async () => {
  const many = Array.from({ length: 250 }, (_, i) =>
    JSON.stringify({
      role: i % 2 ? "assistant" : "user",
      content: `turn ${i} ${"x".repeat(i % 7)}`,
    }),
  );
  await withEngine("memory:", async (lcm) => {
    const first = await lcm.ingest("c", many.slice(0, 120));
    assert.deepEqual(
      [first.ingested, first.skipped, first.seqFirst, first.seqLast],
      [120, 0, 1, 120],
    );
    const second = await lcm.ingest("c", many);
    assert.deepEqual([second.ingested, second.skipped, second.seqFirst], [130, 120, 121]);
    const again = await lcm.append("c", many);
    assert.deepEqual([again.ingested, again.skipped, again.seqFirst], [0, 250, null]);
    const forced = await lcm.append("c", many.slice(-2), { appendMode: "new", now: NOW + 1 });
    assert.equal(forced.ingested, 2);
    assert.deepEqual(await lcm.messages("c"), [...many, ...many.slice(-2)]);
  });
});

test("a message of several MiB comes back byte for byte", async () => {
  const text = JSON.stringify({ role: "user", content: "\u00e9\u{1F327}x".repeat(200_000) });
  await withEngine("memory:", async (lcm) => {
    const receipt = await lcm.append("c", [lines[0], text, lines[1]]);
    assert.equal(receipt.ingested, 3);
    assert.deepEqual(await lcm.messages("c"), [lines[0], text, lines[1]]);
    assert.equal((await lcm.ingest("c", [lines[0], text, lines[1]])).ingested, 0);
  });
});

test("odd strings survive: surrogate escapes, spacing and order of keys", async () => {
  const odd = [
    '{"content" : "\\ud83d alone",  "role":"user", "x":{"b":1,"a":2}}',
    '{"role":"assistant","content":"tab\\tand \\u0000"}',
  ];
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", [...odd, { role: "user", content: "\udc00" }]);
    const back = await lcm.messages("c");
    assert.deepEqual(back, [...odd, '{"role":"user","content":"\\udc00"}']);
    await assert.rejects(lcm.append("c", ['{"role":"user","content":"\ud800"}']), {
      code: "invalid-input",
    });
    await assert.rejects(lcm.append("c", ["no json"]), { name: "LcmError", code: "invalid-input" });
    await assert.rejects(lcm.append("c", [{ content: "no role" }]), { code: "invalid-input" });
  });
});

test("an append of unknown outcome is repeated without storing twice", async () => {
  const inner = new MemoryStore();
  let lost = 1;
  const store = {
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => {
      inner.commit(guards, puts);
      if (lost-- > 0) throw new Error("connection lost after the commit");
    },
  };
  await withEngine(store, async (lcm) => {
    const call = (options) =>
      lcm.append("c", lines.slice(0, 3), { appendMode: "new", now: NOW, ...options });
    await assert.rejects(call({}), { code: "store-unavailable" });
    assert.equal((await call({ repeat: true })).ingested, 0);
    assert.equal((await lcm.messages("c")).length, 3);
  });
});

test("configuration reaches every instance, and what is wrong with it is said", async () => {
  const config = { fresh_tail_messages_max: 2, no_such_key: 1 };
  await withEngine("memory:", async (lcm) => {
    assert.match(JSON.stringify(await lcm.configure(config)), /no_such_key/);
    await lcm.append("c", lines);
    await lcm.compact("c", { budget: 3000 });
    assert.ok((await lcm.assemble("c", { budget: 3000 })).freshTailMessages <= 3);
  });
});

test("a store object that answers with promises is refused unless it is declared", async () => {
  const store = slowStore(new MemoryStore(), 0);
  await withEngine(store, async (lcm) => {
    const expected = { code: "store-unavailable", message: /asyncStore/ };
    await assert.rejects(lcm.append("c", lines.slice(0, 2)), expected);
  });
});

test("wrong options are named", async () => {
  await assert.rejects(open({ store: "memory:", stroe: 1 }), {
    code: "invalid-input",
    message: /stroe/,
  });
  await assert.rejects(open({}), { code: "invalid-input" });
  await assert.rejects(open({ store: "memory:", complete: "gpt" }), { code: "invalid-input" });
  await assert.rejects(open({ store: "postgres://x" }), { code: "unsupported" });
  await withEngine("memory:", async (lcm) => {
    await assert.rejects(lcm.compact("c", { budgets: 1 }), { code: "invalid-input" });
    await assert.rejects(lcm.assemble("c", { budget: 1, dilect: 1 }), { code: "invalid-input" });
    await assert.rejects(lcm.append(undefined, []), { code: "invalid-input" });
  });
});

test("an estimate is what the messages would count, and stores nothing", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    const digest = await lcm.digest();
    const { tokens } = await lcm.assemble("c", { budget: 100_000 });
    assert.equal(await lcm.estimate(lines), tokens);
    assert.equal(await lcm.estimate([]), 0);
    const system = { role: "system", content: "x".repeat(4000) };
    assert.equal(await lcm.estimate([system]), 1000);
    assert.equal(await lcm.estimate([system, ...lines]), 1000 + tokens);
    assert.equal(await lcm.estimate([system], "openai-chat"), 1000);
    assert.equal(await lcm.digest(), digest);
    await assert.rejects(lcm.estimate([{ content: "no role" }]), { code: "invalid-input" });
    await assert.rejects(lcm.estimate(lines, "lmc"), { code: "invalid-input" });
    await assert.rejects(lcm.estimate(), { code: "invalid-input" });
  });
});

test("what a provider would refuse is said, and what was assembled is not refused", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    for (const dialect of ["anthropic", "openai-chat", "openai-responses", "gemini"]) {
      const { messages } = await lcm.assemble("c", { budget: 100_000, dialect });
      assert.deepEqual(await lcm.validate(messages, dialect), []);
    }
    const call = { type: "tool_use", id: "t1", name: "edit", input: {} };
    const broken = [{ role: "user", content: "go" }, { role: "assistant", content: [call] }];
    const findings = await lcm.validate([...broken, { role: "user", content: "on" }], "anthropic");
    assert.equal(findings.length, 1);
    assert.match(findings[0], /t1/);
    await assert.rejects(lcm.validate(broken, "lcm"), { code: "unsupported" });
    await assert.rejects(lcm.validate(broken, "lmc"), { code: "invalid-input" });
    await assert.rejects(lcm.validate(["no JSON"], "anthropic"), { code: "invalid-input" });
  });
});

test("an assembled context is there as text, too, in which no number changes", async () => {
  const input = '{"order_id":12345678901234567890,"x":1.0}';
  const call = `{"type":"tool_use","id":"t1","name":"get","input":${input}}`;
  const said = [
    '{"role":"user","content":"go"}',
    `{"role":"assistant","content":[${call}]}`,
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}',
  ];
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", said, { dialect: "anthropic" });
    const assembled = await lcm.assemble("c", { budget: 100_000, dialect: "anthropic" });
    assert.ok(assembled.messagesJson.includes(input), assembled.messagesJson);
    assert.deepEqual(JSON.parse(assembled.messagesJson), assembled.messages);
  });
});

test("marks for a cache are set where they are asked for, and accepted", async () => {
  await withEngine("memory:", async (lcm) => {
    let previous;
    const stable = [];
    for (let from = 0; from < lines.length; from += 8) {
      await lcm.append("c", lines.slice(from, from + 8));
      const options = { budget: 100_000, dialect: "anthropic", previous, markCaches: true };
      const { messages, prefix } = await lcm.assemble("c", options);
      const isMarked = (message) => JSON.stringify(message).includes("cache_control");
      assert.deepEqual(
        messages.flatMap((message, at) => (isMarked(message) ? [at] : [])),
        prefix.breakpoints,
      );
      assert.deepEqual(await lcm.validate(messages, "anthropic"), []);
      previous = prefix.token;
      stable.push(prefix.stableTokens);
    }
    assert.equal(stable[0], null);
    assert.ok(stable.at(-1) > 0);
  });
});

test("every call refuses an option that it does not know, and does nothing", async () => {
  const summary = "sum_1111111111111111";
  const calls = {
    append: [lines],
    ingest: [lines],
    turn: [lines],
    compact: [],
    maintain: [],
    maintainFamily: [],
    evaluate: [],
    assemble: [],
    grep: ["module"],
    ask: ["module"],
    askPlan: ["module"],
    describe: [summary],
    expand: [summary],
    embed: [],
    messages: [],
    status: [],
    family: ["key"],
    reset: [],
    newSession: [],
    archive: ["discarded"],
    delete: [],
    calibrate: ["m", 10, 10],
    focus: [],
    usage: [],
    advise: [],
    callTool: ["lcm_grep", { pattern: "x" }],
  };
  const needs = { turn: 1, compact: 1, maintain: 1, maintainFamily: 1, evaluate: 1, assemble: 1, advise: 1 };
  const further = {
    usage: { purpose: "turn", inputTokens: 1 },
    advise: { prices: { input: 1, output: 1 } },
  };
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines.slice(0, 2));
    const before = await lcm.digest();
    for (const [name, args] of Object.entries(calls)) {
      const expected = { name: "LcmError", code: "invalid-input", message: /dialekt/ };
      const budget = needs[name] && { budget: 3000 };
      const options = { ...budget, ...further[name], dialekt: "lcm" };
      await assert.rejects(lcm[name]("c", ...args, options), expected, name);
      const object = { name: "LcmError", code: "invalid-input" };
      await assert.rejects(lcm[name]("c", ...args, "options"), object, name);
      if (!needs[name]) continue;
      for (const absent of [undefined, null, {}]) {
        const budget = { ...object, message: "`budget` must be given" };
        await assert.rejects(lcm[name]("c", ...args, absent), budget, name);
      }
    }
    const unknown = { code: "invalid-input", message: /refuse_replay/ };
    await assert.rejects(lcm.append("c", lines, { refuse_replay: true }), unknown);
    await assert.rejects(lcm.listing("summaries", { refuse_replay: "c" }), unknown);
    await assert.rejects(lcm.digest({ refuse_replay: true }), unknown);
    assert.equal(await lcm.digest(), before);
  });
});

test("a deleted conversation is gone, and its id begins anew", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines, { family: "f" });
    await lcm.append("d", [{ role: "user", content: "a quokka" }], { family: "f" });
    const { messages, records } = await lcm.status("c").then(async (status) => {
      const { metrics } = await lcm.check("c");
      const receipt = await lcm.delete("c");
      assert.equal(receipt.messages, status.messages);
      assert.ok(receipt.done && receipt.bytes >= metrics.bytes.total);
      return receipt;
    });
    assert.ok(messages === lines.length && records > 3);
    assert.deepEqual((await lcm.listing("conversations")).map((one) => one.conversation), ["d"]);
    assert.deepEqual(await lcm.listing("deletions"), []);
    const gone = { code: "not-found", message: "conversation `c` does not exist" };
    await assert.rejects(lcm.delete("c"), gone);
    await assert.rejects(lcm.status("c"), gone);
    const { revision } = await lcm.append("c", lines.slice(0, 1));
    assert.equal(revision, 1);
  });
});

test("check, status and listing tell about the store", async () => {
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", lines);
    assert.equal((await lcm.check("c")).ok, true);
    const status = await lcm.status("c");
    assert.equal(status.messages, 64);
    const [conversation, ...others] = await lcm.listing("conversations");
    assert.deepEqual([conversation.conversation, others], ["c", []]);
    assert.deepEqual(await lcm.listing("summaries", { conversation: "c" }), []);
  });
});

const noProgram = existsSync(program) ? false : "dist/lcm is not built";

test(
  "a store written by the program is the same here, and the other way round",
  { skip: noProgram },
  async () => {
    const path = join(folder, "program.lcm.db");
    const run = (...args) =>
      execFileSync(program, ["--store", path, "--conversation", "c", "--now", `${NOW}`, ...args], {
        encoding: "utf8",
      }).trim();
    run("ingest", transcript);
    await withEngine(path, async (lcm) => {
      assert.equal(await lcm.digest(), run("digest"));
      assert.deepEqual(await lcm.messages("c"), lines);
      assert.equal((await lcm.ingest("c", lines)).ingested, 0);
      await lcm.append("c", [{ role: "user", content: "written by Node" }]);
      assert.equal(await lcm.digest(), run("digest"));
      assert.equal(run("messages", "--raw").split("\n").length, 65);
    });
  },
);
