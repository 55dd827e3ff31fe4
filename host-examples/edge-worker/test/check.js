// A Durable Object for the tests: the golden vectors and the walkthrough over its own storage.

import { DurableObject } from "cloudflare:workers";
import { durableStore, instantiate, open } from "lcm-engine";

import { runVector } from "../../node/src/vectors.js";
import { walkthrough } from "../../node/src/walkthrough.js";
import { failedSteps } from "./store-steps.js";

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

  /** What the storage does otherwise than a store should, of the steps of the conformance kit. */
  store(text) {
    return failedSteps(durableStore(this.ctx.storage), JSON.parse(text));
  }
}
