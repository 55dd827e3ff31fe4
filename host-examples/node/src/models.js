// The model functions of the caller, by purpose.
//
// In: `complete` of the caller. Out: a list of functions by purpose, each a fallback of the
// function before; an empty list: there is no model, and the engine makes the text.

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
 * Returns the models of `complete`: a function, a fallback chain of functions, an object of these
 * by purpose (`default` for all other purposes), or no model.
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

/** Returns the models of a purpose, in order. */
export function modelsFor(models, purpose) {
  const own = models[purpose] ?? [];
  return own.length > 0 ? own : models.default;
}
