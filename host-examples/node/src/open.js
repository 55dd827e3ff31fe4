// `open` without a runtime: combines store, models and configuration. The entries for Node and for
// workers add the source of the component's modules.

import { Backend } from "./backend.js";
import { Calls, placeOfObject } from "./calls.js";
import { Engine } from "./engine.js";
import { invalid, LcmError } from "./errors.js";
import { Events } from "./events.js";
import { Component } from "./component.js";
import { modelsOf } from "./models.js";
import { checkAsking } from "./options.js";
import { linesOf, settingsOf } from "./settings.js";
import { isAsyncStore, storeOf } from "./store-async.js";
import { MemoryStore } from "./store-memory.js";

/** Name of a store in memory, which only one engine has. */
const MEMORY = "memory:";

const OPTIONS = [
  "store",
  "complete",
  "config",
  "now",
  "environment",
  "worker",
  "scope",
  "dialect",
  "signal",
  "onEvent",
];

/** Dialects of messages; `auto` only reads. */
const DIALECTS = ["lcm", "anthropic", "openai-chat", "openai-responses", "gemini", "ai-sdk",
  "openclaw", "langchain", "openai-agents", "auto"];

/** Scopes of the tools of an agent. */
const SCOPES = ["conversation", "store"];

/** Returns the options of `open(options)` and of `open(store, options)`. */
export function openOptions(first, second) {
  const isOptions = typeof first === "object" && first !== null && second === undefined;
  return isOptions && !isStore(first) ? first : { ...second, store: first };
}

/** Whether a value is a store, not options: a store has methods, or is declared by `asyncStore`. */
function isStore(value) {
  return typeof value.getMany === "function" || isAsyncStore(value);
}

/**
 * Opens an engine over `options.store`.
 *
 * `instantiate` makes an instance of the component synchronously. `openPath` opens a store that is
 * given as a string, and `placeOfPath` returns the name of the store. `startThread`, if the runtime
 * has threads, makes a backend in a thread. `warn` receives warnings of one line.
 */
export async function openWith(runtime, options) {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) throw invalid(`open has no option \`${key}\``);
  }
  const { complete, config, now = Date.now, environment = {}, worker = false } = options;
  const { scope = "conversation" } = options;
  if (!SCOPES.includes(scope)) {
    throw invalid(`\`scope\` must be \`conversation\` or \`store\`, got \`${scope}\``);
  }
  const { dialect = "lcm", signal } = options;
  if (!DIALECTS.includes(dialect)) {
    throw invalid(`\`dialect\` must be one of ${DIALECTS.join(", ")}, got \`${dialect}\``);
  }
  checkAsking({ signal });
  if (typeof worker !== "boolean") throw invalid("`worker` must be true or false");
  const models = modelsOf(complete);
  const events = new Events(options.onEvent, runtime.warn);
  const named = options.store ?? null;
  const store = named ?? (await configuredStore(runtime, config, environment));
  const backend = await (worker ? inThread : besideUs)(runtime, store, events);
  try {
    const resolve = (name, args) => backend.compute(name, args);
    const settings = await settingsOf(config, environment, resolve);
    if (settings !== null) {
      models.follow(settings.host);
      for (const line of linesOf(settings.report)) runtime.warn(line);
      if (named !== null && settings.host.database_path !== null) {
        runtime.warn("config: `database_path`: not used, `open` has a `store`");
      }
      backend.restart(settings.json);
    }
  } catch (error) {
    // A store that the caller opened stays open.
    if (typeof store === "string") await backend.close();
    throw error;
  }
  const isPath = typeof store === "string" && store !== MEMORY;
  const place = isPath ? runtime.placeOfPath(store) : placeOfObject(storeOf(store) ?? backend);
  const calls = new Calls({ backend, place });
  return new Engine({ backend, calls, models, clock: now, scope, dialect, signal });
}

/** Resolves to the path of the store that the configuration names. */
async function configuredStore({ instantiate }, config, environment) {
  const component = new Component({ instantiate, store: new MemoryStore() });
  const resolve = async (name, args) => component.invoke(name, args);
  const settings = await settingsOf(config, environment, resolve);
  const path = settings?.host.database_path ?? null;
  if (path === null) throw invalid("open needs `store`, or `database_path` in its configuration");
  return path;
}

async function besideUs({ instantiate, openPath }, store, events) {
  const opened = typeof store === "string" ? await storeAt(store, openPath) : store;
  return new Backend({ instantiate, store: opened, configJson: null, events });
}

function inThread({ startThread }, store, events) {
  if (!startThread) throw new LcmError("unsupported", "`worker` needs Node");
  if (typeof store !== "string") throw invalid("with `worker`, `store` must be a string");
  return startThread(store, events);
}

/** Opens the store that a string names. */
export function storeAt(name, openPath) {
  return name === MEMORY ? new MemoryStore() : openPath(name);
}
