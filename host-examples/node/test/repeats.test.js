// Appends whose outcome is unknown, with the real component: nothing is stored twice and nothing is
// left out, although the messages are too short to be recognised by their content.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { asyncStore, ERROR_CODES, MemoryStore, open } from "../src/index.js";
import { NOW, opened } from "./opened.js";

const before = ["begin", "ok"];

const message = (content, at) => JSON.stringify({ role: at % 2 ? "assistant" : "user", content });
const short = (count) => Array.from({ length: count }, (_, at) => message(at % 2 ? "ok" : "yes", at));

/** A store over `inner`; `lose(at, commit)` performs commit `at` (from 0), throws, or does both. */
function losing(inner, lose) {
  let at = 0;
  return {
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => lose(at++, () => inner.commit(guards, puts)),
  };
}

/** Stores `before`, then `said` through `losing`; resolves to the receipt and what is stored. */
async function stored(said, lose) {
  const inner = new MemoryStore();
  const other = await opened(inner);
  await other.append("c", before.map(message));
  const lcm = await opened(losing(inner, (...args) => lose(...args, other)));
  const receipt = await lcm.ingest("c", said);
  const messages = (await other.messages("c")).slice(before.length);
  assert.equal((await other.check("c")).ok, true);
  return { receipt, messages };
}

const lost = () => {
  throw new Error("the reply was lost");
};

test("a batch that was stored though its reply was lost is not stored again", async () => {
  for (const count of [2, 150, 350]) {
    for (const number of [0, 1, 2]) {
      const said = short(count);
      const { receipt, messages } = await stored(said, (at, commit) => {
        commit();
        if (at === number) lost();
      });
      assert.deepEqual(messages, said, `${count} ${number}`);
      assert.equal(receipt.ingested + receipt.skipped, count);
    }
  }
});

test("a batch that was lost is stored, also when an equal one was stored before", async () => {
  for (const count of [2, 150, 350]) {
    for (const number of [0, 1, 2, 3]) {
      const said = short(count);
      const { receipt, messages } = await stored(said, (at, commit) => {
        if (at === number) lost();
        commit();
      });
      assert.deepEqual(messages, said, `${count} ${number}`);
      assert.equal(receipt.ingested, count);
    }
  }
});

test("what others write before the repetition is no reason to store it again", async () => {
  const said = short(250);
  const beside = message("beside", 0);
  let writing;
  const { messages } = await stored(said, (at, commit, other) => {
    commit();
    if (at !== 1) return;
    writing = other.append("c", [beside], { appendMode: "new" });
    lost();
  });
  assert.equal((await writing).ingested, 1);
  assert.deepEqual(messages, [...said.slice(0, 200), beside, ...said.slice(200)]);
});

test("an outcome that stays unknown is the caller's", async () => {
  await assert.rejects(stored(short(2), lost), { code: "store-unavailable" });
});

/** Appends `said` as new through `losing`, until a call succeeds; resolves to the failed calls. */
async function appended(said, lose) {
  const inner = new MemoryStore();
  const lcm = await open({ store: losing(inner, lose), environment: {} });
  const options = { appendMode: "new", now: NOW };
  let unknown = 0;
  for (;;) {
    try {
      await lcm.append("c", said, { ...options, ...(unknown > 0 && { repeat: true }) });
      break;
    } catch (error) {
      assert.equal(error.code, "store-unavailable");
      unknown += 1;
    }
  }
  assert.deepEqual(await lcm.messages("c"), said);
  return unknown;
}

test("a long list of new messages is stored once, however often it is repeated", async () => {
  // More calls than the engine remembers one by one, with messages of equal content.
  const said = short(1_000);
  for (const number of [0, 4, 9]) {
    const once = (isKept) => {
      let left = 1;
      return (at, commit) => {
        const isLost = at === number && left-- > 0;
        if (isKept || !isLost) commit();
        if (isLost) lost();
      };
    };
    // The package itself repeats the call.
    assert.equal(await appended(said, once(true)), 0);
    assert.equal(await appended(said, once(false)), 0);
  }
  // After a lost reply the store is out of reach for longer than the package repeats.
  const away = (at, commit) => {
    if (at < 5 || at > 13) commit();
    if (at > 3 && at < 14) lost();
  };
  assert.equal(await appended(said, away), 1);
});

