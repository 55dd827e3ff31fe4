// Tests of the vector runner itself: it must also fail, because a runner that accepts everything
// proves nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryStore } from "../src/store-memory.js";
import { differences, runVector } from "../src/vectors.js";
import { fakeInstantiate } from "./fake.js";

const same = [
  [{ a: 1 }, { a: 1, b: 2 }],
  [{ a: { b: null } }, { a: { b: null } }],
  [
    [1, "x"],
    [1, "x"],
  ],
  [{ a: [1] }, '{"a":[1],"b":2}'],
  [{ $length: 2 }, [1, 2]],
  [{ $length: 2 }, "[1,2]"],
  [{ $starts: "a" }, "abc"],
  [{ $ends: "c" }, "abc"],
  [{ $contains: "b" }, "abc"],
  [{ $max: 5 }, 5],
  [{ a: { $absent: true } }, {}],
  [{ a: { $absent: true } }, { a: null }],
  [true, "true"],
  [null, null],
];
const different = [
  [{ a: 1 }, { a: 2 }],
  [{ a: 1 }, {}],
  [{ a: 1 }, [1]],
  [{ a: 1 }, null],
  [[1], [1, 2]],
  [
    [1, 2],
    [2, 1],
  ],
  [[1], { 0: 1 }],
  [{ $length: 2 }, [1]],
  [{ $length: 2 }, "ab"],
  [{ $starts: "b" }, "abc"],
  [{ $max: 5 }, 6],
  [{ $max: 5 }, "4"],
  [{ a: { $absent: true } }, { a: 0 }],
  ["1", 1],
  [null, 0],
  [1, "x"],
];

for (const [expected, actual] of same) {
  test(`${JSON.stringify(expected)} matches ${JSON.stringify(actual)}`, () => {
    assert.deepEqual(differences(expected, actual), []);
  });
}
for (const [expected, actual] of different) {
  test(`${JSON.stringify(expected)} does not match ${JSON.stringify(actual)}`, () => {
    assert.notEqual(differences(expected, actual).length, 0);
  });
}

const run = (vector, mode = "normal", overrides = {}) =>
  runVector(vector, mode, fakeInstantiate(undefined, overrides), new MemoryStore());
const step = { call: "ingest.append", args: { messages: [] }, expect: { revision: 1 } };

test("both modes end with the same store", async () => {
  const normal = await run({ steps: [step] });
  const blocking = await run({ steps: [step] }, "would-block");
  assert.deepEqual(normal.failures, []);
  assert.deepEqual(blocking, normal);
  const pinned = await run({ steps: [step], store_sha256: normal.sha256 });
  assert.deepEqual(pinned.failures, []);
});

const failing = {
  "a result that differs": [{ ...step, expect: { revision: 2 } }],
  "an error that was not expected": [{ call: "ingest.append", args: { dialect: "x" } }],
  "a result where an error was expected": [
    { call: "ingest.append", expect_error: { code: "conflict" } },
  ],
  "another error than expected": [
    { call: "ingest.append", args: { dialect: "x" }, expect_error: { code: "conflict" } },
  ],
  "an unknown field": [{ ...step, expected: 1 }],
  "an unknown call": [{ call: "ingest.none" }],
  "an unknown argument": [{ call: "ingest.append", args: { mesages: [] } }],
  "a reference to nothing": [step, { call: "ingest.append", args: { conversation: "$0.nothing" } }],
};
for (const [what, steps] of Object.entries(failing)) {
  test(`${what} fails the vector`, async () => {
    assert.equal((await run({ steps })).failures.length, 1);
  });
}

test("another digest than the pinned one fails the vector", async () => {
  const { failures } = await run({ steps: [step], store_sha256: "00" });
  assert.match(failures[0], /expected 00/);
});

test("lists of messages, repeats and references are replaced", async () => {
  const seen = [];
  const overrides = {
    ingest: {
      append: (...args) => {
        seen.push(args);
        return { revision: 7n, ingested: 0, skipped: 0, seqSeen: 0n, contextTokens: 0, warnings: [] };
      },
    },
  };
  const messages = [
    "raw",
    { role: "user", content: { $repeat: { text: "ab", count: 2 } } },
    { $generate: { count: 2, tokens: 5, roles: ["user", "assistant"], first: 9 } },
  ];
  const { failures } = await run(
    {
      steps: [
        { call: "ingest.append", args: { messages } },
        { call: "ingest.append", args: { now: "$0.revision", conversation: "d" } },
      ],
    },
    "normal",
    overrides,
  );
  assert.deepEqual(failures, []);
  assert.deepEqual(seen[0][2], [
    "raw",
    '{"role":"user","content":"abab"}',
    '{"role":"user","content":"message 9 xxxxxx"}',
    '{"role":"assistant","content":"message 10 xxxxx"}',
  ]);
  assert.deepEqual(
    [seen[0][0], seen[0][4], seen[1][0], seen[1][4]],
    ["c", 1700000000000n, "d", 7n],
  );
});
