// The embedded default store: one SQLite file, in the format of all hosts.
//
// One table `kv(k TEXT PRIMARY KEY, v BLOB NOT NULL)`, write-ahead log, full synchronisation.
// SQLite comes from `node:sqlite` where Node has it, else from `@photostructure/sqlite`, which has
// the same interface and ships its binaries inside the package.

import { LcmError, textOf } from "./errors.js";
import { conflictAt, guardHolds, pageOf } from "./store-memory.js";

/** "lcm1": marks the file as a store of this engine. */
const APPLICATION_ID = 0x6c636d31;
/** Version of the store format; a file of another format is refused. */
const STORE_FORMAT = 1;

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_NOTADB = 26;

async function loadSqlite() {
  for (const name of ["node:sqlite", "@photostructure/sqlite"]) {
    try {
      return (await import(name)).DatabaseSync;
    } catch {
      // Tries the next module; without any module the error below names both.
    }
  }
  throw new LcmError(
    "unsupported",
    "this Node has no SQLite: use Node 22.13 or newer, or install @photostructure/sqlite",
  );
}

/** Returns the primary code of an error of SQLite; 0: the error has another origin. */
function primaryCode(thrown) {
  return (thrown?.errcode ?? 0) & 0xff;
}

/** Converts an error of SQLite to an error with a code of the engine. */
function fileError(thrown, path) {
  if (thrown instanceof LcmError) return thrown;
  const code = [SQLITE_READONLY, SQLITE_NOTADB].includes(primaryCode(thrown))
    ? "unsupported"
    : "store-unavailable";
  return new LcmError(code, `\`${path}\`: ${textOf(thrown)}`, { cause: thrown });
}

function pragma(database, name) {
  return Object.values(database.prepare(`PRAGMA ${name}`).get())[0];
}

/** Whether the file has no page and may become a store. */
function isEmpty(database) {
  return pragma(database, "page_count") === 0;
}

function checkFile(database, path) {
  if (pragma(database, "application_id") !== APPLICATION_ID) {
    throw new LcmError("unsupported", `\`${path}\` is no store of this engine`);
  }
  const format = pragma(database, "user_version");
  if (format !== STORE_FORMAT) {
    throw new LcmError(
      "unsupported",
      `\`${path}\` has store format ${format}, not ${STORE_FORMAT}`,
    );
  }
}

/** Makes an empty file a store. The file is marked before a write-ahead log exists. */
function create(database) {
  database.exec("PRAGMA page_size = 4096");
  database.exec("BEGIN IMMEDIATE");
  // Another process may have made the store meanwhile.
  const { count } = database.prepare("SELECT count(*) AS count FROM sqlite_master").get();
  if (count === 0) {
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${STORE_FORMAT}`);
    database.exec("CREATE TABLE kv (k TEXT PRIMARY KEY, v BLOB NOT NULL)");
  }
  database.exec("COMMIT");
}

/** Longest wait for other connections, and longest wait of SQLite in one attempt to write. */
const PATIENCE_MS = 5_000;
const LOOK_MS = 2;

/** Pause between attempts for which SQLite does not wait itself. */
const PAUSE_MS = 5;

/** Blocks the thread for `ms` milliseconds. */
function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * Repeats `work` as long as the file is locked, at most for `PATIENCE_MS`, with `pauseMs`
 * milliseconds between two attempts.
 */
function repeatWhileLocked(work, pauseMs = 0) {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      work();
      return;
    } catch (thrown) {
      const isLocked = [SQLITE_BUSY, SQLITE_LOCKED].includes(primaryCode(thrown));
      if (!isLocked || performance.now() > until) throw thrown;
    }
    if (pauseMs > 0) sleep(pauseMs);
  }
}

/**
 * Begins a write. SQLite waits up to 100 ms between two attempts to lock, and a writer without
 * pauses would win each time; so this function attempts to lock more often.
 */
function beginWriting(database) {
  database.exec(`PRAGMA busy_timeout = ${LOOK_MS}`);
  try {
    repeatWhileLocked(() => database.exec("BEGIN IMMEDIATE"));
  } finally {
    database.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`);
  }
}

/** Makes an open file ready for a store; exported for tests. */
export function prepareFile(database, path) {
  database.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`);
  if (isEmpty(database)) create(database);
  checkFile(database, path);
  // SQLite itself does not wait here for a connection that writes to a new file.
  repeatWhileLocked(() => database.exec("PRAGMA journal_mode = WAL"), PAUSE_MS);
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA cache_size = -32000");
}

/** A store in one SQLite file, made by `openSqliteStore`. */
export class SqliteStore {
  #database;
  #path;
  #get;
  #put;
  #delete;

  constructor(database, path) {
    this.#database = database;
    this.#path = path;
    this.#get = database.prepare("SELECT v FROM kv WHERE k = ?");
    this.#put = database.prepare(
      "INSERT INTO kv (k, v) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    );
    this.#delete = database.prepare("DELETE FROM kv WHERE k = ?");
  }

  /** Returns the values of `keys` in order, of one moment; undefined where a key is absent. */
  getMany(keys) {
    return this.#reading(() => keys.map((key) => this.#get.get(key)?.v));
  }

  /** Returns `[entries, more]` of [start, end) in key order, or in reverse order. */
  scan(start, end, reverse, entriesMax, bytesMax) {
    const order = reverse ? "DESC" : "ASC";
    const sql = `SELECT k AS key, v AS value FROM kv WHERE k >= ? AND k < ? ORDER BY k ${order}`;
    return this.#reading(() =>
      pageOf(this.#database.prepare(sql).iterate(start, end), entriesMax, bytesMax),
    );
  }

  /** Checks all guards and writes all puts in one transaction. Throws `conflict` otherwise. */
  commit(guards, puts) {
    this.#transaction(() => beginWriting(this.#database), () => {
      for (const { key, value } of guards) {
        if (!guardHolds(this.#get.get(key)?.v, value)) throw conflictAt(key);
      }
      for (const { key, value } of puts) {
        if (value === undefined || value === null) this.#delete.run(key);
        else this.#put.run(key, value);
      }
    });
  }

  /** Closes the file. */
  close() {
    this.#database.close();
  }

  #reading(work) {
    return this.#transaction(() => this.#database.exec("BEGIN"), work);
  }

  #transaction(begin, work) {
    try {
      begin();
      const result = work();
      this.#database.exec("COMMIT");
      return result;
    } catch (thrown) {
      this.#rollback();
      throw fileError(thrown, this.#path);
    }
  }

  #rollback() {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // The transaction ended already; the caller gets the first error.
    }
  }
}

/**
 * Opens the file at `path`, or creates it.
 *
 * Rejects with `unsupported` for a foreign file, another format or a read-only file, and with
 * `store-unavailable` for a file that is locked or out of reach.
 */
export async function openSqliteStore(path) {
  const DatabaseSync = await loadSqlite();
  let database;
  try {
    database = new DatabaseSync(path);
    prepareFile(database, path);
    return new SqliteStore(database, path);
  } catch (thrown) {
    database?.close();
    throw fileError(thrown, path);
  }
}
