// LangGraph: a middleware of the agent stores all messages and sends a context that fits.

import { coerceMessageLikeToMessage } from "@langchain/core/messages";
import { ChatOpenAI, convertMessagesToCompletionsMessageParams } from "@langchain/openai";
import { createAgent, createMiddleware, tool } from "langchain";
import { open } from "lcm-engine";
import { z } from "zod";
import { baseURL, readFile, said, store } from "./played.mjs";

const toOpenAI = (messages) => convertMessagesToCompletionsMessageParams({ messages });

const remember = createMiddleware({
  name: "lcm",
  async wrapModelCall(request, handler) {
    await chat.turn(toOpenAI(request.messages));
    const { messages } = await chat.assemble();
    const context = messages.map(coerceMessageLikeToMessage);
    const answer = await handler({ ...request, messages: context });
    await chat.append(toOpenAI([answer]));
    return answer;
  },
});

const schema = z.object({ path: z.string() });
const declared = { name: "read_file", description: "Reads a file.", schema };
const tools = [tool(readFile, declared)];
const model = new ChatOpenAI({ model: "scripted-1", apiKey: "none", configuration: { baseURL } });
const agent = createAgent({ model, tools, middleware: [remember] });

const lcm = await open(store);
const chat = lcm.conversation("chat", { budget: 6_000, dialect: "openai-chat" });
for (const content of said) await agent.invoke({ messages: [{ role: "user", content }] });
await lcm.close();
