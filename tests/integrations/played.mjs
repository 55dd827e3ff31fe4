// Program input: `node PROGRAM BASE_URL STORE SCRIPT FIRST END` makes turns FIRST to END - 1.

import { readFileSync } from "node:fs";

export const [baseURL, store, script, first, end] = process.argv.slice(2);
const played = JSON.parse(readFileSync(script, "utf8"));
export const said = played.said.slice(first, end);
export const readFile = ({ path }) => played.files[path] ?? `no such file: ${path}`;
