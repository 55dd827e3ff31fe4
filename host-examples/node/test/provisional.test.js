// Provisional summaries, from the first failure of a model until the model works again.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { LcmError } from "../src/errors.js";
import { maintainFamily } from "../src/family.js";
import { NOW, withEngine } from "./opened.js";
import * as sdk from "./sdk-errors.js";

const cases = new URL("../../../tests/fixtures/model-answers.json", import.meta.url);
const answers = JSON.parse(await readFile(cases, "utf8"));
const MINUTE_MS = 60_000;
/** Budgets in tokens: the context exceeds the threshold of both, and the second budget itself. */
const BUDGETS = [4_500, 2_500];
const SAID = "They spoke of a garden, a river and a letter.";
/** Failures of one request; another request to the same model may succeed. */
const OF_A_REQUEST = ["context-too-long", "policy"];

/** A message of about 100 tokens. */
function message(number) {
  const words = ["garden", "river", "market", "letter", "window", "harvest", "song"];
  const said = Array.from({ length: 76 }, (_, at) => words[(at * number + at) % words.length]);
  return { role: number % 2 ? "user" : "assistant", content: `${number} ${said.join(" ")}` };
}

const messages = Array.from({ length: 40 }, (_, at) => message(at + 1));

/** Faults as `[name, model function, code]`; without a code the model answers, but unusably. */
const shapes = [sdk.openai, sdk.anthropic, sdk.google, sdk.aiSdk, sdk.langchain, sdk.axios];
const thrown = answers.map((answer, at) => {
  const shape = shapes[at % shapes.length];
  const complete = async () => {
    throw shape(answer);
  };
  return [`${shape.name}: ${answer.what}`, complete, answer.code];
});
const late = ["an answer too late", () => new Promise(() => {}), "timeout"];
const texts = [
  ["", "an empty answer"],
  ["OK.", "an acknowledgement"],
  ["...", "three dots"],
  ["---", "a line"],
  ["None", "none"],
  ["N/A", "not applicable"],
  ["I'm sorry, but I can't assist with that request.", "an apology"],
  ["I cannot summarize this conversation.", "an excuse"],
  ["Sure! What would you like me to do next?", "an offer"],
  ["Error: rate limit exceeded, please try again later.", "an error as a text"],
  [({ system }) => system.split("\n").find((line) => line.length > 40), "its instruction"],
  [({ prompt }) => prompt.split("\n").find((line) => line.includes("garden river")), "a line of it"],
  ["They spoke of a garden beside a river. ".repeat(60), "one sentence, 60 times"],
];
const said = texts.map(([text, what]) => {
  return [what, async (request) => (typeof text === "string" ? text : text(request))];
});
const ended = ["length", "refusal"].map((finish) => {
  return [`an answer that ended with ${finish}`, async () => ({ text: SAID, finish })];
});

/** Runs a conversation whose model first fails and then works. */
async function live(budget, fails, code) {
  let now = NOW;
  let asked = 0;
  let complete = fails;
  const model = async (request, options) => {
    asked += 1;
    return complete(request, options);
  };
  const options = { budget, retries: 0, timeoutMs: 20 };
  const inline = { ...options, defer: false };
  const isFailure = code !== undefined && !OF_A_REQUEST.includes(code);
  const work = async (lcm) => {
    const turn = await lcm.turn("c", messages, inline);
    assert.equal(turn.receipt.ingested, messages.length);
    assert.equal(turn.failure?.code, code);
    assert.ok(asked > 0 && (!isFailure || asked === 1), `asked ${asked} times`);

    // After a failure no model is asked in the next minutes, so that users do not wait.
    const before = asked;
    for (let minute = 1; minute <= 4; minute++) {
      now += MINUTE_MS;
      await lcm.turn("c", [message(100 + minute)], { ...inline, appendMode: "new" });
      if (isFailure) assert.equal(asked, before, `after ${minute} minutes`);
    }

    complete = async () => SAID;
    let done = { debt: true };
    for (let calls = 0; done.debt !== null; calls++) {
      assert.ok(calls < 10, JSON.stringify(done));
      now += 31 * MINUTE_MS;
      done = await lcm.maintain("c", options);
    }
    const status = await lcm.status("c");
    assert.ok(status.summaries.length > 0);
    assert.equal(status.provisional, 0);
  };
  await withEngine("memory:", work, { now: () => now, complete: model });
}

for (const [what, fails, code] of [...thrown, late, ...said, ...ended]) {
  test(`nothing stays provisional after ${what}`, async () => {
    for (const budget of BUDGETS) await live(budget, fails, code);
  });
}

