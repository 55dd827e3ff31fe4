"""The default store: one SQLite file, the same that the Rust and Node hosts open.

In: keys, values, guards. Out: rows of the one table `kv`. The file layout is the contract; this
module refuses any other file before it writes. Nothing here understands a value.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import LcmError
from .base import Entries, Guards, Puts

APPLICATION_ID = 0x6C636D31
"""The application id of a store file; any other file is foreign."""

FORMAT = 1
"""The store format of this host, in `user_version`; a file of another format is refused."""

BUSY_MS = 5_000
"""Longest wait for other connections to the file."""

LOOK_MS = 2
"""Longest wait of SQLite in one attempt to begin a write. By default SQLite sleeps up to 100 ms
between two attempts, in which a process that writes without a pause takes the lock each time."""

KEYS_PER_QUERY = 500  # SQLite before 3.32 takes 999 parameters.


@contextmanager
def _as_lcm_errors(doing: str) -> Iterator[None]:
    """Turns errors of SQLite into errors of the store contract."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        code = "store-unavailable"
        if name.startswith(("SQLITE_READONLY", "SQLITE_NOTADB")):
            code = "unsupported"
        raise LcmError(code, f"{doing} failed: {error} ({name})") from error


def _is_locked(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock that the statement needs."""
    name = getattr(error, "sqlite_errorname", "SQLITE_BUSY")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


class SqliteStore:
    """A `*.lcm.db` file. Every commit is synced to disk before it returns.

    Opening raises `unsupported` for a foreign or read-only file or another format, and
    `store-unavailable` for a file that is locked or cannot be read or created. Calls may come from
    any thread, but not at the same time.
    """

    def __init__(self, path: str | os.PathLike[str], busy_ms: int = BUSY_MS) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise LcmError("store-unavailable", f"`{self.path}` is a folder")
        if self.path.exists() and not os.access(self.path, os.W_OK):
            raise LcmError("unsupported", f"`{self.path}` is read-only")
        with _as_lcm_errors(f"opening `{self.path}`"):
            self._busy_ms = busy_ms
            self._connection = sqlite3.connect(
                self.path,
                timeout=busy_ms / 1000,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with _as_lcm_errors(f"opening `{self.path}`"):
                self._prepare(busy_ms)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, busy_ms: int) -> None:
        if self._is_blank():
            self._create()
        self._verify()
        self._write_ahead(busy_ms)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("PRAGMA cache_size=-32000")

    def _write_ahead(self, busy_ms: int) -> None:
        # In this statement SQLite does not wait for other processes that open the file.
        deadline = time.monotonic() + busy_ms / 1000
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    def _pragma(self, name: str) -> int:
        value = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return int(value)

    def _is_blank(self) -> bool:
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return not (tables or self._pragma("application_id") or self._pragma("user_version"))

    def _create(self) -> None:
        # One transaction makes the whole layout, so that a crash leaves a blank or a complete file.
        execute = self._connection.execute
        execute("PRAGMA page_size=4096")
        execute("BEGIN IMMEDIATE")
        try:
            if self._is_blank():
                execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB NOT NULL)")
                execute(f"PRAGMA application_id={APPLICATION_ID}")
                execute(f"PRAGMA user_version={FORMAT}")
            execute("COMMIT")
        except BaseException:
            self._rollback()
            raise

    def _verify(self) -> None:
        if self._pragma("application_id") != APPLICATION_ID:
            raise LcmError("unsupported", f"`{self.path}` is a file of another program")
        version = self._pragma("user_version")
        if version != FORMAT:
            raise LcmError(
                "unsupported",
                f"`{self.path}` has store format {version}, this program reads {FORMAT}",
            )

    def _rollback(self) -> None:
        """Ends the open transaction of this call, or of an earlier call that an interrupt ended.
        """
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # The caller gets the earlier error.

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `Store.get_many`."""
        found: dict[str, bytes] = {}
        with _as_lcm_errors("reading"):
            # One transaction: all keys see the same state.
            self._rollback()
            try:
                self._connection.execute("BEGIN")
                for first in range(0, len(keys), KEYS_PER_QUERY):
                    part = keys[first : first + KEYS_PER_QUERY]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT k, v FROM kv WHERE k IN ({marks})"
                    found.update(self._connection.execute(query, tuple(part)))
            finally:
                self._rollback()
        return [found.get(key) for key in keys]

    def scan(
        self, start: str, end: str, reverse: bool, entries_max: int, bytes_max: int
    ) -> tuple[Entries, bool]:
        """As `Store.scan`."""
        order = "DESC" if reverse else "ASC"
        query = f"SELECT k, v FROM kv WHERE k >= ? AND k < ? ORDER BY k {order}"
        page: Entries = []
        room = bytes_max
        with _as_lcm_errors("reading"):
            rows = self._connection.execute(query, (start, end))
            try:
                for key, value in rows:
                    if page and (len(page) >= entries_max or len(key) + len(value) > room):
                        return page, True
                    room -= len(key) + len(value)
                    page.append((key, value))
            finally:
                rows.close()
        return page, False

    def _begin_writing(self) -> None:
        """Begins a write transaction; waits at most `busy_ms` for other writers."""
        execute = self._connection.execute
        until = time.monotonic() + self._busy_ms / 1000
        execute(f"PRAGMA busy_timeout={min(LOOK_MS, self._busy_ms)}")
        try:
            while True:
                try:
                    execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not _is_locked(error) or time.monotonic() > until:
                        raise
        finally:
            execute(f"PRAGMA busy_timeout={self._busy_ms}")

    def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        execute = self._connection.execute
        with _as_lcm_errors("the commit"):
            self._rollback()
            try:
                self._begin_writing()
                for key, value in guards:
                    row = execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
                    if (row[0] if row else None) != value:
                        raise LcmError("conflict", f"`{key}` was changed by another writer")
                for key, value in puts:
                    if value is None:
                        execute("DELETE FROM kv WHERE k = ?", (key,))
                    else:
                        execute(
                            "INSERT INTO kv(k, v) VALUES(?, ?) "
                            "ON CONFLICT(k) DO UPDATE SET v = excluded.v",
                            (key, value),
                        )
                execute("COMMIT")
            except BaseException:
                self._rollback()
                raise

    def close(self) -> None:
        """Closes the file; the write-ahead log is merged into it."""
        self._connection.close()
