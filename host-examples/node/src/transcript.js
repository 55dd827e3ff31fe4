// Ingest of a whole transcript: the engine says which messages are missing, those are appended.
//
// Alignment cannot be decided batch by batch, so the identities of all messages go to `reconcile`
// first. They are computed by the engine; nothing is compared here. What it answers holds for one
// revision: every append names the revision it relies on, and once the conversation moved on the
// engine is asked again. An append of unknown outcome is not looked for among what is stored, where
// short messages cannot be told apart: it is repeated as it was, and the engine knows it again. So
// that a caller can repeat the whole, too, its calls are parts of a list that the engine knows by
// its name: what it consumed before is not missing.

import { BATCH_MESSAGES_MAX, batchesOf, mergeReceipts, stagedTexts, takenBy } from "./batches.js";
import { CONFLICT_RETRIES_MAX, conflictPause } from "./backend.js";
import { sha256Hex } from "./digest.js";
import { LcmError } from "./errors.js";

/**
 * Identities of all texts, in their order, as JSON of one array; rejects when one is no message of
 * the dialect.
 */
export async function identitiesJson(backend, dialect, texts) {
  const lists = [];
  for (const messages of batchesOf(texts)) {
    const json = await backend.compute("ingest.identify", { dialect, messages });
    lists.push(json.slice(1, -1));
  }
  return `[${lists.join(",")}]`;
}

/** How often an append of unknown outcome is repeated. */
const UNKNOWN_RETRIES_MAX = 8;

/**
 * What `append` resolves to once its outcome is known: until then it is called again, with what
 * says that this repeats a call.
 */
export async function settled(append) {
  for (let attempt = 0, repeat = {}; ; attempt++) {
    try {
      return await append(repeat);
    } catch (error) {
      if (error.code !== "store-unavailable" || attempt >= UNKNOWN_RETRIES_MAX) throw error;
      await conflictPause(attempt);
      repeat = { repeat: true };
    }
  }
}

/** One transcript on its way in. */
class Intake {
  receipts = [];
  warnings = [];
  /** Index behind the last message that an append confirmed; every plan is told. */
  #done = 0;

  constructor(backend, conversation, texts, entriesJson, options) {
    const { dialect, now, refuse_replay, family, mode, list, repeat } = options;
    this.backend = backend;
    this.conversation = conversation;
    this.now = now;
    this.dialect = dialect;
    this.refuse_replay = refuse_replay === true;
    this.is_new = mode === "new";
    this.extra = { ...(family !== undefined && { family }) };
    this.list = list;
    this.repeats = repeat === true;
    // Large ones are replaced by references once they are staged.
    this.texts = [...texts];
    this.entriesJson = entriesJson;
  }

  /** Indexes of the messages that are not stored, and the revision this is true of. */
  async plan() {
    const { conversation, entriesJson, now } = this;
    const list = this.repeats ? this.list : undefined;
    const asked = JSON.stringify({
      confirmed: this.#done,
      new: this.is_new,
      refuse_replay: this.refuse_replay,
      list,
    });
    const transcript_json = `${asked.slice(0, -1)},"entries":${entriesJson}}`;
    const args = { conversation, transcript_json, now };
    const plan = JSON.parse(await this.backend.call("ingest.reconcile", args));
    if (!Number.isSafeInteger(plan.revision)) {
      throw new LcmError("trap", "`ingest.reconcile` answered without a revision");
    }
    // Later ones would also speak of what was stored here.
    if (this.#done === 0) this.warnings = plan.warnings;
    const missing = [];
    for (const { from, to } of plan.missing) {
      for (let index = from; index <= to; index++) missing.push(index);
    }
    return { missing, revision: plan.revision };
  }

  /** Stages those that are too large for a call; resolves to whether there were any. */
  async stage(missing) {
    const before = missing.map((index) => this.texts[index]);
    const { family } = this.extra;
    const after = await stagedTexts(this.backend, this.conversation, before, this.now, family);
    missing.forEach((index, at) => {
      this.texts[index] = after[at];
    });
    return after.some((text, at) => text !== before[at]);
  }

  async #append(messages, extra) {
    const { conversation, dialect, now } = this;
    const options = { mode: "new", partial: true, extra_json: JSON.stringify(extra) };
    const call = { conversation, dialect, messages, options, now };
    return this.backend.attempt("ingest.append", call);
  }

  /** The same at a revision; a call whose outcome is unknown is repeated. */
  #appendAt(revision, messages, from) {
    const place = this.list === undefined ? {} : { list: this.list, from };
    const extra = { ...this.extra, revision, ...place };
    return settled((repeat) => this.#append(messages, { ...extra, ...repeat }));
  }

  /**
   * Appends these messages, each call relying on the revision that the one before left; resolves to
   * whether that held to the end.
   */
  async append({ missing, revision }) {
    // An empty call writes nothing and says how things stand.
    if (missing.length === 0) this.receipts.push(await this.#append([], this.extra));
    for (let at = 0; at < missing.length; ) {
      const next = missing.slice(at, at + BATCH_MESSAGES_MAX).map((index) => this.texts[index]);
      const [batch] = batchesOf(next);
      const receipt = await this.#appendAt(revision, batch, missing[at]);
      this.receipts.push(receipt);
      at += takenBy(receipt);
      this.#done = missing[at - 1] + 1;
      // What was known again says where the conversation is now: others may have written since.
      if (receipt.revision > revision + 1) return at === missing.length;
      revision = receipt.revision;
    }
    return true;
  }
}

/** What names the list of an append: of the new ones as `append.js` has it. */
function listName({ mode, now }, entriesJson) {
  const kind = mode === "new" ? "" : "transcript ";
  return sha256Hex(new TextEncoder().encode(`${kind}${now} ${entriesJson}`));
}

/**
 * Stores those of `texts` that are missing in the conversation; resolves to one receipt. With
 * `is_list` a later call may `repeat` it.
 */
export async function ingestTranscript(backend, conversation, texts, options) {
  const entriesJson = await identitiesJson(backend, options.dialect, texts);
  const list = options.is_list ? await listName(options, entriesJson) : undefined;
  const intake = new Intake(backend, conversation, texts, entriesJson, { ...options, list });
  let fewest = Infinity;
  for (let repeats = 0; ; ) {
    const plan = await intake.plan();
    if (plan.missing.length < fewest) repeats = 0;
    fewest = Math.min(fewest, plan.missing.length);
    // Staging moves the conversation on.
    if (await intake.stage(plan.missing)) continue;
    try {
      if (await intake.append(plan)) break;
    } catch (error) {
      if (error.code !== "conflict" || repeats >= CONFLICT_RETRIES_MAX) throw error;
      await conflictPause(repeats++);
    }
  }
  const receipt = mergeReceipts(intake.receipts);
  return {
    ...receipt,
    skipped: texts.length - receipt.ingested,
    warnings: [...intake.warnings, ...receipt.warnings],
  };
}
