// The configuration of an engine: the object given to `open`, and `LCM_...` variables.
//
// Only the engine knows the keys and their values; this module asks the engine.

import { toJson } from "./convert.js";
import { LcmError } from "./errors.js";

/** Variables of this program that do not configure the engine. */
const OTHER_VARIABLES = ["LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"];

const PREFIX = "LCM_";

function environmentKey(name) {
  const words = name.slice(PREFIX.length).toLowerCase().split("_");
  const [first, ...others] = words.filter((word) => word !== "");
  return first + others.map((word) => word[0].toUpperCase() + word.slice(1)).join("");
}

/** Whether a variable configures the engine; the case of the key does not matter. */
function isConfiguration(name) {
  const key = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : "";
  return /[^_]/.test(key) && !OTHER_VARIABLES.includes(name);
}

function environmentValue(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Returns the configuration keys of `LCM_...` variables, under their reference names:
 * `LCM_FRESH_TAIL_COUNT` and `LCM_fresh_tail_count` are `freshTailCount`. A value that does not
 * parse as JSON is a string.
 */
export function environmentConfig(environment) {
  const names = Object.keys(environment).filter(isConfiguration);
  return Object.fromEntries(
    names.sort().map((name) => [environmentKey(name), environmentValue(environment[name])]),
  );
}

/** Returns the engine's report of one source; an error names the source. */
async function reportOf(configure, json, source) {
  try {
    return JSON.parse(await configure(json));
  } catch (error) {
    throw new LcmError(error.code, `${source}: ${error.message}`, { cause: error });
  }
}

/**
 * Returns the configuration as JSON text, and the unknown keys of `config`; the text is null without
 * a configuration. Variables take precedence over keys of `config`, under any name of a key.
 *
 * `configure(json)` resolves to the engine's report. Rejects when a value is invalid.
 */
export async function settingsOf(config, environment, configure) {
  const ownJson = toJson(config ?? {}, "config");
  const said = environmentConfig(environment);
  const isSaid = Object.keys(said).length > 0;
  if ((config ?? null) === null && !isSaid) return { json: null, unknown: [] };
  const { aliased, unknown } = await reportOf(configure, ownJson, "config");
  if (!isSaid) return { json: ownJson, unknown };
  const { accepted } = await reportOf(configure, toJson(said, "environment"), "environment");
  const names = new Map(aliased.map(({ key, as }) => [key, as]));
  const kept = Object.entries(JSON.parse(ownJson)).filter(
    ([key]) => !accepted.includes(names.get(key) ?? key),
  );
  const json = toJson({ ...Object.fromEntries(kept), ...said }, "config");
  await reportOf(configure, json, "configuration");
  return { json, unknown };
}
