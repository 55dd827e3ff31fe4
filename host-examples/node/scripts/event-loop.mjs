// Measures how long the engine blocks the event loop: node scripts/event-loop.mjs [MESSAGES]
//
// Ingests MESSAGES messages (default 10,000) in one call into a new SQLite file, compacts them
// without a model and assembles, once with a worker thread and once without. Fails if the loop was
// blocked for 20 ms with the worker thread, or 10,000 or more messages became fewer than 20
// summaries. Also prints how long an idle thread was blocked, which other processes caused.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

import { open } from "../src/index.js";
import { pause } from "../src/queue.js";

/** Time in milliseconds for which the loop must never be blocked with a worker thread. */
const STALL_MS_MAX = 20;
/** Tokens of the budget for each message: about a quarter of the tokens of a message. */
const BUDGET_TOKENS = 13;
const PASSES_MIN = 20;

const TURN_MS = 5;

/** Returns a message of about 50 tokens; each number gives another text. */
function message(number) {
  const words = Array.from({ length: 24 }, (_, at) => `word${(number * (at + 3)) % 9973}`);
  return { role: number % 2 ? "assistant" : "user", content: `n${number} ${words.join(" ")}` };
}

/** Resolves to the result of `work`, and the longest time that the loop was blocked meanwhile. */
async function watched(work) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  // The monitor measures between two turns of the loop, so one turn before and after is needed.
  await pause(TURN_MS);
  const result = await work();
  await pause(TURN_MS);
  delay.disable();
  return { result, stall_ms: delay.max / 1e6 };
}

/** Resolves to the longest block of the loop in each step, and the number of summaries. */
async function stalls(count, worker) {
  const budget = count * BUDGET_TOKENS;
  const messages = Array.from({ length: count }, (_, number) => message(number));
  const folder = await mkdtemp(join(tmpdir(), "lcm-loop-"));
  const store = join(folder, "agent.lcm.db");
  try {
    const opened = await watched(() => open({ store, worker, environment: {} }));
    const lcm = opened.result;
    const ingest = await watched(() => lcm.ingest("c", messages));
    const compact = await watched(() => lcm.compact("c", { budget, mode: "until-under" }));
    const assemble = await watched(() => lcm.assemble("c", { budget }));
    const closed = await watched(() => lcm.close());
    if (ingest.result.ingested !== count) throw new Error("not all was stored");
    return {
      passes: compact.result.passes.length,
      stall_ms: {
        open: opened.stall_ms,
        ingest: ingest.stall_ms,
        compact: compact.stall_ms,
        assemble: assemble.stall_ms,
        close: closed.stall_ms,
      },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts an idle thread. Returns a function that stops it and resolves to its longest block. */
function startIdle() {
  const program = `
    const { parentPort } = require("node:worker_threads");
    const delay = require("node:perf_hooks").monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    parentPort.once("message", () => parentPort.postMessage(delay.max / 1e6));
  `;
  const worker = new Worker(program, { eval: true });
  return async () => {
    worker.postMessage("stop");
    const [stall_ms] = await once(worker, "message");
    return stall_ms;
  };
}

function row(name, { passes, stall_ms }) {
  const steps = Object.entries(stall_ms).map(([step, ms]) => `${step} ${ms.toFixed(1)}`);
  return `${name}: ${steps.join(", ")} ms; ${passes} summaries`;
}

async function main(count) {
  const idle = startIdle();
  const threaded = await stalls(count, true);
  console.log(row("with a worker thread", threaded));
  console.log(`a thread that did nothing meanwhile: ${(await idle()).toFixed(1)} ms`);
  console.log(row("without", await stalls(count, false)));
  const longest = Math.max(...Object.values(threaded.stall_ms));
  const enough = count < 10_000 || threaded.passes >= PASSES_MIN;
  return longest < STALL_MS_MAX && enough;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  process.exitCode = (await main(Number(process.argv[2] ?? 10_000))) ? 0 : 1;
}
