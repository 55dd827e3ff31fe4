// The shape of what a model function returns.
//
// In: any value. Out: an answer with `text`, a failure that the value reports, or an
// `invalid-input` error that names the returned and the required value. Such a value is a mistake
// of the program, so the model is not asked again.

import { wellFormedOf } from "./convert.js";
import { invalid } from "./errors.js";

/** Members that identify answer objects of SDKs, and the path of the text in such an object. */
const SDK_ANSWERS = [
  ["choices", "a Chat Completions answer", "answer.choices[0].message.content"],
  ["output_text", "a Responses answer", "answer.output_text"],
  ["output", "a Responses answer", "answer.output_text"],
  ["candidates", "a Gemini answer", "answer.text"],
  ["stop_reason", "an Anthropic message", "the texts of answer.content, joined"],
  ["content", "a message", "its text"],
  ["textStream", "a stream", "await answer.text"],
];

function describe(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object") {
    return value === undefined ? "undefined" : `the ${typeof value} ${String(value)}`;
  }
  if (value instanceof Error) return "an Error (throw it)";
  if (typeof value.then === "function") return "a Promise (await it)";
  const known = SDK_ANSWERS.find(([member]) => member in value);
  if (known) return `${known[1]} (return ${known[2]})`;
  if (typeof value[Symbol.asyncIterator] === "function") return "a stream (return its whole text)";
  if ("text" in value) return `an object whose \`text\` is ${describe(value.text)}`;
  const members = Object.keys(value).slice(0, 5).join(", ");
  return members === "" ? "an object without members" : `an object with ${members}`;
}

/** Whether a value has a text, or null or undefined as its text, as SDKs have after a refusal. */
function isAnswer(value) {
  if (typeof value !== "object" || value === null || !("text" in value)) return false;
  return typeof (value.text ?? "") === "string";
}

function mistakeIn(answer) {
  if (!isAnswer(answer)) {
    return `\`complete\` must return a text or an object with \`text\`, got ${describe(answer)}`;
  }
  const { finish } = answer;
  if (typeof (finish ?? "") === "string") return undefined;
  return `\`finish\` of an answer must be the provider's word for its end, got ${describe(finish)}`;
}

/**
 * Classifies the value that a model function returned. Returns one of
 * - `{answer}`: an object whose `text` is null or undefined if the model wrote none;
 * - `{failed}`: the failure that `{error}` reports;
 * - `{mistake}`: an `invalid-input` error.
 */
export function readAnswer(returned) {
  if (typeof returned === "string") return { answer: { text: returned } };
  const error = returned?.error;
  if (typeof error === "object" && error !== null) return { failed: error };
  const mistake = mistakeIn(returned);
  return mistake === undefined
    ? { answer: returned }
    : { mistake: invalid(wellFormedOf(mistake)) };
}
