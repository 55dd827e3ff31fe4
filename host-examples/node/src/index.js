// The package's entry for Node.

import { readFileSync } from "node:fs";

import { instantiate as instantiateGlue } from "../build/lcm.js";
import { LcmError } from "./errors.js";
import { openWith } from "./open.js";
import { openSqliteStore } from "./store-sqlite.js";

export { ERROR_CODES, LcmError } from "./errors.js";
export { asyncStore } from "./store-async.js";
export { MemoryStore } from "./store-memory.js";

const modules = new Map();

/** A core module of the component, compiled once per process. */
function coreModule(name) {
  if (!modules.has(name)) {
    const bytes = readFileSync(new URL(`../build/${name}`, import.meta.url));
    modules.set(name, new WebAssembly.Module(bytes));
  }
  return modules.get(name);
}

/** A new instance of the component over `imports`. */
export function instantiate(imports) {
  return instantiateGlue(
    coreModule,
    imports,
    (module, core) => new WebAssembly.Instance(module, core),
  );
}

function openPath(path) {
  if (/^postgres(ql)?:\/\//.test(path)) {
    throw new LcmError(
      "unsupported",
      "PostgreSQL is no built-in store of this package; wrap a client in `asyncStore`",
    );
  }
  return openSqliteStore(path);
}

/**
 * Opens a store and returns an engine over it.
 *
 * `store` is the path of an SQLite file, `memory:`, an object with getMany, scan and commit, or
 * such an object wrapped in `asyncStore`.
 */
export function open(options) {
  return openWith({ instantiate, openPath }, { environment: process.env, ...options });
}
