// The slot of system messages: filled by a list in one call or many, and by the option `system`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MemoryStore, open } from "../src/index.js";

const user = (text) => ({ role: "user", content: text });
const prompt = (text) => ({ role: "system", content: text });

/** Returns a list of `count` messages after a system prompt. */
function listOf(text, count) {
  const turns = Array.from({ length: count }, (_, at) =>
    at % 2 === 0
      ? user(`Where does parcel number ${at} of the hall go?`)
      : { role: "assistant", content: `Parcel number ${at - 1} goes to the depot.` });
  return [prompt(text), ...turns];
}

test("the prompt of a list fills the slot, in one call or in many", async () => {
  const lcm = await open({ store: new MemoryStore(), dialect: "openai-chat" });
  for (const [at, count] of [4, 250, 260].entries()) {
    const text = `Rule ${at} of the halls.`;
    await lcm.append("chat", listOf(text, count));
    const context = await lcm.assemble("chat", { budget: 100_000 });
    assert.equal(context.system, text);
    assert.equal(context.messages.length, count);
  }
  const status = await lcm.status("chat");
  assert.equal(status.messages, 260);
  assert.equal(status.system.versions, 3);
  const newest = await lcm.describe("chat", status.system.id);
  assert.equal(newest.text, "Rule 2 of the halls.");
  await lcm.close();
});

test("the option `system` fills the slot beside the list", async () => {
  const lcm = await open({ store: new MemoryStore(), dialect: "anthropic" });
  const blocks = [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }];
  await lcm.append("chat", [user("Hello")], { system: blocks });
  assert.equal((await lcm.assemble("chat", { budget: 1_000 })).system, "Be kind.");
  const turn = await lcm.turn("chat", [user("And now?")], { budget: 1_000, system: "Be brief." });
  assert.equal(turn.receipt.ingested, 1);
  assert.equal((await lcm.assemble("chat", { budget: 1_000 })).system, "Be brief.");
  const list = listOf("", 300).slice(1);
  await lcm.append("long", list, { system: "Be quick." });
  await lcm.append("long", list, { system: "Be slow." });
  assert.equal((await lcm.assemble("long", { budget: 100_000 })).system, "Be slow.");
  assert.equal((await lcm.status("long")).messages, 300);
  const long = "Rule of the halls.\n".repeat(10_000);
  await lcm.append("chat", [user("Hello")], { system: long });
  assert.equal((await lcm.assemble("chat", { budget: 100_000 })).system, long);
  await assert.rejects(lcm.append("chat", [user("Hello")], { system: 7 }), { code: "invalid-input" });
  await lcm.close();
});

test("a prompt over the budget is refused with its tokens", async () => {
  const lcm = await open({ store: new MemoryStore() });
  await lcm.append("chat", [prompt("rule ".repeat(200)), user("hi")]);
  await assert.rejects(lcm.assemble("chat", { budget: 100 }), { code: "limit-exceeded", message: /200/ });
  await lcm.close();
});
