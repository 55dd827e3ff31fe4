// Every call that asks a model, with and without a worker thread: other calls of the conversation
// run while the model works, and an aborted signal ends the call.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { open } from "../src/index.js";

const transcript = new URL("../../walkthrough.jsonl", import.meta.url);
const lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");
const NEW = { role: "user", content: "x" };
const QUESTION = "What was decided about the batch window?";
const cancelled = ({ reason, passes }) => assert.deepEqual([reason, passes], ["cancelled", []]);

/** How to make each call, and its result after an abort before the model answered. */
const CALLS = {
  compact: {
    call: (lcm, signal) => lcm.compact("c", { budget: 3000, signal }),
    stopped: cancelled,
  },
  turn: {
    call: (lcm, signal) => lcm.turn("c", [NEW], { budget: 3000, signal }),
    stopped: ({ receipt, compacted, failure }) => {
      assert.deepEqual([receipt.ingested, failure], [1, null]);
      cancelled(compacted);
    },
  },
  maintain: {
    call: (lcm, signal) => lcm.maintain("c", { budget: 3000, signal }),
    stopped: ({ compacted }) => cancelled(compacted),
  },
  ask: {
    call: (lcm, signal) => lcm.ask("c", QUESTION, { signal }),
    rejects: true,
  },
  callTool: {
    call: (lcm, signal) =>
      lcm.callTool("c", "lcm_expand_query", { prompt: QUESTION }, { signal }),
    rejects: true,
  },
};

/** Checks the end of a call whose signal was aborted. */
async function ended(running, { stopped, rejects }, reason) {
  if (rejects) await assert.rejects(running, (thrown) => thrown === reason);
  else stopped(await running);
}

/** A model that never answers; promises tell when it is asked and when its request ended. */
function thinking() {
  const said = {};
  const asked = new Promise((resolve) => {
    said.asked = resolve;
  });
  const ended = new Promise((resolve) => {
    said.ended = resolve;
  });
  const complete = (request, { signal }) => {
    signal.addEventListener("abort", said.ended, { once: true });
    said.asked();
    return new Promise(() => {});
  };
  return { complete, asked, ended };
}

for (const worker of [false, true]) {
  for (const [name, { call, ...wanted }] of Object.entries(CALLS)) {
    const where = worker ? "with a thread" : "without one";
    test(`${name} ${where}: nobody waits for its model, and a signal ends it`, async () => {
      const { complete, asked, ended: over } = thinking();
      const lcm = await open({ store: "memory:", environment: {}, worker, complete });
      await lcm.append("c", lines);
      const controller = new AbortController();
      const running = call(lcm, controller.signal);
      await asked;
      // Each of these calls would wait forever if the call above still held the queue.
      await lcm.append("c", [{ role: "user", content: "and now?" }], { appendMode: "new" });
      const { messages } = await lcm.assemble("c", { budget: 100_000 });
      assert.match(JSON.stringify(messages.at(-1)), /and now/);
      assert.ok((await lcm.grep("c", '"batch window"')).total > 0);
      controller.abort();
      assert.equal(controller.signal.reason.name, "AbortError");
      await ended(running, wanted, controller.signal.reason);
      await over;
      // The stopped question is no longer open.
      const again = lcm.ask("c", QUESTION, { deadlineMs: 1 });
      assert.equal((await again).status, "timed-out");
      await lcm.close();
    });

    test(`${name} ${where}: a signal that was aborted before asks no model`, async () => {
      let calls = 0;
      const complete = async () => {
        calls += 1;
        return "said all the same";
      };
      const lcm = await open({ store: "memory:", environment: {}, worker, complete });
      await lcm.append("c", lines);
      const reason = new Error("enough");
      await ended(call(lcm, AbortSignal.abort(reason)), wanted, reason);
      assert.equal(calls, 0);
      await lcm.close();
    });
  }
}
