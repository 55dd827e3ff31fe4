// What a client can ask of a conversation, by method and path below /conversations/ID:
//
//   POST messages?dialect=D       JSON lines, one message each; stores them
//   POST turn?budget=N            the same, and makes room when it is due: by the object's alarm,
//                                 with defer=false in the turn
//   GET  context?budget=N         what to send to the model; POST with the options as JSON
//   GET  tools?dialect=D          the definitions of an agent's tools, and what to tell it
//   POST tools/NAME               answers a call of one; the input as the model wrote it
//   POST grep, ask                {"pattern", ...}, {"question", ...}
//   GET  items/ID                 what a summary, message or file is; POST with options
//   GET  summaries/ID             from a summary back to the original messages; POST with options
//   POST grants                   makes a limited right to read: {"tokensMax", "summaryIds", ...}
//   GET  grants, DELETE grants/ID the ones there are; ends one
//   GET  evaluate?budget=N        whether room has to be made
//   POST compact?budget=N, maintain?budget=N
//   POST resummarize?budget=N     makes summaries again that a failing model left provisional
//   POST rewind                   sets aside the newest messages: {"to"} or {"units"}
//   GET  messages?seqFirst=N&seqLast=M  the original texts
//   GET  status, check, digest
//   DELETE /conversations/ID      deletes the conversation with all its records
//
// Options are those of the package, in the query or as a JSON object in the body; answers are the
// engine's JSON, errors {"error": {"code", "message"}}.

import { invalid, linesOf, optionsOf, queryOf, textOf } from "./request.js";

/** The one conversation of an object. */
export const ID = "conversation";

const STATUS = {
  "invalid-input": 400,
  "not-found": 404,
  exists: 409,
  denied: 403,
  conflict: 409,
  "limit-exceeded": 413,
  unsupported: 501,
  "store-unavailable": 503,
  "completion-failed": 502,
  corrupt: 500,
  trap: 500,
};

/**
 * Options of a compaction. The object is the only caller of its store, so a lease that an evicted
 * object left would only delay the next compaction.
 */
const ALONE = { leaseMs: 0 };

async function turn({ lcm, later, request, url }) {
  const options = { ...ALONE, ...queryOf(url) };
  const done = await lcm.turn(ID, await linesOf(request), options);
  const isProvisional = done.compacted?.passes.some((pass) => pass.provisional);
  if (done.deferred || done.failure || isProvisional) await later(options);
  return done;
}

async function context(asked) {
  return asked.lcm.assemble(ID, await optionsOf(asked));
}

async function item(asked) {
  return asked.lcm.describe(ID, asked.name, await optionsOf(asked));
}

async function summary(asked) {
  return asked.lcm.expand(ID, asked.name, { includeMessages: true, ...(await optionsOf(asked)) });
}

/** The options of a tool. What its model may read is not for a client to say. */
function toolOptionsOf(url) {
  const options = queryOf(url);
  if (options.scope === undefined) return options;
  throw invalid("`scope` must not be in the query: the worker chooses what tools read");
}

async function tools({ lcm, url }) {
  const { dialect, hasSummaries, ...options } = toolOptionsOf(url);
  const definitions = lcm.tools(dialect, options);
  return { definitions, instructions: lcm.instructions(dialect, hasSummaries) };
}

async function tool({ lcm, request, url, name }) {
  // As the model wrote it: what is no JSON is a mistake of its own, which the answer tells it.
  const input = await textOf(request);
  return lcm.callTool(ID, name, input.trim() === "" ? {} : input, toolOptionsOf(url));
}

async function grep(asked) {
  const { pattern = "", ...options } = await optionsOf(asked);
  return asked.lcm.grep(ID, pattern, options);
}

async function ask(asked) {
  const { question = "", ...options } = await optionsOf(asked);
  return asked.lcm.ask(ID, question, options);
}

async function grant(asked) {
  return asked.lcm.grant(ID, await optionsOf(asked));
}

async function revoke({ lcm, name }) {
  await lcm.revoke(ID, name);
  return { id: name, revoked: true };
}

async function remove({ lcm, forget }) {
  const receipt = await lcm.delete(ID);
  await forget();
  return receipt;
}

/** Routes without a name behind them, and those with one. */
const ROUTES = {
  "POST messages": async ({ lcm, request, url }) =>
    lcm.append(ID, await linesOf(request), queryOf(url)),
  "POST turn": turn,
  "GET messages": async ({ lcm, url }) => lcm.messages(ID, queryOf(url)),
  "GET context": context,
  "POST context": context,
  "GET tools": tools,
  "POST grep": grep,
  "POST ask": ask,
  "POST grants": grant,
  "GET grants": async ({ lcm }) => lcm.listing("grants", { conversation: ID }),
  "GET evaluate": async (asked) => asked.lcm.evaluate(ID, await optionsOf(asked)),
  "POST compact": async (asked) => asked.lcm.compact(ID, { ...ALONE, ...(await optionsOf(asked)) }),
  "POST maintain": async (asked) => asked.lcm.maintain(ID, { ...ALONE, ...(await optionsOf(asked)) }),
  "POST resummarize": async (asked) => {
    return asked.lcm.resummarize(ID, { ...ALONE, ...(await optionsOf(asked)) });
  },
  "POST rewind": async (asked) => asked.lcm.rewind(ID, await optionsOf(asked)),
  "DELETE ": remove,
  "GET status": async ({ lcm, url }) => lcm.status(ID, queryOf(url)),
  "GET check": async ({ lcm }) => lcm.check(ID),
  "GET digest": async ({ lcm, url }) => lcm.digest(queryOf(url)),
};
const NAMED_ROUTES = {
  "POST tools": tool,
  "GET items": item,
  "POST items": item,
  "GET summaries": summary,
  "POST summaries": summary,
  "DELETE grants": revoke,
};

/** The route of a request and the name behind it; undefined: there is none. */
function routeOf(request, url) {
  const [action = "", name, ...more] = url.pathname.split("/").slice(3);
  const routes = name === undefined ? ROUTES : NAMED_ROUTES;
  const route = routes[`${request.method} ${action}`];
  if (!route || name === "" || more.length > 0) return undefined;
  try {
    return { route, name: name && decodeURIComponent(name) };
  } catch {
    return undefined;
  }
}

/** The response that says what went wrong; `status` is by the code unless given. */
export function failed({ code, message }, status = STATUS[code]) {
  return Response.json({ error: { code, message } }, { status });
}

/** The response to a request that has no route. */
export function noRoute() {
  return failed({ code: "not-found", message: "there is no such route" });
}

/**
 * The response to a client's request. `later(options)` is called when a turn put compaction off,
 * `forget()` when the conversation was deleted.
 */
export async function answered(request, lcm, { later, forget }) {
  const url = new URL(request.url);
  const found = routeOf(request, url);
  if (!found) return noRoute();
  try {
    return Response.json(await found.route({ lcm, later, forget, request, url, name: found.name }));
  } catch (error) {
    if (STATUS[error.code] !== undefined) return failed(error);
    console.error(error);
    return failed({ code: "trap", message: `the worker failed: ${error.message}` });
  }
}
