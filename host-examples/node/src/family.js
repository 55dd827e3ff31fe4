// `maintain` for every conversation of a family.
//
// In: the ids of the conversations, and how to maintain one. Out: a report for each.

import { failureOf } from "./compact.js";
import { LcmError } from "./errors.js";

/**
 * Serves the conversations of a family one after the other; resolves to `{reports, unserved}`.
 *
 * After a failure of a model the rest is not served, because the model would fail there, too; nor
 * after an abort. Any other failure concerns one conversation, except a mistake of the caller.
 */
export async function maintainFamily(members, signal, maintainOne) {
  const reports = [];
  let isOver = false;
  const noteFailure = (report) => {
    isOver = Boolean(report.failure ?? report.compacted?.failure);
    return report;
  };
  const reportError = (error) => {
    if (!(error instanceof LcmError) || error.code === "invalid-input") throw error;
    return { debt: null, compacted: null, failure: failureOf(error) };
  };
  for (const conversation of members) {
    if (isOver || signal?.aborted) break;
    reports.push({ conversation, ...(await maintainOne(conversation).then(noteFailure, reportError)) });
  }
  return { reports, unserved: members.slice(reports.length) };
}
