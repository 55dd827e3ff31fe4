// AI SDK: a middleware of the model stores what is said and sends a context that fits.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool, wrapLanguageModel } from "ai";
import { open } from "lcm-engine";
import { z } from "zod";
import { baseURL, readFile, said, store } from "./played.mjs";

const served = createOpenAICompatible({ name: "scripted", baseURL, apiKey: "none" })("scripted-1");
const middleware = { transformParams, wrapGenerate }; // and `wrapStream` for `streamText`
const model = wrapLanguageModel({ model: served, middleware });
const inputSchema = z.object({ path: z.string() });
const tools = { read_file: tool({ inputSchema, execute: readFile }) };

async function transformParams({ params }) {
  const system = params.prompt.filter(({ role }) => role === "system");
  const list = params.prompt.slice(system.length);
  await chat.turn(list.map(({ role, content }) => ({ role, content: content.map(toPart) })));
  return { ...params, prompt: [...system, ...(await chat.assemble()).messages.map(fromLcm)] };
}

async function wrapGenerate({ doGenerate }) {
  const answer = await doGenerate();
  await chat.append([{ role: "assistant", content: answer.content.map(toPart) }]);
  return answer;
}

/** The parts of the AI SDK have other names than those of the dialect `lcm`. */
function toPart({ toolCallId: id, toolName: name, input, output, ...part }) {
  if (part.data instanceof Uint8Array) part.data = Buffer.from(part.data).toString("base64");
  if (part.providerMetadata) ({ providerMetadata: part.providerOptions, ...part } = part);
  if (part.type === "tool-call") return { ...part, type: "tool_call", id, name, input };
  if (part.type !== "tool-result") return part;
  return { type: "tool_result", call_id: id, name, output: output.value };
}

function fromLcm({ role, content, parts = content }) {
  const fromPart = ({ id: toolCallId, call_id, name: toolName, input, output: value, ...part }) => {
    const call = { ...part, type: "tool-call", toolCallId, toolName, input };
    if (part.type === "tool_call") return call;
    if (part.type !== "tool_result") return part;
    const output = { type: typeof value === "string" ? "text" : "json", value };
    return { type: "tool-result", toolCallId: call_id, toolName, output };
  };
  return { role, content: (parts.map ? parts : [{ type: "text", text: parts }]).map(fromPart) };
}

const lcm = await open(store);
const chat = lcm.conversation("chat", { budget: 6_000 });
for (const prompt of said) await generateText({ model, tools, prompt, stopWhen: stepCountIs(9) });
await lcm.close();
