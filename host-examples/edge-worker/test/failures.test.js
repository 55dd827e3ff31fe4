// Failures at bad moments, in workerd: each failure has a status and a code, and no message is lost
// or stored twice.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { open } from "../../node/src/index.js";
import { startWorker } from "../scripts/workerd.mjs";
import { BUDGET, client, eventually, SAID, startModel } from "./support.js";
import { temporaryFolder, transcript } from "./support.js";

const main = "edge-worker/test/worker.js";
const running = [];
let lines;
let model;
let answer;
let worker;

/** Starts a worker with a new storage, which runs until the tests end. */
async function started(options) {
  const folder = await temporaryFolder();
  const begun = await startWorker(folder, options);
  running.push([folder, begun]);
  return begun;
}

before(async () => {
  lines = await transcript();
  model = await startModel((...asked) => answer?.(...asked));
  worker = await started({ main, model: model.address });
});
after(async () => {
  model.close();
  for (const [folder, { stop }] of running) {
    await stop();
    await rm(folder, { recursive: true, force: true });
  }
});

/** Resolves to the client of a conversation with the messages of the walkthrough. */
async function filled(name, at = worker) {
  const chat = client(at, name);
  assert.equal((await chat.post("messages", lines.join("\n")))[1].ingested, lines.length);
  return chat;
}

/** A model that answers only after `release()`; `asked` resolves when it is asked. */
function held() {
  let release;
  const told = new Promise((resolve) => {
    release = resolve;
  });
  const asked = new Promise((resolve) => {
    answer = async () => {
      resolve();
      await told;
      return undefined;
    };
  });
  return { asked, release: () => [release(), (answer = undefined)] };
}

async function isWhole(chat) {
  assert.deepEqual((await chat.get("messages"))[1], lines);
  assert.equal((await chat.get("check"))[1].ok, true);
}

test("what a model answers instead of a summary has the code of its failure", async () => {
  const said = (message) => ({ body: { choices: [{ message }] } });
  const error = (status, message) => ({ status, body: { error: { message } } });
  const cases = [
    [{ status: 500 }, "unavailable"],
    [{ status: 503 }, "unavailable"],
    [{ status: 504 }, "timeout"],
    [{ status: 404 }, "other"],
    [{ status: 429, headers: { "retry-after": "-5" } }, "rate-limited"],
    [{ status: 429, headers: { "retry-after": "0.0005" } }, "rate-limited"],
    [error(400, "this exceeds the maximum context length"), "context-too-long"],
    [{ status: 413 }, "context-too-long"],
    [{ body: "<html>" }, "unavailable"],
    [{ body: {} }, "unavailable"],
    [{ body: { choices: [] } }, "unavailable"],
    [said({ content: null }), "unavailable"],
  ];
  for (const [at, [failure, code]] of cases.entries()) {
    const chat = await filled(`model ${at}`);
    answer = async () => failure;
    const [status, done] = await chat.post(`compact?budget=${BUDGET}&retries=0`);
    assert.deepEqual([status, done.failure?.code], [200, code], JSON.stringify(failure));
    await isWhole(chat);
  }
  const refusals = [error(400, "refused by the content policy"), { status: 402 }];
  for (const [at, refusal] of refusals.entries()) {
    const chat = await filled(`refusal ${at}`);
    answer = async () => refusal;
    const [status, { error: refused }] = await chat.post(`compact?budget=${BUDGET}`);
    assert.deepEqual([status, refused.code], [502, "completion-failed"]);
  }
  answer = undefined;
});

test("a model is reached by its address, too, and one that is not there has a code", async () => {
  const variables = { MODEL_NAME: "m", MODEL_KEY: "k" };
  const address = `http://${model.address}/v1/`;
  const reached = await started({ variables: { ...variables, MODEL_URL: address } });
  const [, { status }] = await (await filled("url", reached)).post(`compact?budget=${BUDGET}`);
  const { path, headers, body } = model.asked.at(-1);
  assert.deepEqual([status, path], ["done", "/v1/chat/completions"]);
  assert.deepEqual([headers.authorization, body.model], ["Bearer k", "m"]);

  const nobody = { ...variables, MODEL_URL: "http://127.0.0.1:1/v1" };
  const alone = await started({ variables: nobody });
  const chat = await filled("nobody", alone);
  const [, { failure }] = await chat.post(`compact?budget=${BUDGET}&retries=0`);
  assert.equal(failure.code, "unavailable");
  await isWhole(chat);
});