test("a handle makes summaries again below the threshold", async () => {
  let now = NOW;
  let complete = async () => {
    throw Object.assign(new Error("down"), { code: "unavailable" });
  };
  const work = async (lcm) => {
    await lcm.turn("c", messages, { budget: BUDGETS[1], defer: false, retries: 0 });
    const chat = lcm.conversation("c", { budget: 2 * BUDGETS[0] });
    assert.ok((await lcm.status("c")).provisional > 0);
    complete = async () => SAID;
    for (let turn = 1; turn < 5; turn++) {
      now += 31 * MINUTE_MS;
      const { decision } = await chat.turn([{ role: "user", content: `Turn ${turn}.` }]);
      assert.equal(decision.due, false, "below the threshold");
      await chat.settle();
    }
    assert.equal((await lcm.status("c")).provisional, 0);
  };
  await withEngine("memory:", work, { now: () => now, complete: (...of) => complete(...of) });
});

for (const [what, fails] of [...said, ended[0]]) {
  test(`the next model is asked after ${what}`, async () => {
    let asked = 0;
    const last = async () => {
      asked += 1;
      return SAID;
    };
    const work = async (lcm) => {
      const { compacted } = await lcm.turn("c", messages, { budget: BUDGETS[0], defer: false });
      assert.ok(asked > 0 && compacted.passes.length > 0);
      assert.ok(compacted.passes.every(({ provisional }) => !provisional));
      assert.equal((await lcm.status("c")).provisional, 0);
    };
    await withEngine("memory:", work, { complete: [fails, last] });
  });
}

test("without a better answer the first counts", async () => {
  const complete = [async () => ({ text: SAID, finish: "length" }), async () => "OK."];
  const work = async (lcm) => {
    const { compacted } = await lcm.turn("c", messages, { budget: BUDGETS[0], defer: false });
    // At level `normal` the answer counts as cut off; at level `aggressive` it is accepted.
    assert.ok(compacted.passes.every(({ level }) => level === "aggressive"), compacted);
  };
  await withEngine("memory:", work, { complete });
});

test("a family is served until nothing is owed, its archived conversations included", async () => {
  let now = NOW;
  let complete = async () => {
    throw Object.assign(new Error("down"), { status: 503 });
  };
  const model = async () => complete();
  const options = { budget: BUDGETS[1], retries: 0 };
  const work = async (lcm) => {
    for (const id of ["a", "b", "c"]) {
      now += 1;
      await lcm.turn(id, messages, { ...options, defer: false, family: "garden" });
    }
    await lcm.turn("other", messages, { ...options, defer: false });
    const next = await lcm.reset("b");
    const members = [next.conversation, "c", "b", "a"];
    assert.deepEqual((await lcm.live("garden")).members, members);
    const owed = async () => {
      const all = await Promise.all(["a", "b", "c", "other"].map((id) => lcm.status(id)));
      return all.map(({ provisional }) => provisional > 0);
    };
    assert.deepEqual(await owed(), [true, true, true, true]);

    now += 31 * MINUTE_MS;
    const { reports, unserved } = await lcm.maintainFamily("garden", options);
    assert.deepEqual(reports.map((one) => one.conversation), members.slice(0, 2));
    assert.deepEqual(unserved, members.slice(2));
    assert.equal(reports[1].failure.code, "unavailable");

    complete = async () => SAID;
    for (let calls = 0; ; calls++) {
      assert.ok(calls < 10);
      now += 31 * MINUTE_MS;
      const done = await lcm.maintainFamily("garden", options);
      assert.deepEqual(done.reports.map((one) => one.conversation), members);
      if (done.reports.every(({ debt, failure }) => debt === null && failure === null)) break;
    }
    assert.deepEqual(await owed(), [false, false, false, true]);
    await assert.rejects(lcm.append("b", [message(1)]), { code: "denied" });
    await assert.rejects(lcm.maintainFamily("river", options), { code: "not-found" });
    await assert.rejects(lcm.maintainFamily("garden", { budget: 0 }), { code: "invalid-input" });
  };
  await withEngine("memory:", work, { now: () => now, complete: model });
});

test("a conversation that cannot be served does not hold up its family", async () => {
  const failed = new LcmError("corrupt", "`h/x` is damaged");
  const idle = { debt: null, compacted: null, failure: null };
  const results = { a: idle, b: failed, c: { ...idle, failure: { code: "auth", message: "no" } } };
  const served = [];
  const one = async (id) => {
    served.push(id);
    if (results[id] instanceof Error) throw results[id];
    return results[id];
  };
  const done = await maintainFamily(["a", "b", "c", "d"], undefined, one);
  assert.deepEqual(served, ["a", "b", "c"]);
  assert.deepEqual(done.unserved, ["d"]);
  const failure = { code: "corrupt", message: failed.message };
  assert.deepEqual(done.reports[1], { conversation: "b", ...idle, failure });
  const stopped = await maintainFamily(["a", "b"], AbortSignal.abort(), one);
  assert.deepEqual(stopped, { reports: [], unserved: ["a", "b"] });
  results.b = new LcmError("invalid-input", "`budget` must be at least 1, got 0");
  await assert.rejects(maintainFamily(["a", "b"], undefined, one), results.b);
});
