// Objects that vanish at the worst moments: workerd is killed while a model works, between plan and
// apply, and just after its answer. Afterwards the store must be as in a run without the kill.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";

import { open } from "../../node/src/index.js";
import { startWorker } from "../scripts/workerd.mjs";
import { BUDGET, client, NOW, SAID, startModel, temporaryFolder, transcript } from "./support.js";

let folder;
let model;
let answer;
let worker;
let lines;

const start = async () => {
  worker = await startWorker(folder, { model: model.address });
};
const restart = async () => {
  await worker.stop();
  await start();
};

before(async () => {
  lines = await transcript();
  model = await startModel((...asked) => answer(...asked));
  folder = await temporaryFolder();
  await start();
});
after(async () => {
  await worker.stop();
  model.close();
  await rm(folder, { recursive: true, force: true });
});

/**
 * Runs a compaction in Node, stops it at completion `at`, whose answer is lost, and compacts again.
 * Resolves to the digest at the end, and the number of completions before the stop.
 */
async function stopped(at) {
  const controller = new AbortController();
  const answer = { text: SAID, finish: "stop", model: "m", inputTokens: 11, outputTokens: 7 };
  let asked = 0;
  const complete = async () => {
    asked += 1;
    if (asked !== at) return answer;
    controller.abort();
    return new Promise(() => {});
  };
  const lcm = await open({ store: "memory:", complete, environment: {}, now: () => NOW });
  await lcm.append("conversation", lines);
  const { signal } = controller;
  const { completions } = await lcm.compact("conversation", { budget: BUDGET, signal, leaseMs: 0 });
  asked = at;
  await lcm.compact("conversation", { budget: BUDGET, leaseMs: 0 });
  return { digest: await lcm.digest(), completions };
}

/** Compacts, kills workerd at completion `at`, exactly at `moment`, and compacts to the end. */
async function disturbed(name, at, moment) {
  const chat = client(worker, name);
  assert.equal((await chat.post(`messages?now=${NOW}`, lines.join("\n")))[0], 200);
  let asked = 0;
  let killed;
  const killing = new Promise((resolve) => {
    killed = resolve;
  });
  answer = async () => {
    asked += 1;
    if (asked !== at) return undefined;
    if (moment === "thinking") {
      killed(worker.stop());
      // The killed worker does not receive the answer.
      await new Promise((resolve) => setTimeout(resolve, 20));
    } else {
      setImmediate(() => killed(worker.stop()));
    }
    return undefined;
  };
  const compact = `compact?budget=${BUDGET}&now=${NOW}`;
  const first = chat.post(compact).catch(() => "gone");
  await Promise.all([await killing, first]);
  assert.equal(await first, "gone");
  await start();
  const again = client(worker, name);
  assert.equal((await again.post(compact))[0], 200);
  return again;
}

test("killed at any completion, a compaction is gone on with and nothing is doubled", async () => {
  const { completions } = await stopped(Infinity);
  assert.ok(completions > 4);
  for (let at = 1; at <= completions; at++) {
    const chat = await disturbed(`thinking ${at}`, at, "thinking");
    assert.deepEqual((await chat.get("messages"))[1], lines);
    assert.equal((await chat.get("digest"))[1], (await stopped(at)).digest, `killed at ${at}`);
    assert.equal((await chat.get("check"))[1].ok, true);
  }
});

test("killed as an answer comes, it was applied as a whole or not at all", async () => {
  for (const at of [1, 3, 5]) {
    const chat = await disturbed(`answered ${at}`, at, "answered");
    const [, digest] = await chat.get("digest");
    const whole = [(await stopped(at)).digest, (await stopped(at + 1)).digest];
    assert.ok(whole.includes(digest), `killed at ${at}`);
    assert.deepEqual((await chat.get("messages"))[1], lines);
    assert.equal((await chat.get("check"))[1].ok, true);
  }
});

test("an alarm that was killed with its object rings again", async () => {
  const chat = client(worker, "alarm");
  let think;
  const thinking = new Promise((resolve) => {
    think = resolve;
  });
  answer = () => {
    think();
    return new Promise((resolve) => setTimeout(resolve, 20));
  };
  const [, { deferred }] = await chat.post("turn?budget=12000&defer=true", lines.join("\n"));
  assert.equal(deferred, true);
  await thinking;
  answer = async () => undefined;
  await restart();
  const again = client(worker, "alarm");
  for (let attempt = 0; ; attempt++) {
    const [, { debt, summaries }] = await again.get("status");
    if (debt === null && summaries.length > 0) break;
    assert.ok(attempt < 400, "the alarm did not ring");
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.deepEqual((await again.get("messages"))[1], lines);
  assert.equal((await again.get("check"))[1].ok, true);
});
