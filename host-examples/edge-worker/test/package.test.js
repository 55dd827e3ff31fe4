// The worker with the tarball of the package, as users install it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, readdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { startWorker } from "../scripts/workerd.mjs";
import { BUDGET, client, temporaryFolder, transcript } from "./support.js";

const beside = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
let folder;
let engine;
const running = [];

before(async () => {
  execFileSync("bash", [beside("node/package.sh")]);
  folder = await realpath(await temporaryFolder());
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const tarball = beside("../dist/lcm-engine-0.1.0.tgz");
  const install = ["install", "--offline", "--omit=optional", ...quiet, tarball];
  execFileSync("npm", install, { cwd: folder });
  engine = join(folder, "node_modules", "lcm-engine");
});
after(async () => {
  for (const { stop } of running) await stop();
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

/** Starts a worker with these options, stores a conversation and assembles a context. */
async function works(name, options) {
  const worker = await startWorker(join(folder, name), options);
  running.push(worker);
  const lines = await transcript();
  const chat = client(worker, name);
  assert.equal((await chat.post("messages", lines.join("\n")))[1].ingested, lines.length);
  assert.equal((await chat.post(`compact?budget=${BUDGET}`))[1].status, "done");
  const [, { tokens, summaries }] = await chat.get(`context?budget=${BUDGET}`);
  assert.ok(tokens <= BUDGET && summaries > 0);
  assert.deepEqual((await chat.get("messages"))[1], lines);
}

test("the installed package works in workerd", async () => {
  await works("storage", { engine });
});

test("what wrangler would deploy of a copy of this folder works in workerd", async () => {
  for (const name of ["src", "wrangler.jsonc"]) {
    await cp(beside(`edge-worker/${name}`), join(folder, name), { recursive: true });
  }
  // wrangler needs Node 22 and a home folder.
  const node = execFileSync("bash", [beside("node/scripts/node.sh"), "22"], { encoding: "utf8" });
  const wrangler = beside("edge-worker/node_modules/wrangler/bin/wrangler.js");
  const deploy = [wrangler, "deploy", "--dry-run", "--outdir", "bundle"];
  const env = { PATH: process.env.PATH, HOME: folder, WRANGLER_SEND_METRICS: "false", CI: "true" };
  const said = execFileSync(node.trim(), deploy, { cwd: folder, env, encoding: "utf8" });
  assert.match(said, /env\.CONVERSATIONS \(Conversation\)/);
  const [, kilobytes] = /gzip: ([\d.]+) KiB/.exec(said);
  assert.ok(Number(kilobytes) < 1024, said);
  const bundle = join(folder, "bundle");
  assert.ok((await readdir(bundle)).includes("worker.js"));
  await works("deployed", { bundle });
});
