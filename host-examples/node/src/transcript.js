// Ingest of a whole transcript: the engine says which messages are missing, those are appended.
//
// Alignment cannot be decided batch by batch, so the identities of all messages go to `reconcile`
// first. They are computed by the engine; nothing is compared here.

import { batchesOf, mergeReceipts, stagedTexts } from "./batches.js";

/** Identities of all texts, in their order. */
function identities(backend, dialect, texts) {
  return batchesOf(texts).flatMap((messages) =>
    JSON.parse(backend.pure("ingest.identify", { dialect, messages })),
  );
}

/** Stores those of `texts` that are missing in the conversation; resolves to one receipt. */
export async function ingestTranscript(backend, conversation, texts, options) {
  const { dialect, now, refuse_replay } = options;
  const entries = identities(backend, dialect, texts);
  const transcript_json = JSON.stringify({ entries });
  const args = { conversation, transcript_json, now };
  const plan = JSON.parse(await backend.call("ingest.reconcile", args));
  const missing = plan.missing.flatMap(({ from, to }) => texts.slice(from, to + 1));
  const staged = await stagedTexts(backend, conversation, missing, now);
  const extra_json = refuse_replay ? JSON.stringify({ refuse_replay }) : null;
  const receipts = [];
  for (const messages of staged.length > 0 ? batchesOf(staged) : [[]]) {
    const call = { conversation, dialect, messages, options: { mode: "new", extra_json }, now };
    receipts.push(await backend.call("ingest.append", call));
  }
  const receipt = mergeReceipts(receipts);
  return {
    ...receipt,
    skipped: receipt.skipped + texts.length - missing.length,
    warnings: [...plan.warnings, ...receipt.warnings],
  };
}
