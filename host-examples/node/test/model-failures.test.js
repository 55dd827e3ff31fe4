// How errors of SDKs and returned values of model functions become failures and answers.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { modelChain } from "../src/completion.js";
import { FAILURE_TABLE } from "../src/failure-table.js";
import { readThrown } from "../src/model-failures.js";
import { modelsOf } from "../src/models.js";
import { withEngine } from "./opened.js";
import * as sdk from "./sdk-errors.js";

const document = new URL("../../../docs/model-failures.md", import.meta.url);
const cases = new URL("../../../tests/fixtures/model-answers.json", import.meta.url);
const transcript = new URL("../../walkthrough.jsonl", import.meta.url);
const lines = (await readFile(transcript, "utf8")).trimEnd().split("\n");
const answers = JSON.parse(await readFile(cases, "utf8"));
const QUESTION = "What about the tests?";

/** Resolves to the rows of the document's table between its marks. */
async function documented() {
  const [, table] = (await readFile(document, "utf8")).split(/<!-- \/?model-failures -->/);
  return table.trim().split("\n").slice(2).map((line) => {
    const [evidence, code, values] = line.slice(2, -2).split(" | ");
    const texts = [...values.matchAll(/`([^`]+)`/g)].map(([, value]) => value);
    return { evidence, code: code.replaceAll("`", ""), values: texts };
  });
}

test("the table of failures is that of the document", async () => {
  assert.deepEqual(FAILURE_TABLE, await documented());
});

/** For each kind of evidence, a function that returns an error with this evidence only. */
const bare = {
  name: (name) => sdk.errorOf([name], "x"),
  code: (code) => Object.assign(new Error("x"), { code: code.toUpperCase() }),
  status: (status) => sdk.openai({ status: status === "5xx" ? 529 : Number(status) }),
  words: (words) => sdk.openai({ status: 400, body: { error: { message: `So: ${words} (7)` } } }),
};

const thrownRows = FAILURE_TABLE.filter(({ evidence }) => evidence !== "finish");
for (const { evidence, code, values } of thrownRows) {
  test(`each ${evidence} of the table that means ${code} does`, () => {
    for (const value of values) {
      const thrown = bare[evidence](value);
      assert.equal(readThrown(thrown).code, code, value);
      assert.equal(readThrown(sdk.wrapped(thrown)).code, code, value);
    }
  });
}

test("an error in a list, and one without an error object, are read", () => {
  const message = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
  const bodies = [
    [{ error: { code: 400, message, status: "INVALID_ARGUMENT" } }],
    { message: "Input is too long for requested model." },
    { object: "error", message: "This model's maximum context length is 4096 tokens.", code: 400 },
    { message: "too many tokens: total number of tokens in the prompt cannot exceed 4081" },
  ];
  for (const body of bodies) {
    for (const error of [{ body }, { data: body }, { responseBody: JSON.stringify(body) }]) {
      assert.equal(readThrown({ status: 400, ...error }).code, "context-too-long", `${body}`);
    }
  }
});

test("every provider's word for the end of an answer is understood", async () => {
  const rows = FAILURE_TABLE.filter(({ evidence }) => evidence === "finish");
  const words = rows.flatMap(({ code, values }) => values.map((value) => [value, code]));
  for (const word of ["STOP", "end_turn", "", "stop_sequence", "a-new-word", undefined, null]) {
    words.push([word, "stop"]);
  }
  assert.ok(words.length > 30);
  for (const [word, code] of words) {
    for (const finish of [word, word?.toUpperCase(), word?.replaceAll("_", "-")]) {
      const ask = modelChain(modelsOf(async () => ({ text: "t", finish })), { retries: 0 });
      const { result } = await ask({ purpose: "leaf" });
      assert.equal(result.done?.finish ?? result.failed.code, code, `${finish}`);
    }
  }
});

