// Messages as a caller gives them, and the JSON texts that the engine takes.
//
// They are read before a verb returns, so that nobody can change them any more. Ten thousand objects
// become text in 15 to 20 ms (Node 20), for which the event loop would stand still; a copy of them
// takes a third of that, and the texts are made a part at a time.

import { toJson, wellFormed } from "./convert.js";
import { invalid } from "./errors.js";
import { pause } from "./queue.js";

/** So many messages become text in one turn of the event loop: about a millisecond. */
const TEXTS_AT_ONCE_MAX = 500;
/** Copied are objects to this depth; deeper ones, and those that hold themselves, become text. */
const COPY_DEPTH_MAX = 32;
/** In place of a copy. */
const UNKNOWN = Symbol("unknown");

function messageText(message, index) {
  const path = `messages.${index}`;
  if (typeof message === "string") return wellFormed(message, path);
  if (typeof message !== "object" || message === null) {
    throw invalid(`\`${path}\` must be an object or JSON text`);
  }
  return toJson(message, path);
}

function checked(messages) {
  if (!Array.isArray(messages)) throw invalid("`messages` must be an array");
  return messages;
}

/** Messages as JSON texts: strings as they are, objects as compact JSON. */
export function messageTexts(messages) {
  return Array.from(checked(messages), messageText);
}

/** Whether a value of this prototype has the JSON that its own members have. */
function isPlain(value, prototype) {
  return Object.getPrototypeOf(value) === prototype && typeof value.toJSON !== "function";
}

/**
 * A copy that has the JSON of `value`; `UNKNOWN` where only `JSON.stringify` knows what that is, as
 * of dates, instances of classes and raw JSON.
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
    // To assign to `__proto__` makes no member.
    if (part === UNKNOWN || key === "__proto__") return UNKNOWN;
    copy[key] = part;
  }
  return copy;
}

/** What a message is at this moment: an object that nobody else has, or its text. */
function readMessage(message, index) {
  const copy = copied(message, 0);
  return copy === UNKNOWN ? messageText(message, index) : copy;
}

/**
 * Reads messages, of which nothing that is changed later counts. Returns a function that resolves to
 * their texts; of a long list it lets other work go on in between.
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
