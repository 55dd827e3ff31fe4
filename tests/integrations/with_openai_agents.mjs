// OpenAI Agents: the conversation is the session of the agent.

import { Agent, run, setDefaultOpenAIClient, setTracingDisabled, tool } from "@openai/agents";
import { open } from "lcm-engine";
import OpenAI from "openai";
import { z } from "zod";
import { baseURL, readFile, said, store } from "./played.mjs";

/** A session whose items are a context that fits. */
const sessionOf = (chat) => ({
  getSessionId: async () => chat.id,
  addItems: (items) => chat.turn(items, { appendMode: "new" }),
  getItems: async () => (await chat.assemble()).messages,
  popItem: () => Promise.reject(new Error("what was said stays")),
  clearSession: () => chat.delete(),
});

setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey: "none" }));
const parameters = z.object({ path: z.string() });
const reading = { name: "read_file", description: "Reads a file.", parameters, execute: readFile };
const agent = new Agent({ name: "helper", model: "scripted-1", tools: [tool(reading)] });

const lcm = await open(store);
const session = sessionOf(lcm.conversation("chat", { budget: 6_000, dialect: "openai-agents" }));
for (const text of said) await run(agent, text, { session });
await lcm.close();
