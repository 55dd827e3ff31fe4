// Names of members: camelCase in the package and snake_case in the engine, by the tables of the
// schema alone. Values that belong to the caller or to a model pass untouched.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LcmError } from "../src/errors.js";
import { mapCall, mapSyncCall } from "../src/names.js";
import { LISTINGS, METHODS, SHAPES, toCamel, toSnake } from "../src/shapes.js";
import { withEngine } from "./opened.js";

const MESSAGE = {
  role: "user",
  content: "The heron is snake_case.",
  snake_case: { inner_name: 1 },
  camelCase: [{ seq_first: 2, seqFirst: 3 }],
};
const isCamel = (name) => /^[a-z]+([A-Z0-9][a-z0-9]*)*$/.test(name);
const isSnake = (name) => /^[a-z]+(_[a-z0-9]+|[0-9]+)*$/.test(name);

/** Names of the members of a result, those of inner results included. */
function memberNames(value) {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(memberNames);
  return Object.entries(value).flatMap(([name, inner]) => [name, ...memberNames(inner)]);
}

test("every shape has names of both kinds, and every shape that it names", () => {
  for (const [shape, members] of Object.entries(SHAPES)) {
    assert.ok(members.every(([own]) => isCamel(own)), shape);
    assert.ok(members.every(([, engine]) => isSnake(engine)), shape);
    assert.equal(new Set(members.map(([own]) => own)).size, members.length, shape);
    for (const [, , inner] of members) assert.ok(inner === undefined || inner in SHAPES, inner);
  }
  const named = Object.values(METHODS).flatMap(({ options, result }) => [options, result]);
  for (const shape of [...named, ...Object.values(LISTINGS)]) {
    assert.ok(shape === undefined || shape in SHAPES, shape);
  }
});

test("the two mappings undo each other, whatever stands where a shape is expected", () => {
  const own = { budget: 1, prices: { cacheRead: 2 }, observedTokens: null, model: "a_b" };
  const engine = { budget: 1, prices: { cache_read: 2 }, observed_tokens: null, model: "a_b" };
  assert.deepEqual(toSnake("AdviseOptions", { ...own, now: undefined }, "options"), engine);
  assert.deepEqual(toCamel("AdviseOptions", engine), own);
  const odd = { vectors: [null, "text", [{ id: "a" }], { id: "b" }] };
  assert.deepEqual(toSnake("EmbedRequest", odd, "options"), odd);
  assert.deepEqual(toSnake("AdviseOptions", { prices: "none" }, "options"), { prices: "none" });
  assert.deepEqual(toCamel("Receipt", { new_member: { a_b: 1 } }), { new_member: { a_b: 1 } });
});

test("an unknown option is refused by its place, and the engine's names are unknown", async () => {
  await withEngine("memory:", async (lcm) => {
    const refused = (message) => ({ name: "LcmError", code: "invalid-input", message });
    const budget = 3_000;
    const misspelt = lcm.assemble("c", { budget, reserve_tokens: 1 });
    await assert.rejects(misspelt, refused("`options` has no `reserve_tokens`"));
    const prices = { input: 1, output: 1, cache_read: 1 };
    const inner = lcm.advise("c", { budget, prices });
    await assert.rejects(inner, refused("`options.prices` has no `cache_read`"));
    await assert.rejects(lcm.grep("c", "x", 7), refused("`options` must be an object"));
    assert.throws(() => lcm.tools("lcm", { caller: "x" }), refused("`options` has no `caller`"));
    const pages = () => lcm.iterExpand("c", "x", { depth: 1 });
    assert.throws(pages, refused("`options` has no `depth`"));
  });
});

test("errors of the engine name options as the caller wrote them", async () => {
  const failing = (code, message) => () => {
    throw new LcmError(code, message);
  };
  const text = "`observed_tokens` is above `prices.cache_read`, no `seq_first`, observed_tokens";
  const renamed = "`observedTokens` is above `prices.cacheRead`, no `seq_first`, observed_tokens";
  const wrong = failing("invalid-input", text);
  await assert.rejects(mapCall("advise", {}, wrong), { code: "invalid-input", message: renamed });
  assert.throws(() => mapSyncCall("advise", {}, wrong), { message: renamed });
  // Other errors are about the store or the engine, and stay the same object.
  for (const code of ["not-found", "conflict", "store-unavailable"]) {
    await assert.rejects(mapCall("advise", {}, failing(code, text)), { code, message: text });
  }
  const reason = new Error("stopped");
  const stopped = mapCall("ask", {}, async () => {
    throw reason;
  });
  await assert.rejects(stopped, (error) => error === reason);
  await withEngine("memory:", async (lcm) => {
    await lcm.append("c", [MESSAGE]);
    const call = lcm.evaluate("c", { budget: 1_000, observedTokens: -1 });
    await assert.rejects(call, { code: "invalid-input", message: /`options\.observedTokens`/ });
    const pages = lcm.iterExpand("c", "sum_1111111111111111", { tokensMax: -1 });
    await assert.rejects(pages.next(), { message: /`tokensMax`/ });
  });
});

