// The worker with further routes for its tests:
//
//   POST /check/walkthrough, /vector, /store    in a fresh object each time
//   /turns/ID/ROUTE                             as /conversations, and measures turns
//   POST /conversations/ID/vanish               evicts the object at once
//   any request with lost=true in its query     is carried out, but the answer is lost: the object
//                                               is evicted first

import worker, { Conversation as Kept } from "../src/worker.js";

export { Check } from "./check.js";
export { Turns } from "./turns.js";

/** A conversation whose object can be evicted. */
export class Conversation extends Kept {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/vanish")) this.ctx.abort("evicted");
    if (!url.searchParams.has("lost")) return super.fetch(request);
    url.searchParams.delete("lost");
    await super.fetch(new Request(url, request));
    await this.ctx.storage.sync();
    return this.ctx.abort("the reply was lost");
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [area, name, ...rest] = url.pathname.slice(1).split("/");
    if (area === "turns") return env.TURNS.get(env.TURNS.idFromName(name)).fetch(request);
    if (area !== "check" || rest.length > 0) return worker.fetch(request, env);
    const object = env.CHECKS.get(env.CHECKS.newUniqueId());
    const text = await request.text();
    const mode = url.searchParams.get("mode") ?? "normal";
    const checks = {
      vector: () => object.vector(text, mode),
      walkthrough: () => object.walkthrough(text),
      store: () => object.store(text),
    };
    return Response.json(await checks[name]());
  },
};
