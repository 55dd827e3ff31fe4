// Messages on their way in: in batches that fit one commit, large ones staged first.

import { invalid, LcmError } from "./errors.js";
import { sha256Hex } from "./digest.js";

/** Bounds of one ingest commit and of one staged piece (see `wit/ingest.wit`). */
export const BATCH_MESSAGES_MAX = 100;
const BATCH_BYTES_MAX = 512 * 1024;
const PIECE_BYTES_MAX = 192 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function byteLength(text) {
  return encoder.encode(text).length;
}

/** Cuts texts into runs that fit one call. A text that is too large alone is a run of its own. */
export function* batchesOf(texts) {
  let batch = [];
  let bytes = 0;
  for (const text of texts) {
    const size = byteLength(text);
    const full = batch.length >= BATCH_MESSAGES_MAX || bytes + size > BATCH_BYTES_MAX;
    if (batch.length > 0 && full) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(text);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Whether one call does not take all texts. */
export function severalBatches(texts) {
  const batches = batchesOf(texts);
  batches.next();
  return batches.next().done === false;
}

/** The end of the piece that starts at `start`: on a code point boundary, within the bound. */
function pieceEnd(bytes, start) {
  let end = Math.min(start + PIECE_BYTES_MAX, bytes.length);
  while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end -= 1;
  return end;
}

/** Stages one text and returns the reference that stands for it. */
async function stage(backend, conversation, bytes, now, family) {
  const upload = await sha256Hex(bytes);
  const extra_json = JSON.stringify({ bytes: bytes.length, family });
  let offset = 0;
  while (offset < bytes.length) {
    const text = decoder.decode(bytes.subarray(offset, pieceEnd(bytes, offset)));
    const args = { conversation, upload, offset, text, extra_json, now };
    const next = await backend.call("ingest.stage", args);
    if (!(next > offset)) throw invalid(`staging of \`${upload}\` does not advance at ${offset}`);
    offset = next;
  }
  return `@upload ${upload}`;
}

/**
 * The texts with references in place of those that are too large for a call.
 *
 * `family` is the key that their append names; undefined: none.
 */
export async function stagedTexts(backend, conversation, texts, now, family) {
  const result = [];
  for (const text of texts) {
    // A UTF-16 unit is at most three bytes: most texts need no counting.
    const small = text.length * 3 <= BATCH_BYTES_MAX;
    const bytes = small ? null : encoder.encode(text);
    const fits = small || bytes.length <= BATCH_BYTES_MAX;
    result.push(fits ? text : await stage(backend, conversation, bytes, now, family));
  }
  return result;
}

/** How many messages of its call a receipt speaks of: the next call begins behind them. */
export function takenBy(receipt) {
  const taken = receipt.ingested + receipt.skipped;
  if (taken === 0) throw new LcmError("trap", "`ingest.append` took none of the messages");
  return taken;
}

/** One receipt for several calls. */
export function mergeReceipts(receipts) {
  const last = receipts.at(-1);
  const sum = (key) => receipts.reduce((total, receipt) => total + receipt[key], 0);
  return {
    ...last,
    ingested: sum("ingested"),
    skipped: sum("skipped"),
    seq_first: receipts.find((receipt) => receipt.seq_first !== null)?.seq_first ?? null,
    seq_last: receipts.findLast((receipt) => receipt.seq_last !== null)?.seq_last ?? null,
    warnings: receipts.flatMap((receipt) => receipt.warnings),
  };
}
