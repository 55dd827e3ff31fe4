// CPU time of a turn that hands over the whole list, in Node: node lists.mjs CONVERSATION
//
// The list has 400 messages in the middle turn, and grows by two each turn. Prints as JSON the
// milliseconds of CPU, of all threads, in the middle of the turns: `grown` if the messages stay as
// they were, `marked` if the newest message has a mark of the prompt cache that moves each turn.

import { readFileSync } from "node:fs";

import { open } from "../../host-examples/node/src/index.js";

const MESSAGES = 400;
const TURNS = 60;

/** Returns a list whose newest message has a mark of the prompt cache. */
function marked(list) {
  const last = { ...list.at(-1) };
  const [text] = [last.content].flat();
  const block = typeof text === "string" ? { type: "text", text } : text;
  last.content = [{ ...block, cache_control: { type: "ephemeral" } }];
  return [...list.slice(0, -1), last];
}

/** Resolves to the CPU milliseconds of a turn in the middle; `write` makes the list of a turn. */
async function measure(messages, write) {
  const lcm = await open({ store: ":memory:" });
  const chat = lcm.conversation("c", { budget: 200_000, dialect: "anthropic" });
  const first = MESSAGES - TURNS;
  await chat.append(messages.slice(0, first));
  const costs = [];
  for (let turn = 1; turn <= TURNS; turn++) {
    const list = write(messages.slice(0, first + 2 * turn));
    const before = process.cpuUsage();
    const { ingested } = await chat.append(list);
    const { user, system } = process.cpuUsage(before);
    if (ingested !== 2) throw new Error(`${ingested} messages were stored, not 2`);
    costs.push((user + system) / 1_000);
  }
  await lcm.close();
  return costs.sort((one, other) => one - other)[TURNS / 2];
}

const messages = readFileSync(process.argv[2], "utf8").trimEnd().split("\n").map(JSON.parse);
const grown = await measure(messages, (list) => list);
console.log(JSON.stringify({ grown, marked: await measure(messages, marked) }));
