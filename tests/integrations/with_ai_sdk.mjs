// AI SDK: a middleware of the model stores all messages and sends a context that fits.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool, wrapLanguageModel } from "ai";
import { open } from "lcm-engine";
import { z } from "zod";
import { baseURL, readFile as execute, said, store } from "./played.mjs";

const served = createOpenAICompatible({ name: "scripted", baseURL, apiKey: "none" })("scripted-1");
// A program that calls `streamText` needs `wrapStream` as well.
const model = wrapLanguageModel({ model: served, middleware: { transformParams, wrapGenerate } });
const tools = { read_file: tool({ inputSchema: z.object({ path: z.string() }), execute }) };

async function transformParams({ params: { prompt, ...params } }) {
  const system = prompt.filter(({ role }) => role === "system");
  const toLcm = ({ role, content }) => ({ role, content: content.map(toPart) });
  await chat.turn(prompt.slice(system.length).map(toLcm));
  return { ...params, prompt: [...system, ...(await chat.assemble()).messages.map(fromLcm)] };
}

async function wrapGenerate({ doGenerate }) {
  const answer = await doGenerate();
  await chat.append([{ role: "assistant", content: answer.content.map(toPart) }]);
  return answer;
}

/** Converts a part of the AI SDK to a part of the dialect `lcm`, which has other names. */
function toPart({ toolCallId: id, toolName: name, input, output, ...part }) {
  if (part.data instanceof Uint8Array) part.data = Buffer.from(part.data).toString("base64");
  if (part.providerMetadata) ({ providerMetadata: part.providerOptions, ...part } = part);
  if (part.type === "tool-call") return { ...part, type: "tool_call", id, name, input };
  if (part.type !== "tool-result") return part;
  return { type: "tool_result", call_id: id, name, output: output.value };
}

function fromLcm({ role, content, parts = content }) {
  const fromPart = ({ id, call_id = id, name: toolName, input, output: value, ...part }) => {
    const named = { ...part, type: part.type.replace("_", "-"), toolCallId: call_id, toolName };
    if (part.type === "tool_call") return { ...named, input };
    if (part.type !== "tool_result") return part;
    return { ...named, output: { type: typeof value === "string" ? "text" : "json", value } };
  };
  return { role, content: (parts.map ? parts : [{ type: "text", text: parts }]).map(fromPart) };
}

const lcm = await open(store);
const chat = lcm.conversation("chat", { budget: 6_000 });
for (const prompt of said) await generateText({ model, tools, prompt, stopWhen: stepCountIs(9) });
await lcm.close();
