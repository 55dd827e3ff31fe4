// Appends whose outcome is unknown, over the real component: nothing is stored twice and nothing is
// left out, though the messages are too short to be known again by what they say.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryStore, open } from "../src/index.js";

const NOW = 1_700_000_000_000;
const before = ["begin", "ok"];

const message = (content, at) => JSON.stringify({ role: at % 2 ? "assistant" : "user", content });
const short = (count) => Array.from({ length: count }, (_, at) => message(at % 2 ? "ok" : "yes", at));

/** A store over `inner`; `lose(at, commit)` performs the commit of this number, or throws. */
function losing(inner, lose) {
  let at = 0;
  return {
    getMany: (keys) => inner.getMany(keys),
    scan: (...args) => inner.scan(...args),
    commit: (guards, puts) => lose(at++, () => inner.commit(guards, puts)),
  };
}

/** What is stored after `before` and then `said`, of whose commits `lose` has the say. */
async function stored(said, lose) {
  const inner = new MemoryStore();
  const options = { environment: {}, now: () => NOW };
  const other = await open({ ...options, store: inner });
  await other.append("c", before.map(message));
  const lcm = await open({ ...options, store: losing(inner, (...args) => lose(...args, other)) });
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
    writing = other.append("c", [beside], { mode: "new" });
    lost();
  });
  assert.equal((await writing).ingested, 1);
  assert.deepEqual(messages, [...said.slice(0, 200), beside, ...said.slice(200)]);
});

test("an outcome that stays unknown is the caller's", async () => {
  await assert.rejects(stored(short(2), lost), { code: "store-unavailable" });
});

test("a list of more calls than are known again is not repeated", async () => {
  const lcm = await open({ store: "memory:", environment: {}, now: () => NOW });
  const new_messages = { mode: "new", now: NOW };
  for (const [count, repeats] of [
    [800, true],
    [801, false],
  ]) {
    const said = short(count).map((text, at) => text.replace("}", `,"at":${at}}`));
    const conversation = `${count}`;
    await lcm.append(conversation, said, new_messages);
    const again = lcm.append(conversation, said, { ...new_messages, repeat: true });
    if (repeats) assert.equal((await again).ingested, 0);
    else await assert.rejects(again, { code: "invalid-input", message: /`repeat`/ });
    assert.deepEqual(await lcm.messages(conversation), said);
  }
});

test("a repetition of calls that say the same is refused rather than left out", async () => {
  const said = short(300);
  let lose = 1;
  const store = losing(new MemoryStore(), (at, commit) => {
    if (at === 1 && lose-- > 0) lost();
    commit();
  });
  const lcm = await open({ store, environment: {} });
  const options = { mode: "new", now: NOW };
  await assert.rejects(lcm.append("c", said, options), { code: "store-unavailable" });
  const equal = { code: "invalid-input", message: /equal messages/ };
  await assert.rejects(lcm.append("c", said, { ...options, repeat: true }), equal);
  const rest = said.slice(100);
  assert.equal((await lcm.append("c", rest, { ...options, now: NOW + 1 })).ingested, 200);
  assert.deepEqual(await lcm.messages("c"), said);
});
