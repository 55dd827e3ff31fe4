// The worker thread of `open({ worker: true })`: the component and its store.
//
// In: `{id, verb, args}`, calls of the backend. Out: `{modules}` or `{error}` once, then
// `{id, result}` or `{id, error}` for each call, and `{event}` for each event. Models run in the
// thread that called `open`.

import { parentPort, workerData } from "node:worker_threads";

import { Backend } from "./backend.js";
import { storeAt } from "./open.js";
import { compiledModules, instantiate, openPath } from "./runtime.js";
import { sent } from "./thread-errors.js";

async function opened(name) {
  const store = await storeAt(name, openPath);
  const events = { emit: (event) => parentPort.postMessage({ event }) };
  const backend = new Backend({ instantiate, store, configJson: null, events });
  // The first call compiles here and not in the other thread.
  backend.pure("setup.version", {});
  return backend;
}

/** Answers calls until the store is closed. */
function serve(backend) {
  parentPort.on("message", async ({ id, verb, args }) => {
    try {
      parentPort.postMessage({ id, result: await backend[verb](...args) });
    } catch (error) {
      parentPort.postMessage({ id, error: sent(error) });
    }
    if (verb === "close") parentPort.close();
  });
}

try {
  serve(await opened(workerData.store));
  parentPort.postMessage({ modules: compiledModules() });
} catch (error) {
  parentPort.postMessage({ error: sent(error) });
}
