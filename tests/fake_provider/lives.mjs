// Runs conversations ("lives") with a broken model, each in one mode and with one API, through the
// packages of OpenAI and Anthropic: node lives.mjs URL MODE... Prints a line of JSON about each.

import Anthropic from "@anthropic-ai/sdk";
import { MemoryStore, open } from "lcm-engine";
import OpenAI from "openai";

const [url, ...modes] = process.argv.slice(2);
const MINUTE_MS = 60_000;
/** A time longer than the longest pause of a model. */
const REST_MS = 31 * MINUTE_MS;
const MAINTAINS_MAX = 10;
/** Number of concurrent lives. */
const TOGETHER = 8;
/**
 * Timeouts in milliseconds: of a provider's package for a model that never answers, of the engine
 * for such a model where the package itself waits longer, and for all other models; even a busy
 * machine does not reach the last.
 */
const [LATE_MS, ENGINE_LATE_MS, TIMEOUT_MS] = [300, 1_000, 30_000];

const read = async (path) => (await fetch(`${url}/${path}`)).json();
const put = (path, body) => fetch(`${url}/${path}`, { method: "PUT", body });
const { said, budget, modes: known } = await read("talk");

/** For each API, a function that makes `complete`. */
const INTERFACES = {
  chat: (baseURL, options) => {
    const openai = new OpenAI({ baseURL: `${baseURL}/v1`, ...options });
    return async ({ system, prompt, outputTokensMax: max_completion_tokens }, { signal }) => {
      const messages = [
        { role: "system", content: system },
        { role: "user", content: prompt },
      ];
      const request = { model: "m", messages, max_completion_tokens };
      const answer = await openai.chat.completions.create(request, { signal });
      const [{ message, finish_reason: reason }] = answer.choices;
      return { text: message.content, finish: message.refusal ? "refusal" : reason };
    };
  },
  responses: (baseURL, options) => {
    const openai = new OpenAI({ baseURL: `${baseURL}/v1`, ...options });
    return async ({ system, prompt, outputTokensMax: max_output_tokens }, { signal }) => {
      const input = [{ role: "user", content: prompt }];
      const request = { model: "m", instructions: system, input, max_output_tokens };
      const answer = await openai.responses.create(request, { signal });
      const isRefusal = answer.output.some(({ content }) => content[0].type === "refusal");
      const reason = isRefusal ? "refusal" : answer.incomplete_details?.reason;
      return { text: answer.output_text, finish: reason };
    };
  },
  messages: (baseURL, options) => {
    const anthropic = new Anthropic({ baseURL, ...options });
    return async ({ system, prompt, outputTokensMax: max_tokens }, { signal }) => {
      const messages = [{ role: "user", content: prompt }];
      const request = { model: "m", system, messages, max_tokens };
      const answer = await anthropic.messages.create(request, { signal });
      const text = answer.content.map((block) => block.text).join("");
      return { text, finish: answer.stop_reason };
    };
  },
};

/** Resolves to the summaries of a conversation that were not replaced. */
async function list(chat) {
  const summaries = [];
  for (const { id } of await chat.listing("summaries")) {
    const { text, model, provisional, replacedBy } = await chat.describe(id);
    if (replacedBy === null) summaries.push({ text, model, provisional });
  }
  return summaries;
}

/** Runs a conversation with a broken and then with a working model; resolves to a report. */
async function live(mode, name) {
  const run = `node-${name}-${mode.replaceAll(/\W/g, "-")}`;
  await put(run, mode);
  let now = 1_700_000_000_000;
  const [codes, rules, failures] = [new Set(), new Set(), new Set()];
  const onEvent = ({ kind, error, rule }) => {
    if (kind === "model-called") codes.add(error);
    if (kind === "summary-rejected") rules.add(rule);
  };
  const store = new MemoryStore();
  const [maxRetries, isLate] = known[mode];
  const begin = async (isBroken) => {
    const timeout = isBroken && isLate ? LATE_MS : TIMEOUT_MS;
    const config = { timeout_ms: isBroken && isLate ? ENGINE_LATE_MS : TIMEOUT_MS };
    const complete = INTERFACES[name](`${url}/${run}`, { apiKey: "k", maxRetries, timeout });
    const lcm = await open({ store, complete, config, onEvent, now: () => now, environment: {} });
    return { lcm, chat: lcm.conversation("c", { budget, dialect: "openai-chat" }) };
  };
  let { lcm, chat } = await begin(true);

  const asked = [];
  let tokens = 0;
  const messages = said.map((content, at) => ({ role: at % 2 ? "assistant" : "user", content }));
  for (let at = 0, before = 0; at < messages.length; at += 2) {
    if (at === (messages.length + 1) / 2) {
      await lcm.close();
      ({ lcm, chat } = await begin(true));
    }
    now += MINUTE_MS;
    const { failure } = await chat.turn(messages.slice(Math.max(at - 1, 0), at + 1));
    await chat.settle();
    if (failure) failures.add(failure.code);
    const { requests } = await read(run);
    if (requests > before) asked.push([at / 2, requests - before]);
    before = requests;
    tokens = Math.max(tokens, (await chat.assemble()).tokens);
  }
  const broken = await chat.status();
  const seen = { codes: [...codes], rules: [...rules], failures: [...failures], asked, tokens };

  await lcm.close();
  await put(`${run}/works`);
  ({ lcm, chat } = await begin(false));
  let maintains = 0;
  for (let debt = true; debt && maintains < MAINTAINS_MAX; maintains += 1) {
    now += REST_MS;
    ({ debt } = await chat.maintain());
  }
  const { provisional: left, debt } = await chat.status();
  const stored = [];
  for await (const text of chat.iterMessages()) stored.push(JSON.parse(text).content);
  const summaries = await list(chat);
  await chat.resummarize();
  const asked_for = await list(chat);
  await lcm.close();
  const { said: texts, refused } = await read(run);
  const owed = { provisional: broken.provisional, owes: broken.debt !== null };
  const after = { maintains, left, still_owes: debt !== null, stored, summaries, asked_for };
  const life = { host: "node", interface: name, mode, ...seen, ...owed, ...after };
  console.log(JSON.stringify({ ...life, texts, refused }));
}

const lives = modes.flatMap((mode) => Object.keys(INTERFACES).map((name) => [mode, name]));
async function work() {
  for (let life = lives.shift(); life; life = lives.shift()) await live(...life);
}
await Promise.all(Array.from({ length: TOGETHER }, work));
