// The package's entry for workers, which may not compile modules from bytes.
//
// A store is an object; `durableStore` makes a store of a Durable Object's SQLite storage.

import { instantiate as instantiateGlue } from "../build/lcm.js";
import { modules } from "../build/modules.js";
import { LcmError } from "./errors.js";
import { openOptions, openWith } from "./open.js";

export { ERROR_CODES, LcmError } from "./errors.js";
export { Conversation } from "./conversation.js";
export { asyncStore } from "./store-async.js";
export { durableStore } from "./store-durable.js";
export { MemoryStore } from "./store-memory.js";

/** Makes an instance of the component over `imports`. */
export function instantiate(imports) {
  return instantiateGlue(
    (name) => modules[name],
    imports,
    (module, core) => new WebAssembly.Instance(module, core),
  );
}

function openPath() {
  throw new LcmError("unsupported", "a worker has no files; give an object as `store`");
}

/** Opens a store and returns an engine over it. */
export function open(store, options) {
  const runtime = { instantiate, openPath, warn: (line) => console.warn(line) };
  return openWith(runtime, openOptions(store, options));
}
