// Compares the token estimate of classes of text with the counts of tokenizers.
//
//     node tokens/classes.mjs    the table of the documents, as Markdown
//
// In: texts that are made here with a fixed seed, sentences of `scripts.json`, and the component.
// Out: for each class the estimate as a share of the count of `o200k_base`, and of the published
// tokenizer of Claude 2 if `@anthropic-ai/tokenizer` is installed. Fails if a share of the former is
// below .85 or above 1.4; the latter has no bar, because it differs by a factor of six between
// scripts.

import { readFileSync } from "node:fs";

import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";

import { open } from "../src/index.js";

const claude2 = await import("@anthropic-ai/tokenizer").then(
  (tokenizer) => tokenizer.countTokens,
  () => undefined,
);
const SHARE_MIN = 0.85;
const SHARE_MAX = 1.4;
const SCRIPTS = JSON.parse(readFileSync(new URL("scripts.json", import.meta.url), "utf8"));
const WORDS = "parcel route depot driver weight region status carrier window ledger".split(" ");

/** Returns a generator of numbers below a bound; the same in every run. */
function dice(seed) {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
}

const random = dice(11);
const pick = (list) => list[random(list.length)];
const repeat = (count, make) => Array.from({ length: count }, make);
const bytes = (count) => Buffer.from(repeat(count, () => random(256)));
const lines = (count, make) => repeat(count, make).join("\n");
const day = () => `2026-0${1 + random(9)}-${10 + random(18)}`;
const clock = () => `${10 + random(13)}:${10 + random(49)}:${10 + random(49)}`;
const camel = (words) =>
  words.map((word, at) => (at ? word[0].toUpperCase() + word.slice(1) : word)).join("");

/** Returns an object as a service answers it. */
const record = () => ({
  id: bytes(12).toString("hex"),
  carrier: `${pick(WORDS)}-${random(90)}`,
  weight: random(90000) / 100,
  open: random(2) === 0,
  at: `${day()}T${clock()}Z`,
  stops: repeat(2, () => ({ lat: random(90000) / 1000, lon: random(90000) / 1000 })),
});

const CLASSES = {
  base64: () => bytes(3000).toString("base64"),
  hex: () => lines(60, () => `${bytes(32).toString("hex")}  ${pick(WORDS)}.bin`),
  digits: () => repeat(500, () => random(10 ** (1 + random(8)))).join(" "),
  identifiers: () =>
    lines(200, () => {
      const words = repeat(2 + random(2), () => pick(["get", "is", "parse", ...WORDS]));
      return pick([camel, (list) => list.join("_"), (list) => list.join("_").toUpperCase()])(words);
    }),
  logs: () =>
    lines(60, () => {
      const level = pick(["INFO", "WARN", "ERROR"]);
      const text = `${pick(WORDS)}: ${pick(["retry", "lost", "done"])} after ${random(9999)} ms`;
      return `${day()} ${clock()},${random(999)} ${level} [worker-${random(40)}] ${text}`;
    }),
  JSON: () => JSON.stringify(repeat(20, record)),
  CSV: () =>
    lines(120, () =>
      [random(10 ** 6), day(), pick(WORDS), random(9000) / 100, random(99)].join(","),
    ),
  mathematics: () => SCRIPTS.mathematics.join("\n"),
  Amharic: () => SCRIPTS.amharic.join(" "),
  Burmese: () => SCRIPTS.burmese.join(" "),
  Thai: () => SCRIPTS.thai.join(" "),
};

const failures = [];
console.log("| class | o200k_base | Claude 2 |\n|---|---|---|");
for (const [name, make] of Object.entries(CLASSES)) {
  const text = make();
  const lcm = await open({ store: "memory:", environment: {} });
  await lcm.append("c", [{ role: "user", content: text }], { appendMode: "new" });
  const { tokens } = await lcm.assemble("c", { budget: 1_000_000, dialect: "openai-chat" });
  await lcm.close();
  const share = tokens / o200k(text);
  const beside = claude2 ? (tokens / claude2(text)).toFixed(2) : "";
  console.log(`| ${name} | ${share.toFixed(2)} | ${beside} |`);
  if (share < SHARE_MIN || share > SHARE_MAX) failures.push(name);
}
for (const failure of failures) console.error(`outside the bar: ${failure}`);
process.exitCode = failures.length > 0 ? 1 : 0;
