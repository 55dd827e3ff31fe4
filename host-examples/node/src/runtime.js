// What the package needs of Node: the component's modules, instances of them, and store files.

import { existsSync, readFileSync, realpathSync } from "node:fs";

import { instantiate as instantiateGlue } from "../build/lcm.js";
import { LcmError } from "./errors.js";
import { openSqliteStore } from "./store-sqlite.js";

const modules = new Map();

/** A core module of the component, compiled once per thread. */
function coreModule(name) {
  if (!modules.has(name)) {
    const bytes = readFileSync(new URL(`../build/${name}`, import.meta.url));
    modules.set(name, new WebAssembly.Module(bytes));
  }
  return modules.get(name);
}

/** Modules that this thread compiled, by name; they may be sent to another. */
export function compiledModules() {
  return new Map(modules);
}

/** Takes over what another thread compiled. */
export function adoptModules(compiled) {
  for (const [name, module] of compiled) modules.set(name, module);
}

/** A new instance of the component over `imports`. */
export function instantiate(imports) {
  return instantiateGlue(
    coreModule,
    imports,
    (module, core) => new WebAssembly.Instance(module, core),
  );
}

/** The store that a string names. */
export function openPath(path) {
  if (/^postgres(ql)?:\/\//.test(path)) {
    throw new LcmError(
      "unsupported",
      "PostgreSQL is no built-in store of this package; wrap a client in `asyncStore`",
    );
  }
  return openSqliteStore(path);
}

/** Names the file of a store that was opened, under whichever path. */
export function placeOfPath(path) {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Says on standard error, or to whom listens for warnings of the process, what is odd. */
export function warn(line) {
  process.emitWarning(line, "LcmWarning");
}
