// The refusal of a model behind an error or a result of a task.
//
// In: what the engine reports of a task, and the answers that the host gave. Out: the same with the
// model's own code and message: the engine reports `completion-failed`.

import { LcmError } from "./errors.js";

/** Failures with which a model refuses: the task ends. */
const REFUSALS = ["auth", "policy"];

function refusalOf({ code }, answers) {
  if (code !== "completion-failed") return undefined;
  const failed = answers.findLast((answer) => REFUSALS.includes(answer?.failed?.code))?.failed;
  return failed && { code: failed.code, message: failed.message };
}

/** Returns the error of a task; its `failure` is that of the model that refused. */
export function errorOf(error, answers, cause) {
  const isCause = cause?.code === error.code && cause.message === error.message;
  if (isCause) return cause;
  return new LcmError(error.code, error.message, { cause, failure: refusalOf(error, answers) });
}

/** Returns the result of a task; its `failure` is that of the model that refused. */
export function withRefusal(result, answers) {
  const failure = result?.failure && refusalOf(result.failure, answers);
  return failure ? { ...result, failure } : result;
}
