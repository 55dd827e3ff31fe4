// Results have their declared types: results of the real component, written as literals of the
// types, must pass the compiler, which refuses a member that a type does not have.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { open } from "../src/index.js";

const NOW = 1_700_000_000_000;
const beside = (path) => fileURLToPath(new URL(path, import.meta.url));
const transcript = await readFile(beside("../../walkthrough.jsonl"), "utf8");
const lines = transcript.trimEnd().split("\n");
const file = `<file name="prices.csv">${"item,price\n".repeat(2_000)}</file>`;

/** Resolves to results of methods that read, each with the name of its type. */
async function reads(lcm) {
  const [summary] = await lcm.listing("summaries", { conversation: "c" });
  const files = await lcm.grep("c", "price", { scope: "files", neighbours: 1 });
  const { id: grant } = await lcm.grant("c", { tokensMax: 50_000 });
  const deep = { includeMessages: true, depthMax: 10 };
  const question = "What was decided about the batch window?";
  const assembled = { budget: 8000, explain: true };
  const { prefix } = await lcm.assemble("c", assembled);
  const other = { ...assembled, dialect: "anthropic", previous: prefix.token };
  return [
    ["GrepResult", await lcm.grep("c", '"batch window"', { neighbours: 2 })],
    ["GrepResult", await lcm.grep("c", "b.tch", { mode: "regex", grant })],
    ["GrepResult", files],
    ["Description", await lcm.describe("c", summary.id)],
    ["Description", await lcm.describe("c", files.matches[0].id, { grant })],
    ["Description", await lcm.describe("c", "c")],
    ["ExpandResult", await lcm.expand("c", summary.id, { ...deep, tokensMax: 500 })],
    ["ExpandResult", await lcm.expand("c", summary.id, { ...deep, grant })],
    ["ConversationStatus", await lcm.status("c")],
    ["StoreStatus", await lcm.status()],
    ["CheckResult", await lcm.check("c")],
    ["ListedConversation[]", await lcm.listing("conversations")],
    ["ListedSummary[]", await lcm.listing("summaries", { conversation: "c" })],
    ["StoredMessage[]", await lcm.listing("messages", { conversation: "c" })],
    ["Grant[]", await lcm.listing("grants", { conversation: "c" })],
    ["AskResult", await lcm.ask("c", question, { grant })],
    ["QuestionPlan", await lcm.askPlan("c", question, { grant })],
    ["EmbedResult", await lcm.embed("c")],
    ["AssembledContext", await lcm.assemble("c", other)],
    ["Decision", await lcm.evaluate("c", { budget: 3000 })],
    ["SummaryPrompt[]", await lcm.prompts()],
    ["ToolAnswer", await lcm.callTool("c", "lcm_grep", { pattern: "batch" })],
  ];
}

/** Resolves to results of methods that write. */
async function writes(lcm) {
  const budget = 3000;
  const said = [...lines, { role: "user", content: file, id: "with a file" }];
  const prices = { input: 3_000_000, output: 15_000_000 };
  return [
    ["TurnReport", await lcm.turn("c", said, { budget: 100_000, family: "f" })],
    ["CompactReport", await lcm.compact("c", { budget })],
    ["MaintainReport", await lcm.maintain("c", { budget, observedTokens: 2900 })],
    ["FamilyReport", await lcm.maintainFamily("f", { budget })],
    ["Receipt", await lcm.append("c", [{ role: "user", content: "and now?" }])],
    ["UsageAnswer", await lcm.usage("c", { purpose: "turn", inputTokens: 9 })],
    ["AdviseAnswer", await lcm.advise("c", { budget, prices })],
    ["CalibrateAnswer", await lcm.calibrate("c", "m", 1000, 1100)],
    ["FamilyAnswer", await lcm.family("c", "f")],
    ["FocusAnswer", await lcm.focus("c", { text: "What matters now." })],
    ["ConfigurationReport", await lcm.configure({ freshTailCount: 8, no_such: 1 })],
  ];
}

/** Resolves to results of methods that end a conversation. */
async function ends(lcm) {
  return [
    ["NewSessionAnswer", await lcm.newSession("c", { retainDepth: 1 })],
    ["ResetAnswer", await lcm.reset("c")],
    ["ArchiveAnswer", await lcm.archive("c#2", "idle")],
    ["DeletionResult", await lcm.delete("c#2")],
    ["ListedDeletion[]", await lcm.listing("deletions")],
    ["ConversationStatus", await lcm.status("c")],
    ["Description", await lcm.describe("c", "c")],
    ["ListedConversation[]", await lcm.listing("conversations")],
    ["FamilyAnswer", await lcm.family("empty", "empty")],
    ["LiveAnswer", await lcm.live("empty")],
    ["ResetAnswer", await lcm.reset("empty")],
  ];
}

/** Compiles results as literals of their types; returns the output of the compiler. */
async function compiled(folder, answers) {
  const names = [...new Set(answers.map(([name]) => name.replace("[]", "")))];
  const types = JSON.stringify(beside("../index.js"));
  const literals = answers.map(([name, answer], at) => {
    return `export const answer${at}: ${name} = ${JSON.stringify(answer)};`;
  });
  const program = [`import type { ${names.join(", ")} } from ${types};`, ...literals].join("\n");
  await writeFile(join(folder, "answers.mts"), program);
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
  const compiler = beside("../node_modules/typescript/bin/tsc");
  const args = [compiler, ...options, "--lib", "es2022,dom", join(folder, "answers.mts")];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { status, stdout };
}

test("what is answered has the type that is said", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lcm-types-"));
  const config = { large_payload_tokens_min: 1000 };
  const lcm = await open({ store: "memory:", environment: {}, now: () => NOW, config });
  try {
    const answers = [...(await writes(lcm)), ...(await reads(lcm)), ...(await ends(lcm))];
    const { status, stdout } = await compiled(folder, answers);
    assert.equal(status, 0, stdout);
    const [name, answer] = answers.find(([type]) => type === "StoreStatus");
    const wrong = [{ ...answer, entries: "many" }, { ...answer, further: 1 }];
    const refused = await compiled(folder, wrong.map((one) => [name, one]));
    assert.notEqual(refused.status, 0);
    // One error in each of the lines 2 and 3, which follow the import of the types.
    assert.match(refused.stdout, /\(2,.*\n.*\(3,/);
  } finally {
    await lcm.close();
    await rm(folder, { recursive: true });
  }
});
