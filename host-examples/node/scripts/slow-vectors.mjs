// Runs the golden vectors over a store that takes 5 ms for every answer and refuses a quarter of
// all commits, like a remote store with other writers: node scripts/slow-vectors.mjs [SEED]
//
// The seed, which is printed, determines the refused commits. Every vector must pass, and its store
// must end with the same bytes as a store that answers at once.

import { pathToFileURL } from "node:url";

import { conflictAt, MemoryStore } from "../src/store-memory.js";
import { instantiate } from "../src/index.js";
import { pause } from "../src/queue.js";
import { asyncStore } from "../src/store-async.js";
import { runVector } from "../src/vectors.js";
import { close, vectorPaths, vectorText } from "./vector-report.mjs";

const LATENCY_MS = 5;
const CONFLICTS_PERCENT = 25;
/** After this many conflicts in a row a commit succeeds: another writer does not win every time. */
const CONFLICTS_IN_A_ROW_MAX = 4;
const AT_ONCE = 24;

/** Returns a generator of numbers from 0 to 99; the same seed gives the same numbers. */
function percents(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % 100;
  };
}

/** Returns the `face` of a mode for `runVector`; `tally` counts commits and refused commits. */
function slowFace(seed, tally) {
  return (store, refused) => {
    const percent = percents(seed);
    let row = 0;
    const late = async (work) => {
      await pause(LATENCY_MS);
      return work();
    };
    return asyncStore({
      getMany: (keys) => late(() => store.getMany(keys)),
      scan: (...args) => late(() => store.scan(...args)),
      commit: (guards, puts) =>
        late(() => {
          tally.commits += 1;
          if (percent() < CONFLICTS_PERCENT && row < CONFLICTS_IN_A_ROW_MAX) {
            row += 1;
            tally.conflicts += 1;
            refused();
            throw conflictAt("any key");
          }
          row = 0;
          return store.commit(guards, puts);
        }),
    });
  };
}

async function checked(path, { seed, tally, repeats }) {
  const text = await vectorText(path);
  const run = (mode) => runVector(JSON.parse(text), mode, instantiate, new MemoryStore());
  const plain = await run("normal");
  const slow = await run({ face: slowFace(seed, tally), repeats });
  const same = slow.sha256 === plain.sha256;
  return same ? slow.failures : [...slow.failures, `the store has ${slow.sha256}`];
}

/**
 * Runs all vectors, several at once: `{passed, failed, failures, commits, conflicts}`. `only`
 * selects vectors whose path contains this text; without `repeats` a refused call is not repeated.
 */
export async function slowVectors(seed, { only = "", repeats = true } = {}) {
  const tally = { commits: 0, conflicts: 0 };
  const left = [...(await vectorPaths()).filter((path) => path.includes(only)).entries()];
  const failures = [];
  let passed = 0;
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, path] = next;
      const one = { seed: seed * 1_000 + index + 1, tally, repeats };
      const found = await checked(path, one);
      failures.push(...found.map((line) => `${path}: ${line}`));
      passed += found.length === 0 ? 1 : 0;
    }
  };
  const total = left.length;
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { passed, failed: total - passed, failures, ...tally };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const seed = Number(process.argv[2] ?? Date.now() % 1_000_000);
  const { passed, failed, failures, commits, conflicts } = await slowVectors(seed);
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(`seed ${seed}: ${conflicts} of ${commits} commits were refused`);
  close({ passed, failed });
}