test("after a prompt that is too long the next model is asked once", async () => {
  const failing = (code) => async () => ({ error: { code, message: "no" } });
  const rows = [
    [["context-too-long", null], undefined, 2],
    [["context-too-long", "context-too-long"], "context-too-long", 2],
    [["context-too-long", "unavailable"], "context-too-long", 2],
    [["unavailable", "context-too-long"], "context-too-long", 2],
    [["context-too-long", "auth"], "context-too-long", 2],
    [["auth", "context-too-long"], "auth", 1],
  ];
  for (const [codes, expected, asked] of rows) {
    const models = codes.map((code) => (code ? failing(code) : async () => "A summary."));
    const ask = modelChain(modelsOf(models), { retries: 0 });
    const { result, exhausted, calls } = await ask({ purpose: "leaf" });
    assert.deepEqual([result.failed?.code, exhausted, calls], [expected, false, asked], `${codes}`);
  }
});

test("an answer of a provider means the same in the error of every SDK", () => {
  const { openai, anthropic, google, aiSdk, langchain, axios } = sdk;
  for (const shape of [openai, anthropic, google, aiSdk, langchain, axios]) {
    for (const answer of answers) {
      // The error of this SDK has no headers.
      const pause = shape === google ? (answer.body_pause_ms ?? null) : answer.retry_after_ms;
      const thrown = shape(answer);
      for (const error of [thrown, sdk.retried(thrown), sdk.wrapped(sdk.wrapped(thrown))]) {
        const read = readThrown(error);
        const said = `${shape.name}: ${answer.what}`;
        assert.deepEqual([read.code, read.retryAfterMs], [answer.code, pause], said);
        assert.ok(read.message.length <= 303);
      }
    }
  }
});

test("a status and a pause are found in every place and container", () => {
  const members = [
    { status: 429 },
    { statusCode: 429 },
    { status_code: 429 },
    { code: 429 },
    { response: { status: 429 } },
    { response: { statusCode: 429 } },
    { response: { status_code: 429 } },
  ];
  for (const found of members) {
    assert.equal(readThrown(found).code, "rate-limited", JSON.stringify(found));
  }
  const containers = [
    { "Retry-After": "7" },
    { "retry-after": ["7"] },
    new Headers({ "retry-after": "7" }),
    new Map([["Retry-After", 7]]),
    [["retry-after", "7"]],
    ["content-type", "text/plain", "Retry-After", "7"],
    { "retry-after-ms": "7000", "retry-after": "9" },
  ];
  for (const headers of containers) {
    for (const error of [{ headers }, { responseHeaders: headers }, { response: { headers } }]) {
      assert.equal(readThrown({ status: 429, ...error }).retryAfterMs, 7000);
    }
  }
  const date = "Wed, 21 Oct 2015 07:28:00 GMT";
  const dated = (then) => readThrown({ headers: { date, "retry-after": then } }).retryAfterMs;
  assert.equal(dated("Wed, 21 Oct 2015 07:28:07 GMT"), 7_000);
  assert.equal(dated("Wed, 21 Oct 2015 07:27:00 GMT"), 0);
  assert.equal(dated("1e300"), 86_400_000);
  for (const odd of ["-1", "soon", ""]) assert.equal(dated(odd), null, odd);
});

