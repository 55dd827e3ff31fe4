// The refusal of a model that ended a task.
//
// In: the error or result that the engine reports for a task, and the answers that the host gave.
// Out: the same with the model's own code and message; the engine reports only `completion-failed`.

import { LcmError } from "./errors.js";

/** Failures with which a model refuses: the task ends. */
const REFUSALS = ["auth", "policy"];

function refusalOf({ code }, answers) {
  if (code !== "completion-failed") return undefined;
  const failed = answers.findLast((answer) => REFUSALS.includes(answer?.failed?.code))?.failed;
  return failed && { code: failed.code, message: failed.message };
}

/** Returns the error of a task; its `failure` is the failure of the model that refused, if any. */
export function errorOf(error, answers, cause) {
  const isCause = cause?.code === error.code && cause.message === error.message;
  if (isCause) return cause;
  return new LcmError(error.code, error.message, { cause, failure: refusalOf(error, answers) });
}

/** Returns the result of a task; its `failure` is the failure of the model that refused, if any. */
export function withRefusal(result, answers) {
  const failure = result?.failure && refusalOf(result.failure, answers);
  return failure ? { ...result, failure } : result;
}
