// Every type, member and function that a user sees has documentation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const beside = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Runs the checks of typedoc without output files; returns its exit code and its messages. */
function checked(folder) {
  const program = beside("node_modules/typedoc/bin/typedoc");
  const args = [program, "--emit", "none"];
  const options = { cwd: folder, encoding: "utf8" };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
  return { status, said: stdout + stderr };
}

test("nothing of the package is without documentation", () => {
  const { status, said } = checked(beside("."));
  assert.equal(status, 0, said);
});

test("a member without documentation is an error", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lcm-docs-"));
  try {
    const typesBeside = ["conversation.d.ts", "index.d.ts", "types.d.ts"];
    const others = ["typedoc.json", "tsconfig.json", "README.md", "package.json"];
    for (const name of [...typesBeside, ...others]) {
      await copyFile(beside(name), join(folder, name));
    }
    await cp(beside("types"), join(folder, "types"), { recursive: true });
    const types = await readFile(beside("engine.d.ts"), "utf8");
    const bare = types.replace(/  \/\*\*\n   \* Version of the engine\..*?\*\/\n/s, "");
    assert.notEqual(bare, types);
    await writeFile(join(folder, "engine.d.ts"), bare);
    const { status, said } = checked(folder);
    assert.notEqual(status, 0);
    assert.match(said, /Engine\.version/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
