// Runs the golden vectors through the component: node run-vectors.mjs [PART OF A PATH]
//
// Writes dist/vectors-node-MAJOR.json, by the version of Node that runs it.

import { close, reportVectors } from "./scripts/vector-report.mjs";
import { instantiate } from "./src/index.js";
import { MemoryStore } from "./src/store-memory.js";
import { runVector } from "./src/vectors.js";

const run = (text, mode) => runVector(JSON.parse(text), mode, instantiate, new MemoryStore());
const [major] = process.versions.node.split(".");
close(await reportVectors(`node-${major}`, run, process.argv[2]));
