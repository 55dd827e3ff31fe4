// Which functions of the caller are asked for which purpose.
//
// In: `complete` as it was given. Out: a list of functions by purpose, each a fallback of the one
// before it; an empty list: there is no model, and the engine makes the text itself.

import { invalid } from "./errors.js";

const PURPOSES = ["leaf", "condensed", "file", "ask", "focus"];

function listOf(given, name) {
  const models = given === undefined || given === null ? [] : [given].flat();
  for (const model of models) {
    if (typeof model !== "function") throw invalid(`\`${name}\` must be a function`);
  }
  return models;
}

/**
 * The models of `complete`: one function, several as a fallback chain, an object of these by
 * purpose (with `default` for all that it does not name), or none.
 */
export function modelsOf(complete) {
  if (complete === null || typeof complete !== "object" || Array.isArray(complete)) {
    return { default: listOf(complete, "complete") };
  }
  const models = { default: [] };
  for (const [purpose, given] of Object.entries(complete)) {
    if (purpose !== "default" && !PURPOSES.includes(purpose)) {
      throw invalid(`\`complete\` names the unknown purpose \`${purpose}\``);
    }
    models[purpose] = listOf(given, `complete.${purpose}`);
  }
  return models;
}

/** The models that are asked for this purpose, in order. */
export function modelsFor(models, purpose) {
  const own = models[purpose] ?? [];
  return own.length > 0 ? own : models.default;
}
