// The parts of the package that need Node: the component's modules, instances and store files.

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

/** Modules that this thread compiled, by name; another thread can receive the modules. */
export function compiledModules() {
  return new Map(modules);
}

/** Receives the modules that another thread compiled. */
export function adoptModules(compiled) {
  for (const [name, module] of compiled) modules.set(name, module);
}

/** Makes an instance of the component over `imports`. */
export function instantiate(imports) {
  return instantiateGlue(
    coreModule,
    imports,
    (module, core) => new WebAssembly.Instance(module, core),
  );
}

/** Opens the store that a string names. */
export function openPath(path) {
  if (/^postgres(ql)?:\/\//.test(path)) {
    throw new LcmError(
      "unsupported",
      "PostgreSQL is no built-in store of this package; wrap a client in `asyncStore`",
    );
  }
  return openSqliteStore(path);
}

/** Returns a name for the file of an open store, the same for every path to the file. */
export function placeOfPath(path) {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Emits a warning of the process, which Node writes to standard error by default. */
export function warn(line) {
  process.emitWarning(line, "LcmWarning");
}
