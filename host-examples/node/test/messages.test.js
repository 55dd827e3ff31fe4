// Messages as a caller gives them: their JSON, and that later changes of the caller have no effect.

import assert from "node:assert/strict";
import { test } from "node:test";

import { messageTexts, reader } from "../src/messages.js";

/** A number of messages that is read in parts, as a long list. */
const LONG = 1_200;
const INVALID = { code: "invalid-input" };

/** Returns one message for each kind of value that a message may hold. */
function shapes() {
  const shared = { text: "twice" };
  const deep = JSON.parse(`${'{"a":['.repeat(60)}1${"]}".repeat(60)}`);
  return [
    ' {"role" : "user"} ',
    { role: "user", content: "\ud800" },
    { role: "user", content: [{ type: "text", text: "a" }, shared, shared, , null], 2: "b", 1: "c" },
    { role: "user", at: new Date(0), left: undefined, skipped: () => 1, not: [undefined, NaN, -0] },
    Object.assign(Object.create({ inherited: 1 }), { role: "user" }),
    { role: "user", toJSON: () => ({ role: "assistant" }) },
    { role: "user", content: { toJSON: (key) => `of ${key}` } },
    JSON.parse('{"role":"user","__proto__":{"a":1}}'),
    { role: "user", map: new Map([[1, 2]]), text: new String("boxed"), ...deep },
    ...(JSON.rawJSON ? [{ role: "user", content: JSON.rawJSON("12345678901234567890") }] : []),
  ];
}

test("objects become compact JSON, strings stay, lone surrogates become escapes", () => {
  const texts = messageTexts([{ role: "user", content: "\ud800" }, ' {"role" : "user"} ']);
  assert.deepEqual(texts, ['{"role":"user","content":"\\ud800"}', ' {"role" : "user"} ']);
  for (const bad of ["x", [1], [null], [undefined], ["\ud800"], [{ n: 1n }]]) {
    assert.throws(() => messageTexts(bad), INVALID, String(bad));
  }
});

test("an object of an SDK may have members that are null or undefined", () => {
  const answer = { role: "assistant", content: null, refusal: null, audio: undefined };
  assert.deepEqual(messageTexts([answer]), ['{"role":"assistant","content":null,"refusal":null}']);
});

test("bytes are refused, by their place, in a list of any length", async () => {
  for (const [data, name] of [[new Uint8Array(2), "Uint8Array"], [Buffer.from("a"), "Buffer"]]) {
    const image = { role: "user", content: [{ type: "image" }, { type: "image", data }] };
    const message = new RegExp(`content\\.1\\.data.*base64.*${name}`);
    assert.throws(() => messageTexts([image]), { ...INVALID, message });
    assert.throws(() => reader(Array(LONG).fill(image)), { ...INVALID, message });
  }
  const numbered = { role: "user", content: { 0: "a", type: "Buffer" } };
  assert.deepEqual(messageTexts([numbered]), [JSON.stringify(numbered)]);
});

test("the texts of a long list are those of a short one", async () => {
  const list = Array.from({ length: LONG / 8 }, shapes).flat();
  const wanted = list.map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
  assert.deepEqual(await reader(list)(), wanted);
  assert.deepEqual(await reader(shapes())(), wanted.slice(0, shapes().length));
});

test("what is changed later does not count, in a list of any length", async () => {
  for (const count of [2, LONG]) {
    const list = Array.from({ length: count }, (_, at) => ({ role: "user", content: [{ at }] }));
    const wanted = list.map((one) => JSON.stringify(one));
    const texts = reader(list);
    for (const one of list) {
      one.role = "system";
      one.content[0].at = "changed";
      one.content.push("more");
    }
    list.length = 1;
    assert.deepEqual(await texts(), wanted);
  }
});

test("a message that is none is refused by its place, wherever it stands", async () => {
  const itself = { role: "user" };
  itself.content = [itself, itself];
  for (const bad of [1, null, undefined, "\ud800", { n: 1n }, itself]) {
    const list = [...Array(LONG).fill({ role: "user", content: "a" }), bad];
    const refused = { ...INVALID, message: new RegExp(`messages\\.${LONG}\\b`) };
    await assert.rejects(async () => reader(list)(), refused);
  }
  assert.throws(() => reader("x"), INVALID);
});

test("the texts of a long list are made in several turns of the event loop", async () => {
  const list = Array.from({ length: LONG }, (_, at) => ({ role: "user", content: `m${at}` }));
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 0);
  await reader(list)();
  clearInterval(ticking);
  assert.ok(turns > 0);
});
