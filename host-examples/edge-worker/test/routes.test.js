// The worker from a client's view, in workerd: all routes, refused requests, the model, the alarm.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { after, before, test } from "node:test";

import { startWorker } from "../scripts/workerd.mjs";
import { BUDGET, client, eventually, SAID, startModel } from "./support.js";
import { temporaryFolder, transcript } from "./support.js";

let lines;
let model;
let answer;
let worker;
let folder;

before(async () => {
  lines = await transcript();
  model = await startModel((...asked) => answer?.(...asked));
  folder = await temporaryFolder();
  worker = await startWorker(folder, { model: model.address });
});
after(async () => {
  await worker.stop();
  model.close();
  await rm(folder, { recursive: true, force: true });
});

/** Resolves to the client of a conversation with the messages of the walkthrough. */
async function filled(name) {
  const chat = client(worker, name);
  const [status, receipt] = await chat.post("messages", lines.join("\n"));
  assert.deepEqual([status, receipt.ingested], [200, lines.length]);
  return chat;
}

test("messages go in once, and a context that fits comes out", async () => {
  const chat = await filled("a chat");
  assert.equal((await chat.post("messages", lines.join("\n")))[1].ingested, 0);
  assert.equal((await chat.get(`evaluate?budget=${BUDGET}`))[1].due, true);
  const [, compacted] = await chat.post(`compact?budget=${BUDGET}`);
  assert.equal(compacted.status, "done");
  const [, context] = await chat.get(`context?budget=${BUDGET}&dialect=openai-chat&explain=true`);
  assert.ok(context.tokens <= BUDGET && context.summaries > 0);
  assert.ok(context.messages.every(({ role }) => role !== undefined));
  const { token } = context.prefix;
  const options = { budget: BUDGET, dialect: "openai-chat", policy: "layered", previous: token };
  const [, again] = await chat.post("context", { ...options, reserveTokens: 10 });
  assert.equal(again.prefix.brokenBy, null);
  const liveMessages = [{ role: "user", content: "not stored yet" }];
  const [, live] = await chat.post("context", { ...options, liveMessages });
  assert.match(JSON.stringify(live.messages.at(-1)), /not stored yet/);
  assert.deepEqual((await chat.get("messages"))[1], lines);
  assert.deepEqual((await chat.get("messages?seqFirst=3&seqLast=4"))[1], lines.slice(2, 4));
  assert.equal((await chat.get("status"))[1].messages, lines.length);
  assert.equal((await chat.get("check"))[1].ok, true);

  const summary = context.items.find(({ kind }) => kind !== "message");
  assert.equal((await chat.get(`items/${summary.id}`))[1].id, summary.id);
  const [, expanded] = await chat.get(`summaries/${summary.id}?depthMax=10`);
  const originals = expanded.messages.map(({ raw }) => raw);
  assert.deepEqual(originals, lines.slice(0, originals.length));
  const [, bare] = await chat.post(`summaries/${summary.id}`, { includeMessages: false });
  assert.deepEqual([bare.messages, originals.length > 0], [[], true]);
});

test("an agent has its tools, and its questions are answered", async () => {
  const chat = await filled("tools");
  const [, { definitions, instructions }] = await chat.get("tools?dialect=anthropic");
  assert.ok(definitions.some(({ name }) => name === "lcm_grep"));
  assert.match(instructions, /lcm_/);
  const [, found] = await chat.post("tools/lcm_grep", { pattern: '"batch window"' });
  assert.equal(found.isError, false);
  assert.match(found.text, /batch window/);
  for (const mistake of ['{"pattern": ', "[]", '{"patern": "x"}', ""]) {
    const [status, answer] = await chat.post("tools/lcm_grep", mistake);
    assert.deepEqual([status, answer.isError, answer.text !== ""], [200, true, true], mistake);
  }
  // Only the worker decides what the tools read, neither the model nor a client.
  const [, named] = await chat.post("tools/lcm_grep", { pattern: "x", conversationId: "other" });
  assert.match(named.text, /`conversationId` is not an argument/);
  assert.doesNotMatch(JSON.stringify(definitions), /conversationId|allConversations/);
  assert.equal((await chat.get("tools?scope=store"))[0], 400);
  assert.equal((await chat.post("tools/lcm_grep?scope=store", { pattern: "x" }))[0], 400);
  const [, grep] = await chat.post("grep", { pattern: '"batch window"', limit: 1 });
  assert.equal(grep.matches.length, 1);
  const message = grep.matches[0].id;
  answer = async () => {
    const content = `It was decided. [${message}]`;
    return { body: { choices: [{ message: { content }, finish_reason: "stop" }] } };
  };
  const [, asked] = await chat.post("ask", { question: "what of the batch window?" });
  assert.equal(asked.status, "answered");
  const question = { query: "batch window", prompt: "what of the batch window?" };
  const [, expanded] = await chat.post("tools/lcm_expand_query", question);
  assert.deepEqual([expanded.isError, /It was decided/.test(expanded.text)], [false, true]);
  answer = undefined;
});

