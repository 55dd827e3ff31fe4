// Serves the worker on a free loopback port until interrupted; keeps its objects in build/storage.

import { fileURLToPath } from "node:url";

import { startWorker } from "./workerd.mjs";

const storage = fileURLToPath(new URL("../build/storage", import.meta.url));
const { url, stop } = await startWorker(storage);
console.log(url);
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
