// Tests of the code around an instance: invalid answers of a store, traps, conversions, and when an
// instance is replaced.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Component } from "../src/component.js";
import { MemoryStore } from "../src/store-memory.js";
import { fakeInstantiate } from "./fake.js";

const APPEND = { conversation: "c", dialect: "lcm", messages: [], options: {}, now: 1 };

function over(store, overrides) {
  const log = { instances: 0 };
  const instantiate = fakeInstantiate(log, overrides);
  return { log, component: new Component({ instantiate, store: { ...base(), ...store } }) };
}

function base() {
  const inner = new MemoryStore();
  return {
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => inner.commit(guards, puts),
  };
}

/** Entries in order whose values have `size` bytes. */
const pageOf = (count, size) =>
  Array.from({ length: count }, (_, at) => {
    return { key: String.fromCharCode(97 + at), value: new Uint8Array(size) };
  });

const foreign = [
  ["getMany", "no array", () => undefined, /no array/],
  ["getMany", "too few values", () => [], /1 keys with 0 values/],
  ["getMany", "too many values", () => [null, null], /1 keys with 2 values/],
  ["getMany", "a string", () => ["x"], /no Uint8Array/],
  ["getMany", "an ArrayBuffer", () => [new ArrayBuffer(3)], /no Uint8Array/],
  ["getMany", "a promise", async () => [null], /asyncStore/],
  ["getMany", "a rejected promise", async () => Promise.reject(new Error("x")), /asyncStore/],
  ["getMany", "a list of promises", () => [Promise.resolve(null)], /no Uint8Array/],
  ["commit", "a promise", async () => {}, /asyncStore/],
  ["scan", "no page", () => [], /`\[entries, more\]`/],
  ["scan", "more that is no boolean", () => [[], 1], /no boolean/],
  ["scan", "a foreign key", () => [[{ key: "\u0080", value: new Uint8Array() }], false], /range/],
  ["scan", "a number as key", () => [[{ key: 1, value: new Uint8Array() }], false], /no string/],
  ["scan", "a value of text", () => [[{ key: "a", value: "x" }], false], /no Uint8Array/],
  [
    "scan",
    "unsorted keys",
    () => [["b", "a"].map((key) => ({ key, value: new Uint8Array() })), false],
    /out of order/,
  ],
  ["scan", "no entry, and more", () => [[], true], /no entry, although more follow/],
  ["scan", "too many entries", () => [pageOf(11, 1), false], /11 entries, 10 at most/],
  // The bytes of keys count, too: 2 entries with 500 bytes of value and 1 byte of key.
  ["scan", "too many bytes", () => [pageOf(2, 500), false], /1002 bytes, 1000 at most/],
  ["scan", "a promise", async () => [[], false], /asyncStore/],
];

for (const [name, what, answer, message] of foreign) {
  test(`a store that answers ${name} with ${what} is refused and the instance dropped`, () => {
    const { component, log } = over({ [name]: answer });
    const call = () =>
      name === "scan"
        ? component.invoke("admin.digest", { logical: false })
        : component.invoke("ingest.append", APPEND);
    const expected = { name: "LcmError", code: "store-unavailable", message };
    assert.throws(call, expected);
    assert.throws(call, expected);
    assert.equal(log.instances, 2);
  });
}

test("a page of as many bytes as asked, and one entry of more, are taken", () => {
  for (const page of [pageOf(2, 499), pageOf(1, 5000)]) {
    const { component } = over({ scan: () => [page, false] });
    assert.equal(component.invoke("admin.digest", { logical: false }), `${page.length}`);
  }
});

test("an engine that swallowed a broken answer is not believed", () => {
  const overrides = {
    admin: (store) => ({
      digest: () => {
        try {
          store.getMany(["a"]);
        } catch {
          return "fine";
        }
        return "fine";
      },
    }),
  };
  const { component } = over({ getMany: () => [] }, overrides);
  assert.throws(() => component.invoke("admin.digest", {}), { code: "store-unavailable" });
});

