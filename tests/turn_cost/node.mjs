// Measures the cost of one more message: node node.mjs fill|compact|measure STORE CONVERSATION
//
// `fill` stores all lines of the file CONVERSATION except the last thousand in a new store.
// `compact` compacts without a model. `measure` appends lines that are not stored yet, one by one,
// and assembles twice after each. Prints the figures as a line of JSON.

import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

import { open } from "../../host-examples/node/src/index.js";
import { openSqliteStore } from "../../host-examples/node/src/store-sqlite.js";

const CONVERSATION = "c";
const BUDGET = 128_000;
const BATCH_MESSAGES = 500;
const LEFT_MESSAGES = 1_000;
const TIMES = 31;

/** Returns a store that counts its reads and measures the time of its last commit. */
function counting(store) {
  const counted = {
    reads: 0,
    commitMs: 0,
    getMany(keys) {
      counted.reads += 1;
      return store.getMany(keys);
    },
    scan(...range) {
      counted.reads += 1;
      return store.scan(...range);
    },
    commit(guards, puts) {
      const begin = performance.now();
      store.commit(guards, puts);
      counted.commitMs = performance.now() - begin;
    },
    close: () => store.close(),
  };
  return counted;
}

async function fill(lcm, lines) {
  const most = lines.length - LEFT_MESSAGES;
  for (let from = 0; from < most; from += BATCH_MESSAGES) {
    const batch = lines.slice(from, Math.min(from + BATCH_MESSAGES, most));
    await lcm.append(CONVERSATION, batch, { dialect: "anthropic", appendMode: "new" });
  }
}

async function compact(lcm) {
  const options = { budget: BUDGET, mode: "until-under" };
  for (;;) {
    // One call makes a limited number of passes, so the call is repeated until nothing is due.
    const { status, reason, passes } = await lcm.compact(CONVERSATION, options);
    if (status === "done") return;
    if (passes.length === 0) throw new Error(`not compacted: ${status}, ${reason}`);
  }
}

/** Returns the median of a list of milliseconds. */
function middle(times) {
  return times.sort((one, other) => one - other)[Math.floor(times.length / 2)];
}

/** Makes a call; resolves to its result, its duration and its number of reads. */
async function timed(store, call) {
  store.reads = 0;
  const begin = performance.now();
  const found = await call();
  return { found, ms: performance.now() - begin, reads: store.reads };
}

async function measure(lcm, store, lines) {
  const { messages: stored } = await lcm.status(CONVERSATION);
  const options = { budget: BUDGET, dialect: "anthropic" };
  let { prefix } = await lcm.assemble(CONVERSATION, options);
  const [turns, commits, after, again] = [[], [], [], []];
  for (const line of lines.slice(stored, stored + TIMES)) {
    const turn = await timed(store, async () => {
      await lcm.append(CONVERSATION, [line], { dialect: "anthropic", appendMode: "new" });
      await lcm.evaluate(CONVERSATION, { budget: BUDGET });
      const next = { ...options, previous: prefix.token };
      after.push(await timed(store, () => lcm.assemble(CONVERSATION, next)));
    });
    turns.push(turn);
    commits.push(store.commitMs);
    prefix = after.at(-1).found.prefix;
    const next = { ...options, previous: prefix.token };
    again.push(await timed(store, () => lcm.assemble(CONVERSATION, next)));
    if (again.at(-1).found.prefix.sha256 !== prefix.sha256) throw new Error("not the same context");
  }
  if (turns.length < TIMES) throw new Error("too few messages are left");
  const most = (list) => Math.max(...list.map(({ reads }) => reads));
  const ms = (list) => middle(list.map(({ ms }) => ms));
  return {
    turn_ms: ms(turns),
    commit_ms: middle(commits),
    after_ms: ms(after),
    again_ms: ms(again),
    after_reads: most(after),
    again_reads: most(again),
  };
}

const [verb, path, conversation] = process.argv.slice(2);
const lines = readFileSync(conversation, "utf8").trimEnd().split("\n");
const store = counting(await openSqliteStore(path));
const lcm = await open({ store });
if (verb === "fill") await fill(lcm, lines);
else if (verb === "compact") await compact(lcm);
else console.log(JSON.stringify(await measure(lcm, store, lines)));
await lcm.close();
