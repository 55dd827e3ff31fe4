// Conversion between plain JSON-like values and the values of the component's bindings.
//
// The build reads the signatures from `wit/`. Plain values have snake_case names, null for none,
// numbers for u64 and `{case: payload}` for variants; bindings have camelCase names, undefined,
// BigInt and `{tag, val}`. An absent value gets the first or empty value of its type. A wrong type
// or an unknown key is `invalid-input`.

import { functions, types } from "../build/signatures.js";
import { invalid, LcmError } from "./errors.js";

/** The largest count that the engine takes. */
export const U32_MAX = 4_294_967_295;

/** Whether a string has no lone surrogate, so that it survives as UTF-8. */
export function isWellFormed(text) {
  return typeof text.isWellFormed === "function"
    ? text.isWellFormed()
    : !/\p{Surrogate}/u.test(text);
}

/** Returns `text` with U+FFFD for each lone surrogate. */
export function wellFormedOf(text) {
  return text.toWellFormed?.() ?? text.replace(/\p{Surrogate}/gu, "\u{fffd}");
}

/** Returns `text`, checked to be a string without lone surrogates. */
export function wellFormed(text, path) {
  if (typeof text !== "string") throw invalid(`\`${path}\` must be a string`);
  if (!isWellFormed(text)) throw invalid(`\`${path}\` holds a lone surrogate`);
  return text;
}

/** Returns the compact JSON of a value; lone surrogates become escapes. */
export function toJson(value, path) {
  let text;
  try {
    text = JSON.stringify(value);
  } catch (thrown) {
    throw invalid(`\`${path}\` is no JSON value: ${thrown.message}`);
  }
  if (text === undefined) throw invalid(`\`${path}\` is no JSON value`);
  return text;
}

function camel(name) {
  return name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

function shapeOf(type) {
  return typeof type === "object" && type.ref ? types[type.ref] : type;
}

function lowerInteger(value, path, max) {
  const number = value ?? 0;
  if (typeof number === "bigint" && number >= 0n && number <= BigInt(max)) return Number(number);
  if (!Number.isInteger(number) || number < 0 || number > max) {
    throw invalid(`\`${path}\` must be a whole number from 0 to ${max}`);
  }
  return number;
}

function lowerString(value, path, name) {
  if (name.endsWith("_json") && typeof value !== "string") {
    return value === undefined || value === null ? "{}" : toJson(value, path);
  }
  return wellFormed(value ?? "", path);
}

function lowerRecord(fields, value, path) {
  const source = value ?? {};
  if (typeof source !== "object" || Array.isArray(source)) {
    throw invalid(`\`${path}\` must be an object`);
  }
  const known = new Set(fields.map(([name]) => name));
  for (const key of Object.keys(source)) {
    if (!known.has(key)) throw invalid(`\`${path}\` has no \`${key}\``);
  }
  return Object.fromEntries(
    fields.map(([name, type]) => [camel(name), lower(type, source[name], `${path}.${name}`, name)]),
  );
}

function lowerVariant(cases, value, path) {
  const [tag] = Object.keys(value ?? {});
  const found = cases.find(([name]) => name === tag);
  if (!found) throw invalid(`\`${path}\` must be one of ${cases.map(([name]) => name).join(", ")}`);
  return {
    tag,
    val: found[1] === null ? undefined : lower(found[1], value[tag], `${path}.${tag}`, tag),
  };
}

/** Converts a plain value to a value of the bindings; a `name` with `_json` takes any value. */
function lower(type, value, path, name) {
  const shape = shapeOf(type);
  if (shape === "string") return lowerString(value, path, name);
  if (shape === "u32") return lowerInteger(value, path, U32_MAX);
  if (shape === "u64") return BigInt(lowerInteger(value, path, Number.MAX_SAFE_INTEGER));
  if (shape === "bool") {
    if (value !== undefined && typeof value !== "boolean") {
      throw invalid(`\`${path}\` must be true or false`);
    }
    return value ?? false;
  }
  if (shape.option !== undefined) {
    return value === undefined || value === null
      ? undefined
      : lower(shape.option, value, path, name);
  }
  if (shape.enum) {
    const chosen = value ?? shape.enum[0];
    if (!shape.enum.includes(chosen)) {
      const got = typeof chosen === "string" ? `"${chosen.slice(0, 80)}"` : typeof chosen;
      throw invalid(`\`${path}\` must be one of ${shape.enum.join(", ")}, not ${got}`);
    }
    return chosen;
  }
  if (shape.list !== undefined) {
    const items = value ?? [];
    if (!Array.isArray(items)) throw invalid(`\`${path}\` must be an array`);
    return items.map((item, i) => lower(shape.list, item, `${path}.${i}`, name));
  }
  if (shape.record) return lowerRecord(shape.record, value, path);
  if (shape.variant) return lowerVariant(shape.variant, value, path);
  throw new Error(`no conversion for ${JSON.stringify(shape)}`);
}

/** Converts a value of the bindings to a plain value. */
function lift(type, value) {
  const shape = shapeOf(type);
  if (shape === "u64") {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) {
      throw new LcmError("limit-exceeded", `${value} is larger than a number holds exactly`);
    }
    return number;
  }
  if (typeof shape === "string" || shape.enum) return value;
  if (shape.option !== undefined) {
    return value === undefined || value === null ? null : lift(shape.option, value);
  }
  // A list of numbers is a typed array, whose `map` would return a typed array again.
  if (shape.list !== undefined) return Array.from(value, (item) => lift(shape.list, item));
  if (shape.tuple) return shape.tuple.map((item, i) => lift(item, value[i]));
  if (shape.record) {
    return Object.fromEntries(
      shape.record.map(([name, field]) => [name, lift(field, value[camel(name)])]),
    );
  }
  const payload = shape.variant.find(([name]) => name === value.tag)[1];
  return { [value.tag]: payload === null ? null : lift(payload, value.val) };
}

/** Returns the signature of `interface.function`, with the names of the bindings. */
export function signatureOf(name) {
  const signature = functions[name];
  if (!signature) throw invalid(`there is no function \`${name}\``);
  const [interfaceName, functionName] = name.split(".");
  return { ...signature, interfaceName, functionName: camel(functionName) };
}

/** Converts named arguments to the positional arguments of the bindings. */
export function lowerArguments(signature, args) {
  const known = new Set(signature.params.map(([name]) => name));
  for (const key of Object.keys(args)) {
    if (!known.has(key)) throw invalid(`\`${signature.functionName}\` has no \`${key}\``);
  }
  return signature.params.map(([name, type]) => lower(type, args[name], name, name));
}

/** Converts the result of a function to plain values. */
export function liftResult(signature, value) {
  let type = signature.result;
  if (type && type.result !== undefined) type = type.result;
  return type === null ? null : lift(type, value);
}

/** Converts a value of a named type from the bindings, for `llm` imports. */
export function liftValue(ref, value) {
  return lift({ ref }, value);
}

/** Converts a value of a named type to the bindings, for `llm` imports. */
export function lowerValue(ref, value) {
  return lower({ ref }, value, ref.split(".")[1], ref);
}
