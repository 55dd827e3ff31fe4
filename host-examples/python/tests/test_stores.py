"""The store contract, for every store of the package; and files that must be refused."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import threading
import unittest
from pathlib import Path

import lcm_engine
from lcm_engine import LcmError, MemoryStore, SqliteStore
from lcm_engine.instance import Instance
from lcm_engine.sessions import AsyncSession, Session
from lcm_engine.stores.sqlite import APPLICATION_ID

from .support import probe_program


class Contract:
    """Tests that every store must pass. Each test has a new `self.store`."""

    def test_a_commit_is_seen_by_later_reads(self):
        self.store.commit([], [("a", b"1"), ("b", b""), ("c", bytes(range(256)))])
        values = self.store.get_many(["c", "x", "b", "a", "a"])
        self.assertEqual(values, [bytes(range(256)), None, b"", b"1", b"1"])

    def test_a_guard_that_does_not_hold_writes_nothing(self):
        self.store.commit([("a", None)], [("a", b"1")])
        for guards in ([("a", None)], [("a", b"2")], [("b", b"")], [("a", b"1"), ("b", b"1")]):
            with self.assertRaises(LcmError) as caught:
                self.store.commit(guards, [("a", b"9"), ("z", b"9")])
            self.assertEqual(caught.exception.code, "conflict")
        self.assertEqual(self.store.get_many(["a", "z"]), [b"1", None])
        self.store.commit([("a", b"1"), ("b", None)], [("a", None), ("b", b"2")])
        self.assertEqual(self.store.get_many(["a", "b"]), [None, b"2"])

    def test_a_scan_is_half_open_and_in_key_order_either_way(self):
        self.store.commit([], [(key, key.encode()) for key in ("b", "A", "a-", "a", "c", "_")])
        entries, more = self.store.scan("A", "b", False, 10, 1000)
        self.assertEqual([key for key, _ in entries], ["A", "_", "a", "a-"])
        self.assertFalse(more)
        entries, more = self.store.scan("A", "c", True, 2, 1000)
        self.assertEqual(entries, [("b", b"b"), ("a-", b"a-")])
        self.assertTrue(more)

    def test_a_page_ends_at_its_bounds_but_has_one_entry(self):
        self.store.commit([], [("a", b"x" * 100), ("b", b"x" * 10), ("c", b"x" * 10)])
        self.assertEqual(len(self.store.scan("a", "z", False, 10, 1)[0]), 1)
        entries, more = self.store.scan("a", "z", False, 10, 112)
        self.assertEqual(([key for key, _ in entries], more), (["a", "b"], True))
        self.assertEqual(self.store.scan("a", "z", False, 3, 1000)[1], False)
        self.assertEqual(self.store.scan("x", "z", False, 3, 1000), ([], False))

    def test_a_thousand_keys_are_read_in_one_call(self):
        keys = [f"k{number:04x}" for number in range(1000)]
        for first in range(0, 1000, 250):
            self.store.commit([], [(key, key.encode()) for key in keys[first : first + 250]])
        self.assertEqual(self.store.get_many(keys), [key.encode() for key in keys])


class MemoryContract(Contract, unittest.TestCase):
    def setUp(self):
        self.store = MemoryStore()


class SqliteContract(Contract, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = SqliteStore(Path(folder.name) / "x.lcm.db")
        self.addCleanup(self.store.close)


class Answers(unittest.TestCase):
    """Checks of the answers of a caller's store, in both packages."""

    def refused(self, **answers) -> set[str]:
        """Returns the error messages of reads from a store whose functions return `answers`."""
        functions = {name: (lambda *_, answer=answer: answer) for name, answer in answers.items()}
        functions |= {name: lambda *_: None for name in ("commit", "close")}
        plain = type("Own", (), functions)()

        def later(function):
            async def call(self, *arguments):
                return function(self, *arguments)

            return call

        awaited = {name: later(function) for name, function in functions.items()}
        other = type("Own", (), awaited | {"asynchronous": True})()
        page = {"start": "b", "end": "d", "entries_max": 2, "bytes_max": 4}
        page["reverse"] = answers.pop("reverse", False)
        reads = {"get_many": ("probe.get_many", {"keys": ["a", "b"]}), "scan": ("probe.scan", page)}
        (name,) = answers
        said = set()
        session = AsyncSession(lambda: Instance(probe_program()), other)
        for call in (
            lambda: Session(Instance(probe_program()), plain).call(*reads[name]),
            lambda: asyncio.run(session.call(*reads[name])),
        ):
            try:
                said.add(str(call()))
            except LcmError as error:
                said.add(str(error))
        return said

    def test_a_read_that_does_not_keep_the_contract_is_refused(self):
        one, two = ("b", b"1"), ("c", b"2")
        cases = [
            ({"get_many": None}, "`get_many` with a NoneType in place of a list"),
            ({"get_many": [None]}, "`get_many` with 2 keys with 1 values"),
            ({"get_many": [None, "b"]}, "`get_many` with a str in place of bytes"),
            ({"scan": [one]}, "`scan` with no pair of entries and whether more follow"),
            ({"scan": ([one], None)}, "`scan` with no pair of entries and whether more follow"),
            ({"scan": ({"b": b"1"}, False)}, "`scan` with a dict in place of a list"),
            ({"scan": (["bb"], False)}, "`scan` with a str in place of a list"),
            ({"scan": ([(1, b"")], False)}, "`scan` with an entry that is no key with its value"),
            ({"scan": ([("b", "1")], False)}, "`scan` with a str in place of bytes"),
            ({"scan": ([("a", b"")], False)}, "`scan` with a key out of its range"),
            ({"scan": ([("d", b"")], False)}, "`scan` with a key out of its range"),
            ({"scan": ([two, one], False)}, "`scan` with keys out of order, or the same twice"),
            ({"scan": ([one, one], False)}, "`scan` with keys out of order, or the same twice"),
            ({"scan": ([one, ("ba", b""), two], False)}, "`scan` with 3 entries, 2 at most"),
            ({"scan": ([one, ("c", b"four")], False)}, "`scan` with 7 bytes, 4 at most"),
            ({"scan": ([], True)}, "`scan` with no entry, although more follow"),
        ]
        for answers, message in cases:
            wanted = {f"store-unavailable: the store answered {message}"}
            self.assertEqual(self.refused(**answers), wanted)
        backwards = {"scan": ([one, two], False), "reverse": True}
        wanted = "the store answered `scan` with keys out of order, or the same twice"
        self.assertEqual(self.refused(**backwards), {f"store-unavailable: {wanted}"})

    def test_a_read_that_keeps_it_is_handed_on(self):
        answers = {"scan": ([("c", b"12"), ("b", b"")], True), "reverse": True}
        entries = [{"key": "c", "value": b"12"}, {"key": "b", "value": b""}]
        self.assertEqual(self.refused(**answers), {str([entries, True])})
        large = {"scan": ([("b", b"larger than the page")], False)}
        self.assertEqual(len(self.refused(**large)), 1)
        self.assertNotIn("store-unavailable", str(self.refused(**large)))

    def test_what_is_no_store_is_refused_when_it_is_opened(self):
        class Endless:
            get_many = scan = commit = lambda *_: None

        cases = [
            ({}, "`store` must have a function `get_many`"),
            (Endless(), "`store` must have a function `close`"),
            (MemoryStore, "`store` must be an object, not the class `MemoryStore`"),
        ]
        for store, message in cases:
            for call in (
                lambda store=store: lcm_engine.open(store, environment={}),
                lambda store=store: asyncio.run(
                    lcm_engine.open_async(store, environment={}).__aenter__()
                ),
            ):
                with self.assertRaises(LcmError) as caught:
                    call()
                self.assertEqual(str(caught.exception), f"invalid-input: {message}")


class SqliteFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "x.lcm.db"

    def refused(self, code: str, busy_ms: int = 50) -> str:
        before = self.path.read_bytes()
        with self.assertRaises(LcmError) as caught:
            SqliteStore(self.path, busy_ms)
        self.assertEqual(caught.exception.code, code)
        self.assertEqual(self.path.read_bytes(), before)
        return caught.exception.message

    def test_the_file_has_the_layout_that_all_hosts_share(self):
        SqliteStore(self.path).close()
        connection = sqlite3.connect(self.path)
        self.addCleanup(connection.close)
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "page_size", "journal_mode")
        }
        wanted = (APPLICATION_ID, 1, 4096, "wal")
        self.assertEqual(tuple(pragmas.values()), wanted)
        columns = connection.execute("PRAGMA table_info(kv)").fetchall()
        self.assertEqual(
            [column[1:6] for column in columns],
            [("k", "TEXT", 0, None, 1), ("v", "BLOB", 1, None, 0)],
        )

    def test_what_was_committed_is_there_when_opened_again(self):
        store = SqliteStore(self.path)
        store.commit([], [("a", b"1")])
        store.close()
        store = SqliteStore(self.path)
        self.assertEqual(store.get_many(["a"]), [b"1"])
        store.close()

    def test_a_second_writer_is_seen_and_conflicts(self):
        first, second = SqliteStore(self.path), SqliteStore(self.path)
        first.commit([("h", None)], [("h", b"1")])
        self.assertEqual(second.get_many(["h"]), [b"1"])
        second.commit([("h", b"1")], [("h", b"2")])
        with self.assertRaises(LcmError) as caught:
            first.commit([("h", b"1")], [("h", b"3")])
        self.assertEqual(caught.exception.code, "conflict")
        first.close()
        second.close()

    def test_an_empty_file_becomes_a_store(self):
        self.path.touch()
        SqliteStore(self.path).close()
        self.assertGreater(self.path.stat().st_size, 0)

    def test_a_file_of_another_program_is_refused_and_left_alone(self):
        self.path.write_bytes(b"no database at all, but long enough to look at" * 100)
        self.refused("unsupported")
        self.path.unlink()
        connection = sqlite3.connect(self.path)
        connection.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB NOT NULL)")
        connection.commit()
        connection.close()
        self.assertIn("another program", self.refused("unsupported"))

    def test_a_newer_format_is_refused(self):
        SqliteStore(self.path).close()
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA user_version=2")
        connection.close()
        self.assertIn("format 2", self.refused("unsupported"))

    def test_a_locked_file_is_unavailable(self):
        SqliteStore(self.path).close()
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        self.addCleanup(connection.close)
        self.refused("store-unavailable")

    def test_only_a_lock_makes_the_store_ask_again_for_the_write_ahead_log(self):
        def attempts(name: str, failures: int) -> int:
            """Returns how often WAL mode is requested if the first `failures` requests fail."""

            class Connection:
                asked = 0

                def execute(self, statement: str) -> None:
                    self.asked += 1
                    if self.asked <= failures:
                        error = sqlite3.OperationalError(name)
                        error.sqlite_errorname = name
                        raise error

                def close(self) -> None:
                    pass

            store = SqliteStore(self.path)
            store.close()
            store._connection = Connection()
            try:
                store._write_ahead(5_000)
            except sqlite3.OperationalError as error:
                self.assertEqual(str(error), name)
            return store._connection.asked

        self.assertEqual(attempts("SQLITE_BUSY", 2), 3)
        self.assertEqual(attempts("SQLITE_BUSY_RECOVERY", 2), 3)
        self.assertEqual(attempts("SQLITE_IOERR_WRITE", 2), 1)
        self.assertEqual(attempts("SQLITE_FULL", 2), 1)

    def test_a_commit_that_finds_the_file_locked_is_unavailable(self):
        store = SqliteStore(self.path, busy_ms=50)
        self.addCleanup(store.close)
        connection = sqlite3.connect(self.path)
        self.addCleanup(connection.close)
        connection.execute("BEGIN IMMEDIATE")
        with self.assertRaises(LcmError) as caught:
            store.commit([], [("a", b"1")])
        self.assertEqual(caught.exception.code, "store-unavailable")
        connection.rollback()
        store.commit([], [("a", b"1")])
        self.assertEqual(store.get_many(["a"]), [b"1"])

    def test_an_interrupt_as_a_transaction_begins_leaves_none_open(self):
        for name, arguments in (("get_many", [["a"]]), ("commit", [[], [("a", b"1")]])):
            store = SqliteStore(self.path)
            self.addCleanup(store.close)
            connection = store._connection

            class Interrupted:
                in_transaction = property(lambda self: connection.in_transaction)

                def execute(self, statement, *arguments):
                    done = connection.execute(statement, *arguments)
                    if statement.startswith("BEGIN"):
                        raise KeyboardInterrupt
                    return done

            store._connection = Interrupted()
            with self.assertRaises(KeyboardInterrupt):
                getattr(store, name)(*arguments)
            self.assertFalse(connection.in_transaction, name)
            # An interrupt may also come during the rollback.
            connection.execute("BEGIN IMMEDIATE")
            store._connection = connection
            getattr(store, name)(*arguments)
            self.assertFalse(connection.in_transaction, name)

    @unittest.skipIf(os.geteuid() == 0, "root may write everything")
    def test_a_read_only_file_is_refused(self):
        SqliteStore(self.path).close()
        self.path.chmod(0o444)
        self.refused("unsupported")

    def test_a_folder_and_a_missing_folder_are_unavailable(self):
        for path in (self.path.parent, self.path.parent / "missing" / "x.lcm.db"):
            with self.assertRaises(LcmError) as caught:
                SqliteStore(path)
            self.assertEqual(caught.exception.code, "store-unavailable")

    def test_many_openers_at_once_find_one_layout(self):
        failures = []

        def opens():
            try:
                SqliteStore(self.path).close()
            except LcmError as error:
                failures.append(error)

        threads = [threading.Thread(target=opens) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        SqliteStore(self.path).close()


if __name__ == "__main__":
    unittest.main()
