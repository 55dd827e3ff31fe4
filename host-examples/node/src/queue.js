// Waiting lines: what is queued under one key runs one after the other, others do not wait.

/** Resolves when `signal` is aborted; `forget` ends the listening. */
function abortingOf(signal) {
  let forget = () => {};
  const aborted = new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", resolve, { once: true });
    forget = () => signal.removeEventListener("abort", resolve);
  });
  return { aborted, forget };
}

/** One line per key. */
export class Queue {
  #tails = new Map();

  /**
   * Runs `work` after everything that was queued under `key` before it: at once, before this
   * returns, when there is nothing. Once `signal` is aborted it does not wait any more.
   */
  run(key, work, signal) {
    const before = this.#tails.get(key);
    let end;
    const tail = new Promise((resolve) => {
      end = resolve;
    });
    // In the line before it runs: what `work` queues itself comes after it.
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
