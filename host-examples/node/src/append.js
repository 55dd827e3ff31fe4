// How the newest messages of a conversation are stored: in one call, in several, or, where only the
// whole list tells what is stored already, as a transcript.

import { BATCH_MESSAGES_MAX, batchesOf, mergeReceipts } from "./batches.js";
import { severalBatches, stagedTexts, takenBy } from "./batches.js";
import { sha256Hex } from "./digest.js";
import { identitiesJson, ingestTranscript, settled } from "./transcript.js";

export const INGEST_OPTIONS = ["dialect", "refuse_replay", "family", "now"];
export const APPEND_OPTIONS = [...INGEST_OPTIONS, "mode", "repeat"];

/** Further options of the engine's `append`, as JSON; null: there are none. */
function extraJson({ repeat = false, refuse_replay = false, family, ...part }) {
  const extra = {
    ...(repeat && { repeat }),
    ...(refuse_replay && { refuse_replay }),
    ...(family !== undefined && { family }),
    ...part,
  };
  return Object.keys(extra).length > 0 ? JSON.stringify(extra) : null;
}

/** Stores new messages that one call does not take, as a list that the engine knows by its name. */
async function appendList(backend, conversation, texts, given) {
  const { dialect, family, mode, now, repeat, refuse_replay } = given;
  // A message that is refused is so before the batches in front of it are stored.
  const entriesJson = await identitiesJson(backend, dialect, texts);
  const list = await sha256Hex(new TextEncoder().encode(`${now} ${entriesJson}`));
  const staged = await stagedTexts(backend, conversation, texts, now, family);
  const receipts = [];
  for (let from = 0; from < staged.length; ) {
    // Cut as before the staging: what a reference stands for takes its room, too.
    const [{ length }] = batchesOf(texts.slice(from, from + BATCH_MESSAGES_MAX));
    const messages = staged.slice(from, from + length);
    const extra = { repeat, refuse_replay, family, list, from };
    const append = (again) => {
      const options = { mode, partial: true, extra_json: extraJson({ ...extra, ...again }) };
      return backend.call("ingest.append", { conversation, dialect, messages, options, now });
    };
    const receipt = await settled(append);
    receipts.push(receipt);
    from += takenBy(receipt);
  }
  return mergeReceipts(receipts);
}

/** Stores `texts`; `given` has those of `APPEND_OPTIONS` that are to count, and `now`. */
export async function append(backend, conversation, texts, given) {
  const { dialect = "lcm", mode = "transcript", repeat, refuse_replay, family, now } = given;
  const several = () => {
    // What is stored already cannot be told batch by batch, and a replay neither.
    const isWhole = mode === "transcript" || refuse_replay === true;
    const store = isWhole ? ingestTranscript : appendList;
    return store(backend, conversation, texts, { ...given, dialect, is_list: true });
  };
  if (severalBatches(texts)) return several();
  const messages = await stagedTexts(backend, conversation, texts, now, family);
  const options = { mode, extra_json: extraJson({ repeat, refuse_replay, family }) };
  const call = { conversation, dialect, messages, options, now };
  try {
    return mergeReceipts([await backend.call("ingest.append", call)]);
  } catch (error) {
    // A call has further bounds than those by which batches are cut, such as that of ids.
    if (error.code !== "limit-exceeded" || texts.length < 2) throw error;
    return several();
  }
}
