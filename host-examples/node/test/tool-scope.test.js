// Tools read only their conversation: in a store of 50 users, no argument of a model gives access
// to another user's text, unless the host widens the scope.

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../src/index.js";

const NOW = 1_700_000_000_000;
const USERS = 50;
const CONFIG = { freshTailMessagesMax: 1, leafChunkTokensMax: 1000, largePayloadTokensMin: 1000 };
const id = (number) => `user-${String(number).padStart(2, "0")}`;
const kept = (number) => `kept${String(number).padStart(2, "0")}`;

/** Stores a conversation per user, with summaries and files; returns all ids of each. */
async function filled(lcm) {
  const names = [];
  for (let number = 0; number < USERS; number++) {
    const text = `heron ${kept(number)} ${"word ".repeat(60)}`;
    const messages = Array.from({ length: 12 }, (_, at) => ({ role: "user", content: text + at }));
    const file = { type: "file", name: "a.txt", text: `heron ${kept(number)}\n`.repeat(600) };
    await lcm.append(id(number), [...messages, { role: "user", parts: [file] }]);
    await lcm.compact(id(number), { budget: 100_000, force: true });
    const found = await lcm.grep(id(number), "heron", { scope: "files" });
    const lists = await Promise.all(
      ["messages", "summaries", "grants"].map((kind) =>
        lcm.listing(kind, { conversation: id(number) }),
      ),
    );
    const { id: grant } = await lcm.grant(id(number));
    const listed = lists.flat().map((item) => item.id);
    names.push([id(number), grant, found.matches[0].id, ...listed.slice(0, 2), ...listed.slice(-4)]);
  }
  return names;
}

/** Returns tool calls for all arguments of all tools, with the values that a model might try. */
function argumentsOf(lcm, names) {
  const tools = lcm.tools("lcm", { scope: "store" });
  return tools.flatMap(({ name, inputSchema: { properties, required } }) =>
    names.flatMap((value) => {
      const first = { pattern: "heron", prompt: "Which heron is kept?", id: value };
      const base = Object.fromEntries(required.map((key) => [key, first[key]]));
      const tried = Object.entries(properties).map(([key, { type, minimum, enum: choices }]) => {
        const values = { boolean: true, integer: minimum, array: [value] };
        return [name, { ...base, [key]: choices?.at(-1) ?? values[type] ?? value }];
      });
      return [[name, base], ...tried];
    }),
  );
}

/** Makes the calls as user 0; returns all texts that the host received, prompts included. */
async function told(lcm, calls, options) {
  const answers = [];
  for (const [name, input] of calls) {
    answers.push((await lcm.callTool(id(0), name, input, options)).text);
  }
  return answers;
}

const others = (text) => (text.match(/kept\d\d/g) ?? []).filter((word) => word !== kept(0));

test("no argument of a model reads a word of another user", async () => {
  const prompts = [];
  const complete = ({ purpose, prompt }) => {
    if (purpose === "ask") prompts.push(prompt);
    return purpose === "ask" ? "Nothing [msg_0000000000000001]" : `summary ${/kept\d\d/.exec(prompt)}`;
  };
  const options = { store: "memory:", config: CONFIG, now: () => NOW, environment: {} };
  const lcm = await open({ ...options, complete });
  try {
    const names = await filled(lcm);
    const foreign = names.slice(1).flatMap((list, at) => (at % 12 ? [] : list));
    const calls = argumentsOf(lcm, foreign);
    assert.ok(calls.length > 1_000, `${calls.length}`);
    const answers = await told(lcm, calls);
    assert.deepEqual([...answers, ...prompts].flatMap(others), []);
    assert.ok(answers.some((text) => text.includes(kept(0))));
    // A grant of another user is refused with the same text as a grant that does not exist.
    const [, grant] = names[1];
    const [refused] = await told(lcm, [["lcm_grep", { pattern: "heron" }]], { grant });
    const madeUp = `grant_${"1".repeat(16)}`;
    const [unknown] = await told(lcm, [["lcm_grep", { pattern: "heron" }]], { grant: madeUp });
    assert.equal(refused.replace(grant, madeUp), unknown);
    // With the scope `store`, which the host sets, the same calls read other users.
    const widened = await told(lcm, calls, { scope: "store" });
    assert.ok(widened.flatMap(others).length > 100);
  } finally {
    await lcm.close();
  }
});

test("only the host names the scope: in `open`, in `tools` and in a call", async () => {
  const options = { store: "memory:", now: () => NOW, environment: {} };
  const [narrow, wide] = [await open(options), await open({ ...options, scope: "store" })];
  try {
    const named = (lcm, given) => JSON.stringify(lcm.tools("anthropic", given));
    for (const [lcm, given, has] of [
      [narrow, undefined, false],
      [narrow, { scope: "store" }, true],
      [wide, undefined, true],
      [wide, { scope: "conversation" }, false],
    ]) {
      for (const name of ["allConversations", "conversationId"]) {
        assert.equal(named(lcm, given).includes(name), has, JSON.stringify(given));
      }
    }
    const all = { pattern: "heron", allConversations: true };
    for (const lcm of [narrow, wide]) {
      await lcm.append(id(0), [{ role: "user", content: "nothing" }]);
      await lcm.append(id(1), [{ role: "user", content: "the heron" }]);
    }
    const finds = async (lcm, given) => {
      return (await lcm.callTool(id(0), "lcm_grep", all, given)).text.includes("the heron");
    };
    assert.equal(await finds(narrow), false);
    assert.equal(await finds(narrow, { scope: "store" }), true);
    assert.equal(await finds(wide), true);
    assert.equal(await finds(wide, { scope: "conversation" }), false);
    const wrong = { code: "invalid-input", message: /`scope`.*everything/ };
    await assert.rejects(open({ ...options, scope: "everything" }), wrong);
    await assert.rejects(finds(narrow, { scope: "everything" }), { code: "invalid-input" });
    assert.throws(() => narrow.tools("lcm", { scope: "everything" }), { code: "invalid-input" });
  } finally {
    await narrow.close();
    await wide.close();
  }
});
