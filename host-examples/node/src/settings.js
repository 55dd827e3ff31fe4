// The configuration of an engine: the object given to `open`, and `LCM_...` variables.
//
// The engine knows the keys, reads the texts of variables and decides which source wins. This
// module passes both sources to the engine, and makes the list of offsets of a time zone.

import { toJson } from "./convert.js";
import { invalid, LcmError } from "./errors.js";
import { offsetsOf } from "./time-zone.js";

const PREFIX = "LCM_";

/** Returns the variables with the prefix `LCM_`; the engine gets no other variable. */
function variablesOf(environment) {
  const texts = Object.entries(environment).filter(([name, text]) => {
    return name.startsWith(PREFIX) && typeof text === "string";
  });
  return Object.fromEntries(texts);
}

/**
 * Resolves to the configuration of `config` and `environment`, or to null without either. `call`
 * calls the engine. Rejects when a value is invalid.
 */
export async function settingsOf(config, environment, call) {
  const json = toJson(config ?? {}, "config");
  const variables = variablesOf(environment);
  if ((config ?? null) === null && Object.keys(variables).length === 0) return null;
  try {
    return await resolveSettings(json, variables, call);
  } catch (error) {
    throw new LcmError(error.code, `config: ${error.message}`, { cause: error });
  }
}

/**
 * Resolves to the configuration of a JSON object and of variables:
 *
 * - `json`: the configuration of every instance.
 * - `host`: the settings that this package follows, under the engine's names.
 * - `report`: how each key was treated.
 */
export async function resolveSettings(config_json, variables, call) {
  const variables_json = toJson(variables, "environment");
  const resolved = await call("setup.resolve", { config_json, variables_json });
  const { config: engine, host, report } = JSON.parse(resolved);
  if (host.timezone !== null && engine.time_offsets === undefined) {
    engine.time_offsets = offsetsOf(host.timezone);
  }
  return { json: JSON.stringify(engine), host, report };
}

/** Purposes of the models that a configuration may name. */
const NAMED = [
  ["summary_model", ["leaf", "condensed"]],
  ["expansion_model", ["ask"]],
];

/** Throws when the configuration names a model and there is no function that could ask it. */
export function checkNamedModels(host, functionsFor) {
  for (const [key, purposes] of NAMED) {
    const isAsked = purposes.every((purpose) => functionsFor(purpose).length > 0);
    if (host[key] !== null && !isAsked) {
      throw invalid(`\`${key}\` asks for \`${host[key]}\`, so \`open\` needs \`complete\``);
    }
  }
}

/** Returns the lines of a report that a program should see; `warn` of `open` receives them. */
export function linesOf({ notes }) {
  return notes.map(({ key, note }) => `config: \`${key}\`: ${note}`);
}
