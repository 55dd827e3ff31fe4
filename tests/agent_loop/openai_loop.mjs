// An agent with OpenAI's Chat Completions API: node openai_loop.mjs BASE_URL STORE SCRIPT
//
// Every turn stores the new messages, compacts if due, assembles, asks and answers the tool calls.

import { readFileSync } from "node:fs";

import { open } from "lcm-engine";
import OpenAI from "openai";

const [baseURL, store, script] = process.argv.slice(2);
const { said, files } = JSON.parse(readFileSync(script, "utf8"));
const openai = new OpenAI({ baseURL, apiKey: "none" });
const model = "scripted-1";
const [budget, dialect] = [6_000, "openai-chat"];
let time = 1_700_000_000_000; // your own program leaves out `now`

const lcm = await open({ store, complete, now: () => time });
const tools = [...lcm.tools(dialect), readFileTool()];

for (const text of said) {
  time += 60_000;
  let messages = [{ role: "user", content: text }];
  while (messages.length > 0) {
    await lcm.turn("chat", messages, { budget, dialect, appendMode: "new", defer: false });
    const context = await lcm.assemble("chat", { budget, dialect });
    const content = lcm.instructions(dialect, true);
    const request = [{ role: "system", content }, ...context.messages];
    const answer = await openai.chat.completions.create({ model, tools, messages: request });
    const { message } = answer.choices[0];
    await lcm.append("chat", [message], { dialect, appendMode: "new" });
    messages = await answered(message.tool_calls ?? []);
  }
}
console.log(await lcm.digest());
await lcm.close();

/** Resolves to the next messages: one for the result of each call. */
async function answered(calls) {
  const results = [];
  for (const { id, function: called } of calls) {
    const content = called.name.startsWith("lcm_")
      ? (await lcm.callTool("chat", called.name, called.arguments)).text
      : readFile(JSON.parse(called.arguments));
    results.push({ role: "tool", tool_call_id: id, content });
  }
  return results;
}

/** Completes a request of the engine (a summary or an answer) with the same provider. */
async function complete({ system, prompt, outputTokensMax }, { signal }) {
  const messages = [
    { role: "system", content: system },
    { role: "user", content: prompt },
  ];
  const request = { model, max_completion_tokens: outputTokensMax, messages };
  const answer = await openai.chat.completions.create(request, { signal });
  return {
    text: answer.choices[0].message.content,
    model: answer.model,
    inputTokens: answer.usage.prompt_tokens,
    outputTokens: answer.usage.completion_tokens,
  };
}

function readFileTool() {
  const parameters = { type: "object", properties: { path: { type: "string" } } };
  const declared = { name: "read_file", description: "Reads a file.", parameters };
  return { type: "function", function: declared };
}

function readFile({ path }) {
  return files[path] ?? `no such file: ${path}`;
}
