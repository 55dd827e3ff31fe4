// Runs the golden vectors and the walkthrough inside workerd: node run-vectors.mjs [PART OF A PATH]
//
// Every vector runs in a separate Durable Object, over the SQLite storage of the object.

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

/** Returns a function that runs a vector; a failed request fails the vector, not the runner. */
function runIn(worker) {
  return (text, mode) =>
    post(`${worker.url}/check/vector?mode=${mode}`, text).catch((error) => ({
      failures: [`the worker failed: ${error.message}`],
      sha256: "",
    }));
}

/** Resolves to whether the walkthrough ends with the same store in the worker and in Node. */
async function walkthroughAgrees(worker) {
  const lines = await readFile(beside("walkthrough.jsonl"), "utf8");
  const here = await post(`${worker.url}/check/walkthrough`, lines);
  console.log(here.said.join("\n"));
  const node = execFileSync(process.execPath, [beside("node/walkthrough.mjs")], {
    encoding: "utf8",
  });
  return here.equal && node.includes(`store digest: ${here.digest}`);
}

const storage = await mkdtemp(join(tmpdir(), "lcm-edge-"));
const worker = await startWorker(storage, { main: "edge-worker/test/worker.js" });
try {
  const counts = await reportVectors("edge-worker", runIn(worker), process.argv[2]);
  const passed = await walkthroughAgrees(worker).catch((error) => console.log(error.message));
  if (!passed) console.log("FAILED walkthrough");
  counts[passed ? "passed" : "failed"] += 1;
  close(counts);
} finally {
  await worker.stop();
  await rm(storage, { recursive: true, force: true });
}
