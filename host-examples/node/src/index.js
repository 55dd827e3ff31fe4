// The package's entry for Node.

import { openOptions, openWith } from "./open.js";
import { instantiate, openPath, placeOfPath, warn } from "./runtime.js";
import { startThread } from "./thread-backend.js";

export { ERROR_CODES, LcmError } from "./errors.js";
export { Conversation } from "./conversation.js";
export { instantiate } from "./runtime.js";
export { asyncStore } from "./store-async.js";
export { MemoryStore } from "./store-memory.js";

/**
 * Opens a store and returns an engine over it.
 *
 * `open(store, options)` is `open({ store, ...options })`. `store` is the path of an SQLite file,
 * `memory:`, an object with getMany, scan and commit, or such an object wrapped in `asyncStore`;
 * absent: `database_path` of the configuration. With `worker`, engine and store run in a separate
 * thread, and `store` must be a string.
 */
export function open(store, options) {
  const runtime = { instantiate, openPath, placeOfPath, startThread, warn };
  return openWith(runtime, { environment: process.env, ...openOptions(store, options) });
}
