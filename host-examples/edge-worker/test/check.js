// A Durable Object for the tests: the golden vectors and the walkthrough over its own storage.

import { DurableObject } from "cloudflare:workers";
import { durableStore, instantiate, open } from "lcm-engine";

import { runVector } from "../../node/src/vectors.js";
import { walkthrough } from "../../node/src/walkthrough.js";
import { failedSteps } from "./store-steps.js";

/** A Durable Object that runs one check over its empty storage. */
export class Check extends DurableObject {
  /** Runs one vector; resolves to `{failures, sha256}`. */
  vector(text, mode) {
    return runVector(JSON.parse(text), mode, instantiate, durableStore(this.ctx.storage));
  }

  /** Runs the walkthrough over the given lines; resolves to `{said, digest, equal}`. */
  async walkthrough(text) {
    const lcm = await open({ store: durableStore(this.ctx.storage) });
    return walkthrough(lcm, text.trimEnd().split("\n"));
  }

  /** Runs the store steps of the conformance kit; returns the steps that failed. */
  store(text) {
    return failedSteps(durableStore(this.ctx.storage), JSON.parse(text));
  }
}
