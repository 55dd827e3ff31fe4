// The worker: routes a request to the Durable Object of its conversation, or to the checks.
//
//   POST /conversations/ID/messages             JSON lines, one message each
//   POST /conversations/ID/compact?budget=N     makes room (without a model)
//   GET  /conversations/ID/context?budget=N     what to send to the model, &dialect=...
//   GET  /conversations/ID/summaries/SUMMARY    back from a summary to the original messages
//   POST /check/walkthrough, /check/vector      what the tests call, in a fresh object each time

import { LcmError } from "../../node/src/workerd.js";
import { portable } from "./conversation.js";

export { Conversation } from "./conversation.js";
export { Check } from "./check.js";

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
};

/** Bytes of a body. A call of an object carries at most 32 MiB, with what describes them. */
const BODY_BYTES_MAX = 31 * 1024 * 1024;

/** The body of a request, bounded. */
async function bodyOf(request) {
  const refused = () =>
    portable(new LcmError("limit-exceeded", `a body has at most ${BODY_BYTES_MAX} bytes`));
  if (Number(request.headers.get("content-length")) > BODY_BYTES_MAX) throw refused();
  const body = await request.arrayBuffer();
  if (body.byteLength > BODY_BYTES_MAX) throw refused();
  return body;
}

/** The parts of a path; undefined when one is no encoded text. */
function pathOf(url) {
  try {
    return url.pathname.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Any result of an object's method as a response. */
async function respond(work) {
  try {
    return Response.json(await work());
  } catch (thrown) {
    // Errors cross from an object to its caller as plain errors: the code stands before the text.
    const [, code, message] = /^(?:LcmError: )?([a-z-]+): (.*)$/s.exec(thrown.message) ?? [];
    if (STATUS[code] === undefined) throw thrown;
    return Response.json({ error: { code, message } }, { status: STATUS[code] });
  }
}

function budgetOf(url) {
  return Number(url.searchParams.get("budget") ?? 100_000);
}

/** The call of a conversation's object that a request asks for; undefined: no such route. */
function conversationCall(request, url, [action, ...ids]) {
  if (ids.length !== (action === "summaries" ? 1 : 0)) return undefined;
  switch (`${request.method} ${action}`) {
    case "POST messages":
      return async (object) => object.append(await bodyOf(request));
    case "POST compact":
      return (object) => object.compact(budgetOf(url));
    case "GET context":
      return (object) => object.context(budgetOf(url), url.searchParams.get("dialect") ?? "lcm");
    case "GET summaries":
      return (object) => object.expand(ids[0]);
    default:
      return undefined;
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [area, name, ...rest] = pathOf(url) ?? [];
    if (area === "conversations" && name) {
      const call = conversationCall(request, url, rest);
      if (call) {
        const object = env.CONVERSATIONS.get(env.CONVERSATIONS.idFromName(name));
        return respond(() => call(object));
      }
    }
    if (area === "check" && rest.length === 0 && request.method === "POST") {
      const object = env.CHECKS.get(env.CHECKS.newUniqueId());
      const text = await request.text();
      if (name === "walkthrough") return respond(() => object.walkthrough(text));
      if (name === "vector") {
        return respond(() => object.vector(text, url.searchParams.get("mode") ?? "normal"));
      }
    }
    return new Response("not found\n", { status: 404 });
  },
};
