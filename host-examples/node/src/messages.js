// Messages as a caller gives them, and the JSON texts that the engine takes.
//
// A verb reads its messages before it returns, so later changes of the caller have no effect.
// Writing 10,000 objects as JSON blocks the event loop for 15 to 20 ms (Node 20). Copying the
// objects takes a third of that time, so the texts are written later, in parts.

import { toJson, wellFormed } from "./convert.js";
import { invalid } from "./errors.js";
import { pause } from "./queue.js";

/** Largest number of messages to serialize per turn of the event loop: about a millisecond. */
const TEXTS_AT_ONCE_MAX = 500;
/** Greatest depth of a copied object; deeper and circular objects become text at once. */
const COPY_DEPTH_MAX = 32;
/** How the JSON of bytes begins: of a typed array, and of a Buffer. */
const BYTES_BEGIN = ['{"0":', '{"type":"Buffer"'];
/** Result of a copy that cannot be made. */
const UNKNOWN = Symbol("unknown");

/** Refuses bytes in a value: their JSON is an object of numbers, which no provider takes. */
function refuseBytes(value, path) {
  if (ArrayBuffer.isView(value)) {
    throw invalid(`\`${path}\` must be base64 text, got a ${value.constructor.name}`);
  }
  if (typeof value !== "object" || value === null || typeof value.toJSON === "function") return;
  for (const [key, item] of Object.entries(value)) refuseBytes(item, `${path}.${key}`);
}

function messageText(message, index) {
  const path = `messages.${index}`;
  if (typeof message === "string") return wellFormed(message, path);
  if (typeof message !== "object" || message === null) {
    throw invalid(`\`${path}\` must be an object or JSON text`);
  }
  const text = toJson(message, path);
  if (BYTES_BEGIN.some((begin) => text.includes(begin))) refuseBytes(message, path);
  return text;
}

function checked(messages) {
  if (!Array.isArray(messages)) throw invalid("`messages` must be an array");
  return messages;
}

/** Returns messages as JSON texts: strings unchanged, objects as compact JSON. */
export function messageTexts(messages) {
  return Array.from(checked(messages), messageText);
}

/** Whether the JSON of a value has exactly its own members. */
function isPlain(value, prototype) {
  return Object.getPrototypeOf(value) === prototype && typeof value.toJSON !== "function";
}

/**
 * Returns a copy with the JSON of `value`; `UNKNOWN` for values whose JSON only `JSON.stringify`
 * knows: dates, instances of classes and raw JSON.
 */
function copied(value, depth) {
  if (typeof value !== "object" || value === null) return value;
  if (depth >= COPY_DEPTH_MAX) return UNKNOWN;
  if (Array.isArray(value)) {
    return isPlain(value, Array.prototype) ? copiedItems(value, depth + 1) : UNKNOWN;
  }
  return isPlain(value, Object.prototype) ? copiedMembers(value, depth + 1) : UNKNOWN;
}

function copiedItems(items, depth) {
  const copy = [];
  for (const item of items) {
    const part = copied(item, depth);
    if (part === UNKNOWN) return UNKNOWN;
    copy.push(part);
  }
  return copy;
}

function copiedMembers(members, depth) {
  const copy = {};
  for (const key of Object.keys(members)) {
    const part = copied(members[key], depth);
    // An assignment to `__proto__` creates no member.
    if (part === UNKNOWN || key === "__proto__") return UNKNOWN;
    copy[key] = part;
  }
  return copy;
}

/** Returns a snapshot of a message: a copy, or its text. */
function readMessage(message, index) {
  const copy = copied(message, 0);
  return copy === UNKNOWN ? messageText(message, index) : copy;
}

/**
 * Takes a snapshot of messages. Returns a function that resolves to their texts; for a long list
 * the function lets other work run between parts.
 */
export function reader(messages) {
  if (checked(messages).length <= TEXTS_AT_ONCE_MAX) {
    const texts = messageTexts(messages);
    return async () => texts;
  }
  const read = Array.from(messages, readMessage);
  return async () => {
    const texts = [];
    while (texts.length < read.length) {
      if (texts.length > 0) await pause(0);
      const from = texts.length;
      const part = read.slice(from, from + TEXTS_AT_ONCE_MAX);
      part.forEach((message, i) => texts.push(messageText(message, from + i)));
    }
    return texts;
  };
}
