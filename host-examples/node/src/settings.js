// The configuration of an engine: what was given to `open`, and what `LCM_...` variables say.
//
// What a key means, whether there is one of this name and which values it may have only the engine
// knows; it is asked.

import { toJson } from "./convert.js";
import { LcmError } from "./errors.js";

/** Variables of this program that are no configuration keys. */
const OTHER_VARIABLES = ["LCM_STORE", "LCM_WASM", "LCM_CACHE_DIR", "LCM_BLESS"];

const PREFIX = "LCM_";

function environmentKey(name) {
  const words = name.slice(PREFIX.length).toLowerCase().split("_");
  const [first, ...others] = words.filter((word) => word !== "");
  return first + others.map((word) => word[0].toUpperCase() + word.slice(1)).join("");
}

/** Whether a variable is of the engine; the rest of its name may be in any case. */
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
 * Configuration keys given by `LCM_...` variables, under their reference names:
 * `LCM_FRESH_TAIL_COUNT` is `freshTailCount`, and so is `LCM_fresh_tail_count`. Values are JSON
 * where they parse as such, else strings.
 */
export function environmentConfig(environment) {
  const names = Object.keys(environment).filter(isConfiguration);
  return Object.fromEntries(
    names.sort().map((name) => [environmentKey(name), environmentValue(environment[name])]),
  );
}

/** What the engine makes of one source of configuration; an error names the source. */
async function reportOf(configure, json, source) {
  try {
    return JSON.parse(await configure(json));
  } catch (error) {
    throw new LcmError(error.code, `${source}: ${error.message}`, { cause: error });
  }
}

/**
 * The configuration as JSON text, and the keys of `config` that there are not; the text is null
 * when nothing is configured. Variables go before keys of `config`, under whichever name.
 *
 * `configure(json)` resolves to the engine's report. Rejects with what is wrong.
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