test("a deleted conversation is gone, and its object begins a new one", async () => {
  const chat = await filled("deleted");
  const [status, receipt] = await chat.remove("");
  assert.deepEqual([status, receipt.done, receipt.messages], [200, true, lines.length]);
  assert.equal((await chat.get("status"))[0], 404);
  assert.equal((await chat.remove(""))[0], 404);
  assert.equal((await chat.post("messages", lines[0]))[1].revision, 1);
});

test("a dialect that loses a call is refused, and auto reads each message in its own", async () => {
  const chat = client(worker, "dialects");
  const call = { id: "call_1", type: "function", function: { name: "ls", arguments: "{}" } };
  const agent = [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "a.txt" }] },
  ].map((message) => JSON.stringify(message));
  const [status, { error }] = await chat.post("messages", agent.join("\n"));
  assert.deepEqual([status, error.code], [400, "invalid-input"]);
  assert.match(error.message, /`dialect` must be `openai-chat` or `auto`, got `lcm`/);
  assert.equal((await chat.get("status"))[0], 404);
  const [, receipt] = await chat.post("messages?dialect=auto", agent.join("\n"));
  assert.deepEqual([receipt.ingested, receipt.warnings], [2, []]);
  const [, context] = await chat.get("context?budget=1000&dialect=openai-chat");
  assert.deepEqual(context.messages.map(({ role }) => role), ["assistant", "tool"]);
});

test("a limited right to read is made, listed, used and ended", async () => {
  const chat = await filled("grants");
  const [status, grant] = await chat.post("grants?ttlMs=60000", { tokensMax: 2_000 });
  assert.deepEqual([status, grant.tokensMax, grant.revoked], [200, 2_000, false]);
  assert.deepEqual((await chat.get("grants"))[1].map(({ id }) => id), [grant.id]);
  const search = { pattern: '"batch window"', grant: grant.id };
  const [, found] = await chat.post("grep", search);
  assert.equal(found.matches.length > 0 && found.grant.tokens > 0, true);
  const [, { definitions }] = await chat.get(`tools?grant=${grant.id}`);
  const asked = await chat.post(`tools/${definitions[0].name}?grant=${grant.id}`, search);
  assert.equal(asked[0], 200);
  const ended = { id: grant.id, revoked: true };
  assert.deepEqual(await chat.remove(`grants/${grant.id}`), [200, ended]);
  const [refused, { error }] = await chat.post("grep", search);
  assert.deepEqual([refused, error.code], [403, "denied"]);
  assert.equal((await chat.remove("grants/grant_0000000000000000"))[0], 404);
  assert.equal((await chat.post("grants", { tokens: 1 }))[0], 400);
});

test("lines may end in CRLF, and a text that looks like a number is a text", async () => {
  const chat = client(worker, "texts");
  const [status] = await chat.post("messages?family=2024", `${lines.join("\r\n")}\r\n\r\n`);
  assert.equal(status, 200);
  assert.deepEqual((await chat.get("messages"))[1], lines);
  const [, listed] = await chat.get("status");
  assert.equal(listed.family, "2024");
  for (const pattern of ["2024", "true"]) {
    assert.equal((await chat.post(`grep?pattern=${pattern}&limit=3&only=true`))[0], 200, pattern);
  }
  assert.equal((await chat.post("ask?question=42"))[0], 200);
});

