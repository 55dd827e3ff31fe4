// Every built-in store keeps the contract: order, bounds, atomic guarded commits.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import { failedSteps } from "../../edge-worker/test/store-steps.js";
import { MemoryStore } from "../src/store-memory.js";
import { openSqliteStore, prepareFile } from "../src/store-sqlite.js";

const bytes = (...values) => new Uint8Array(values);
const put = (key, value) => ({ key, value });
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lcm-node-"));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Resolves to the URL of a module of SQLite. */
async function findSqlite() {
  try {
    const own = import.meta.resolve("@photostructure/sqlite");
    await import(own);
    return own;
  } catch {
    return "node:sqlite";
  }
}

let files = 0;
const makers = {
  memory: async () => new MemoryStore(),
  sqlite: () => openSqliteStore(join(folder, `${(files += 1)}.lcm.db`)),
};

for (const [name, make] of Object.entries(makers)) {
  describe(`the ${name} store`, () => {
    test("does what the conformance kit asks of every store", async () => {
      const steps = new URL("../../kit/store.json", import.meta.url);
      const store = await make();
      assert.deepEqual(failedSteps(store, JSON.parse(await readFile(steps, "utf8"))), []);
      store.close();
    });

    test("answers in the order of the keys and says what is absent", async () => {
      const store = await make();
      store.commit([], [put("b", bytes(2)), put("a", bytes(1, 0, 255))]);
      const [b, none, a, again] = store.getMany(["b", "x", "a", "b"]);
      assert.deepEqual([...a], [1, 0, 255]);
      assert.deepEqual([...b], [2]);
      assert.deepEqual([...again], [2]);
      assert.ok(none === undefined || none === null);
      assert.deepEqual(store.getMany([]), []);
      store.close();
    });

    test("keeps an empty value apart from an absent one", async () => {
      const store = await make();
      store.commit([], [put("a", bytes())]);
      assert.equal(store.getMany(["a"])[0].length, 0);
      assert.throws(() => store.commit([put("a", undefined)], []), { code: "conflict" });
      store.commit([put("a", bytes())], [put("b", bytes(1))]);
      assert.equal(store.getMany(["b"])[0].length, 1);
      store.close();
    });

    test("scans a half-open range in bytewise order, both ways, within the bounds", async () => {
      const store = await make();
      const keys = ["A", "a", "a/1", "a0", "b", "~"];
      store.commit(
        [],
        keys.toReversed().map((key) => put(key, bytes(1, 2, 3))),
      );
      const names = ([entries]) => entries.map(({ key }) => key);
      assert.deepEqual(names(store.scan("!", "\u007f", false, 100, 1000)), keys);
      assert.deepEqual(names(store.scan("a", "b", false, 100, 1000)), ["a", "a/1", "a0"]);
      assert.deepEqual(names(store.scan("a", "b", true, 100, 1000)), ["a0", "a/1", "a"]);
      assert.equal(store.scan("a", "b", false, 3, 1000)[1], false);
      assert.equal(store.scan("a", "b", false, 2, 1000)[1], true);
      assert.deepEqual(names(store.scan("a", "b", false, 100, 10)), ["a", "a/1"]);
      const [one, more] = store.scan("a", "b", false, 100, 1);
      assert.equal(one.length, 1);
      assert.equal(more, true);
      assert.deepEqual(store.scan("x", "y", false, 100, 1000), [[], false]);
      store.close();
    });

    test("writes nothing when a guard does not hold", async () => {
      const store = await make();
      store.commit([put("h", undefined)], [put("h", bytes(1)), put("m", bytes(7))]);
      const refused = () =>
        store.commit(
          [put("m", bytes(7)), put("h", bytes(9))],
          [put("m", undefined), put("n", bytes(1))],
        );
      assert.throws(refused, { code: "conflict" });
      assert.deepEqual([...store.getMany(["m"])[0]], [7]);
      assert.ok(!store.getMany(["n"])[0]);
      store.commit([put("h", bytes(1))], [put("m", undefined), put("h", bytes(2))]);
      assert.ok(!store.getMany(["m"])[0]);
      store.close();
    });

    test("does not change when a caller reuses its buffer", async () => {
      const store = await make();
      const value = bytes(1, 2);
      store.commit([], [put("a", value)]);
      value[0] = 9;
      assert.deepEqual([...store.getMany(["a"])[0]], [1, 2]);
      store.close();
    });
  });
}

