// Runs every golden vector in one host and writes a report; shared by the JavaScript hosts.
//
// In: the host's name and a function that runs one vector. Out: dist/vectors-HOST.json, failures
// and the closing line on standard output.

import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = join(root, "tests", "vectors");

/** Resolves to the paths of all vectors below their folder, in order. */
export async function vectorPaths() {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".json"))
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .map((path) => path.replaceAll("\\", "/"))
    .sort();
}

/** Resolves to the text of one vector. */
export function vectorText(path) {
  return readFile(join(folder, path), "utf8");
}

/** Runs one vector with both kinds of store; returns the digest and the failures of each. */
async function runBoth(path, run) {
  const text = await vectorText(path);
  const normal = await run(text, "normal");
  const blocking = await run(text, "would-block");
  if (normal.sha256 !== blocking.sha256) {
    blocking.failures.push(
      `the store has ${blocking.sha256}, without would-block ${normal.sha256}`,
    );
  }
  return { normal, blocking };
}

function print(path, mode, failures) {
  for (const failure of failures) console.log(`FAILED ${path} (${mode}): ${failure}`);
}

/**
 * Runs all vectors with `run(text, mode)`, which resolves to `{failures, sha256}`.
 *
 * `only` selects vectors whose path contains this text. Resolves to the numbers of passed and
 * failed runs.
 */
export async function reportVectors(host, run, only = "") {
  const report = { host, vectors: 0, passed: 0, would_block_passed: 0, digests: {} };
  for (const path of (await vectorPaths()).filter((path) => path.includes(only))) {
    const { normal, blocking } = await runBoth(path, run);
    print(path, "normal", normal.failures);
    print(path, "would-block", blocking.failures);
    report.vectors += 1;
    report.passed += normal.failures.length === 0 ? 1 : 0;
    report.would_block_passed += blocking.failures.length === 0 ? 1 : 0;
    report.digests[path] = normal.sha256;
  }
  if (only === "") {
    await mkdir(join(root, "dist"), { recursive: true });
    const target = join(root, "dist", `vectors-${host}.json`);
    await writeFile(target, `${JSON.stringify(report, null, 2)}\n`);
  }
  const passed = report.passed + report.would_block_passed;
  return { passed, failed: 2 * report.vectors - passed };
}

/** Prints the closing line and sets the exit code. */
export function close({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
