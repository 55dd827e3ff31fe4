// The worker: hands a request to the Durable Object that keeps its conversation.
//
// Paths are /conversations/ID/ROUTE; the routes are those of routes.js. Whoever may talk to which
// conversation is for you to decide, here, before the object is asked.

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

export default {
  async fetch(request, env) {
    const name = conversationOf(new URL(request.url).pathname);
    if (name === undefined) return new Response("not found\n", { status: 404 });
    return env.CONVERSATIONS.get(env.CONVERSATIONS.idFromName(name)).fetch(request);
  },
};