test("whatever a store throws in a commit but a conflict, its outcome is unknown", async () => {
  const said = short(250);
  for (const code of ERROR_CODES.filter((one) => one !== "conflict")) {
    for (const wrap of [(store) => store, asyncStore]) {
      let at = 0;
      const thrown = Object.assign(new Error("too much"), { code });
      const store = losing(new MemoryStore(), (_, commit) => {
        commit();
        if (at++ === 1) throw thrown;
      });
      const lcm = await open({ store: wrap(store), environment: {} });
      await lcm.append("c", said, { appendMode: "new", now: NOW });
      assert.deepEqual(await lcm.messages("c"), said, code);
      at = 1;
      const error = await lcm.append("c", [message("end", 0)], { now: NOW }).catch((e) => e);
      assert.equal(error.code, "store-unavailable", code);
      assert.equal(error.cause, thrown, code);
    }
  }
});

/** A store over `inner` that fails from commit `number` on; `isKept`: that commit is still made. */
function goneAt(inner, number, isKept) {
  let at = 0;
  const standing = (work) => (at > number ? lost() : work());
  const commit = (guards, puts) => {
    const isLast = at++ === number;
    if (!isLast || isKept) inner.commit(guards, puts);
    if (isLast) lost();
  };
  return {
    getMany: (keys) => standing(() => inner.getMany(keys)),
    scan: (...args) => standing(() => inner.scan(...args)),
    commit: (...args) => standing(() => commit(...args)),
  };
}

/** Appends a list whose first attempt an outage ends, and checks the store after a repeat. */
async function completedAfter(said, options, { held, number, isKept }) {
  const inner = new MemoryStore();
  const other = await opened(inner);
  const first = Array.from({ length: held }, (_, at) => message(`earlier ${at} ok`, at));
  if (held > 0) await other.append("c", first, { appendMode: "new", now: NOW - 1 });
  const lcm = await opened(goneAt(inner, number, isKept));
  const ended = { code: "store-unavailable" };
  await assert.rejects(lcm.append("c", said, { ...options, now: NOW }), ended);
  const again = { ...options, now: NOW, repeat: true };
  const receipt = await other.append("c", said, again);
  const stored = await other.messages("c");
  assert.deepEqual(stored, [...first, ...said]);
  assert.equal(receipt.ingested + receipt.skipped, said.length);
  assert.equal((await other.append("c", said, again)).ingested, 0);
  assert.deepEqual(await other.messages("c"), stored);
}

const told = Array.from({ length: 250 }, (_, at) => {
  return message(`the thing of number ${at} was talked about at some length`, at);
});
for (const [name, said] of Object.entries({ short: short(250), long: told })) {
  for (const mode of ["transcript", "new"]) {
    for (const refuseReplay of [false, true]) {
      const options = { appendMode: mode, refuseReplay };
      const title = `${name} messages that an outage ended are completed, ${JSON.stringify(options)}`;
      test(title, async () => {
        for (const held of [0, 40]) {
          for (const number of [0, 1, 2]) {
            await completedAfter(said, options, { held, number, isKept: true });
            await completedAfter(said, options, { held, number, isKept: false });
          }
        }
      });
    }
  }
}

test("what is said again at another time is new", async () => {
  const lcm = await open({ store: "memory:", environment: {} });
  const said = short(150);
  for (const [now, repeat, ingested] of [
    [NOW, false, 150],
    [NOW, true, 0],
    [NOW + 1, false, 150],
    [NOW, false, 150],
  ]) {
    const receipt = await lcm.append("c", said, { appendMode: "new", now, repeat });
    assert.deepEqual([receipt.ingested, receipt.skipped], [ingested, 150 - ingested]);
  }
  assert.deepEqual(await lcm.messages("c"), [...said, ...said, ...said]);
});

const program = fileURLToPath(new URL("../../../dist/lcm", import.meta.url));
const skip = existsSync(program) ? false : "dist/lcm is not built";

test("a long list ends with the same store as that of the program", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "lcm-repeats-"));
  const large = Array.from({ length: 5 }, (_, at) => message(`${at} `.repeat(300_000), at));
  const said = [...short(250), ...large, ...short(3)];
  const run = (args, input) => {
    const fixed = ["--store", join(folder, "p.lcm.db"), "--conversation", "c", "--now", `${NOW}`];
    return execFileSync(program, [...fixed, ...args], { input, encoding: "utf8" }).trim();
  };
  run(["ingest", "--append-mode", "new", "-"], said.map((line) => `${line}\n`).join(""));
  const lcm = await opened("memory:");
  await lcm.append("c", said, { appendMode: "new", undated: true });
  assert.equal(await lcm.digest(), run(["digest"]));
  await rm(folder, { recursive: true });
});
