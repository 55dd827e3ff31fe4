// A Durable Object for the tests: the golden vectors and the walkthrough over its own storage.

import { DurableObject } from "cloudflare:workers";
import { durableStore, instantiate, open } from "lcm-engine";

import { runVector } from "../../node/src/vectors.js";
import { walkthrough } from "../../node/src/walkthrough.js";

/** Runs one check over its empty storage. */
export class Check extends DurableObject {
  /** `{failures, sha256}` of one vector. */
  vector(text, mode) {
    return runVector(JSON.parse(text), mode, instantiate, durableStore(this.ctx.storage));
  }

  /** `{said, digest, equal}` of the walkthrough over the given lines. */
  async walkthrough(text) {
    const lcm = await open({ store: durableStore(this.ctx.storage) });
    return walkthrough(lcm, text.trimEnd().split("\n"));
  }

  /** Keys of a page, and whether more follow, for each `[reverse, entriesMax, bytesMax]`. */
  pages(text) {
    const store = durableStore(this.ctx.storage);
    const { entries, bounds } = JSON.parse(text);
    const put = ([key, length]) => ({ key, value: new Uint8Array(length) });
    store.commit([], entries.map(put));
    return bounds.map((bound) => {
      const [page, more] = store.scan("a", "z", ...bound);
      return [page.map(({ key }) => key).join(""), more];
    });
  }
}
