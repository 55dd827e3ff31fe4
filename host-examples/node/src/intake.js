// How messages are stored: the newest of a conversation, or what is missing of a whole transcript.

import { drive, Messages } from "./drive.js";

export const INGEST_OPTIONS = ["dialect", "refuse_replay", "family", "now"];
export const APPEND_OPTIONS = [...INGEST_OPTIONS, "append_mode", "repeat"];

/** Messages of one call that only reads them. */
const IDENTIFY_MAX = 100;

/** Identities of all texts, in their order; rejects when one is no message of the dialect. */
export async function identities(backend, dialect, texts) {
  const lists = [];
  for (let from = 0; from < texts.length; from += IDENTIFY_MAX) {
    const messages = texts.slice(from, from + IDENTIFY_MAX);
    lists.push(JSON.parse(await backend.compute("ingest.identify", { dialect, messages })));
  }
  return lists.flat();
}

/** Stores `texts` by task `append` or `ingest`; resolves to one receipt. */
export async function intake(backend, task, conversation, texts, { now, ...given }) {
  const messages = new Messages(texts);
  const asked = { task, conversation, ...given, ...messages.measures };
  const { result, warnings } = await drive(backend, asked, { messages, now: () => now });
  return { ...result, warnings };
}