test("a conflict keeps the instance, an unknown outcome drops it", () => {
  const codes = ["conflict", "store-unavailable"];
  const store = {
    commit: () => {
      throw { code: codes.shift(), message: "told so" };
    },
  };
  const { component, log } = over(store);
  const call = () => component.invoke("ingest.append", APPEND);
  assert.throws(call, { code: "conflict", message: "told so" });
  assert.equal(log.instances, 1);
  assert.throws(call, { code: "store-unavailable" });
  assert.equal(log.instances, 1);
  assert.throws(call);
  assert.equal(log.instances, 2);
});

test("what a store throws without a code is store-unavailable with its cause", () => {
  const cause = new Error("disk\non fire");
  const { component } = over({
    getMany: () => {
      throw cause;
    },
  });
  assert.throws(
    () => component.invoke("ingest.append", APPEND),
    (error) =>
      error.code === "store-unavailable" && error.cause === cause && !/\n/.test(error.message),
  );
});

test("a trap is reported and the next call gets a new instance", () => {
  let traps = 1;
  const overrides = {
    ingest: {
      append: () => {
        if (traps-- > 0) throw new WebAssembly.RuntimeError("unreachable");
        return { revision: 2n ** 53n, warnings: [] };
      },
    },
  };
  const { component, log } = over({}, overrides);
  assert.throws(() => component.invoke("ingest.append", APPEND), {
    code: "trap",
    message: /unreachable/,
  });
  assert.throws(() => component.invoke("ingest.append", APPEND), { code: "limit-exceeded" });
  assert.equal(log.instances, 2);
});

test("a store may not call the engine that is calling it", () => {
  const { component } = over({ getMany: () => component.invoke("setup.version", {}) });
  assert.throws(() => component.invoke("ingest.append", APPEND), { code: "invalid-input" });
});

test("every new instance is configured, and again after a change", () => {
  const seen = [];
  const instantiate = (imports) => {
    const exports = fakeInstantiate()(imports);
    exports.setup.configure = (json) => seen.push(json) && "{}";
    return exports;
  };
  const component = new Component({ instantiate, store: base(), configJson: '{"a":1}' });
  component.invoke("setup.version", {});
  component.invoke("setup.version", {});
  component.drop();
  component.invoke("setup.version", {});
  component.reconfigure('{"a":2}');
  component.invoke("setup.version", {});
  assert.deepEqual(seen, ['{"a":1}', '{"a":1}', '{"a":2}']);
});

const wrong = [
  [{ conversation: 7 }, /`conversation` must be a string/],
  [{ conversation: "a\ud800" }, /`conversation` holds a lone surrogate/],
  [{ messages: ["ok", "\udc00"] }, /`messages.1` holds a lone surrogate/],
  [{ messages: "one" }, /`messages` must be an array/],
  [{ dialect: "klingon" }, /`dialect` must be one of lcm, anthropic/],
  [{ now: -1 }, /`now` must be a whole number/],
  [{ now: 1.5 }, /`now` must be a whole number/],
  [{ now: 2 ** 60 }, /`now` must be a whole number/],
  [{ options: { modes: "new" } }, /`options` has no `modes`/],
  [{ options: { partial: "yes" } }, /`options.partial` must be true or false/],
  [{ message: [] }, /`append` has no `message`/],
];

for (const [args, message] of wrong) {
  test(`arguments ${JSON.stringify(args)} are invalid`, () => {
    const { component } = over({});
    const call = () => component.invoke("ingest.append", { ...APPEND, ...args });
    assert.throws(call, { code: "invalid-input", message });
  });
}

test("results are plain: numbers for u64, snake_case names, null for none", () => {
  const { component } = over({});
  const receipt = component.invoke("ingest.append", APPEND);
  assert.deepEqual(receipt, {
    revision: 1,
    ingested: 1,
    skipped: 0,
    seq_first: 1,
    seq_last: 1,
    seq_seen: 1,
    context_tokens: 1,
    warnings: [],
    events_json: "[]",
  });
  assert.equal(JSON.stringify(receipt).length > 10, true);
});
