// CPU time of a turn that appends the whole list, in Node: node lists.mjs CONVERSATION
//
// The list grows by two messages each turn, and has 400 in the middle turn. Prints the median of
// the turns in milliseconds; the time is that of all threads.

import { readFileSync } from "node:fs";

import { open } from "../../host-examples/node/src/index.js";

const MESSAGES = 400;
const TURNS = 60;

const messages = readFileSync(process.argv[2], "utf8").trimEnd().split("\n").map(JSON.parse);
const lcm = await open({ store: ":memory:" });
const chat = lcm.conversation("c", { budget: 200_000, dialect: "anthropic" });
const first = MESSAGES - TURNS;
await chat.append(messages.slice(0, first));
const costs = [];
for (let turn = 1; turn <= TURNS; turn++) {
  const list = messages.slice(0, first + 2 * turn);
  const before = process.cpuUsage();
  const { ingested } = await chat.append(list);
  const { user, system } = process.cpuUsage(before);
  if (ingested !== 2) throw new Error(`${ingested} messages were stored, not 2`);
  costs.push((user + system) / 1_000);
}
await lcm.close();
console.log(costs.sort((one, other) => one - other)[TURNS / 2].toFixed(1));