test("a worker that is not set up right says so, and blames no client", async () => {
  const wrong = [{ LCM_CONTEXT_THRESHOLD: "7" }, { MODEL_URL: "no address" }];
  for (const variables of wrong) {
    const broken = await started({ variables });
    for (const path of ["status", "context?budget=1000", "tools"]) {
      const [status, { error }] = await client(broken, "x").get(path);
      assert.deepEqual([status, error.code], [500, "invalid-input"], path);
      assert.match(error.message, /^the worker is not set up right: /);
    }
  }
});

test("whoever has no token is refused, and so is everybody where there is none", async () => {
  const closed = await started({ variables: { ACCESS_TOKEN: "" } });
  const refusals = [
    [worker, {}],
    [worker, { authorization: "Bearer wrong" }],
    [worker, { authorization: worker.token }],
    [closed, {}],
    [closed, { authorization: "Bearer " }],
    [closed, { authorization: "Bearer undefined" }],
  ];
  for (const [{ url }, headers] of refusals) {
    const response = await fetch(`${url}/conversations/x/status`, { headers });
    assert.deepEqual([response.status, (await response.json()).error.code], [401, "denied"]);
  }
});

test("evicted between plan and apply, a request is told to repeat, and then goes on", async () => {
  const chat = await filled("evicted");
  const { asked, release } = held();
  const compacting = chat.post(`compact?budget=${BUDGET}`);
  await asked;
  const vanished = await chat.post("vanish");
  for (const [status, { error }] of [vanished, await compacting]) {
    assert.deepEqual([status, error.code], [503, "store-unavailable"]);
  }
  release();
  assert.equal((await chat.post(`compact?budget=${BUDGET}`))[1].status, "done");
  await isWhole(chat);
});

test("what was stored though the reply was lost is recognised as the README says", async () => {
  const line = (content) => JSON.stringify({ role: "user", content });
  const short = ["yes", "ok", "yes"].map(line);
  const long = ["first", "second"].map((name) => line(`the ${name} of two ${"words ".repeat(40)}`));
  const alone = long.slice(1);
  const now = "now=1700000000000";
  const cases = [
    // Each case: the messages, options of both requests, options of the second request only, and
    // whether the second request recognises the messages as stored.
    [short, now, "repeat=true", true],
    [short, now, "", true],
    [short, "", "", true],
    [short, "", "repeat=true", true],
    [long, "", "", true],
    // The only message of a list counts as new unless the call is a repetition at the same time.
    [alone, now, "repeat=true", true],
    [alone, now, "", false],
    [alone, "", "", false],
    [alone, "", "repeat=true", false],
    [short, `new&${now}`, "repeat=true", true],
    [short, `new&${now}`, "", false],
    [short, "new", "repeat=true", false],
    [long, `new&${now}`, "repeat=true", true],
    [long, `new&${now}`, "", false],
    [long, "new", "repeat=true", false],
    [lines, "new", "", true],
  ];
  const routes = { "messages?": "appendMode=", "turn?budget=100000&": "appendMode=" };
  for (const [route, mode] of Object.entries(routes)) {
    for (const [at, [said, both, again, isKnown]] of cases.entries()) {
      const path = route + both.replace("new", `${mode}new`);
      const what = `${path} ${again} ${at}`;
      const chat = client(worker, `lost ${path} ${at}`);
      const [status, { error }] = await chat.post(`${path}&lost=true`, said.join("\n"));
      assert.deepEqual([status, error.code], [503, "store-unavailable"], what);
      const [, done] = await chat.post(`${path}&${again}`, said.join("\n"));
      assert.equal((done.receipt ?? done).ingested, isKnown ? 0 : said.length, what);
      const stored = isKnown ? said : [...said, ...said];
      assert.deepEqual((await chat.get("messages"))[1], stored, what);
    }
  }
  const [, { error }] = await client(worker, "x").post("turn?budget=1000&mode=new", short[0]);
  assert.match(error.message, /`options.mode` must be one of threshold/);
});

