// Configuration by `open` and by the environment: its effect, and errors in both.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { MemoryStore, open } from "../src/index.js";
import { offsetsOf } from "../src/time-zone.js";

let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-settings-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const said = Array.from({ length: 40 }, (_, at) => ({ role: "user", content: `number ${at}` }));

/** Returns the first step of a vector, which resolves a configuration of the reference system. */
function resolvedIn(vector) {
  const place = new URL(`../../../tests/vectors/setup/${vector}.json`, import.meta.url);
  return JSON.parse(readFileSync(place, "utf8")).steps[0];
}

/** Runs `work` and returns the lines of warnings of the process meanwhile. */
async function warningsOf(work) {
  const lines = [];
  const listen = ({ name, message }) => lines.push(`${name}: ${message}`);
  process.on("warning", listen);
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  return lines.sort();
}

/** Resolves to the number of messages in the fresh tail, with this configuration. */
async function tailOf(config, environment, worker) {
  const lcm = await open({ store: "memory:", config, environment, worker });
  await lcm.append("c", said);
  const { freshTailMessages } = await lcm.assemble("c", { budget: 100_000 });
  await lcm.close();
  return freshTailMessages;
}

test("what the program hands over goes before a variable, under whichever name", async () => {
  assert.equal(await tailOf({}, { LCM_fresh_tail_count: "8" }), 8);
  const variable = { LCM_FRESH_TAIL_COUNT: "8" };
  for (const worker of [false, true]) {
    assert.equal(await tailOf({ fresh_tail_messages_max: 4 }, {}, worker), 4);
    assert.equal(await tailOf({ fresh_tail_messages_max: 4 }, variable, worker), 4);
    assert.equal(await tailOf({ freshTailCount: 4 }, variable, worker), 4);
    assert.equal(await tailOf(undefined, variable, worker), 8);
    assert.equal(await tailOf(null, { LCM_ENABLED: "true" }, worker), 40);
  }
});

