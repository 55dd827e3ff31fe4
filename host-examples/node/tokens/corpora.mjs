// Conversations whose tokens are counted: one kind of text each, the same in every run.
//
// In: only files of this repository. Out: for each kind the turns of a conversation, each a list of
// messages. Prose and code come from the repository. Other texts are made from `words.json` and
// from samples of tool output, by a random generator with a fixed seed.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const WORDS = JSON.parse(readFileSync(new URL("words.json", import.meta.url), "utf8"));
/** Files with prose. */
const DOCUMENTS = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "docs/store-format.md",
  "host-examples/README.md",
  "host-examples/node/README.md",
  "host-examples/python/README.md",
];
/** Code in three languages. */
const SOURCES = ["crates/lcm-core/src", "host-examples/node/src", "host-examples/python/src"];
/** Number of lines of a file that one tool result shows. */
const LINES = 40;

/** Returns a linear congruential generator of numbers below a bound; a seed fixes the numbers. */
function dice(seed) {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number((state >> 33n) % BigInt(below));
  };
}

function files(folder) {
  const names = readdirSync(join(REPOSITORY, folder), { withFileTypes: true });
  const sorted = names.sort((a, b) => (a.name < b.name ? -1 : 1));
  return sorted.flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return files(path);
    return /\.(rs|js|py)$/.test(entry.name) ? [path] : [];
  });
}

/** Returns a shuffled copy of a list. */
function shuffled(list, random) {
  const out = [...list];
  for (let at = out.length - 1; at > 0; at -= 1) {
    const other = random(at + 1);
    [out[at], out[other]] = [out[other], out[at]];
  }
  return out;
}

function paragraphs() {
  const text = DOCUMENTS.map((path) => readFileSync(join(REPOSITORY, path), "utf8")).join("\n\n");
  const prose = text.replace(/```[^]*?```/g, "").split("\n");
  // Tables are not prose.
  const lines = prose.filter((line) => !line.startsWith("|") && line.length > 60);
  return shuffled(lines, dice(1));
}

function code() {
  const pieces = files(SOURCES[0])
    .concat(files(SOURCES[1]), files(SOURCES[2]))
    .flatMap((path) => {
      const lines = readFileSync(join(REPOSITORY, path), "utf8").split("\n");
      const starts = lines.map((_, at) => at).filter((at) => at % LINES === 0);
      return starts.map((at) => lines.slice(at, at + LINES).join("\n"));
    });
  return shuffled(pieces, dice(2));
}

/** Returns a sample of tool output: rows of a query, a listing of files, or a status. */
function toolOutput(random) {
  const hex = (digits) => Array.from({ length: digits }, () => random(16).toString(16)).join("");
  const pick = (list) => list[random(list.length)];
  const words = ["alpha", "billing", "gateway", "invoice", "worker", "north", "search", "queue"];
  const row = () => ({
    id: `${hex(8)}-${hex(4)}-${hex(4)}`,
    name: `${pick(words)}-${pick(words)}-${random(100)}`,
    status: pick(["active", "pending", "failed", "archived"]),
    amount: random(1000000) / 100,
    created_at: `2026-0${1 + random(9)}-${10 + random(18)}T${10 + random(13)}:${10 + random(49)}:00Z`,
    tags: Array.from({ length: random(4) }, () => pick(words)),
    owner: { email: `${pick(words)}${random(50)}@example.com`, admin: random(2) === 0 },
  });
  const file = () => ({
    path: `src/${pick(words)}/${pick(words)}.ts`,
    size: random(90000),
    sha256: hex(64),
    mode: "100644",
  });
  const count = 3 + random(6);
  const result = {
    ok: true,
    total: count + random(500),
    cursor: random(2) === 0 ? null : hex(24),
    items: Array.from({ length: count }, random(3) === 0 ? file : row),
  };
  return JSON.stringify(result, null, random(2) === 0 ? 2 : 0);
}

/** Returns a sentence: a pattern whose placeholders are replaced by words. */
function sentence(words, random) {
  const pattern = words.sentences[random(words.sentences.length)];
  return pattern.replace(/\{(\w+)\}/g, (_, kind) => words[kind][random(words[kind].length)]);
}

function sentences(words, random, count) {
  return Array.from({ length: count }, () => sentence(words, random)).join("");
}

const said = (role, text) => ({ role, content: text });

/** Returns a tool call and its result, as messages. */
function tool(turn, name, input, output) {
  const id = `call_${turn}`;
  return [
    { role: "assistant", content: [{ type: "tool_call", id, name, input }] },
    { role: "tool", content: [{ type: "tool_result", call_id: id, output }] },
  ];
}

/** Returns the turns of a dialogue in a language of `words.json`. */
function dialogue(language, turns) {
  const [words, random] = [WORDS[language], dice(language.length)];
  return Array.from({ length: turns }, () => [
    said("user", sentences(words, random, 1 + random(4))),
    said("assistant", sentences(words, random, 3 + random(8))),
  ]);
}

function english(turns) {
  const [lines, random] = [paragraphs(), dice(3)];
  let at = 0;
  const take = (count) => {
    at += count;
    return Array.from({ length: count }, (_, i) => lines[(at + i) % lines.length]).join("\n\n");
  };
  return Array.from({ length: turns }, () => [
    said("user", take(1)),
    said("assistant", take(1 + random(3))),
  ]);
}

function reading(turns) {
  const [pieces, lines] = [code(), paragraphs()];
  return Array.from({ length: turns }, (_, turn) => [
    said("user", lines[turn % lines.length].slice(0, 80)),
    ...tool(turn, "read_file", { path: `src/part${turn}.rs` }, pieces[turn % pieces.length]),
  ]);
}

function tools(turns) {
  const random = dice(4);
  return Array.from({ length: turns }, (_, turn) =>
    tool(turn, "query", { table: "accounts", page: turn }, toolOutput(random)),
  );
}

/** Returns a conversation that takes its turns from all kinds: the least uniform text. */
function mixed(turns) {
  const kinds = [english, reading, tools].map((make) => make(turns));
  const languages = ["chinese", "japanese", "emoji"].map((name) => dialogue(name, turns));
  const all = [...kinds, ...languages];
  return Array.from({ length: turns }, (_, turn) => all[turn % all.length][turn]);
}

/** Returns for each kind the turns of one conversation. */
export function corpora(turns) {
  return {
    English: english(turns),
    code: reading(turns),
    "JSON tool output": tools(turns),
    Chinese: dialogue("chinese", turns),
    Japanese: dialogue("japanese", turns),
    emoji: dialogue("emoji", turns),
    mixed: mixed(turns),
  };
}
