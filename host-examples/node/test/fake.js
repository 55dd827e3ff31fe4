// A fake component: a counter per conversation, which calls the store in the same order as the
// engine (reads, then one guarded commit as the last call). For tests of the code around it.

import { Backend } from "../src/backend.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function receipt(revision) {
  return {
    revision: BigInt(revision),
    ingested: 1,
    skipped: 0,
    seqFirst: BigInt(revision),
    seqLast: BigInt(revision),
    seqSeen: BigInt(revision),
    contextTokens: 1,
    warnings: [],
    eventsJson: "[]",
  };
}

/** `instantiate` of the fake. `log.instances` counts the instances; `overrides` replace exports. */
export function fakeInstantiate(log = { instances: 0 }, overrides = {}) {
  return (imports) => {
    log.instances += 1;
    const store = imports["lcm:engine/store"];
    const llm = imports["lcm:engine/llm"];
    return {
      setup: { configure: (json) => `{"configured":${json}}`, version: () => "fake" },
      ingest: {
        append: (conversation) => {
          const [value] = store.getMany([conversation]);
          const revision = value === undefined ? 1 : Number(decoder.decode(value)) + 1;
          const put = { key: conversation, value: encoder.encode(String(revision)) };
          store.commit([{ key: conversation, value }], [put]);
          return receipt(revision);
        },
        stage: (_, upload, offset, text) => offset + BigInt(encoder.encode(text).length),
        identify: (_, messages) => JSON.stringify(messages.map(() => ({}))),
        ...overrides.ingest,
      },
      compaction: { run: (_, budget) => llm.complete({ purpose: "leaf", budget }) },
      recall: { messages: () => store.getMany(["a", "b"]).map((value) => decoder.decode(value)) },
      admin: {
        digest: () => JSON.stringify(store.scan("!", "\u007f", false, 10, 1000)[0].length),
        ...overrides.admin?.(store),
      },
    };
  };
}

/** A backend over the fake component. */
export function fakeBackend(store, log, overrides) {
  return new Backend({ instantiate: fakeInstantiate(log, overrides), store, configJson: null });
}

/** A promise that resolves after `ms` milliseconds. */
export function delay(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Asynchronous store over `inner`; each call takes `ms`. A function of `fail` may throw first. */
export function slowStore(inner, ms, fail = {}) {
  const slow =
    (name) =>
    async (...args) => {
      await delay(ms);
      await fail[name]?.();
      return inner[name](...args);
    };
  return { getMany: slow("getMany"), scan: slow("scan"), commit: slow("commit") };
}