test("time limits, aborts and lost connections are told apart from other errors", () => {
  const { errorOf, retried, wrapped } = sdk;
  const coded = (code) => Object.assign(new Error("connect"), { code });
  const fetchFailed = (cause) => new TypeError("fetch failed", { cause });
  const aiSdkConnect = (cause) =>
    errorOf(["APICallError"], "Cannot connect to API", { name: "AI_APICallError", cause });
  const stainless = ["APIConnectionTimeoutError", "APIConnectionError", "APIError", "OpenAIError"];
  const rows = [
    ["timeout", errorOf(stainless, "Request timed out.")],
    ["timeout", errorOf(["Error"], "Request timed out.", { name: "TimeoutError" })],
    ["timeout", errorOf(["a", "b"], "Request timed out.")],
    ["timeout", new DOMException("The operation was aborted", "AbortError")],
    ["timeout", AbortSignal.timeout(0).reason ?? new DOMException("late", "TimeoutError")],
    ["timeout", errorOf(["APIUserAbortError", "APIError"], "Request was aborted.")],
    ["timeout", fetchFailed(coded("UND_ERR_CONNECT_TIMEOUT"))],
    ["timeout", retried(aiSdkConnect(fetchFailed(coded("ETIMEDOUT"))))],
    ["timeout", retried(new DOMException("stop", "AbortError"), "abort")],
    ["unavailable", errorOf(stainless.slice(1), "Connection error.", { cause: coded("EPIPE") })],
    ["unavailable", fetchFailed(coded("ECONNREFUSED"))],
    ["unavailable", fetchFailed(new Error("certificate has expired"))],
    ["unavailable", wrapped(new AggregateError([coded("ECONNREFUSED")], ""))],
    ["unavailable", new Error("exception TypeError: fetch failed sending request")],
    ["auth", errorOf(["LoadAPIKeyError"], "API key is missing", { name: "AI_LoadAPIKeyError" })],
    ["auth", new Error("Could not resolve authentication method. Expected apiKey to be set")],
    ["auth", new Error("401 status code (no body)")],
    ["rate-limited", new Error("[GoogleGenerativeAI Error]: [429 Too Many Requests] quota")],
    ["rate-limited", new Error("HTTP 429: slow down")],
    ["unavailable", new Error("Request failed with status code 503")],
    ["context-too-long", new Error("HTTP 400: prompt is too long: 9 tokens > 8 maximum")],
    ["context-too-long", errorOf(["ContextOverflowError", "LangChainError"], "too much")],
    ["policy", errorOf(["ContentPolicyViolationError"], "no", { status: 400 })],
    ["other", errorOf(["NoObjectGeneratedError"], "No object generated", {
      name: "AI_NoObjectGeneratedError", text: "rate limit", finishReason: "length",
    })],
    ["other", new Error("boom")],
    ["other", new Error("the report of 429 pages")],
    ["other", new RangeError("Invalid array length")],
    ["other", undefined],
    ["other", null],
    ["other", 429],
    ["other", Symbol("x")],
    ["rate-limited", "429 Too Many Requests"],
  ];
  for (const [code, thrown] of rows) {
    assert.equal(readThrown(thrown).code, code, String(thrown?.message ?? String(thrown)));
  }
});

test("an error that resists reading is read all the same", () => {
  const loop = new Error("loop");
  loop.cause = loop;
  assert.equal(readThrown(loop).code, "other");
  const hostile = new Proxy({}, { get: () => { throw new Error("no"); } });
  assert.equal(readThrown(hostile).code, "other");
  const body = { error: {} };
  body.error.error = body;
  assert.equal(readThrown({ status: 429, body }).code, "rate-limited");
  assert.equal(readThrown({ status: 500, message: "x".repeat(9_000) }).message.length, 303);
  // An own `code` of this package wins over any other evidence of the error.
  assert.equal(readThrown({ code: "policy", status: 429 }).code, "policy");
});

test("a refusal that an SDK throws is an answer", async () => {
  for (const name of ["ModelRefusalError", "ContentFilterFinishReasonError"]) {
    const complete = async () => {
      throw sdk.errorOf([name, "Error"], "no");
    };
    const { result } = await modelChain(modelsOf(complete))({ purpose: "leaf" });
    assert.deepEqual([result.done.finish, result.done.text], ["refusal", ""]);
  }
});

