// Runs all golden vectors over a slow store with other writers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { slowVectors } from "../scripts/slow-vectors.mjs";
import { vectorPaths } from "../scripts/vector-report.mjs";

test("an asynchronous store of 5 ms with random conflicts ends with the same bytes", async () => {
  const { passed, failures, commits, conflicts } = await slowVectors(1);
  assert.deepEqual(failures, []);
  assert.equal(passed, (await vectorPaths()).length);
  assert.ok(conflicts > commits / 8, `${conflicts} of ${commits} commits were refused`);
});

test("without repeating, refused commits would show", async () => {
  const { failures } = await slowVectors(1, { repeats: false, only: "ingest/" });
  assert.ok(failures.some((line) => line.includes("conflict")));
});
