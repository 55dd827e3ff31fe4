// The worker: forwards an authorised request to the Durable Object of its conversation.
//
// Paths are /conversations/ID/ROUTE; the routes are those of routes.js. A client with ACCESS_TOKEN
// may use every conversation. To give clients other rights, change this module.

import { failed, noRoute } from "./routes.js";

export { Conversation } from "./conversation.js";

/** Returns the id of the conversation in a path; undefined: the path has none. */
function conversationOf(path) {
  const [, area, name] = path.split("/");
  if (area !== "conversations" || !name) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

function sha256(text) {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

/** Whether a request has the token; the time of the comparison does not depend on the token. */
async function mayAsk(request, token) {
  const given = request.headers.get("authorization") ?? "";
  const [one, other] = await Promise.all([sha256(given), sha256(`Bearer ${token}`)]);
  return crypto.subtle.timingSafeEqual(one, other);
}

/** Forwards a request to an object. If the object fails meanwhile, the client must repeat it. */
async function handedOn(request, object) {
  try {
    return await object.fetch(request);
  } catch (error) {
    console.error(error);
    const message = `the conversation was interrupted, repeat the request: ${error.message}`;
    return failed({ code: "store-unavailable", message });
  }
}

export default {
  async fetch(request, env) {
    const { ACCESS_TOKEN: token, CONVERSATIONS: conversations } = env;
    const refused = token ? "the bearer token is wrong" : "the worker has no `ACCESS_TOKEN`";
    if (!token || !(await mayAsk(request, token))) {
      const response = failed({ code: "denied", message: refused }, 401);
      response.headers.set("www-authenticate", "Bearer");
      return response;
    }
    const name = conversationOf(new URL(request.url).pathname);
    if (name === undefined) return noRoute();
    return handedOn(request, conversations.get(conversations.idFromName(name)));
  },
};
