// A Durable Object that measures the time and the reads of a turn: a conversation without a model.
// Its clock has a resolution of one millisecond.

import { DurableObject } from "cloudflare:workers";
import { durableStore, open } from "lcm-engine";

import { answered, ID } from "../src/routes.js";

/** Returns a store that counts its reads. */
function counting(store) {
  const counted = {
    reads: 0,
    getMany(keys) {
      counted.reads += 1;
      return store.getMany(keys);
    },
    scan(...range) {
      counted.reads += 1;
      return store.scan(...range);
    },
    commit: (guards, puts) => store.commit(guards, puts),
  };
  return counted;
}

/** Returns the median of the milliseconds in a list. */
function middle(list) {
  const sorted = list.map(({ ms }) => ms).sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

const most = (list) => Math.max(...list.map(({ reads }) => reads));

/** A conversation that measures the cost of further messages. */
export class Turns extends DurableObject {
  #store;
  #lcm;

  constructor(ctx, env) {
    super(ctx, env);
    this.#store = counting(durableStore(ctx.storage));
    this.#lcm = open({ store: this.#store });
  }

  /** Answers the routes of a conversation, and `POST turns`, which makes a turn of each line. */
  async fetch(request) {
    const lcm = await this.#lcm;
    if (!new URL(request.url).pathname.endsWith("/turns")) return answered(request, lcm, { later() {}, forget() {} });
    return Response.json(await this.#turns(lcm, (await request.text()).split("\n")));
  }

  async #timed(call) {
    this.#store.reads = 0;
    const begin = performance.now();
    const found = await call();
    return { found, ms: performance.now() - begin, reads: this.#store.reads };
  }

  async #turns(lcm, lines) {
    const options = { budget: 128_000, dialect: "anthropic" };
    let { prefix } = await lcm.assemble(ID, options);
    const [turns, after, again] = [[], [], []];
    for (const line of lines) {
      const next = () => lcm.assemble(ID, { ...options, previous: prefix.token });
      const turn = await this.#timed(async () => {
        await lcm.append(ID, [line], { dialect: "anthropic", appendMode: "new" });
        await lcm.evaluate(ID, { budget: options.budget });
        after.push(await this.#timed(next));
      });
      turns.push(turn);
      prefix = after.at(-1).found.prefix;
      again.push(await this.#timed(next));
      const same = again.at(-1).found.prefix.sha256 === prefix.sha256;
      if (!same) throw new Error("not the same context");
    }
    const times = { turn_ms: middle(turns), after_ms: middle(after), again_ms: middle(again) };
    return { ...times, after_reads: most(after), again_reads: most(again) };
  }
}
