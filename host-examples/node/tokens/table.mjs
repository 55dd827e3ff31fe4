// Compares the token estimate with the counts of tokenizers, before and after calibration.
//
//     node tokens/table.mjs            the table of the documents, as Markdown
//     node tokens/table.mjs --slice    three kinds of text, for every test run
//
// In: conversations of one kind of text (`corpora.mjs`), the component, and two tokenizers that
// ship their tables. After each turn the context is assembled, its text is counted as a provider
// would count it, and the count is reported. From the 21st turn on, each prompt is first predicted:
// estimate times factor, with the factor of all earlier reports (`after`) or of the first 20
// reports only (`ended`). Fails if the median error exceeds 3 % or more than 5 % of the predictions
// are too low. `after` is checked in both contexts, `ended` only in the growing context.

import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";

import { open } from "../src/index.js";
import { corpora } from "./corpora.mjs";

const TURNS = 40;
/** Number of reports before the first prediction that counts. */
const REPORTS = 20;
/** Budgets in tokens: `growing` fits every conversation, `sliding` drops old messages. */
const BUDGETS = { growing: 200_000, sliding: 8_000 };
const ENCODINGS = { o200k_base: o200k, cl100k_base: cl100k };
/** Kinds for `--slice`: their texts do not change with the files of the repository. */
const SLICE = ["JSON tool output", "Chinese", "emoji"];
/** Kinds whose errors must be within the bounds; mixed kinds are only printed. */
const GATED = ["English", "code", "JSON tool output", "Chinese", "Japanese", "emoji"];
const ERROR_MAX = 0.03;
const UNDER_MAX = 0.05;
/** Tokens that providers with these encodings add to each message, and to the prompt. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_PER_PROMPT = 3;

/** Returns the texts of a message that a model reads. */
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

/** Resolves to rows with the counted and predicted tokens of each turn from the 21st on. */
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

/** Returns the median error, the share of predictions that are too low, and the worst of them. */
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