test("an answer whose text an SDK left out is blank, and the next model is asked", async () => {
  for (const text of [null, undefined]) {
    for (const finish of [undefined, "stop", "length", "refusal"]) {
      const complete = async () => ({ text, finish });
      const { result } = await modelChain(modelsOf(complete))({ purpose: "leaf" });
      assert.deepEqual([result.done.text, result.done.finish], ["", finish ?? "stop"]);
    }
    const work = async (lcm) => {
      const { compacted, failure } = await lcm.turn("c", lines, { budget: 3000 });
      assert.equal(failure, null);
      assert.ok(compacted.passes.some(({ provisional }) => !provisional));
    };
    const next = async () => "The host decides nothing.";
    await withEngine("memory:", work, { complete: [async () => ({ text }), next] });
  }
});

const wrongAnswers = [
  [undefined, "undefined"],
  [null, "null"],
  [7, "the number 7"],
  [{}, "an object without members"],
  [["text"], "a list"],
  [{ text: 1 }, "an object whose `text` is the number 1"],
  [{ text: Promise.resolve("t") }, "an object whose `text` is a Promise (await it)"],
  [{ summary: "t" }, "an object with summary"],
  [new Error("x"), "an Error (throw it)"],
  [() => "text", "a function"],
  [{ choices: [{ message: { content: "t" } }] }, "a Chat Completions answer (return answer.choic"],
  [{ content: [], stop_reason: "end_turn" }, "an Anthropic message (return the texts"],
  [{ output: [], error: null }, "a Responses answer (return answer.output_text)"],
  [{ candidates: [] }, "a Gemini answer (return answer.text)"],
  [{ content: "t" }, "a message (return its text)"],
  [(async function* () {})(), "a stream (return its whole text)"],
  [{ textStream: [], text: Promise.resolve("t") }, "a stream (return await answer.text)"],
  [{ text: "t", finish: 7 }, "the provider's word for its end, got the number 7"],
];

test("a wrong answer of `complete` is an error of the program, not one of the model", async () => {
  for (const [answer, got] of wrongAnswers) {
    let asked = 0;
    const complete = async () => {
      asked += 1;
      return answer;
    };
    const next = async () => assert.fail("another model was asked");
    await withEngine(
      "memory:",
      async (lcm) => {
        const turn = await lcm.turn("c", lines, { budget: 3000 });
        assert.equal(turn.receipt.ingested, lines.length);
        assert.deepEqual([turn.failure.code, turn.compacted], ["invalid-input", null]);
        const { message } = turn.failure;
        assert.ok(message.includes(got) && /must (return|be)/.test(message), message);
        const wrong = { code: "invalid-input", message };
        await assert.rejects(lcm.compact("c", { budget: 3000 }), wrong);
        await assert.rejects(lcm.maintain("c", { budget: 3000 }), wrong);
        await assert.rejects(lcm.ask("c", QUESTION), wrong);
        const tool = lcm.callTool("c", "lcm_expand_query", { prompt: QUESTION });
        await assert.rejects(tool, wrong);
        // No summary was made from a wrong answer, and no question stays open.
        assert.equal((await lcm.listing("summaries", { conversation: "c" })).length, 0);
        assert.equal(asked, 5);
        await assert.rejects(lcm.ask("c", QUESTION), wrong);
      },
      { complete: [complete, next] },
    );
  }
});

test("every verb reports the model's own code", async () => {
  const answer = { status: 401, body: { error: { message: "bad key", code: "invalid_api_key" } } };
  const complete = async () => {
    throw sdk.retried(sdk.openai(answer));
  };
  const failure = { code: "auth", message: "Failed after 3 attempts. Last error: 401 bad key" };
  await withEngine(
    "memory:",
    async (lcm) => {
      const options = { budget: 3000 };
      assert.deepEqual((await lcm.turn("c", lines, options)).failure, failure);
      assert.deepEqual((await lcm.ask("c", QUESTION)).failure, failure);
      const told = await lcm.callTool("c", "lcm_expand_query", { prompt: QUESTION });
      assert.deepEqual(told.failure, failure);
      const refused = { code: "completion-failed", failure };
      await assert.rejects(lcm.compact("c", options), refused);
      assert.deepEqual((await lcm.maintain("c", options)).failure, failure);
    },
    { complete },
  );
});
