// The loop of plan, complete, apply that every host has.
//
// Out: what each `apply` answered, and why the loop ended. Decides nothing: which work there is,
// what follows an answer and when a sweep ends comes from the engine.

/**
 * Plans, completes and applies until nothing is left.
 *
 * - `plan(sweep)`: a plan; `sweep` is undefined at first, then that of the plan before.
 * - `complete(request)`: resolves to an answer, or null when the caller has lost interest; all
 *   requests of one plan are asked at once.
 * - `apply(request, answer)`: the outcome.
 * - `stopped()`: whether the caller has lost interest; asked before every plan.
 *
 * Resolves to `{status, reason, passes}`; status is that of the last plan, `refused` when the model
 * failed for good, or `cancelled`.
 */
export async function drive({ plan, complete, apply, stopped = () => false }) {
  const passes = [];
  let sweep;
  for (;;) {
    if (stopped()) return { status: "cancelled", reason: "cancelled", passes };
    const planned = await plan(sweep);
    sweep = planned.sweep;
    if (planned.status !== "needs-completions") {
      if (sweep === "") return { status: planned.status, reason: planned.reason, passes };
      continue;
    }
    const refused = await settle(planned.requests, complete, apply, passes);
    if (refused) return { status: "refused", reason: refused.reason, passes };
  }
}

/** Settles the requests of one plan in its order; an outcome when the model failed for good. */
async function settle(requests, complete, apply, passes) {
  const answers = requests.map((request) => complete(request));
  // An error in the middle leaves answers that nobody awaits; they must not end the process.
  for (const answer of answers) answer.catch?.(() => {});
  for (const [i, first] of requests.entries()) {
    let request = first;
    let answer = await answers[i];
    while (answer !== null) {
      const outcome = await apply(request, answer);
      passes.push(outcome);
      if (outcome.applied === "refused" && outcome.reason.startsWith("model-")) return outcome;
      if (outcome.applied !== "retry" || outcome.next === null) break;
      request = outcome.next;
      answer = await complete(request);
    }
  }
  return null;
}
