// How far the estimate is from what tokenizers count, before and after calibration.
//
//     node tokens/table.mjs            the table of the documents, as Markdown
//     node tokens/table.mjs --slice    three kinds of text, for every test run
//
// In: conversations of one kind of text (`corpora.mjs`), the component, and two tokenizers that
// ship their tables. After each turn the context is assembled; its text is counted as a provider
// would, and the count reported. From the 21st turn on each prompt is first predicted: estimate
// times factor, by all reports before it (after), and by the first 20 reports alone (ended). Fails
// when the median error is over 3 % or more than 5 % of the predictions are too low, with all
// reports, and in a growing context with 20 alone.

import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";

import { open } from "../src/index.js";
import { corpora } from "./corpora.mjs";

const TURNS = 40;
/** Reports before the first prediction that counts. */
const REPORTS = 20;
/** More than the conversations have, and so little that old messages leave the context. */
const BUDGETS = { growing: 200_000, sliding: 8_000 };
const ENCODINGS = { o200k_base: o200k, cl100k_base: cl100k };
/** What does not change with the repository: its prose and code are the other kinds. */
const SLICE = ["JSON tool output", "Chinese", "emoji"];
/** Kinds that are one kind of text; of the others the table only says how it is. */
const GATED = ["English", "code", "JSON tool output", "Chinese", "Japanese", "emoji"];
const ERROR_MAX = 0.03;
const UNDER_MAX = 0.05;
/** What providers of these encodings add to each message, and to the whole. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_PROMPT = 3;

/** What a model reads of a message. */
function read(message) {
  const calls = (message.tool_calls ?? []).map((call) => call.function);
  const texts = [message.content, ...calls.flatMap((call) => [call.name, call.arguments])];
  return texts.filter((text) => typeof text === "string");
}

function counted(messages, count) {
  const texts = messages.flatMap(read);
  const tokens = texts.reduce((sum, text) => sum + count(text), 0);
  return tokens + TOKENS_PER_MESSAGE * messages.length + TOKENS_PER_PROMPT;
}

/** For each turn what was estimated, counted and, from the second on, predicted. */
async function prompts(turns, count, budget) {
  let now = 1_700_000_000_000;
  const lcm = await open({ store: "memory:", now: () => (now += 1000), environment: {} });
  const rows = [];
  let [factor, ended] = [1, 1];
  for (const turn of turns) {
    await lcm.append("c", turn, { appendMode: "new" });
    const { tokens, messages } = await lcm.assemble("c", { budget, dialect: "openai-chat" });
    const actual = counted(messages, count);
    if (rows.length === REPORTS) ended = factor;
    rows.push({ actual, before: tokens, after: tokens * factor, ended: tokens * ended });
    const { calibration } = await lcm.calibrate("c", "model", tokens, actual);
    factor = calibration.factorPermille / 1000;
  }
  await lcm.close();
  return rows.slice(REPORTS);
}

/** Median error, share of predictions that are too low, and by how much the worst one is. */
function errors(rows, prediction) {
  const relative = rows.map((row) => row[prediction] / row.actual - 1);
  const sizes = relative.map(Math.abs).sort((a, b) => a - b);
  const middle = sizes.length / 2;
  return {
    median: (sizes[Math.ceil(middle) - 1] + sizes[Math.floor(middle)]) / 2,
    under: relative.filter((error) => error < 0).length / relative.length,
    worst: Math.max(0, -Math.min(...relative)),
  };
}

const fits = ({ median, under }) => median <= ERROR_MAX && under <= UNDER_MAX;
const percent = (part) => `${(part * 100).toFixed(1)} %`;
const cells = ({ median, under, worst }) => [median, under, worst].map(percent).join(" | ");

const slice = process.argv.includes("--slice");
const failures = [];
const columns = ["before", "after", "ended"].map((name) => `${name}: median | too low | worst`);
console.log(`| text | encoding | context | ${columns.join(" | ")} |`);
console.log(`|${"---|".repeat(12)}`);
for (const [kind, turns] of Object.entries(corpora(TURNS))) {
  if (slice && !SLICE.includes(kind)) continue;
  for (const [encoding, count] of Object.entries(ENCODINGS)) {
    for (const [context, budget] of Object.entries(BUDGETS)) {
      const rows = await prompts(turns, count, budget);
      const found = ["before", "after", "ended"].map((prediction) => errors(rows, prediction));
      console.log(`| ${kind} | ${encoding} | ${context} | ${found.map(cells).join(" | ")} |`);
      const gated = context === "growing" ? found.slice(1) : found.slice(1, 2);
      if (GATED.includes(kind) && !gated.every(fits)) {
        failures.push(`${kind}, ${encoding}, ${context}`);
      }
    }
  }
}
for (const failure of failures) console.error(`over the bounds: ${failure}`);
process.exitCode = failures.length > 0 ? 1 : 0;
