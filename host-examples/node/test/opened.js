// The package over the real component, opened for a test: a fixed clock and no variables.

import { open } from "../src/index.js";

export const NOW = 1_700_000_000_000;

export const opened = (store, options) => open({ store, environment: {}, now: () => NOW, ...options });

/** Runs `work` over an engine and closes it. */
export async function withEngine(store, work, options) {
  const lcm = await opened(store, options);
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}