test("two connections to one SQLite file see each other's commits and conflicts", async () => {
  const path = join(folder, "shared.lcm.db");
  const [one, two] = [await openSqliteStore(path), await openSqliteStore(path)];
  one.commit([], [put("h", bytes(1))]);
  assert.deepEqual([...two.getMany(["h"])[0]], [1]);
  two.commit([put("h", bytes(1))], [put("h", bytes(2))]);
  assert.throws(() => one.commit([put("h", bytes(1))], []), { code: "conflict" });
  one.close();
  two.close();
});

test("a file that is no store is refused and left alone", async () => {
  const text = join(folder, "text.lcm.db");
  await writeFile(text, "this is a text file and certainly no database ".repeat(40));
  await assert.rejects(openSqliteStore(text), { name: "LcmError", code: "unsupported" });
  const { DatabaseSync } = await import(await findSqlite());
  const foreign = join(folder, "foreign.lcm.db");
  const database = new DatabaseSync(foreign);
  database.exec("CREATE TABLE t (a)");
  await assert.rejects(openSqliteStore(foreign), { code: "unsupported" });
  assert.equal(database.prepare("SELECT count(*) AS n FROM sqlite_master").get().n, 1);
  database.close();
  const newer = join(folder, "newer.lcm.db");
  (await openSqliteStore(newer)).close();
  const edit = new DatabaseSync(newer);
  edit.exec("PRAGMA user_version = 99");
  edit.close();
  await assert.rejects(openSqliteStore(newer), { code: "unsupported", message: /99/ });
});

test("a new file that another thread writes is waited for", async () => {
  const path = join(folder, "made.lcm.db");
  (await openSqliteStore(path)).close();
  const write = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.sqlite).then(({ DatabaseSync }) => {
      const database = new DatabaseSync(workerData.path);
      database.exec("PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE");
      parentPort.postMessage("writing");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
      database.exec("ROLLBACK");
      database.close();
    });`;
  const workerData = { path, sqlite: await findSqlite() };
  const writer = new Worker(write, { eval: true, workerData });
  const ended = once(writer, "exit");
  await once(writer, "message");
  (await openSqliteStore(path)).close();
  await ended;
});

test("a folder that does not exist is store-unavailable", async () => {
  const path = join(folder, "nowhere", "a.lcm.db");
  await assert.rejects(openSqliteStore(path), { code: "store-unavailable" });
});

test("the file has the marks every host checks", async () => {
  const path = join(folder, "marks.lcm.db");
  (await openSqliteStore(path)).close();
  const { DatabaseSync } = await import(await findSqlite());
  const database = new DatabaseSync(path);
  const pragma = (name) => Object.values(database.prepare(`PRAGMA ${name}`).get())[0];
  assert.equal(pragma("application_id"), 0x6c636d31);
  assert.equal(pragma("user_version"), 1);
  assert.equal(pragma("journal_mode"), "wal");
  assert.equal(pragma("page_size"), 4096);
  const { sql } = database.prepare("SELECT sql FROM sqlite_master WHERE name = 'kv'").get();
  assert.doesNotMatch(sql, /without rowid/i);
  database.close();
});

test("a file that is locked as the log is turned on is asked for with pauses", () => {
  const until = performance.now() + 100;
  const values = { page_count: 1, application_id: 0x6c636d31, user_version: 1 };
  let asked = 0;
  const database = {
    prepare: (sql) => ({ get: () => ({ value: values[sql.replace("PRAGMA ", "")] }) }),
    exec(sql) {
      if (!sql.includes("journal_mode")) return;
      asked += 1;
      if (performance.now() < until) throw Object.assign(new Error("locked"), { errcode: 5 });
    },
  };
  prepareFile(database, "locked.lcm.db");
  assert.ok(asked >= 2 && asked <= 30, `${asked} attempts`);
});
