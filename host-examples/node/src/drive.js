// Tasks of several calls: the engine returns instructions, and the host carries them out.
//
// In: a task and what only the host has, its messages and models. Out: the result of the task.
// `wit/drive.wit` describes the instructions; the host decides nothing.

import { completerOf } from "./completion.js";
import { toJson } from "./convert.js";
import { sha256Hex } from "./digest.js";
import { LcmError } from "./errors.js";
import { pause } from "./queue.js";
import { errorOf, withRefusal } from "./refusal.js";

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

  /** The members of a task that describe its messages. */
  get measures() {
    const bytes = this.sizes.reduce((total, size) => total + size, 0);
    const bytes_longest = this.sizes.reduce((longest, size) => Math.max(longest, size), 0);
    return { count: this.sizes.length, bytes, bytes_longest };
  }

  /** Returns the messages of one call: as many as fit, at least one unless `count` is 0. */
  cut({ index_first: first, count, bytes_max: bytesMax }) {
    const messages = [];
    for (let index = first, bytes = 0; index < first + count; index++) {
      bytes += this.sizes[index];
      if (messages.length > 0 && bytes > bytesMax) break;
      messages.push(this.#uploads.get(index) ?? this.#texts[index]);
    }
    return messages;
  }

  /** Uploads the messages of a range that are too large for a call; resolves to their number. */
  async stage(backend, { arguments: args, index_first: first, count, ...bounds }) {
    const before = this.#uploads.size;
    for (let index = first; index < first + count; index++) {
      if (this.sizes[index] <= bounds.bytes_max || this.#uploads.has(index)) continue;
      this.#uploads.set(index, await upload(backend, args, this.#texts[index], bounds));
    }
    return this.#uploads.size - before;
  }
}

/** Uploads one text in pieces that end between code points; resolves to its reference. */
async function upload(backend, { conversation, family, now }, whole, bounds) {
  const bytes = encoder.encode(whole);
  const name = await sha256Hex(bytes);
  const extra_json = JSON.stringify({ bytes: bytes.length, family: family ?? undefined });
  for (let offset = 0; offset < bytes.length; ) {
    let end = Math.min(offset + bounds.piece_bytes_max, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end -= 1;
    const text = decoder.decode(bytes.subarray(offset, end));
    const args = { conversation, upload: name, offset, text, extra_json, now };
    const next = await backend.call("ingest.stage", args);
    if (!(next > offset)) throw new LcmError("trap", `an upload does not advance at ${offset}`);
    offset = next;
  }
  return `@upload ${name}`;
}

/** A task in progress. */
class Driver {
  passes = [];
  result = {};
  warnings = new Set();
  #parts;
  #complete;
  #isStopped = false;
  #failure;
  #kept = [];
  #requests = [];
  #answers = [];

  constructor(backend, parts, { conversation: id }) {
    this.#parts = parts;
    this.#complete = parts.models && completerOf(backend, parts.models, parts.options, id);
  }

  /** Asks the engine for the next instruction, and keeps what the instruction reports. */
  async ask(backend, name, args, now = this.#parts.now()) {
    const instruction = JSON.parse(await backend.compute(name, { ...args, now }));
    if (instruction.pass) this.passes.push(instruction.pass);
    for (const event of instruction.events ?? []) backend.events?.emit(event);
    for (const line of instruction.warnings ?? []) this.warnings.add(line);
    const result = withRefusal(instruction.result, this.#answers);
    Object.assign(this.result, instruction.note, result);
    if (instruction.do === "fail") throw errorOf(instruction.error, this.#answers, this.#failure);
    return instruction;
  }

  /** Carries out an instruction; resolves to the next one. */
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
    if (keep) this.#kept = [...(messages.index_first > 0 ? this.#kept : []), result.slice(1, -1)];
    if (call === "compaction.plan") this.#requests = result.requests;
    if (result.next) this.#requests[request] = result.next;
    return result;
  }
}

/**
 * Carries out a task; resolves to `{result, passes, warnings}`.
 *
 * `parts` has `now()`, and if the task needs them `messages`, `models`, and `options` of the models
 * with the `signal` that ends the task. `first(work)` runs the first call, so that the call gets
 * its place in the queue at once. `Calls` runs one such task of a conversation at a time.
 */
export async function drive(backend, task, parts) {
  const { first = (work) => work(backend) } = parts;
  const driver = new Driver(backend, parts, task);
  let instruction = await first(async (inner) => {
    const begin = { task_json: toJson(task, "options") };
    return driver.advance(inner, await driver.ask(inner, "drive.begin", begin));
  });
  while (instruction.do !== "done") instruction = await driver.advance(backend, instruction);
  return { result: driver.result, passes: driver.passes, warnings: [...driver.warnings] };
}
