// A list of over a hundred messages that grows: only its end is compared, and nothing is stored
// twice or left out when the conversation changed meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryStore } from "../src/index.js";
import { opened } from "./opened.js";

const said = (from, end) =>
  Array.from({ length: end - from }, (_, at) => ({
    role: (from + at) % 2 ? "assistant" : "user",
    content: `message ${from + at} of a conversation that has many of them`,
  }));

/** A store over `inner` that counts its reads in `reads`. */
function counting(inner) {
  const counted = {
    reads: 0,
    getMany(keys) {
      counted.reads += 1;
      return inner.getMany(keys);
    },
    scan: (...args) => inner.scan(...args),
    commit: (...args) => inner.commit(...args),
  };
  return counted;
}

test("of a list that grew only the end is handed to the engine", async () => {
  const store = counting(new MemoryStore());
  const lcm = await opened(store);
  await lcm.append("c", said(0, 300));
  const readsOf = async (count) => {
    const before = store.reads;
    assert.equal((await lcm.append("c", said(0, count))).ingested, 2);
    return store.reads - before;
  };
  const grown = await readsOf(302);
  // Another dialect has no proof, so the whole list is compared.
  await lcm.append("c", said(0, 302), { dialect: "openai-chat" });
  assert.ok(grown < (await readsOf(304)), `${grown} reads`);
  await lcm.close();
});

test("a proof gives way to another writer, an undo and a deletion", async () => {
  const inner = new MemoryStore();
  const [lcm, other] = [await opened(inner), await opened(inner)];
  const chat = lcm.conversation("c", { budget: 100_000 });
  await chat.append(said(0, 120));
  await other.append("c", [{ role: "user", content: "a message of another program" }]);
  assert.equal((await chat.append(said(0, 122))).ingested, 2);
  assert.equal((await chat.status()).messages, 123);

  await lcm.delete("c");
  const again = lcm.conversation("c", { budget: 100_000 });
  await again.append(said(0, 120));
  const undone = await again.append(said(0, 110));
  assert.match(undone.warnings[0], /^set-aside: /);
  assert.equal((await again.append(said(0, 120))).ingested, 0);
  assert.equal((await again.status()).messages, 120);

  // Another program deletes the conversation and begins one that comes to the same revision.
  await other.delete("c");
  const before = await lcm.append("c", said(0, 120));
  await other.delete("c");
  for (let at = 0; at < before.revision; at += 1) {
    await other.append("c", [{ role: "user", content: `number ${at} of the other program` }]);
  }
  assert.equal((await other.status("c")).revision, before.revision);
  assert.equal((await lcm.append("c", said(0, 122))).ingested, 122);
  assert.ok((await lcm.messages("c")).includes(JSON.stringify(said(0, 1)[0])));
  await Promise.all([lcm.close(), other.close()]);
});
