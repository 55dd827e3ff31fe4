// The adapter for asynchronous stores, the queue, and repeated calls.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CONFLICT_RETRIES_MAX } from "../src/backend.js";
import { Calls } from "../src/calls.js";
import { Queue } from "../src/queue.js";
import { asyncStore } from "../src/store-async.js";
import { MemoryStore } from "../src/store-memory.js";
import { delay, fakeBackend, slowStore } from "./fake.js";

/** The calls of an engine over the fake component; its store is `inner`, delayed by 5 ms. */
function callsOver(inner) {
  const backend = fakeBackend(asyncStore(slowStore(inner, 5)), { instances: 0 });
  return new Calls({ backend, place: "here" });
}

const append = (conversation) => ({ conversation, messages: [], options: {}, now: 1 });

test("a store of 5 ms gives the same result, an injected conflict is repeated", async () => {
  const inner = new MemoryStore();
  let conflicts = 2;
  const fail = {
    commit: () => {
      if (conflicts-- > 0) throw Object.assign(new Error("lost"), { code: "conflict" });
    },
  };
  const log = { instances: 0 };
  const backend = fakeBackend(asyncStore(slowStore(inner, 5, fail)), log);
  const first = await backend.call("ingest.append", append("a"));
  const second = await backend.call("ingest.append", append("a"));
  assert.deepEqual([first.revision, second.revision], [1, 2]);
  assert.equal(new TextDecoder().decode(inner.getMany(["a"])[0]), "2");
  // The instance assumes that its commit succeeded, so each conflict replaces the instance.
  assert.equal(log.instances, 3);
});

test("calls of one conversation queue, those of others run meanwhile", async () => {
  const inner = new MemoryStore();
  const calls = callsOver(inner);
  const order = [];
  const one = (name) => calls.call("ingest.append", append(name)).then(() => order.push(name));
  await Promise.all([one("a"), one("a"), one("a"), one("b")]);
  assert.equal(order.indexOf("b") < 2, true, order.join());
  assert.equal(new TextDecoder().decode(inner.getMany(["a"])[0]), "3");
});

test("a commit with an unknown outcome is not repeated and drops the instance", async () => {
  let commits = 0;
  const fail = {
    commit: () => {
      commits += 1;
      throw new Error("connection lost");
    },
  };
  const log = { instances: 0 };
  const backend = fakeBackend(asyncStore(slowStore(new MemoryStore(), 1, fail)), log);
  const expected = { code: "store-unavailable", message: /connection lost/ };
  await assert.rejects(backend.call("ingest.append", append("a")), expected);
  assert.equal(commits, 1);
  await assert.rejects(backend.call("ingest.append", append("a")), expected);
  assert.equal(log.instances, 2);
});

test("a conflict that does not end is raised after so many repetitions", async () => {
  let commits = 0;
  const store = new MemoryStore();
  store.commit = () => {
    commits += 1;
    throw Object.assign(new Error("lost"), { code: "conflict" });
  };
  const backend = fakeBackend(store, { instances: 0 });
  await assert.rejects(backend.call("ingest.append", append("a")), { code: "conflict" });
  assert.equal(commits, CONFLICT_RETRIES_MAX + 1);
});

test("answers of an asynchronous store are checked, too", async () => {
  for (const answer of [undefined, [], ["x"], [null, null]]) {
    const store = { ...slowStore(new MemoryStore(), 0), getMany: async () => answer };
    const backend = fakeBackend(asyncStore(store), { instances: 0 });
    await assert.rejects(backend.call("ingest.append", append("a")), { code: "store-unavailable" });
  }
});

test("a read that the engine repeats in one call is fetched again", async () => {
  const values = ["1", "2"];
  const store = {
    ...slowStore(new MemoryStore(), 0),
    getMany: async () => [new TextEncoder().encode(values.shift())],
  };
  const overrides = {
    admin: (face) => ({
      digest: () => {
        const read = () => new TextDecoder().decode(face.getMany(["h"])[0]);
        return read() + read();
      },
    }),
  };
  const backend = fakeBackend(asyncStore(store), { instances: 0 }, overrides);
  assert.equal(await backend.call("admin.digest", {}), "12");
});

test("a store without the three functions is refused", () => {
  assert.throws(() => asyncStore({ getMany() {}, scan() {} }), { code: "invalid-input" });
  assert.throws(() => fakeBackend({ scan() {}, commit() {} }), { code: "invalid-input" });
});

test("close waits for what is queued, and later calls are refused", async () => {
  const inner = new MemoryStore();
  const calls = callsOver(inner);
  const running = [1, 2].map(() => calls.call("ingest.append", append("a")));
  await Promise.all([calls.close(), calls.close()]);
  assert.deepEqual((await Promise.all(running)).map(({ revision }) => revision), [1, 2]);
  const closed = { code: "invalid-input", message: "the store is closed" };
  await assert.rejects(calls.call("ingest.append", append("a")), closed);
});

test("a line goes on after an error and leaves nothing behind", async () => {
  const queue = new Queue();
  const failing = queue.run("a", async () => {
    await delay(1);
    throw new Error("first");
  });
  const next = queue.run("a", async () => "second");
  await assert.rejects(failing, /first/);
  assert.equal(await next, "second");
  const thrown = queue.run("b", () => {
    throw new Error("at once");
  });
  await assert.rejects(thrown, /at once/);
});

test("the first of a line begins at once, what it queues comes behind it", async () => {
  const queue = new Queue();
  const order = [];
  let inner;
  const outer = queue.run("a", async () => {
    inner = queue.run("a", () => order.push("inner"));
    order.push("outer begins");
    await delay(1);
    order.push("outer ends");
  });
  assert.deepEqual(order, ["outer begins"]);
  await Promise.all([outer, inner]);
  assert.deepEqual(order, ["outer begins", "outer ends", "inner"]);
});

test("an aborted signal ends the waiting in a line, and nobody overtakes", async () => {
  const queue = new Queue();
  const order = [];
  const controller = new AbortController();
  let end;
  const first = queue.run("a", () => new Promise((resolve) => (end = resolve)));
  const second = queue.run("a", () => order.push("second"), controller.signal);
  const third = queue.run("a", () => order.push("third"));
  controller.abort();
  await second;
  await delay(5);
  assert.deepEqual(order, ["second"]);
  end();
  await Promise.all([first, third]);
  assert.deepEqual(order, ["second", "third"]);
});

test("a page that an asynchronous store may not answer is refused", async () => {
  const value = new Uint8Array(600);
  const heavy = ["a", "b"].map((key) => ({ key, value }));
  for (const [answer, message] of [
    [[[], true], /no entry, although more follow/],
    [[heavy, false], /1202 bytes, 1000 at most/],
  ]) {
    const inner = Object.assign(new MemoryStore(), { scan: () => answer });
    const backend = fakeBackend(asyncStore(slowStore(inner, 0)), { instances: 0 });
    const expected = { code: "store-unavailable", message };
    await assert.rejects(backend.call("admin.digest", { logical: false }), expected);
  }
});
