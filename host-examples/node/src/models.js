// The model functions of the caller, by purpose.
//
// In: `complete` of the caller, and the host's settings of the configuration. Out: a list of
// functions by purpose, each a fallback of the function before; an empty list: there is no model,
// and the engine makes the text.

import { invalid } from "./errors.js";
import { checkNamedModels } from "./settings.js";

const PURPOSES = ["leaf", "condensed", "file", "ask", "focus"];

function listOf(given, name) {
  const models = given === undefined || given === null ? [] : [given].flat();
  for (const model of models) {
    if (typeof model !== "function") throw invalid(`\`${name}\` must be a function`);
  }
  return models;
}

/** Returns the lists of functions of `complete`, by purpose and `default`. */
function listsOf(complete) {
  if (complete === null || typeof complete !== "object" || Array.isArray(complete)) {
    return { default: listOf(complete, "complete") };
  }
  const lists = { default: [] };
  for (const [purpose, given] of Object.entries(complete)) {
    if (purpose !== "default" && !PURPOSES.includes(purpose)) {
      throw invalid(`\`complete\` names the unknown purpose \`${purpose}\``);
    }
    lists[purpose] = listOf(given, `complete.${purpose}`);
  }
  return lists;
}

/** The functions of the caller, with the settings of the configuration for their calls. */
class Models {
  /** Longest time for one answer, in milliseconds; undefined: not configured. */
  timeoutMs = undefined;
  #lists;
  #fallbacks = [];

  constructor(lists) {
    this.#lists = lists;
  }

  /** Returns the functions of a purpose, in order. */
  for(purpose) {
    const own = this.#lists[purpose] ?? [];
    return own.length > 0 ? own : this.#lists.default;
  }

  /** Returns a request, and a copy for each fallback model of the configuration. */
  requestsOf(request) {
    return [request, ...this.#fallbacks.map((model) => ({ ...request, model }))];
  }

  /**
   * Applies the host's settings of a configuration. Throws when the configuration names a model
   * and the caller gave no function to ask it.
   */
  follow(host) {
    checkNamedModels(host, (purpose) => this.for(purpose));
    this.#fallbacks = host.fallback_models;
    this.timeoutMs = host.timeout_ms ?? undefined;
  }
}

/**
 * Returns the models of `complete`: a function, a fallback chain of functions, an object of these
 * by purpose (`default` for all other purposes), or no model.
 */
export function modelsOf(complete) {
  return new Models(listsOf(complete));
}