test("messages, arguments of tools and the configuration pass untouched", async () => {
  const config = { fresh_tail_messages_max: 2, prompt_overrides: { leaf: "Say it briefly." } };
  const work = async (lcm) => {
    await lcm.append("c", [MESSAGE]);
    assert.deepEqual((await lcm.messages("c")).map(JSON.parse), [MESSAGE]);
    const [listed] = await lcm.listing("messages", { conversation: "c" });
    assert.deepEqual(JSON.parse(listed.raw), MESSAGE);
    const liveMessages = [{ role: "user", content: "live", own_id: "x" }];
    const { messages } = await lcm.assemble("c", { budget: 1_000, liveMessages });
    assert.deepEqual(messages[0], MESSAGE);
    const input = { pattern: "snake_case", allConversations: true };
    const answer = await lcm.callTool("c", "lcm_grep", input, { scope: "store" });
    assert.equal(answer.isError, false, answer.text);
    const report = await lcm.configure({ no_such_key: 3, noSuchKey: 4 });
    assert.deepEqual(report.unknown.sort(), ["noSuchKey", "no_such_key"]);
    assert.equal((await lcm.prompts()).find(({ name }) => name === "leaf").overridden, false);
  };
  await withEngine("memory:", work, { config });
});

test("a model gets camelCase requests, and its answers and failures are read so", async () => {
  const requests = [];
  // A model that asks for a long pause is asked once; without the pause, three times.
  const busy = async (request) => {
    requests.push(request);
    throw Object.assign(new Error("busy"), { code: "rate-limited", retryAfterMs: 3_600_000 });
  };
  const answering = async () => {
    return { text: "The heron.", inputTokens: 11, outputTokens: 7, input_tokens: 99 };
  };
  const lines = Array.from({ length: 40 }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content: `message ${at} ${"about the heron ".repeat(40)}`,
  }));
  const work = async (lcm) => {
    await lcm.append("c", lines);
    const { completions } = await lcm.compact("c", { budget: 3_000 });
    assert.equal(completions, 2 * requests.length);
    for (const request of requests) {
      const names = SHAPES.CompletionRequest.map(([own]) => own);
      assert.deepEqual(Object.keys(request).sort(), names.sort());
      assert.ok(request.outputTokensMax > 0 && request.inputTokens > 0);
    }
    const { ledger } = await lcm.status("c");
    assert.ok(ledger.inputTokens > 0 && ledger.inputTokens % 11 === 0);
  };
  await withEngine("memory:", work, { complete: [busy, answering] });
});

test("no member of a result has a name of the engine", async () => {
  await withEngine("memory:", async (lcm) => {
    const budget = 3_000;
    const text = `<file name="a.csv">${"item,price\n".repeat(30_000)}</file>`;
    const turn = await lcm.turn("c", [MESSAGE, { role: "user", content: text }], { budget });
    const { id: grant } = await lcm.grant("c");
    const found = await lcm.grep("c", "heron", { neighbours: 1, grant });
    const prices = { input: 1, output: 1 };
    const results = [
      turn,
      found,
      await lcm.maintain("c", { budget }),
      await lcm.evaluate("c", { budget, model: "m" }),
      await lcm.describe("c", found.matches[0].id, { grant }),
      await lcm.describe("c", "c"),
      await lcm.ask("c", "What of the heron?", { grant }),
      await lcm.askPlan("c", "What of the heron?"),
      await lcm.embed("c"),
      await lcm.status("c"),
      await lcm.status(),
      await lcm.check("c"),
      await lcm.prompts(),
      await lcm.advise("c", { budget, prices }),
      await lcm.usage("c", { purpose: "turn", inputTokens: 1 }),
      await lcm.calibrate("c", "m", 100, 110),
      await lcm.focus("c", { text: "The heron." }),
      await lcm.listing("conversations"),
      await lcm.listing("grants", { conversation: "c" }),
      await lcm.importLines(lcm.export("c")),
      await lcm.newSession("c"),
      await lcm.reset("c"),
    ];
    const { messages, ...context } = await lcm.assemble("c#2", { budget, explain: true });
    assert.ok(Array.isArray(messages));
    const names = new Set(memberNames([...results, context]));
    assert.ok(names.size > 100);
    assert.deepEqual([...names].filter((name) => !isCamel(name)), []);
  });
});
