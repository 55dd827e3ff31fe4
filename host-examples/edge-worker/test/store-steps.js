// Runs the steps of `../../kit/store.json`, which describe what a store must do, over a store.

/** Returns the bytes of a text in the steps, where each character is one byte. */
function bytesOf(value) {
  if (value === null) return undefined;
  const { text, count } = value.$repeat ?? { text: value, count: 1 };
  return Uint8Array.from(text.repeat(count), (character) => character.charCodeAt(0));
}

function textOf(value) {
  return value ? Array.from(value, (byte) => String.fromCharCode(byte)).join("") : null;
}

const pairsOf = (given) => given.map(([key, value]) => ({ key, value: bytesOf(value) }));
const expanded = (value) => textOf(bytesOf(value));

/** Returns the error code of a commit; null: the commit succeeded. */
function committed(store, { guards, puts }) {
  try {
    store.commit(pairsOf(guards), pairsOf(puts));
    return null;
  } catch ({ code, message }) {
    return code ?? message;
  }
}

/** Runs a step; returns the found result and the expected result. */
function did(store, { get, commit, scan, fill, read, expect = null }) {
  if (get) return [store.getMany(get).map(textOf), expect.map(expanded)];
  if (commit) return [committed(store, commit), expect];
  if (scan) {
    const [entries, more] = store.scan(...scan);
    const found = entries.map(({ key, value }) => [key, textOf(value)]);
    return [[found, more], [expect[0].map(([key, value]) => [key, expanded(value)]), expect[1]]];
  }
  const keys = Array.from({ length: fill ?? read }, (_, at) => `k/${`${at}`.padStart(4, "0")}`);
  if (fill) return [committed(store, { guards: [], puts: keys.map((key) => [key, key]) }), null];
  return [store.getMany(keys).map(textOf), keys.map((key, at) => (at < expect ? key : null))];
}

/** Runs all steps on an empty store; returns `[claim, found]` of each step that fails. */
export function failedSteps(store, { steps }) {
  return steps.flatMap((step) => {
    const [found, wanted] = did(store, step).map((of) => JSON.stringify(of));
    return found === wanted ? [] : [[step.claim, found]];
  });
}
