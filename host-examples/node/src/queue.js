// Queues: work of one key runs one after the other; different keys do not wait for each other.

/** Returns a promise of the abort of `signal`, and `forget`, which removes the listener. */
function abortingOf(signal) {
  let forget = () => {};
  const aborted = new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", resolve, { once: true });
    forget = () => signal.removeEventListener("abort", resolve);
  });
  return { aborted, forget };
}

/** One queue per key. */
export class Queue {
  #tails = new Map();

  /**
   * Runs `work` after all earlier work of `key`. Without earlier work, `work` begins before this
   * method returns. After an abort of `signal`, `work` does not wait any more.
   */
  run(key, work, signal) {
    const before = this.#tails.get(key);
    let end;
    const tail = new Promise((resolve) => {
      end = resolve;
    });
    // Queued before `work` runs, so that work queued by `work` itself comes later.
    this.#tails.set(key, tail);
    const result = this.#turn(before, signal, work);
    Promise.allSettled([before, result]).then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
      end();
    });
    return result;
  }

  #turn(before, signal, work) {
    if (before === undefined) return new Promise((resolve) => resolve(work()));
    if (!signal) return before.then(work);
    const { aborted, forget } = abortingOf(signal);
    return Promise.race([before, aborted]).then(() => {
      forget();
      return work();
    });
  }
}

/** Resolves after `ms` milliseconds. */
export function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
