// Calls a local server with the packages of providers, and compares the failure codes of their
// errors with the fixture: node errors.mjs URL. Run by tests/sdk_errors/run, which links `project`.

import { readFile } from "node:fs/promises";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { generateText } from "ai";
import OpenAI from "openai";
import { readThrown } from "./project/host-examples/node/src/model-failures.js";

const server = process.argv[2];
const fixture = new URL("project/tests/fixtures/model-answers.json", import.meta.url);
const answers = JSON.parse(await readFile(fixture, "utf8"));
const apiKey = "k";
const messages = [{ role: "user", content: "x" }];
const LATE_MS = 200;

/** Returns calls to a base URL, each of which must reject. */
function calls(base, timeout) {
  const maxRetries = 0;
  const openai = () => new OpenAI({ apiKey, baseURL: `${base}/v1`, maxRetries, timeout });
  const google = () => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base, timeout } });
  const ai = (retries) => {
    const model = createOpenAI({ apiKey, baseURL: `${base}/v1` }).chat("m");
    const abortSignal = AbortSignal.timeout(timeout);
    return generateText({ model, prompt: "x", maxRetries: retries, abortSignal });
  };
  const anthropic = () => new Anthropic({ apiKey, baseURL: base, maxRetries, timeout });
  const configuration = { baseURL: `${base}/v1` };
  const chain = { model: "m", apiKey, maxRetries };
  const clientOptions = { timeout };
  return {
    "openai, chat": () => openai().chat.completions.create({ model: "m", messages }),
    "openai, responses": () => openai().responses.create({ model: "m", input: "x" }),
    anthropic: () => anthropic().messages.create({ model: "m", max_tokens: 5, messages }),
    google: () => google().models.generateContent({ model: "m", contents: "x" }),
    "ai sdk": () => ai(0),
    "langchain, openai": () => new ChatOpenAI({ ...chain, timeout, configuration }).invoke("x"),
    "langchain, anthropic": () =>
      new ChatAnthropic({ ...chain, anthropicApiUrl: base, clientOptions }).invoke("x"),
  };
}

const wrong = [];
let asked = 0;

async function check(what, expected, base, timeout, pause) {
  for (const [name, call] of Object.entries(calls(base, timeout))) {
    const thrown = await call().then(() => new Error("no error"), (error) => error);
    const { code, retryAfterMs, message } = readThrown(thrown);
    asked += 1;
    // Google's errors have no headers, and LangChain reads whole seconds.
    const isPaused = pause === undefined || /google|langchain/.test(name) || retryAfterMs === pause;
    if (code !== expected || !isPaused) {
      wrong.push(`${name}: ${what}: ${code}, ${retryAfterMs}: ${message}`);
    }
  }
}

for (const [at, { what, code, status, retry_after_ms: pause }] of answers.entries()) {
  if (status >= 400) await check(what, code, `${server}/${at}`, 10_000, pause);
}
await check("no answer", "timeout", `${server}/late`, LATE_MS);
await check("no server", "unavailable", "http://127.0.0.1:2", 10_000);
console.log([...wrong, `node: ${asked - wrong.length} of ${asked} errors understood`].join("\n"));
process.exit(wrong.length > 0 ? 1 : 0);
