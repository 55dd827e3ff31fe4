// The routes of a conversation, by method and path below /conversations/ID:
//
//   POST messages?dialect=D       stores messages, one JSON line each
//   POST turn?budget=N            stores messages and compacts when due: compaction that can wait
//                                 by the alarm, with defer=false in the request
//   GET  context?budget=N         assembles the context; POST with the options as JSON
//   GET  tools?dialect=D          definitions and instructions of an agent's tools
//   POST tools/NAME               answers a tool call; the body is the input as the model wrote it
//   POST grep, ask                {"pattern", ...}, {"question", ...}
//   GET  items/ID                 describes a summary, message or file; POST with options
//   GET  summaries/ID             expands a summary to its messages; POST with options
//   POST grants                   makes a grant: {"tokensMax", "summaryIds", ...}
//   GET  grants, DELETE grants/ID lists the grants; revokes a grant
//   GET  evaluate?budget=N        whether compaction is due
//   POST compact?budget=N, maintain?budget=N
//   POST resummarize?budget=N     makes summaries again that a failing model left provisional
//   POST rewind                   sets aside the newest messages: {"to"} or {"units"}
//   GET  messages?seqFirst=N&seqLast=M  returns original texts
//   GET  status, check, digest
//   DELETE /conversations/ID      deletes the conversation with all its records
//
// Options are those of the package, in the query or, where the body has no messages or tool input,
// as a JSON object in the body. Answers are the package's results as JSON, errors
// {"error": {"code", "message"}}.

import { invalid, linesOf, optionsOf, queryOf, textOf } from "./request.js";

/** Id of the one conversation of an object. */
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

/** Returns the options of a tool. A client must not choose what the model may read. */
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
  // Not parsed here: if the text is no JSON, the answer of the tool tells the model.
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

/** Routes whose path ends with the action, and routes with a name after the action. */
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

/** Returns the route of a request and the name in its path; undefined: there is no such route. */
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

/** Returns the response of an error; by default the code decides the `status`. */
export function failed({ code, message }, status = STATUS[code]) {
  return Response.json({ error: { code, message } }, { status });
}

/** Returns the response to a request without a route. */
export function noRoute() {
  return failed({ code: "not-found", message: "there is no such route" });
}

/**
 * Resolves to the response to a client's request. `later(options)` is called after a turn that
 * deferred compaction, failed after its append, or made a provisional summary. `forget()` is called
 * after the conversation was deleted.
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
