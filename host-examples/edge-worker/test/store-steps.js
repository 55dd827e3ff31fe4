// Runs the steps of `../../kit/store.json` over a store, which shows what a store must do.

/** A text as it stands in the steps: each character is one byte. */
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

/** The code that a commit ends with; null: it is written. */
function committed(store, { guards, puts }) {
  try {
    store.commit(pairsOf(guards), pairsOf(puts));
    return null;
  } catch ({ code, message }) {
    return code ?? message;
  }
}

/** What a step ended with, and what it should. */
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

/** `[claim, found]` of each step that an empty store does not do as it should. */
export function failedSteps(store, { steps }) {
  return steps.flatMap((step) => {
    const [found, wanted] = did(store, step).map((of) => JSON.stringify(of));
    return found === wanted ? [] : [[step.claim, found]];
  });
}
