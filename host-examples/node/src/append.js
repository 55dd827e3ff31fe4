// How the newest messages of a conversation are stored: in one call, in several, or, where only the
// whole list tells what is stored already, as a transcript.

import { batchesOf, mergeReceipts, severalBatches, stagedTexts } from "./batches.js";
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
  let from = 0;
  for (const messages of batchesOf(staged)) {
    const extra = { repeat, refuse_replay, family, list, from };
    const append = (again) => {
      const options = { mode, extra_json: extraJson({ ...extra, ...again }) };
      return backend.call("ingest.append", { conversation, dialect, messages, options, now });
    };
    receipts.push(await settled(append));
    from += messages.length;
  }
  return mergeReceipts(receipts);
}

/** Stores `texts`; `given` has those of `APPEND_OPTIONS` that are to count, and `now`. */
export async function append(backend, conversation, texts, given) {
  const { dialect = "lcm", mode = "transcript", repeat, refuse_replay, family, now } = given;
  const asked = { ...given, dialect };
  if (severalBatches(texts)) {
    // What is stored already cannot be told batch by batch, and a replay neither.
    const isWhole = mode === "transcript" || refuse_replay === true;
    const store = isWhole ? ingestTranscript : appendList;
    return store(backend, conversation, texts, { ...asked, is_list: true });
  }
  const messages = await stagedTexts(backend, conversation, texts, now, family);
  const options = { mode, extra_json: extraJson({ repeat, refuse_replay, family }) };
  const call = { conversation, dialect, messages, options, now };
  return mergeReceipts([await backend.call("ingest.append", call)]);
}
