// Measures the cost of one more message in workerd:
// node workerd.mjs fill|compact|measure FOLDER CONVERSATION
//
// As node.mjs, with the SQLite storage of a Durable Object in FOLDER. Turns are measured inside the
// object, where an agent at the edge runs.

import { readFileSync } from "node:fs";

import { startWorker } from "../../host-examples/edge-worker/scripts/workerd.mjs";

const BUDGET = 128_000;
const BATCH_MESSAGES = 500;
const LEFT_MESSAGES = 1_000;
const TIMES = 31;

const [verb, folder, conversation] = process.argv.slice(2);
const lines = readFileSync(conversation, "utf8").trimEnd().split("\n");
const worker = await startWorker(folder, { main: "edge-worker/test/worker.js" });

async function asked(method, path, body) {
  const response = await fetch(`${worker.url}/turns/c/${path}`, { method, body });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function fill() {
  const most = lines.length - LEFT_MESSAGES;
  for (let from = 0; from < most; from += BATCH_MESSAGES) {
    const batch = lines.slice(from, Math.min(from + BATCH_MESSAGES, most));
    await asked("POST", "messages?dialect=anthropic&appendMode=new", batch.join("\n"));
  }
}

async function compact() {
  for (;;) {
    const done = await asked("POST", `compact?budget=${BUDGET}&mode=until-under`);
    if (done.status === "done") return;
    if (done.passes.length === 0) throw new Error(`not compacted: ${done.status}, ${done.reason}`);
  }
}

async function measure() {
  const { messages: stored } = await asked("GET", "status");
  const next = lines.slice(stored, stored + TIMES);
  if (next.length < TIMES) throw new Error("too few messages are left");
  return asked("POST", "turns", next.join("\n"));
}

try {
  if (verb === "fill") await fill();
  else if (verb === "compact") await compact();
  else console.log(JSON.stringify(await measure()));
} finally {
  await worker.stop();
}
