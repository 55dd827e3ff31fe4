// Writes to a store that other processes write to as well: node writer.mjs STORE FIRST
//
// FIRST is the number of its first message. Standard input has lines `round N` (one append),
// `for SECONDS` (appends until the time is over) and `digest`. For each line a line of JSON is
// printed: the stored texts, or the digest; and in `met` the numbers of conflicts that the engine
// returned and of busy stores.

import { createInterface } from "node:readline";

import { open } from "../../host-examples/node/src/index.js";
import { message } from "./message.mjs";

const BUDGET = 6_000;
const lcm = await open({ store: process.argv[2] });
const met = { conflicts: 0, unavailable: 0 };
let next = Number(process.argv[3]);

/** Repeats a call after conflicts; an append whose messages have ids may be repeated. */
async function certainly(call) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (error.code === "conflict") met.conflicts += 1;
      else if (error.code === "store-unavailable") met.unavailable += 1;
      else throw error;
    }
  }
}

async function write(count) {
  const texts = Array.from({ length: count }, () => message("node", next++));
  await certainly(() => lcm.append("together", texts, { appendMode: "new" }));
  if (next % 4 === 0) await certainly(() => lcm.compact("together", { budget: BUDGET }));
  const { tokens } = await certainly(() => lcm.assemble("together", { budget: BUDGET }));
  if (tokens > BUDGET) throw new Error(`a context of ${tokens} tokens`);
  return texts;
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, number] = line.split(" ");
  if (verb === "digest") {
    console.log(JSON.stringify({ texts: [], met, digest: await lcm.digest() }));
    continue;
  }
  const texts = [];
  const end = Date.now() + Number(number) * 1_000;
  do texts.push(...(await write((next % 3) + 1)));
  while (verb === "for" && Date.now() < end);
  console.log(JSON.stringify({ texts, met }));
}
await lcm.close();