test("requests that race store everything once, and each has an answer", async () => {
  const chat = client(worker, "race");
  const body = lines.join("\n");
  const racing = await Promise.all([
    ...Array.from({ length: 4 }, () => chat.post("messages", body)),
    ...Array.from({ length: 2 }, () => chat.post(`turn?budget=${BUDGET}`, body)),
  ]);
  assert.deepEqual(racing.map(([status]) => status), [200, 200, 200, 200, 200, 200]);
  const ingested = racing.map(([, done]) => (done.receipt ?? done).ingested);
  assert.equal(ingested.reduce((sum, count) => sum + count), lines.length);
  const both = await Promise.all(
    Array.from({ length: 2 }, () => chat.post(`compact?budget=${BUDGET}`)),
  );
  for (const [status, done] of both) assert.deepEqual([status, done.failure], [200, null]);
  await isWhole(chat);

  const { asked, release } = held();
  const question = { question: "what of the batch window?" };
  const first = chat.post("ask", question);
  await asked;
  const [status, second] = await chat.post("ask", question);
  assert.deepEqual([status, second.status], [200, "busy"]);
  release();
  assert.notEqual((await first)[1].status, "busy");
});

test("an alarm that rings twice, and beside a request, does what is owed once", async () => {
  const lcm = await open({ store: "memory:", complete: async () => SAID, environment: {} });
  assert.equal((await lcm.turn("x", lines, { budget: 12_000, defer: true })).deferred, true);
  await lcm.maintain("x", { budget: 12_000 });
  const { summaries } = await lcm.status("x");

  const turn = async (chat) => {
    const [, { deferred }] = await chat.post("turn?budget=12000&defer=true", lines.join("\n"));
    assert.equal(deferred, true);
  };
  const chat = client(worker, "twice");
  const { asked, release } = held();
  await turn(chat);
  await asked;
  // While the alarm waits for its model, another turn sets the alarm again, and a request does the
  // same work.
  await turn(chat);
  const beside = chat.post("maintain?budget=12000");
  release();
  assert.equal((await beside)[0], 200);
  const settled = await eventually(async () => {
    const [, status] = await chat.get("status");
    return isDeepStrictEqual(status.summaries, summaries) && status;
  });
  assert.equal(settled.debt, null);
  const [, { compacted }] = await chat.post("maintain?budget=12000");
  assert.equal(compacted, null);
  assert.deepEqual((await chat.get("status"))[1], settled);
  await isWhole(chat);
});

test("the storage does what the steps of the conformance kit say of a store", async () => {
  const steps = new URL("../../kit/store.json", import.meta.url);
  const body = await readFile(steps, "utf8");
  const asked = { method: "POST", body };
  const response = await fetch(`${worker.url}/check/store`, asked);
  assert.deepEqual(await response.json(), []);
  const wrong = JSON.parse(body);
  wrong.steps[0].expect = ["", null];
  asked.body = JSON.stringify(wrong);
  const found = await (await fetch(`${worker.url}/check/store`, asked)).json();
  assert.deepEqual(found, [[wrong.steps[0].claim, "[null,null]"]]);
});

test("the largest bodies that are taken fit an isolate of 128 MB", async () => {
  const [bytes, messages] = [8 << 20, 20_000];
  const line = (content) => JSON.stringify({ role: "user", content });
  const short = bytes / messages - line("").length - 6;
  const many = Array.from({ length: messages }, (_, i) => line(`${i}`.padEnd(short, " word")));
  const texts = ["y".repeat(bytes - 100), "\u4e16".repeat(bytes / 3 - 100)];
  const bodies = [many.join("\n"), ...texts.map(line)];
  // The peak of the whole process; the memory of workerd itself is measured before and subtracted.
  const peakMegabytes = async (pid) => {
    const said = await readFile(`/proc/${pid}/status`, "utf8");
    const kilobytes = Number(/VmHWM:\s+(\d+) kB/.exec(said)?.[1]);
    assert.ok(kilobytes > 0, `no peak of the process in:\n${said}`);
    return kilobytes / 1000;
  };
  for (const [at, body] of bodies.entries()) {
    const small = await started({ heapMegabytes: 64 });
    const chat = client(small, `body ${at}`);
    await chat.get("status");
    const before = await peakMegabytes(small.pid);
    assert.equal((await chat.post("messages", body))[0], 200);
    const taken = (await peakMegabytes(small.pid)) - before;
    // The lower bound shows that the measurement works: the body itself takes this memory.
    assert.ok(taken > bytes / 1e6 && taken < 105, `${taken} MB`);
    await small.stop();
  }
});
