// Intake of the newest messages of a conversation, or of a whole transcript.

import { drive, Messages } from "./drive.js";

/** Stores `texts` by task `append` or `ingest`; resolves to one receipt. */
export async function intake(backend, task, conversation, texts, { now, ...given }) {
  const messages = new Messages(texts);
  const asked = { task, conversation, ...given, ...messages.measures };
  const { result, warnings } = await drive(backend, asked, { messages, now: () => now });
  return { ...result, warnings };
}
