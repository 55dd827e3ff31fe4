// The estimate and its calibration against real tokenizers: `tokens/classes.mjs`, and a slice of
// `tokens/table.mjs`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { open } from "../src/index.js";

test("after 20 reports prompts are predicted within the bounds", () => {
  const table = fileURLToPath(new URL("../tokens/table.mjs", import.meta.url));
  const run = spawnSync(process.execPath, [table, "--slice"], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.equal(run.stdout.trim().split("\n").length, 2 + 3 * 2 * 2);
});

test("no class of text is estimated far from its tokens", () => {
  const table = fileURLToPath(new URL("../tokens/classes.mjs", import.meta.url));
  const run = spawnSync(process.execPath, [table], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.equal(run.stdout.trim().split("\n").length, 2 + 11);
});

test("a model that was reported of has its budgets in its own tokens", async () => {
  let now = 1_700_000_000_000;
  const lcm = await open({ store: "memory:", now: () => (now += 1), environment: {} });
  const content = "x".repeat(400);
  const roles = ["user", "assistant"];
  const messages = Array.from({ length: 40 }, (_, i) => ({ role: roles[i % 2], content }));
  await lcm.append("c", messages, { appendMode: "new" });
  const { tokens } = await lcm.assemble("c", { budget: 3000 });
  const { calibration } = await lcm.calibrate("c", "m", tokens, 2 * tokens);
  assert.deepEqual(calibration, { factorPermille: 2020, model: "m", reports: 1 });
  const fitted = await lcm.assemble("c", { budget: 3000, model: "m" });
  assert.ok(fitted.tokens * 2.02 <= 3000 && fitted.tokens > 1300, `${fitted.tokens}`);
  assert.equal((await lcm.evaluate("c", { budget: 6000 })).due, false);
  assert.equal((await lcm.evaluate("c", { budget: 6000, model: "m" })).due, true);
  const compacted = await lcm.compact("c", { budget: 6000, model: "m" });
  assert.equal(compacted.status, "done");
  assert.equal((await lcm.status("c")).calibrations.length, 1);
  await lcm.close();
});
