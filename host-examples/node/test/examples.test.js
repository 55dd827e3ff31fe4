// Every member of an engine has an example in its documentation, and each example runs unchanged.

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

import { withEngine } from "./opened.js";

const beside = (path) => fileURLToPath(new URL(path, import.meta.url));
const transcript = await readFile(beside("../../walkthrough.jsonl"), "utf8");
const lines = transcript.trimEnd().split("\n");
const AsyncFunction = (async () => {}).constructor;

/** Members of the interface `Engine` in a text of types, each with the program of its example. */
function examples(types) {
  const source = ts.createSourceFile("a.d.ts", types, ts.ScriptTarget.Latest, true);
  const engine = source.statements.find((one) => one.name?.text === "Engine");
  return engine.members.map((member) => {
    const [tag] = ts.getJSDocTags(member).filter((one) => one.tagName.text === "example");
    const prose = tag ? ts.getTextOfJSDocComment(tag.comment) : "";
    return { name: member.name.text, program: /```js\n(.*?)\n```/s.exec(prose)?.[1] };
  });
}

/** Runs a program with `lcm`, an open engine whose store has the conversation `chat`. */
function run(program) {
  return withEngine("memory:", async (lcm) => {
    await lcm.append("chat", lines);
    await lcm.compact("chat", { budget: 4_000 });
    await new AsyncFunction("lcm", "assert", program)(lcm, assert);
  });
}

/** Resolves to the text of the file of types that declares the interface `Engine`. */
async function engineTypes() {
  const names = (await readdir(beside(".."))).filter((name) => name.endsWith(".d.ts"));
  const texts = await Promise.all(names.map((name) => readFile(beside(`../${name}`), "utf8")));
  return texts.find((text) => text.includes("export interface Engine {"));
}

const members = examples(await engineTypes());
assert.ok(members.length > 40);
for (const { name, program } of members) {
  test(`the example of ${name} runs`, async () => {
    assert.ok(program, `${name} has no example`);
    await run(program);
  });
}

test("a missing or a wrong example is noticed", async () => {
  const wrong = "/**\n * Version.\n *\n * @example\n * ```js\n * assert.equal(1, 2);\n * ```\n */";
  const bare = "/** Ends. */\nclose(): void;";
  const types = `export interface Engine {\n${wrong}\nversion: string;\n${bare}\n}`;
  const [version, close] = examples(types);
  await assert.rejects(run(version.program), { code: "ERR_ASSERTION" });
  assert.equal(close.program, undefined);
});