test("options of a query have the types that the package says", async () => {
  const packages = new URL("../../node/types/packages.d.ts", import.meta.url);
  const declared = await readFile(packages, "utf8");
  const interfaces = [...declared.matchAll(/^export interface (\w+)[^{]*\{\n(.*?)^\}/gms)];
  const stored = "Append|Ingest|Compact|Evaluate|Turn|Assemble|MessageRange|Digest";
  const read = "Describe|Grep|Grant|Expand|Ask|Question|ToolCall|ToolList";
  const asked = new RegExp(`^(CallTime|(${stored}|${read})Options)$`);
  const types = new Map();
  for (const [, name, body] of interfaces.filter(([, name]) => asked.test(name))) {
    for (const [, option, type] of body.matchAll(/^ {2}(\w+)\??: ([^;]+);/gm)) {
      types.set(option, [...(types.get(option) ?? []), `${name}: ${type}`]);
    }
  }
  const are = (type) => {
    const is = ([, found]) => found.every((one) => one.endsWith(`: ${type}`));
    return [...types].filter(is).map(([option]) => option);
  };
  const request = await readFile(new URL("../src/request.js", import.meta.url), "utf8");
  const listed = (name) => {
    const [, list] = new RegExp(`${name} = \\[(.*?)^\\];`, "ms").exec(request);
    return new Set([...list.matchAll(/"(\w+)"/g)].map(([, option]) => option));
  };
  assert.ok(types.size > 30);
  assert.deepEqual(listed("NUMBERS"), new Set(are("number")));
  // `hasSummaries` is an argument of `instructions`.
  assert.deepEqual(listed("SWITCHES"), new Set([...are("boolean"), "hasSummaries"]));
});

test("the model behind the binding writes the summaries, and its failures have codes", async () => {
  const chat = await filled("model");
  answer = async () => ({ status: 401 });
  const [status, { error }] = await chat.post(`compact?budget=${BUDGET}`);
  assert.deepEqual([status, error.code], [502, "completion-failed"]);
  answer = async () => ({ status: 429, headers: { "retry-after": "120" } });
  // The refused key may have opened the engine's breaker; in both cases nothing is lost.
  const [, limited] = await chat.post(`compact?budget=100000&mode=until-under&force=true`);
  assert.equal(limited.failure?.code ?? "rate-limited", "rate-limited");
  answer = undefined;
  const [, compacted] = await chat.post(`compact?budget=${BUDGET}`);
  assert.ok(compacted.passes.length > 0);
  const { path, body } = model.asked.at(-1);
  assert.equal(path, "/v1/chat/completions");
  assert.deepEqual([body.model, body.messages.map(({ role }) => role)], ["m", ["system", "user"]]);
  const [, context] = await chat.get(`context?budget=${BUDGET}`);
  assert.ok(JSON.stringify(context.messages).includes(SAID));
});

test("after a failure the alarm rings when the engine says, after a refusal never", async () => {
  const failures = [{ status: 429, headers: { "retry-after": "120" } }, { status: 401 }];
  for (const failure of failures) {
    const chat = client(worker, `pause ${failure.status}`);
    const { length } = model.asked;
    answer = async () => failure;
    await chat.post("turn?budget=12000&defer=true", lines.join("\n"));
    await eventually(() => model.asked.length > length);
    const debt = await eventually(async () => {
      const [, status] = await chat.get("status");
      return status.debt.failures === 1 && status.debt;
    });
    assert.ok(Date.parse(debt.nextAttemptAt) > Date.now() + 60_000);
    for (let look = 0; look < 10; look++) {
      assert.deepEqual((await chat.get("status"))[1].debt, debt);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(model.asked.length, length + 1);
  }
  answer = undefined;
});

test("what a turn puts off is done by the alarm", async () => {
  const chat = client(worker, "alarm");
  const [, turn] = await chat.post("turn?budget=12000&defer=true", lines.join("\n"));
  assert.deepEqual([turn.receipt.ingested, turn.deferred], [lines.length, true]);
  const status = await eventually(async () => {
    const [, seen] = await chat.get("status");
    return seen.summaries.length > 0 && seen.debt === null && seen;
  });
  assert.ok(status.context.tokens < 7_500);
  assert.deepEqual((await chat.get("messages"))[1], lines);
});

test("summaries that a failing model left are made again", async () => {
  const chat = await filled("provisional");
  answer = async () => ({ status: 503 });
  const [, failed] = await chat.post(`compact?budget=${BUDGET}&retries=0`);
  assert.equal(failed.failure.code, "unavailable");
  const [, { provisional }] = await chat.get("status");
  assert.ok(provisional > 0);
  answer = undefined;
  const summaryIds = [failed.passes[0].summaryId];
  const [, one] = await chat.post("resummarize", { budget: BUDGET, summaryIds });
  assert.deepEqual(one.passes.map(({ replaces }) => replaces), summaryIds);
  assert.equal((await chat.get("status"))[1].provisional, provisional - 1);
  const [, all] = await chat.post(`resummarize?budget=${BUDGET}`);
  assert.ok(all.passes.length > 0 && all.passes.every((pass) => pass.replaces !== null));
  assert.equal((await chat.get("status"))[1].provisional, 0);
  const [refused, { error }] = await chat.post("resummarize", { budget: BUDGET, summaryIds });
  assert.deepEqual([refused, error.code], [400, "invalid-input"]);
});

test("a question goes to its end though its client went away", async () => {
  const chat = await filled("gone");
  let end;
  const held = new Promise((resolve) => {
    end = resolve;
  });
  const seen = new Promise((resolve) => {
    answer = async () => {
      resolve();
      await held;
      return undefined;
    };
  });
  const controller = new AbortController();
  const url = `${worker.url}/conversations/gone/ask`;
  const body = JSON.stringify({ question: "what of the batch window?" });
  const headers = { authorization: `Bearer ${worker.token}` };
  const asking = fetch(url, { method: "POST", headers, body, signal: controller.signal });
  await seen;
  controller.abort();
  await assert.rejects(asking);
  end();
  answer = undefined;
  // While the question is open, another question of the conversation gets the status `busy`.
  await eventually(async () => {
    const [, next] = await chat.post("ask", { question: "what of the batch window?" });
    return next.status !== "busy";
  });
});

test("what is no request is refused as such, and changes nothing", async () => {
  const chat = client(worker, "refused");
  const line = (bytes) => `${JSON.stringify({ role: "user", content: "x".repeat(bytes) })}\n`;
  const large = line(250_000);
  const most = Math.floor((8 << 20) / large.length);
  assert.equal((await chat.post("messages", large.repeat(most)))[0], 200);
  const before = await chat.get("digest");
  const refusals = [
    ["messages", large.repeat(most + 1), 413, "limit-exceeded"],
    ["messages", "x".repeat(50 << 20), 413, "limit-exceeded"],
    ["messages", line(1).repeat(20_001), 413, "limit-exceeded"],
    ["turn?budget=9", line(1).repeat(20_001), 413, "limit-exceeded"],
    ["messages", Uint8Array.of(0xff), 400, "invalid-input"],
    ["messages?dialekt=x", line(1), 400, "invalid-input"],
    ["messages", "{", 400, "invalid-input"],
    ["turn", line(1), 400, "invalid-input"],
    ["context", "[]", 400, "invalid-input"],
    ["context", "{", 400, "invalid-input"],
    ["context?budget=x", "", 400, "invalid-input"],
    ["items/sum_1111111111111111", "", 404, "not-found"],
    ["summaries/sum_1111111111111111", "", 404, "not-found"],
  ];
  for (const [path, body, status, code] of refusals) {
    const [found, answer] = await chat.post(path, body);
    assert.deepEqual([found, answer.error?.code], [status, code], path);
  }
  for (const path of ["status?x=1", "digest?logical=1", "tools?x=1", "tools?dialect=x"]) {
    assert.deepEqual((await chat.get(path))[0], 400, path);
  }
  assert.notEqual((await chat.get("digest?logical=true"))[1], before[1]);
  for (const path of ["messages/extra", "messages/", "compact/x", "%zz", "items", "tools/", ""]) {
    assert.equal((await chat.post(path, line(1)))[0], 404, path);
  }
  const elsewhere = await Promise.all(
    ["", "/conversations", "/conversations/%zz/status", "/check/vector"].map((path) =>
      fetch(`${worker.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${worker.token}` },
      }),
    ),
  );
  assert.deepEqual(elsewhere.map(({ status }) => status), [404, 404, 404, 404]);
  assert.deepEqual(await chat.get("digest"), before);
});
