// A Durable Object that keeps one conversation. Everything an agent needs, in a few lines.

import { DurableObject } from "cloudflare:workers";

import { durableStore, LcmError, open } from "../../node/src/workerd.js";

const ID = "conversation";

/** An error whose code survives the way out of the object. */
export function portable(error) {
  return error instanceof LcmError ? new Error(`${error.code}: ${error.message}`) : error;
}

/** The messages of JSON lines: a text, or its bytes in UTF-8. */
function messagesOf(lines) {
  const text = typeof lines === "string" ? lines : decoded(lines);
  return text.split("\n").filter((line) => line.trim() !== "");
}

function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new LcmError("invalid-input", "the lines are no UTF-8", { cause: error });
  }
}

/** One conversation with its memory. */
export class Conversation extends DurableObject {
  #lcm;

  constructor(ctx, env) {
    super(ctx, env);
    // Nothing is held in memory that matters: an evicted object goes on where it was.
    this.#lcm = open({ store: durableStore(ctx.storage) });
  }

  async #with(work) {
    try {
      return await work(await this.#lcm);
    } catch (error) {
      throw portable(error);
    }
  }

  /** Stores messages, given as JSON lines. */
  append(lines) {
    return this.#with((lcm) => lcm.append(ID, messagesOf(lines)));
  }

  /** Makes room. Give `complete` to `open` to have a model write the summaries. */
  compact(budget) {
    return this.#with((lcm) => lcm.compact(ID, { budget }));
  }

  /** One turn: stores messages and makes room when it is due. */
  turn(lines, budget) {
    return this.#with((lcm) => lcm.turn(ID, messagesOf(lines), { budget }));
  }

  /** A context that fits. */
  context(budget, dialect) {
    return this.#with((lcm) => lcm.assemble(ID, { budget, dialect }));
  }

  /** From a summary back to the original messages. */
  expand(id) {
    return this.#with((lcm) => lcm.expand(ID, id, { messages: true }));
  }
}
