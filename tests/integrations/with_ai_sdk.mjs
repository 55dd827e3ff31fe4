// AI SDK: before each step, what is said is stored and replaced by a context that fits.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool } from "ai";
import { open } from "lcm-engine";
import { z } from "zod";
import { baseURL, readFile, said, store } from "./played.mjs";

const model = createOpenAICompatible({ name: "scripted", baseURL, apiKey: "none" })("scripted-1");
const inputSchema = z.object({ path: z.string() });
const read_file = tool({ description: "Reads a file.", inputSchema, execute: readFile });

async function prepareStep({ messages }) {
  await chat.turn(messages.map(toLcm));
  return { messages: (await chat.assemble()).messages.map(fromLcm) };
}

/** The parts of the AI SDK have other names than those of the dialect `lcm`. */
function toLcm({ role, content }) {
  const toPart = ({ toolCallId: id, toolName: name, input, output, ...part }) => {
    if (part.type === "tool-call") return { type: "tool_call", id, name, input };
    if (part.type !== "tool-result") return part;
    return { type: "tool_result", call_id: id, name, output: output.value };
  };
  return { role, content: Array.isArray(content) ? content.map(toPart) : content };
}

function fromLcm({ role, content, parts = content }) {
  const fromPart = ({ id, call_id, name: toolName, input, output: value, ...part }) => {
    if (part.type === "tool_call") return { type: "tool-call", toolCallId: id, toolName, input };
    if (part.type !== "tool_result") return part;
    const output = { type: typeof value === "string" ? "text" : "json", value };
    return { type: "tool-result", toolCallId: call_id, toolName, output };
  };
  return { role, content: Array.isArray(parts) ? parts.map(fromPart) : parts };
}

const settings = { model, tools: { read_file }, prepareStep, stopWhen: stepCountIs(9) };
const lcm = await open(store);
const chat = lcm.conversation("chat", { budget: 6_000 });
for (const content of said) {
  const messages = [{ role: "user", content }];
  const { response } = await generateText({ ...settings, messages });
  await chat.append([...messages, ...response.messages].map(toLcm));
}
await lcm.close();
