// Runs the golden vectors through the component: node run-vectors.mjs [PART OF A PATH]

import { close, reportVectors } from "./scripts/vector-report.mjs";
import { instantiate } from "./src/index.js";
import { MemoryStore } from "./src/store-memory.js";
import { runVector } from "./src/vectors.js";

const run = (text, mode) => runVector(JSON.parse(text), mode, instantiate, new MemoryStore());
close(await reportVectors("node", run, process.argv[2]));
