// The walkthrough as a program: node walkthrough.mjs [--store PATH]

import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { open } from "./src/index.js";
import { walkthrough } from "./src/walkthrough.js";

const { values } = parseArgs({ options: { store: { type: "string", default: "memory:" } } });
const text = await readFile(new URL("../walkthrough.jsonl", import.meta.url), "utf8");
const lcm = await open({ store: values.store, environment: {} });
try {
  const { said, equal } = await walkthrough(lcm, text.trimEnd().split("\n"));
  console.log(said.join("\n"));
  process.exitCode = equal ? 0 : 1;
} catch (error) {
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await lcm.close();
}
