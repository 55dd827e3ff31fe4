// How the newest messages of a conversation are stored: in one call, in several, or, where only the
// whole list tells what is stored already, as a transcript.

import { batchesOf, mergeReceipts, severalBatches, stagedTexts } from "./batches.js";
import { invalid } from "./errors.js";
import { identitiesJson, ingestTranscript } from "./transcript.js";

export const INGEST_OPTIONS = ["dialect", "refuse_replay", "family", "now"];
export const APPEND_OPTIONS = [...INGEST_OPTIONS, "mode", "repeat"];

/** Calls that the engine knows again (see `wit/ingest.wit`). */
const REPEATS_MAX = 8;

/** Rejects a repetition of calls that the engine would not know again, or take for each other. */
function checkRepeats(batches, identities) {
  if (batches.length > REPEATS_MAX) {
    const known = `\`repeat\` is known of the last ${REPEATS_MAX} calls, and these messages take`;
    throw invalid(`${known} ${batches.length}; hand them over in mode \`transcript\``);
  }
  const hashes = identities.map(({ hash }) => hash);
  const said = batches.map(({ length }) => hashes.splice(0, length).join());
  if (new Set(said).size < said.length) {
    throw invalid("`repeat` of equal messages cannot be told apart; hand them over in smaller calls");
  }
}

/** Further options of the engine's `append`, as JSON; null: there are none. */
function extraJson({ repeat = false, refuse_replay = false, family }) {
  const extra = {
    ...(repeat && { repeat }),
    ...(refuse_replay && { refuse_replay }),
    ...(family !== undefined && { family }),
  };
  return Object.keys(extra).length > 0 ? JSON.stringify(extra) : null;
}

/** Stores `texts`; `given` has all of `APPEND_OPTIONS` that are to count, and `now`. */
export async function append(backend, conversation, texts, given) {
  const { dialect = "lcm", mode = "transcript", repeat = false, family, now } = given;
  let identities = [];
  if (severalBatches(texts)) {
    if (mode === "transcript" || given.refuse_replay === true) {
      // What is stored already cannot be told batch by batch.
      return ingestTranscript(backend, conversation, texts, { ...given, dialect, now });
    }
    // A message that is refused is so before the batches in front of it are stored.
    identities = JSON.parse(await identitiesJson(backend, dialect, texts));
  }
  const staged = await stagedTexts(backend, conversation, texts, now, family);
  const batches = staged.length > 0 ? [...batchesOf(staged)] : [[]];
  if (repeat) checkRepeats(batches, identities);
  const options = { mode, extra_json: extraJson(given) };
  const receipts = [];
  for (const messages of batches) {
    const call = { conversation, dialect, messages, options, now };
    receipts.push(await backend.call("ingest.append", call));
  }
  return mergeReceipts(receipts);
}
