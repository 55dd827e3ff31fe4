// Waiting lines: calls of one conversation run one after the other, those of others do not wait.
//
// A place in the line is held for a single engine call with its commit, never for a completion.

/** One line per key. */
export class Queue {
  #tails = new Map();

  /** Runs `work` after everything that was queued under `key` before it. */
  run(key, work) {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const tail = result.then(
      () => {},
      () => {},
    );
    this.#tails.set(key, tail);
    tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return result;
  }

  /** Resolves when all lines are empty. */
  async idle() {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values());
  }
}

/** Resolves after `ms` milliseconds. */
export function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
