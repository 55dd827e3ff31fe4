// SHA-256, of bytes and of a whole store. Uses Web Crypto, so it works in Node and at the edge.

function hex(buffer) {
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the SHA-256 of bytes as 64 lower-case hex digits. */
export async function sha256Hex(bytes) {
  return hex(await crypto.subtle.digest("SHA-256", bytes));
}

function framed(bytes) {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return [length, bytes];
}

function concat(pieces) {
  const total = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    total.set(piece, at);
    at += piece.length;
  }
  return total;
}

/** End of the range of all keys, which are printable ASCII. */
const KEY_END = "\u007f";
const PAGE_ENTRIES_MAX = 1_000;
const PAGE_BYTES_MAX = 1024 * 1024;

/**
 * Returns the SHA-256 over every entry of a store in key order, each key and value after its length
 * as u32 big-endian. Takes stores of either kind. Runners compare the stores of hosts by this
 * function, which does not use the engine.
 */
export async function storeSha256(store) {
  const encoder = new TextEncoder();
  const pieces = [];
  let start = "";
  for (;;) {
    const page = await store.scan(start, KEY_END, false, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX);
    const [entries, more] = page;
    for (const { key, value } of entries) {
      pieces.push(...framed(encoder.encode(key)), ...framed(value));
    }
    if (!more) return sha256Hex(concat(pieces));
    start = `${entries.at(-1).key}\0`;
  }
}
