// Shared code of the worker's tests: clients, and a model whose answers a test decides.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const NOW = 1_700_000_000_000;
export const BUDGET = 3_000;

/** Resolves to the messages of the walkthrough, one JSON line each. */
export async function transcript() {
  const path = new URL("../../walkthrough.jsonl", import.meta.url);
  return (await readFile(path, "utf8")).trimEnd().split("\n");
}

/** Default answer of the test model. It mentions the failures that the walkthrough contains. */
export const SAID = "the tests of the module fail";

/** Resolves to the path of a new temporary folder. */
export function temporaryFolder() {
  return mkdtemp(join(tmpdir(), "lcm-edge-"));
}

/**
 * Starts a server with the Chat Completions API. `answer(body, number)` resolves to
 * `{status, body}`, or to undefined for the answer `SAID`. Resolves to `{address, asked, close}`.
 */
export async function startModel(answer = async () => undefined) {
  const asked = [];
  const usual = {
    choices: [{ message: { content: SAID }, finish_reason: "stop" }],
    usage: { prompt_tokens: 11, completion_tokens: 7 },
  };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks));
    asked.push({ path: request.url, headers: request.headers, body });
    const { status = 200, headers = {}, ...given } = (await answer(body, asked.length)) ?? {};
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(given.body ?? usual));
  });
  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `127.0.0.1:${server.address().port}`, asked, close };
}

/**
 * Returns a client of one conversation: `get(path)`, `post(path, body)` and `remove(path)` resolve
 * to `[status, answer]`.
 */
export function client({ url, token }, conversation) {
  const base = `${url}/conversations/${encodeURIComponent(conversation)}`;
  const headers = { authorization: `Bearer ${token}` };
  const answered = async (response) => {
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return [response.status, isJson ? JSON.parse(text) : text];
  };
  const sent = (body) => {
    return typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  };
  const asked = async (method, path, body) =>
    answered(await fetch(`${base}/${path}`, { method, headers, body }));
  return {
    get: (path) => asked("GET", path),
    post: (path, body = "") => asked("POST", path, sent(body)),
    remove: (path) => asked("DELETE", path),
  };
}

/** Repeats `look` until it resolves to a true value; fails after 400 attempts. */
export async function eventually(look) {
  for (let attempt = 0; attempt < 400; attempt++) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return assert.fail("it did not happen");
}
