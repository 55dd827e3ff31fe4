// Events: the list that every host reports alike, and listeners that fail.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { LcmError, MemoryStore, open } from "../src/index.js";
import { toCamel } from "../src/shapes.js";
import { ThreadBackend } from "../src/thread-backend.js";

const path = new URL("../../../tests/fixtures/events/script.json", import.meta.url);
const script = JSON.parse(await readFile(path, "utf8"));
const expected = script.events.map((event) => toCamel("StoreEvent", event));

/** A store whose next `conflicts` commits fail with a conflict. */
class Contended extends MemoryStore {
  conflicts = 0;

  commit(guards, puts) {
    if (this.conflicts > 0) {
      this.conflicts -= 1;
      throw new LcmError("conflict", "injected");
    }
    return super.commit(guards, puts);
  }
}

/** Makes the call of a step. */
function call(lcm, { do: verb, conversation, messages, answers: _, seq_seen: seqSeen, ...given }) {
  const options = seqSeen === undefined ? given : { ...given, seqSeen };
  if (verb === "append") options.appendMode = "new";
  // One call of a model for each answer.
  if (given.budget !== undefined) options.retries = 0;
  const args = messages === undefined ? [options] : [messages, options];
  return lcm[verb](conversation, ...args);
}

/** Runs the script with a listener; resolves to the warnings of the process. */
async function run(onEvent) {
  let answers = [];
  const complete = () => {
    const answer = answers.shift();
    if (typeof answer !== "string") return { error: { code: answer.failed, message: "injected" } };
    return { text: answer, model: "scripted", inputTokens: 100, outputTokens: 10 };
  };
  const store = new Contended();
  const warnings = [];
  const warned = ({ message }) => warnings.push(message);
  process.on("warning", warned);
  const lcm = await open({ store, complete, config: script.config, environment: {}, onEvent });
  for (const step of script.steps) {
    if (step.do === "conflict") {
      store.conflicts += 1;
      continue;
    }
    answers = [...(step.answers ?? [])];
    await call(lcm, step);
    assert.deepEqual(answers, [], JSON.stringify(step));
  }
  await lcm.close();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", warned);
  return warnings;
}

/** Returns an event without the time that a model took. */
function comparable({ ms, ...event }) {
  assert.equal(Number.isInteger(ms), event.kind === "model-called");
  return event;
}

test("a conversation is reported as in every host", async () => {
  const events = [];
  const warnings = await run((event) => events.push(comparable(event)));
  assert.deepEqual(events, expected);
  assert.deepEqual(warnings, []);
});

test("a listener that throws or rejects breaks nothing and is reported once", async () => {
  const broken = new Error("the listener is broken");
  const throwing = () => {
    throw broken;
  };
  for (const fail of [throwing, async () => throwing()]) {
    const kinds = [];
    const warnings = await run((event) => {
      kinds.push(event.kind);
      return fail();
    });
    assert.deepEqual(kinds, expected.map(({ kind }) => kind));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /onEvent failed.*the listener is broken/);
  }
});

test("a wrong listener is refused", async () => {
  const message = "`onEvent` must be a function";
  await assert.rejects(open({ store: "memory:", onEvent: 7 }), { code: "invalid-input", message });
});

test("an engine in a worker thread reports the same kinds", async () => {
  const events = [];
  const onEvent = (event) => events.push(event);
  const options = { worker: true, config: script.config, environment: {}, onEvent };
  const lcm = await open("memory:", options);
  await lcm.ingest("chat", script.steps[5].messages);
  const done = await lcm.compact("chat", { budget: 386 });
  await lcm.close();
  const made = events.filter(({ kind }) => kind === "summary-made");
  assert.equal(events[0].kind, "messages-stored");
  assert.equal(made.length, done.passes.length);
  assert.ok(made.length > 0);
  // Without a model the level of a summary is `fallback`, and no event reports a call of a model.
  for (const { level } of [...made, ...done.passes]) assert.equal(level, "fallback");
  for (const { kind, conversation } of events) {
    assert.equal(conversation, "chat");
    assert.notEqual(kind, "model-called");
  }
});

test("a repetition in a worker thread is reported", async () => {
  const worker = Object.assign(new EventEmitter(), { unref() {}, ref() {}, postMessage() {} });
  const events = [];
  const backend = new ThreadBackend(worker, { emit: (event) => events.push(event) });
  const answer = backend.call("ingest.append", {});
  const event = { kind: "conflict-repeated", conversation: "c", call: "ingest.append", attempt: 1 };
  await new Promise((resolve) => setImmediate(resolve));
  worker.emit("message", { event });
  worker.emit("message", { id: 0, result: "stored" });
  assert.equal(await answer, "stored");
  assert.deepEqual(events, [event]);
});

test("a question reports the call of its model", async () => {
  const events = [];
  const onEvent = (event) => events.push(event);
  const complete = () => ({ text: "The gate code is 4711.", model: "scripted" });
  const lcm = await open({ store: "memory:", complete, environment: {}, onEvent });
  await lcm.append("chat", [{ role: "user", content: "The gate code is 4711." }]);
  await lcm.ask("chat", "What is the gate code?");
  await lcm.close();
  const called = events.filter(({ kind }) => kind === "model-called");
  assert.ok(called.length > 0);
  for (const { conversation, purpose, model } of called) {
    assert.deepEqual([conversation, purpose, model], ["chat", "ask", "scripted"]);
  }
});
