// Names of the package and of the engine: options, results and errors of every method.
//
// In: what a caller gave or what the engine answered. Out: the same values under the other names,
// by the tables of `shapes.js`. Values without a shape pass untouched.

import { invalid, LcmError } from "./errors.js";
import { METHODS, SHAPES, toCamel, toSnake } from "./shapes.js";

/** Returns the options of `method` under the engine's names, as a new object. */
function mapOptions(method, options) {
  const given = options ?? {};
  if (typeof given !== "object" || Array.isArray(given)) {
    throw invalid("`options` must be an object");
  }
  const shape = METHODS[method].options;
  return shape === undefined ? {} : toSnake(shape, given, "options");
}

/** Returns a result of `shape` under the package's names; without a shape, the result itself. */
function mapResult(shape, result) {
  return shape === undefined ? result : toCamel(shape, result);
}

/** Returns the package's name of each member of `shape` and of the shapes within. */
function memberNames(shape) {
  return (SHAPES[shape] ?? []).flatMap(([own, engine, inner]) => {
    return [[engine, own], ...(inner ? memberNames(inner) : [])];
  });
}

/** Returns an error of `method` in which the options have the package's names. */
function mapError(method, error) {
  if (!(error instanceof LcmError) || error.code !== "invalid-input") return error;
  const names = new Map(memberNames(METHODS[method].options));
  const rename = (path) => path.replace(/\w+/g, (name) => names.get(name) ?? name);
  const message = error.message.replace(/`[\w.]+`|^\w+(?=:)/g, rename);
  if (message === error.message) return error;
  return new LcmError(error.code, message, { cause: error });
}

/**
 * Runs a method: `work` gets the options under the engine's names, and the result of `work` gets
 * the package's names. `shape` is the shape of the result, by default as listed for the method.
 * `work` begins before this function returns.
 */
export async function mapCall(method, options, work, shape = METHODS[method].result) {
  const given = mapOptions(method, options);
  try {
    return mapResult(shape, await work(given));
  } catch (error) {
    throw mapError(method, error);
  }
}

/** Runs a method that returns at once and whose result has no shape. */
export function mapSyncCall(method, options, work) {
  const given = mapOptions(method, options);
  try {
    return work(given);
  } catch (error) {
    throw mapError(method, error);
  }
}

/** Yields each result of a stream of `method` under the package's names. */
async function* mapResults(method, results) {
  try {
    for await (const result of results) yield mapResult(METHODS[method].result, result);
  } catch (error) {
    throw mapError(method, error);
  }
}

/** Runs a method whose result is a stream: `work` returns the stream at once. */
export function mapStream(method, options, work) {
  return mapResults(method, mapSyncCall(method, options, work));
}
