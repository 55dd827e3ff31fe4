// OpenAI Agents: the conversation is the session of the agent.

import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from "@openai/agents";
import { open } from "lcm-engine";
import OpenAI from "openai";
import { z } from "zod";
import { baseURL, readFile, said, store } from "./played.mjs";

/** A session whose items are a context that fits. */
const sessionOf = (chat) => ({
  getSessionId: async () => chat.id,
  addItems: (items) => chat.turn(items.map(toOpenAI), { appendMode: "new" }),
  getItems: async () => (await chat.assemble()).messages.map(fromOpenAI),
  popItem: () => Promise.reject(new Error("what was said stays")),
  clearSession: () => chat.delete(),
});

/** Converts an item of the SDK to an item of the Responses API, which has other names. */
function toOpenAI(item) {
  if (item.type === "reasoning") return { ...item, summary: [] };
  if (item.type !== "function_call_result") return { ...item, call_id: item.callId };
  const output = item.output.text ?? item.output;
  return { ...item, type: "function_call_output", call_id: item.callId, output };
}

function fromOpenAI({ call_id: callId, summary, output: text, ...item }) {
  if (item.type === "function_call") return { ...item, callId };
  if (item.type !== "function_call_output") return item;
  const output = typeof text === "string" ? { type: "text", text } : text;
  return { name: "", status: "completed", ...item, type: "function_call_result", callId, output };
}

setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey: "none" }));
const parameters = z.object({ path: z.string() });
const reading = { name: "read_file", description: "Reads a file.", parameters, execute: readFile };
const agent = new Agent({ name: "helper", model: "scripted-1", tools: [tool(reading)] });

const lcm = await open(store);
const session = sessionOf(lcm.conversation("chat", { budget: 6_000, dialect: "openai-responses" }));
for (const text of said) await run(agent, text, { session });
await lcm.close();
