// A store in the SQLite storage of a Durable Object: synchronous and transactional.
//
// The table is the same as in other hosts. The runtime delays responses until writes are durable,
// so a reported commit survives (rule S2 of `wit/store.wit`).

import { conflictAt, guardHolds, pageOf } from "./store-memory.js";

/** A statement takes 100 bound parameters at most. */
const KEYS_PER_STATEMENT_MAX = 90;

function bytes(value) {
  return value === undefined ? undefined : new Uint8Array(value);
}

/** Converts rows to entries. */
function* entriesOf(rows) {
  for (const { k: key, v } of rows) yield { key, value: bytes(v) };
}

/** Makes a store of `storage`, the `ctx.storage` of a Durable Object with SQLite. */
export function durableStore(storage) {
  const { sql } = storage;
  sql.exec("CREATE TABLE IF NOT EXISTS kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)");

  function getMany(keys) {
    const found = new Map();
    for (let at = 0; at < keys.length; at += KEYS_PER_STATEMENT_MAX) {
      const slice = keys.slice(at, at + KEYS_PER_STATEMENT_MAX);
      const marks = slice.map(() => "?").join(", ");
      for (const row of sql.exec(`SELECT k, v FROM kv WHERE k IN (${marks})`, ...slice)) {
        found.set(row.k, bytes(row.v));
      }
    }
    return keys.map((key) => found.get(key));
  }

  function scan(start, end, reverse, entriesMax, bytesMax) {
    const order = reverse ? "DESC" : "ASC";
    const query = `SELECT k, v FROM kv WHERE k >= ? AND k < ? ORDER BY k ${order}`;
    return pageOf(entriesOf(sql.exec(query, start, end)), entriesMax, bytesMax);
  }

  function write({ key, value }) {
    if (value === undefined || value === null) {
      sql.exec("DELETE FROM kv WHERE k = ?", key);
    } else {
      sql.exec(
        "INSERT INTO kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        key,
        value,
      );
    }
  }

  /** A thrown conflict rolls the transaction back. */
  function commit(guards, puts) {
    storage.transactionSync(() => {
      const stored = getMany(guards.map(({ key }) => key));
      guards.forEach(({ key, value }, i) => {
        if (!guardHolds(stored[i], value)) throw conflictAt(key);
      });
      puts.forEach(write);
    });
  }

  return { getMany, scan, commit };
}
