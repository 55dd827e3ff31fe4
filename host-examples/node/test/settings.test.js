// Configuration: of `open`, of the environment, and what is wrong with either.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { MemoryStore, open } from "../src/index.js";

let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-settings-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const said = Array.from({ length: 40 }, (_, at) => ({ role: "user", content: `number ${at}` }));

/** How many messages the fresh tail has, with this configuration. */
async function tailOf(config, environment, worker) {
  const lcm = await open({ store: "memory:", config, environment, worker });
  await lcm.append("c", said);
  const { freshTailMessages } = await lcm.assemble("c", { budget: 100_000 });
  await lcm.close();
  return freshTailMessages;
}

test("a variable goes before the configuration, under whichever name", async () => {
  assert.equal(await tailOf({}, { LCM_fresh_tail_count: "8" }), 8);
  const variable = { LCM_FRESH_TAIL_COUNT: "8" };
  for (const worker of [false, true]) {
    assert.equal(await tailOf({ fresh_tail_messages_max: 4 }, {}, worker), 4);
    assert.equal(await tailOf({ fresh_tail_messages_max: 4 }, variable, worker), 8);
    assert.equal(await tailOf({ freshTailCount: 4 }, variable, worker), 8);
    assert.equal(await tailOf(undefined, variable, worker), 8);
    assert.equal(await tailOf(null, { LCM_ENABLED: "true" }, worker), 40);
  }
});

test("what is wrong with a configuration is said when a store is opened", async () => {
  const wrong = [
    [{ context_threshold_permille: "many" }, {}, /^config: .*context_threshold_permille/],
    [{ contextThreshold: 7 }, { LCM_ENABLED: "true" }, /^config: .*context/i],
    [{}, { LCM_FRESH_TAIL_COUNT: "some" }, /^environment: .*fresh/i],
    [{}, { LCM_fresh_tail_count: "-5" }, /^environment: .*fresh/i],
    [[], {}, /^config: /],
    ["enabled", {}, /^config: /],
    [{ enabled: 1n }, {}, /config/],
  ];
  for (const [at, [config, environment, message]] of wrong.entries()) {
    for (const worker of [false, true]) {
      const expected = { name: "LcmError", code: "invalid-input", message };
      const store = join(folder, `${at}.lcm.db`);
      await assert.rejects(open({ store, config, environment, worker }), expected);
    }
    let closed = 0;
    const store = Object.assign(new MemoryStore(), { close: () => (closed += 1) });
    await assert.rejects(open({ store, config, environment }), { code: "invalid-input" });
    assert.equal(closed, 0);
  }
});

test("a key that there is not is a warning, once", async () => {
  const warnings = [];
  const listen = (warning) => warnings.push(warning);
  process.on("warning", listen);
  const config = { fresh_tail_message_max: 4, freshTailCount: 4, summaryTimeoutMs: 5 };
  // Other programs have variables of this beginning, too.
  assert.equal(await tailOf(config, { LCM_OTHER: "1" }), 4);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  assert.deepEqual(
    warnings.map(({ name, message }) => [name, message]),
    [["LcmWarning", "config: unknown key `fresh_tail_message_max`"]],
  );
});
