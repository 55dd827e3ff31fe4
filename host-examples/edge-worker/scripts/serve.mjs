// Serves the worker on a free loopback port until interrupted; keeps its objects in build/storage.
//
// Takes the variables and secrets of a deployment from the environment of this process.

import { fileURLToPath } from "node:url";

import { startWorker } from "./workerd.mjs";

const isBound = ([name]) => /^(LCM_|MODEL_|ACCESS_TOKEN$)/.test(name);
const storage = fileURLToPath(new URL("../build/storage", import.meta.url));
const variables = Object.fromEntries(Object.entries(process.env).filter(isBound));
const { url, token, stop } = await startWorker(storage, { variables });
console.log(`URL=${url} ACCESS_TOKEN=${token}`);
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