test("what is wrong with a configuration is said when a store is opened", async () => {
  const wrong = [
    [{ context_threshold_permille: "many" }, {}, /^config: .*context_threshold_permille/],
    [{ contextThreshold: 7 }, { LCM_ENABLED: "true" }, /^config: .*context/i],
    [{}, { LCM_FRESH_TAIL_COUNT: "some" }, /^config: `LCM_FRESH_TAIL_COUNT` must be/],
    [{}, { LCM_fresh_tail_count: "-5" }, /^config: `LCM_fresh_tail_count` must be/],
    [{ timezone: "Mars/Olympus" }, {}, /`timezone` must be .*, got `Mars\/Olympus`/],
    [{}, { LCM_SUMMARY_MODEL: "m" }, /`summary_model` asks for `m`, so `open` needs `complete`/],
    [{ expansionModel: "m" }, {}, /`expansion_model` asks for `m`/],
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

test("each key without effect is a warning of one line, once", async () => {
  const config = { fresh_tail_message_max: 4, freshTailCount: 4, pruneHeartbeatOk: true };
  const lines = await warningsOf(async () => {
    assert.equal(await tailOf(config, { LCM_OTHER: "1" }), 4);
  });
  assert.deepEqual(lines, [
    "LcmWarning: config: `LCM_OTHER`: unknown key",
    "LcmWarning: config: `fresh_tail_message_max`: unknown key",
    "LcmWarning: config: `pruneHeartbeatOk`: not followed: no stored message is deleted by itself",
  ]);
});

test("the reference's sample and its 70 variables load, and say what has no effect", async () => {
  for (const [vector, count] of [
    ["reference-sample-configuration-loads", 57],
    ["reference-variables-are-followed-or-reported", 70],
  ]) {
    const { args, expect } = resolvedIn(vector);
    const { report } = expect;
    const given = Object.keys({ ...args.config_json, ...args.variables_json });
    const names = given.filter((name) => !["TZ", "PATH", "LCM_STORE"].includes(name));
    assert.ok(names.length >= count);
    const { accepted, host, aliased, deprecated, not_followed, overridden } = report;
    const told = [aliased.map(({ key }) => key), deprecated, not_followed, overridden].flat();
    const own = (name) => name.replace(/^LCM_/, "").toLowerCase();
    const isSilent = (name) => ![...accepted, ...host].includes(own(name)) && !told.includes(name);
    assert.deepEqual(names.filter(isSilent), []);
    const options = {
      store: "memory:",
      complete: () => "A summary.",
      config: args.config_json,
      environment: args.variables_json,
    };
    const lines = await warningsOf(async () => (await open(options)).close());
    const unused = "LcmWarning: config: `database_path`: not used, `open` has a `store`";
    const wanted = report.notes.map(({ key, note }) => `LcmWarning: config: \`${key}\`: ${note}`);
    assert.deepEqual(lines, [...wanted, unused].sort());
  }
});

test("a store without a name is the configured one", async () => {
  const path = join(folder, "configured.lcm.db");
  for (const options of [
    { config: { databasePath: path }, environment: { LCM_DATABASE_PATH: "other" } },
    { environment: { LCM_DATABASE_PATH: path } },
    { environment: { LCM_DATABASE_PATH: path }, worker: true },
  ]) {
    const lcm = await open(options);
    await lcm.append("c", said.slice(0, 2));
    await lcm.close();
    const again = await open({ store: path, environment: {} });
    assert.ok((await again.status("c")).messages >= 2);
    await again.close();
    await rm(path);
  }
  const none = { code: "invalid-input", message: /open needs `store`, or `database_path`/ };
  await assert.rejects(open({ environment: {} }), none);
});

/** Compacts with a configuration and returns the model names of the requests. */
async function askedWith(config, complete) {
  const asked = [];
  const answer = (request, options) => {
    asked.push(request.model);
    return complete(request, options);
  };
  const lcm = await open({ store: "memory:", config, complete: answer, environment: {} });
  await lcm.append("c", said.map(({ role }, at) => ({ role, content: `word${at} `.repeat(200) })));
  const done = await lcm.compact("c", { budget: 8_000, retries: 0 });
  await lcm.close();
  return { asked, done };
}

const down = Object.assign(new Error("down"), { status: 503 });

test("fallback models are asked in their order, with the configured timeout", async () => {
  const config = {
    summaryModel: "small",
    summaryProvider: "one",
    fallbackProviders: [{ provider: "two", model: "m" }],
    summaryTimeoutMs: 20,
  };
  const { asked } = await askedWith(config, ({ model }) => {
    if (model === "one/small") throw down;
    return "Words were said.";
  });
  assert.deepEqual(asked.slice(0, 2), ["one/small", "two/m"]);
  const slow = await askedWith({ ...config, fallbackProviders: [] }, () => new Promise(() => {}));
  assert.match(JSON.stringify(slow.done), /did not answer in 20 ms/);
});

test("a compaction ends at its deadline", async () => {
  let time = 1_700_000_000_000;
  const now = () => (time += 1000);
  const config = { sweepDeadlineMs: 6_000, leafChunkTokens: 1_000 };
  const complete = () => "Words were said.";
  const lcm = await open({ store: "memory:", config, complete, now, environment: {} });
  await lcm.append("c", said.map(({ role }, at) => ({ role, content: `word${at} `.repeat(200) })));
  const { status, reason, passes } = await lcm.compact("c", { budget: 8_000 });
  assert.deepEqual([status, reason], ["partial", "deadline"]);
  assert.ok(passes.length > 0);
  await lcm.close();
});

test("a turn defers where the configuration says so", async () => {
  const config = { proactiveThresholdCompactionMode: "deferred", fresh_tail_messages_max: 2 };
  const lcm = await open({ store: "memory:", config, environment: {} });
  const long = said.map(({ role }, at) => ({ role, content: `word${at} `.repeat(90) }));
  await lcm.append("c", long);
  const { tokens } = await lcm.evaluate("c", { budget: 100_000 });
  const budget = Math.ceil(tokens * 1.1);
  const next = [{ role: "user", content: "on" }];
  assert.equal((await lcm.turn("c", next, { budget })).deferred, true);
  assert.equal((await lcm.turn("c", next, { budget, defer: false })).deferred, false);
  await lcm.close();
});

test("a time zone is a list of offsets, which summaries show", async () => {
  assert.deepEqual(offsetsOf("UTC"), [{ since: 0, minutes: 0 }]);
  const berlin = offsetsOf("Europe/Berlin");
  assert.deepEqual(berlin[0], { since: 0, minutes: 60 });
  const summer = berlin.find(({ since }) => since === Date.UTC(2026, 2, 29, 1));
  assert.deepEqual(summer, { since: Date.UTC(2026, 2, 29, 1), minutes: 120 });
  assert.equal(offsetsOf("Asia/Kathmandu")[0].minutes, 345);
  assert.equal(offsetsOf("America/Los_Angeles")[0].minutes, -480);
  const now = () => Date.UTC(2026, 6, 1, 12);
  const config = { timezone: "Europe/Berlin" };
  const complete = ({ prompt }) => {
    assert.match(prompt, /\[2026-07-01 14:00 user\]/);
    return "Words were said.";
  };
  const lcm = await open({ store: "memory:", config, complete, now, environment: {} });
  await lcm.append("c", said.map(({ role }, at) => ({ role, content: `word${at} `.repeat(200) })));
  await lcm.compact("c", { budget: 8_000 });
  const { messages } = await lcm.assemble("c", { budget: 8_000 });
  assert.match(messages[0].content, /earliest_at="2026-07-01T14:00:00"/);
  await lcm.configure({});
  const utc = await lcm.assemble("c", { budget: 8_000 });
  assert.match(utc.messages[0].content, /earliest_at="2026-07-01T12:00:00"/);
  await lcm.close();
});
