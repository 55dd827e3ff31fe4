// Identities of messages, without a store.

/** Messages of one call. */
const IDENTIFY_MAX = 100;

/** Returns the identities of all texts, in order; rejects when a text is not a valid message. */
export async function identities(backend, dialect, texts) {
  const lists = [];
  for (let from = 0; from < texts.length; from += IDENTIFY_MAX) {
    const messages = texts.slice(from, from + IDENTIFY_MAX);
    lists.push(JSON.parse(await backend.compute("ingest.identify", { dialect, messages })));
  }
  return lists.flat();
}
