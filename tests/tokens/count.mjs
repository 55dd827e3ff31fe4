// Compares estimates with the counts of tokenizers: count.mjs TEXTS ESTIMATES
//
// In: JSON lines {"class", "source", "text"} and the estimate of each, in lines. Out: for each
// class the number of texts, the estimate as a share of what o200k_base and the published tokenizer
// of Claude 2 count, and the least and greatest share of o200k_base of a single text. Fails if the
// share of a class is below SHARE_MIN or above SHARE_MAX of o200k_base; SHARES_MIN has exceptions. Claude 2 has no bar,
// because it differs by a factor of six between scripts.

import { readFileSync } from "node:fs";

import { getTokenizer } from "@anthropic-ai/tokenizer";
import { countTokens as countO200k } from "gpt-tokenizer/encoding/o200k_base";

const SHARE_MIN = 0.85;
const SHARE_MAX = 1.4;
/** Classes that are known to be below the bar, with their own bound: Welsh has the letters of
 * English, and only a vocabulary tells that its words are rarer. */
const SHARES_MIN = { "language cy": 0.74 };
const claude2 = getTokenizer();
/** As `countTokens` of the package, which makes a tokenizer for each text. */
const countClaude2 = (text) => claude2.encode(text.normalize("NFKC"), "all").length;
const readLines = (file) => readFileSync(file, "utf8").trimEnd().split("\n");
const sum = (list, member) => list.reduce((total, text) => total + text[member], 0);

const [texts, estimates] = process.argv.slice(2).map(readLines);
if (texts.length !== estimates.length) throw new Error("a text without an estimate");
const classes = new Map();
for (const [at, line] of texts.entries()) {
  const { class: name, source, text } = JSON.parse(line);
  const counted = {
    source,
    estimate: Number(estimates[at]),
    // Names of special tokens are ordinary text in a message.
    o200k: countO200k(text, { disallowedSpecial: new Set() }),
    claude2: countClaude2(text),
  };
  counted.share = counted.estimate / counted.o200k;
  classes.set(name, [...(classes.get(name) ?? []), counted]);
  if (process.env.LCM_EACH) console.error(`${counted.share.toFixed(2)} ${name}: ${source}`);
}

const failures = [];
console.log("| class | texts | o200k_base | Claude 2 | least text | greatest text |");
console.log("|---|---|---|---|---|---|");
for (const [name, list] of classes) {
  const share = sum(list, "estimate") / sum(list, "o200k");
  const shares = list.map((text) => text.share);
  const beside = sum(list, "estimate") / sum(list, "claude2");
  const numbers = [share, beside, Math.min(...shares), Math.max(...shares)];
  console.log(`| ${[name, list.length, ...numbers.map((one) => one.toFixed(2))].join(" | ")} |`);
  const least = SHARES_MIN[name] ?? SHARE_MIN;
  if (!(share >= least && share <= SHARE_MAX)) failures.push(`${name} ${share.toFixed(2)}`);
}
console.log(`${texts.length} texts, ${failures.length} of ${classes.size} classes outside the bar`);
for (const failure of failures) console.error(`outside the bar: ${failure}`);
process.exitCode = failures.length > 0 ? 1 : 0;
