// Tasks of several calls: the engine says what comes next, and here it is carried out.
//
// In: a task and what only the host has, its messages and models. Out: the result of the task. The
// instructions are described in `wit/drive.wit`; nothing is decided here.

import { modelChain } from "./completion.js";
import { toJson } from "./convert.js";
import { sha256Hex } from "./digest.js";
import { LcmError } from "./errors.js";
import { modelsFor } from "./models.js";
import { pause } from "./queue.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The messages of a task: their sizes, and references to those that were uploaded. */
export class Messages {
  #texts;
  #uploads = new Map();

  constructor(texts) {
    this.#texts = texts;
    this.sizes = texts.map((text) => encoder.encode(text).length);
  }

  /** What a task says of its messages. */
  get measures() {
    const add = (total, size) => total + size;
    const longer = (longest, size) => Math.max(longest, size);
    return {
      count: this.sizes.length,
      bytes: this.sizes.reduce(add, 0),
      bytes_longest: this.sizes.reduce(longer, 0),
    };
  }

  /** The messages of one call: as many as fit from `first` on, at least one unless `count` is 0. */
  cut({ index_first: first, count, bytes_max: bytesMax }) {
    const messages = [];
    for (let index = first, bytes = 0; index < first + count; index++) {
      bytes += this.sizes[index];
      if (messages.length > 0 && bytes > bytesMax) break;
      messages.push(this.#uploads.get(index) ?? this.#texts[index]);
    }
    return messages;
  }

  /** Uploads those of a range that are too large for a call; resolves to how many there were. */
  async stage(backend, instruction) {
    const { arguments: args, index_first: first, count } = instruction;
    const { bytes_max: most, piece_bytes_max: piece } = instruction;
    let staged = 0;
    for (let index = first; index < first + count; index++) {
      if (this.sizes[index] <= most || this.#uploads.has(index)) continue;
      this.#uploads.set(index, await upload(backend, args, this.#texts[index], piece));
      staged += 1;
    }
    return staged;
  }
}

/** Uploads one text in pieces that end between code points; resolves to its reference. */
async function upload(backend, { conversation, family, now }, whole, pieceMax) {
  const bytes = encoder.encode(whole);
  const name = await sha256Hex(bytes);
  const extra_json = JSON.stringify({ bytes: bytes.length, family: family ?? undefined });
  for (let offset = 0; offset < bytes.length; ) {
    let end = Math.min(offset + pieceMax, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end -= 1;
    const text = decoder.decode(bytes.subarray(offset, end));
    const args = { conversation, upload: name, offset, text, extra_json, now };
    const next = await backend.call("ingest.stage", args);
    if (!(next > offset)) throw new LcmError("trap", `an upload does not advance at ${offset}`);
    offset = next;
  }
  return `@upload ${name}`;
}

/** Answers requests with the caller's models, or without one. */
function completerOf(backend, models, options) {
  const chain = modelChain(models, options);
  return async (request) => {
    if (modelsFor(models, request.purpose).length > 0) return chain(request);
    const done = await backend.compute("compaction.complete_offline", { request });
    return { result: { done }, calls: 1 };
  };
}

/** One task on its way. */
class Driver {
  passes = [];
  result = {};
  #warnings = new Set();
  #parts;
  #complete;
  #isStopped = false;
  #failure;
  #kept = [];
  #requests = [];
  #answers = [];

  constructor(backend, parts) {
    this.#parts = parts;
    this.#complete = parts.models && completerOf(backend, parts.models, parts.options);
  }

  get warnings() {
    return [...this.#warnings];
  }

  /** Asks the engine what comes next, and keeps what it says of the task. */
  async ask(backend, name, args) {
    const asked = { ...args, now: this.#parts.now() };
    const instruction = JSON.parse(await backend.compute(name, asked));
    if (instruction.pass) this.passes.push(instruction.pass);
    for (const line of instruction.warnings ?? []) this.#warnings.add(line);
    Object.assign(this.result, instruction.note, instruction.result);
    if (instruction.do !== "fail") return instruction;
    const { code, message } = instruction.error;
    if (this.#failure?.code === code && this.#failure.message === message) throw this.#failure;
    throw new LcmError(code, message, { cause: this.#failure });
  }

  /** Carries an instruction out; resolves to the one that follows. */
  async advance(backend, instruction) {
    const event = await this.#event(backend, instruction).catch((error) => {
      if (!(error instanceof LcmError)) throw error;
      this.#failure = error;
      return { error: { code: error.code, message: error.message } };
    });
    const { token } = instruction;
    return this.ask(backend, "drive.step", { token, event_json: JSON.stringify(event) });
  }

  async #event(backend, instruction) {
    if (!this.#isStopped && this.#parts.options?.signal?.aborted) {
      this.#isStopped = true;
      return { stopped: true };
    }
    if (instruction.wait_ms) await pause(Math.random() * instruction.wait_ms);
    if (instruction.do === "complete") return { answers: await this.#answer(instruction) };
    if (instruction.do === "call") return { result: await this.#call(backend, instruction) };
    return { staged: await this.#parts.messages.stage(backend, instruction) };
  }

  async #answer({ index_first: first, count }) {
    const requests = this.#requests.slice(first, first + count);
    const answers = await Promise.all(requests.map((request) => this.#complete(request)));
    return answers.map(({ result, calls }, i) => {
      this.#answers[first + i] = result;
      return { asked: calls, done: result?.done && true, failed: result?.failed };
    });
  }

  async #call(backend, { call, arguments: args, messages, keep, entries, request, once }) {
    if (messages) args.messages = this.#parts.messages.cut(messages);
    if (entries) {
      const asked = args.transcript_json.slice(0, -1);
      args.transcript_json = `${asked},"entries":[${this.#kept.join(",")}]}`;
    }
    if (request !== undefined) {
      args.request_id = this.#requests[request].id;
      args.answer ??= this.#answers[request];
    }
    const how = keep ? "compute" : once ? "attempt" : "call";
    const result = await backend[how](call, args);
    if (keep && messages.index_first === 0) this.#kept = [];
    if (keep) this.#kept.push(result.slice(1, -1));
    if (call === "compaction.plan") this.#requests = result.requests;
    if (result.next) this.#requests[request] = result.next;
    return result;
  }
}

/**
 * Carries out a task; resolves to `{result, passes, warnings}`.
 *
 * `parts` are `now()`, and as the task needs them `messages`, `models`, and `options` with how these
 * are asked and the `signal` that ends the task. `first(work)` runs the first call, so that it has
 * its place in a line at once. Of one conversation at a time: see `Calls`.
 */
export async function drive(backend, task, parts) {
  const { first = (work) => work(backend) } = parts;
  const driver = new Driver(backend, parts);
  let instruction = await first(async (inner) => {
    const begin = { task_json: toJson(task, "options") };
    return driver.advance(inner, await driver.ask(inner, "drive.begin", begin));
  });
  while (instruction.do !== "done") instruction = await driver.advance(backend, instruction);
  const { result, passes, warnings } = driver;
  return { result, passes, warnings };
}
