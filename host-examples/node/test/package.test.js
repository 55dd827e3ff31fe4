// The tarball that users install: its files, and the unchanged programs of the READMEs, run in an
// empty project with the tarball installed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const BYTES_MAX = 900_000;
const LINES_MAX = 8;
const beside = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const tarball = beside("../../dist/lcm-engine-0.1.0.tgz");
let project;

const run = (file, args, options) => execFileSync(file, args, { encoding: "utf8", ...options });
const inProject = (file, ...args) => run(file, args, { cwd: project, env: environment() });

/** Returns the environment of the process without `LCM_...` variables. */
function environment() {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("LCM_"));
  return Object.fromEntries(kept);
}

/** Resolves to local folders of packages that this Node needs in addition; nothing is fetched. */
async function optionalPackages() {
  const has = await import("node:sqlite").then(
    () => true,
    () => false,
  );
  return has ? [] : [beside("node_modules/@photostructure/sqlite")];
}

before(async () => {
  run("bash", [beside("package.sh")]);
  project = await mkdtemp(join(tmpdir(), "lcm-project-"));
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const packages = [tarball, ...(await optionalPackages())];
  inProject("npm", "install", "--offline", ...quiet, ...packages);
});
after(() => rm(project, { recursive: true, force: true }));

test("the tarball is small and has what it needs, the component inside", async () => {
  assert.ok((await stat(tarball)).size < BYTES_MAX);
  const listed = run("tar", ["-tzf", tarball]).trim().split("\n");
  const names = listed.map((name) => name.replace(/^package\//, ""));
  const types = ["engine.d.ts", "index.d.ts", "types.d.ts", "types/common.d.ts"];
  const wanted = ["package.json", "README.md", ...types];
  for (const name of [...wanted, "LICENSE-MIT", "LICENSE-APACHE"]) {
    assert.ok(names.includes(name), name);
  }
  const own = /^(src|build|types)\/|^[A-Z]+(-[A-Z]+)?$|^[\w.]+$/;
  const foreign = names.filter((name) => !own.test(name));
  assert.deepEqual(foreign, []);
  assert.ok(!names.some((name) => /vectors|test|stamp/.test(name)), names.join());
  const component = await readFile(beside("../../dist/lcm.wasm"));
  const core = run("tar", ["-xzOf", tarball, "package/build/lcm.core.wasm"], {
    encoding: "buffer",
    maxBuffer: 8_000_000,
  });
  assert.ok(core.length > 1_000_000 && component.includes(core));
});

/** Resolves to the first JavaScript program in a document. */
async function programOf(path) {
  const [, program] = /```js\n(.*?)```/s.exec(await readFile(beside(path), "utf8"));
  assert.ok(program.trimEnd().split("\n").length <= LINES_MAX, program);
  return program;
}

for (const readme of ["../../README.md", "README.md"]) {
  test(`the program of ${readme} runs as printed and keeps what was said`, async () => {
    await writeFile(join(project, "agent.mjs"), await programOf(readme));
    inProject(process.execPath, "--no-warnings", "agent.mjs");
    // A second run stores its message again, because a list of one message is always new.
    inProject(process.execPath, "--no-warnings", "agent.mjs");
    const look = `
      import { open } from "lcm-engine";
      const lcm = await open({ store: "agent.lcm.db" });
      console.log(JSON.stringify(await lcm.messages("chat-1")));
      await lcm.close();
    `;
    await writeFile(join(project, "look.mjs"), look);
    const stored = JSON.parse(inProject(process.execPath, "--no-warnings", "look.mjs"));
    const said = { role: "user", content: "Where did we leave the migration?" };
    assert.deepEqual(stored.map(JSON.parse), [said, said]);
    await rm(join(project, "agent.lcm.db"));
  });
}

test("the worker thread finds its files in the tarball", async () => {
  const program = `
    import { open } from "lcm-engine";
    const lcm = await open({ store: "memory:", worker: true });
    console.log((await lcm.append("c", [{ role: "user", content: "x" }])).ingested);
    await lcm.close();
  `;
  await writeFile(join(project, "thread.mjs"), program);
  assert.equal(inProject(process.execPath, "thread.mjs"), "1\n");
});

test("a program in TypeScript finds the types, and what is wrong is an error", async () => {
  const good = `
    import { asyncStore, LcmError, open, type AssembledContext, type PromisedStore } from "lcm-engine";
    export async function turn(store: PromisedStore, stop: AbortSignal): Promise<AssembledContext> {
      const complete = async ({ prompt }: { prompt: string }) => ({ text: prompt.slice(0, 9) });
      const lcm = await open({ store: asyncStore(store), complete });
      await lcm.turn("c", [{ role: "user", content: "x" }], { budget: 1, signal: stop });
      try {
        return await lcm.assemble("c", { budget: 200_000, dialect: "anthropic" });
      } catch (error) {
        if (error instanceof LcmError && error.code === "not-found") await lcm.close();
        throw error;
      }
    }
  `;
  const wrong = good.replace('dialect: "anthropic"', 'dialect: "greek"');
  const check = () => {
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
    const types = ["--lib", "es2022,dom"];
    const compiler = beside("node_modules/typescript/bin/tsc");
    return inProject(process.execPath, compiler, ...options, ...types, "agent.mts");
  };
  await writeFile(join(project, "agent.mts"), good);
  assert.equal(check(), "");
  await writeFile(join(project, "agent.mts"), wrong);
  assert.throws(check, ({ stdout }) => stdout.includes('"greek"'));
});
