// Runs the golden vectors and the walkthrough inside workerd: node run-vectors.mjs [PART OF A PATH]
//
// Every vector runs in a Durable Object of its own, over its SQLite storage.

import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { close, reportVectors } from "../node/scripts/vector-report.mjs";
import { startWorker } from "./scripts/workerd.mjs";

const beside = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

async function post(url, body) {
  const response = await fetch(url, { method: "POST", body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text);
}

/** A failed request fails its vector, not the runner. */
function runIn(worker) {
  return (text, mode) =>
    post(`${worker.url}/check/vector?mode=${mode}`, text).catch((error) => ({
      failures: [`the worker failed: ${error.message}`],
      sha256: "",
    }));
}

/** Whether the walkthrough ends with the store that it has in Node. */
async function walkthroughAgrees(worker) {
  const lines = await readFile(beside("walkthrough.jsonl"), "utf8");
  const here = await post(`${worker.url}/check/walkthrough`, lines);
  console.log(here.said.join("\n"));
  const node = execFileSync(process.execPath, [beside("node/walkthrough.mjs")], {
    encoding: "utf8",
  });
  return here.equal && node.includes(`store digest: ${here.digest}`);
}

/** Whether an ordinary client gets along: messages in, a context that fits out, across objects. */
async function agentAgrees(worker) {
  const lines = await readFile(beside("walkthrough.jsonl"), "utf8");
  const base = `${worker.url}/conversations/a%20chat`;
  const receipt = await post(`${base}/messages`, lines);
  const again = await post(`${base}/messages`, lines);
  await post(`${base}/compact?budget=3000`);
  const context = await (await fetch(`${base}/context?budget=3000`)).json();
  const refused = await fetch(`${base}/context?budget=x`);
  return (
    receipt.ingested === 64 &&
    again.ingested === 0 &&
    context.tokens <= 3000 &&
    context.summaries > 0 &&
    refused.status === 400
  );
}

/** Whether what is no request of the worker is refused as such. */
async function refusalsAgree(worker) {
  const base = `${worker.url}/conversations/refused`;
  const answer = async (path, body) => {
    const response = await fetch(`${base}/${path}`, { method: "POST", body });
    return [response.status, await response.text()];
  };
  const line = (bytes) => `${JSON.stringify({ role: "user", content: "x".repeat(bytes) })}\n`;
  const lines = line(250_000);
  const [largest] = await answer("messages", lines.repeat(Math.floor((31 << 20) / lines.length)));
  const [status, text] = await answer("messages", lines.repeat(136));
  const [encoding, said] = await answer("messages", Uint8Array.of(0xff));
  const paths = ["messages/extra", "messages/", "compact/x?budget=3000", "%zz"];
  const found = await Promise.all(paths.map((path) => answer(path, line(1))));
  return (
    largest === 200 &&
    status === 413 &&
    JSON.parse(text).error.code === "limit-exceeded" &&
    encoding === 400 &&
    JSON.parse(said).error.code === "invalid-input" &&
    found.every(([code]) => code === 404)
  );
}

const storage = await mkdtemp(join(tmpdir(), "lcm-edge-"));
const worker = await startWorker(storage);
try {
  const counts = await reportVectors("edge-worker", runIn(worker), process.argv[2]);
  const checks = { walkthrough: walkthroughAgrees, agent: agentAgrees, refusals: refusalsAgree };
  for (const [name, check] of Object.entries(checks)) {
    const passed = await check(worker).catch((error) => console.log(`${name}: ${error.message}`));
    if (!passed) console.log(`FAILED ${name}`);
    counts[passed ? "passed" : "failed"] += 1;
  }
  close(counts);
} finally {
  await worker.stop();
  await rm(storage, { recursive: true, force: true });
}
