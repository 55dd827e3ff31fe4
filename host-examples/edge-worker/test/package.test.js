// The worker over the tarball of the package, as somebody gets it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rm, realpath } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { startWorker } from "../scripts/workerd.mjs";
import { BUDGET, client, temporaryFolder, transcript } from "./support.js";

const beside = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let folder;
let engine;
let worker;

before(async () => {
  execFileSync("bash", [beside("node/package.sh")]);
  folder = await realpath(await temporaryFolder());
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const tarball = beside("../dist/lcm-engine-0.1.0.tgz");
  const install = ["install", "--offline", "--omit=optional", ...quiet, tarball];
  execFileSync("npm", install, { cwd: folder });
  engine = join(folder, "node_modules", "lcm-engine");
  worker = await startWorker(join(folder, "storage"), { engine });
});
after(async () => {
  await worker?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("whoever asks for the condition `workerd` gets the entry for workers", () => {
  const program = `console.log(import.meta.resolve("lcm-engine"))`;
  const resolved = (...options) => {
    const args = [...options, "--input-type=module", "--eval", program];
    return execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8" }).trim();
  };
  const file = (name) => new URL(name, `file://${engine}/src/`).href;
  assert.equal(resolved("--conditions=workerd"), file("workerd.js"));
  assert.equal(resolved(), file("index.js"));
});

test("the installed package works in workerd", async () => {
  const lines = await transcript();
  const chat = client(worker.url, "installed");
  assert.equal((await chat.post("messages", lines.join("\n")))[1].ingested, lines.length);
  assert.equal((await chat.post(`compact?budget=${BUDGET}`))[1].status, "done");
  const [, { tokens, summaries }] = await chat.get(`context?budget=${BUDGET}`);
  assert.ok(tokens <= BUDGET && summaries > 0);
  assert.deepEqual((await chat.get("messages"))[1], lines);
});
