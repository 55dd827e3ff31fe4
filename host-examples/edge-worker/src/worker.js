// The worker: hands a request that may ask to the Durable Object that keeps its conversation.
//
// Paths are /conversations/ID/ROUTE; the routes are those of routes.js. Whoever knows ACCESS_TOKEN
// may ask for every conversation; who else may ask for which is for you to decide, here.

import { failed, noRoute } from "./routes.js";

export { Conversation } from "./conversation.js";

/** The id of the conversation that a path names; undefined: none. */
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

/** Whether a request has the token, compared in a time that says nothing about it. */
async function mayAsk(request, token) {
  const given = request.headers.get("authorization") ?? "";
  const [one, other] = await Promise.all([sha256(given), sha256(`Bearer ${token}`)]);
  return crypto.subtle.timingSafeEqual(one, other);
}

/** Hands a request on to an object; one that ended meanwhile is for the client to repeat. */
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
