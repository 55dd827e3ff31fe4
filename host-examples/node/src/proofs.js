// Proofs that the beginning of a list is stored, so that a list that grew is not compared again.
//
// In: the lists that were stored. Out: members of a task `append` or `ingest`. The engine verifies
// a proof, and compares the whole list if the conversation has changed.

import { sha256Hex } from "./digest.js";

/** Maximum number of conversations whose newest list is known. */
const CONVERSATIONS_MAX = 256;
/** Maximum number of messages of a list that needs no proof, because one call takes it. */
const COMPARED_MAX = 100;

const encoder = new TextEncoder();

/** Resolves to the hash of messages, which are texts in JSON, and so of their number. */
function hashOf(dialect, texts) {
  return sha256Hex(encoder.encode([dialect, ...texts].join("\n")));
}

/** The newest stored list of each conversation. */
export class Proofs {
  #newest = new Map();

  /** Resolves to the members `proven` and `proven_revision` of a task; none: nothing is known. */
  async find({ conversation, dialect, append_mode: mode }, texts) {
    const { count, hash, revision } = this.#newest.get(conversation) ?? {};
    if (mode === "new" || !(count < texts.length)) return {};
    const isSame = (await hashOf(dialect, texts.slice(0, count))) === hash;
    return isSame ? { proven: count, proven_revision: revision } : {};
  }

  /** Keeps the list of a task that a receipt of this revision confirmed. */
  async keep({ conversation, dialect, append_mode: mode }, texts, revision) {
    if (mode === "new") return;
    this.#newest.delete(conversation);
    if (texts.length < COMPARED_MAX) return;
    const hash = await hashOf(dialect, texts);
    this.#newest.set(conversation, { count: texts.length, hash, revision });
    if (this.#newest.size > CONVERSATIONS_MAX) {
      this.#newest.delete(this.#newest.keys().next().value);
    }
  }
}
