// An agent with Anthropic's Messages API: node anthropic_loop.mjs BASE_URL STORE SCRIPT
//
// Every turn stores the new messages, compacts if due, assembles, asks and answers the tool calls.

import { readFileSync } from "node:fs";

import { open } from "lcm-engine";
import Anthropic from "@anthropic-ai/sdk";

const [baseURL, store, script] = process.argv.slice(2);
const { said, files } = JSON.parse(readFileSync(script, "utf8"));
const anthropic = new Anthropic({ baseURL, apiKey: "none" });
const model = "scripted-1";
const [budget, dialect] = [6_000, "anthropic"];
let time = 1_700_000_000_000; // your own program leaves out `now`

const lcm = await open({ store, complete, now: () => time });
const tools = [...lcm.tools(dialect), readFileTool()];

for (const text of said) {
  time += 60_000;
  let messages = [{ role: "user", content: text }];
  while (messages.length > 0) {
    await lcm.turn("chat", messages, { budget, dialect, appendMode: "new", defer: false });
    const context = await lcm.assemble("chat", { budget, dialect });
    const system = lcm.instructions(dialect, true);
    const request = { model, max_tokens: 1_000, system, tools, messages: context.messages };
    const { content } = await anthropic.messages.create(request);
    await lcm.append("chat", [{ role: "assistant", content }], { dialect, appendMode: "new" });
    messages = await answered(content.filter(({ type }) => type === "tool_use"));
  }
}
console.log(await lcm.digest());
await lcm.close();

/** Resolves to the next messages: one message with the results of all calls, or no message. */
async function answered(calls) {
  const results = [];
  for (const { id, name, input } of calls) {
    const { text, isError } = name.startsWith("lcm_")
      ? await lcm.callTool("chat", name, input)
      : readFile(input);
    results.push({ type: "tool_result", tool_use_id: id, content: text, is_error: isError });
  }
  return results.length > 0 ? [{ role: "user", content: results }] : [];
}

/** Completes a request of the engine (a summary or an answer) with the same provider. */
async function complete({ system, prompt, outputTokensMax: max_tokens }, { signal }) {
  const messages = [{ role: "user", content: prompt }];
  const request = { model, max_tokens, system, messages };
  const answer = await anthropic.messages.create(request, { signal });
  const { input_tokens: inputTokens, output_tokens: outputTokens } = answer.usage;
  return { text: answer.content[0].text, model: answer.model, inputTokens, outputTokens };
}

function readFileTool() {
  const input_schema = { type: "object", properties: { path: { type: "string" } } };
  return { name: "read_file", description: "Reads a file.", input_schema };
}

function readFile({ path }) {
  return path in files
    ? { text: files[path], isError: false }
    : { text: `no such file: ${path}`, isError: true };
}
