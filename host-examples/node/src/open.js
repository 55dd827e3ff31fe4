// `open` without a runtime: puts store, models and configuration together. The entries for Node
// and for workers add where the component's modules come from.

import { Backend } from "./backend.js";
import { Calls, placeOfObject } from "./calls.js";
import { toJson } from "./convert.js";
import { Engine } from "./engine.js";
import { invalid, LcmError } from "./errors.js";
import { modelsOf } from "./models.js";
import { storeOf } from "./store-async.js";
import { MemoryStore } from "./store-memory.js";

/** Names a store that nobody else has. */
const MEMORY = "memory:";

const OPTIONS = ["store", "complete", "config", "now", "environment", "worker"];

/** Variables of this program that are no configuration keys. */
const OTHER_VARIABLES = ["LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"];

function environmentKey(name) {
  return name
    .slice("LCM_".length)
    .toLowerCase()
    .replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

function environmentValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Configuration keys given by `LCM_...` variables, under their reference names:
 * `LCM_FRESH_TAIL_COUNT` is `freshTailCount`. Values are JSON where they parse as such, else
 * strings.
 */
export function environmentConfig(environment) {
  const names = Object.keys(environment).filter(
    (name) => /^LCM_[A-Z0-9_]+$/.test(name) && !OTHER_VARIABLES.includes(name),
  );
  return Object.fromEntries(
    names.sort().map((name) => [environmentKey(name), environmentValue(environment[name])]),
  );
}

/** The configuration as JSON text; null when there is none. */
function configJsonOf(config, environment) {
  const fromEnvironment = environmentConfig(environment);
  if (config === undefined && Object.keys(fromEnvironment).length === 0) return null;
  return toJson({ ...config, ...fromEnvironment }, "config");
}

/**
 * An engine over `options.store`.
 *
 * `instantiate` makes an instance of the component synchronously; `openPath` opens a store that is
 * given as a string, and `placeOfPath` says which one that is; `startThread`, where the runtime has
 * threads, makes a backend in one.
 */
export async function openWith({ instantiate, openPath, placeOfPath, startThread }, options) {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) throw invalid(`open has no option \`${key}\``);
  }
  const { store, complete, config, now = Date.now, environment = {}, worker = false } = options;
  if (store === undefined || store === null) throw invalid("open needs `store`");
  if (typeof worker !== "boolean") throw invalid("`worker` must be true or false");
  const models = modelsOf(complete);
  const configJson = configJsonOf(config, environment);
  const backend = worker
    ? await inThread(startThread, { store, configJson })
    : await besideUs({ instantiate, openPath }, { store, configJson });
  const isPath = typeof store === "string" && store !== MEMORY;
  const place = isPath ? placeOfPath(store) : placeOfObject(storeOf(store) ?? backend);
  return new Engine({ backend, calls: new Calls({ backend, place }), models, clock: now });
}

async function besideUs({ instantiate, openPath }, { store, configJson }) {
  const opened = typeof store === "string" ? await storeAt(store, openPath) : store;
  return new Backend({ instantiate, store: opened, configJson });
}

function inThread(startThread, { store, configJson }) {
  if (!startThread) throw new LcmError("unsupported", "`worker` needs Node");
  if (typeof store !== "string") throw invalid("with `worker`, `store` must be a string");
  return startThread({ store, configJson });
}

/** The store that a string names. */
export function storeAt(name, openPath) {
  return name === MEMORY ? new MemoryStore() : openPath(name);
}
