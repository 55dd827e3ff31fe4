"""The kit itself: its page, its host and its runner."""

import ast
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import host
from vectors import matching, runner, shorthand

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = (HERE / "README.md").read_text(encoding="utf-8")
HOST_LINES_MAX = 200


def bare(wit: str) -> str:
    """An interface without prose, lines of `package` and `use`, spaces and trailing commas."""
    wit = re.sub(r"///.*|^package .*|^\s*use [^;]*;", "", wit, flags=re.MULTILINE)
    return re.sub(r",\}", "}", re.sub(r"\s+", "", wit))


class Page(unittest.TestCase):
    def test_the_page_has_every_type_and_function_of_the_interface(self):
        (block,) = re.findall(r"```wit\n(.*?)```", PAGE, re.DOTALL)
        shown = {bare(one) for one in re.split(r"^(?=interface )", block, flags=re.M) if one}
        files = [path.read_text(encoding="utf-8") for path in (ROOT / "wit").glob("*.wit")]
        interfaces = {bare(one) for one in files if "\ninterface " in one}
        self.assertEqual(len(interfaces), 11)
        self.assertEqual(shown, interfaces)

    def test_what_the_page_leads_to_is_there(self):
        anchors = {re.sub(r"\W+", "-", one.lower()) for one in re.findall(r"^#+ (.*)", PAGE, re.M)}
        for link in re.findall(r"\]\(([^)]+)\)", PAGE):
            path, _, anchor = link.partition("#")
            self.assertTrue((HERE / path).exists(), link)
            self.assertIn(anchor, anchors | {""}, link)
        for name in re.findall(r"`((?:\.\./|crates/)[\w./-]+)`", PAGE):
            base = HERE if name.startswith("..") else ROOT
            self.assertTrue((base / name).exists(), name)

    def test_every_operator_and_field_of_vectors_is_explained(self):
        text = (HERE / "vectors/matching.py").read_text(encoding="utf-8")
        names = set(re.findall(r'"(\$\w+)"', text)) | {"$generate", "$repeat"}
        names |= runner._VECTOR_FIELDS | runner._STEP_FIELDS
        self.assertGreater(len(names), 14)
        for name in names:
            self.assertRegex(PAGE, f"[`\"]{re.escape(name)}[`\"]")


    def test_the_vectors_hold_only_what_every_language_writes_alike(self):
        string = re.compile(r'"(?:[^"\\]|\\.)*"')
        number = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{0,2}[1-9])?")
        surrogate = re.compile(r"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")
        numbers = 0
        for path in runner.VECTORS.rglob("*.json"):
            text = path.read_text(encoding="utf-8")
            self.assertNotRegex(text, surrogate, path)
            for one in re.findall(r"[-+.\w]*\d[-+.\w]*", string.sub('""', text)):
                self.assertTrue(number.fullmatch(one), f"{path}: {one}")
                numbers += 1
        self.assertGreater(numbers, 1000)


STEPS = json.loads((HERE / "store.json").read_text(encoding="utf-8"))["steps"]


def value_of(given):
    """Returns the bytes of a value in a step; None: the key is absent."""
    return None if given is None else str(shorthand.repeats_expanded(given)).encode("latin-1")


def pairs(given):
    return [(key, value_of(value)) for key, value in given]


def committed(store, guards, puts):
    """Returns the error code of a commit; None: the commit succeeded."""
    records = [[host.record(key=key, value=one) for key, one in given] for given in (guards, puts)]
    try:
        store.commit(*records)
    except host.Failed as error:
        return error.code
    return None


def did(store, step):
    """Runs a step of `store.json`; returns the found result and the expected result."""
    expect = step.get("expect")
    if "get" in step:
        return store.get_many(step["get"]), [value_of(one) for one in expect]
    if "commit" in step:
        guards, puts = step["commit"]["guards"], step["commit"]["puts"]
        return committed(store, pairs(guards), pairs(puts)), expect
    if "scan" in step:
        entries, more = store.scan(*step["scan"])
        return [[(one.key, one.value) for one in entries], more], [pairs(expect[0]), expect[1]]
    keys = [f"k/{number:04}" for number in range(step.get("fill", step.get("read")))]
    if "fill" in step:
        return committed(store, [], [(key, key.encode()) for key in keys]), None
    values = [key.encode() if at < expect else None for at, key in enumerate(keys)]
    return store.get_many(keys), values


class Store(unittest.TestCase):
    def failed(self, store):
        """Returns the claims of the steps that a store does not fulfil."""
        ended = [(step["claim"], *did(store, step)) for step in STEPS]
        return {claim for claim, found, wanted in ended if found != wanted}

    def test_the_store_of_the_host_does_what_the_steps_say(self):
        self.assertEqual(self.failed(host.Store(blocks=False)), set())
        self.assertGreater(len(STEPS), 30)

    def test_a_store_that_does_something_else_is_found(self):
        class Values(host.Store):
            def scan(self, *asked):
                return super().scan(*asked[:4], asked[4] + 6)

        class Nil(host.Store):
            def get_many(self, keys):
                return [one or None for one in super().get_many(keys)]

        class Hasty(host.Store):
            def commit(self, guards, puts, later=True):
                super().commit([], puts)
                super().commit(guards, [])

        found = [self.failed(one(blocks=False)) for one in (Values, Nil, Hasty)]
        self.assertIn("16 bytes do not fit 15", found[0])
        self.assertIn("get keeps the order of the keys, and an empty value is a value", found[1])
        self.assertIn("a conflict writes nothing", found[2])


class File(unittest.TestCase):
    """Compares the page's description of the file with a file of the Python package."""

    def described(self, path):
        with contextlib.closing(sqlite3.connect(path)) as file:
            names = ("application_id", "user_version", "page_size", "encoding", "journal_mode")
            pragmas = [file.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
            tables = file.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
            columns = file.execute("PRAGMA table_xinfo(kv)").fetchall()
            return pragmas, [one[:2] for one in tables], columns

    def package(self, path, program):
        """Runs a program with the package's store at `path`, in a process that can import it."""
        source = f"import sys\nfrom lcm_engine.stores.sqlite import SqliteStore\n{program}"
        env = os.environ | {"PYTHONPATH": str(HERE.parent / "python/src")}
        subprocess.run([sys.executable, "-c", source, str(path)], env=env, check=True)

    def test_a_file_that_is_made_by_the_page_is_a_store_of_the_other_hosts(self):
        (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
        (insert,) = re.findall(r"`(INSERT INTO kv [^`]*)`", PAGE)
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = Path(folder) / "ours.lcm.db", Path(folder) / "theirs.lcm.db"
            self.package(theirs, "SqliteStore(sys.argv[1]).close()")
            with contextlib.closing(sqlite3.connect(ours, isolation_level=None)) as file:
                file.executescript(block)
                file.execute("PRAGMA journal_mode = WAL")
                self.assertEqual(self.described(ours), self.described(theirs))
                file.executemany(insert, [("a", b""), ("b", b"1"), ("b", b"2")])
            program = """
                store = SqliteStore(sys.argv[1])
                assert store.get_many(["a", "b", "c"]) == [b"", b"2", None]
                assert store.scan("a", "c", True, 9, 99) == ([("b", b"2"), ("a", b"")], False)
                store.commit([("b", b"2"), ("c", None)], [("a", None), ("c", b"3")])
                store.close()
            """
            self.package(ours, textwrap.dedent(program))
            with contextlib.closing(sqlite3.connect(ours)) as file:
                (scan,) = re.findall(r"`(SELECT k, v FROM kv WHERE k >= [^`]*)`", PAGE)
                rows = file.execute(scan, ("a", "z")).fetchall()
                self.assertEqual(rows, [("b", b"2"), ("c", b"3")])


class Alone(unittest.TestCase):
    def test_the_host_is_short_and_knows_only_wasmtime_and_the_runner(self):
        lines = (HERE / "host.py").read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), HOST_LINES_MAX)
        self.assertLessEqual(max(map(len, lines)), 100)
        allowed = sys.stdlib_module_names | {"wasmtime", "vectors"}
        for path in [HERE / "host.py", *(HERE / "vectors").glob("*.py")]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module]
                self.assertLessEqual({name.partition(".")[0] for name in names}, allowed, path)
        self.assertNotIn("lcm_engine", sys.modules)


class Runner(unittest.TestCase):
    def run_changed(self, change, blocks=False):
        """Runs a short vector after `change` has changed it."""
        path = runner.VECTORS / "ingest/seq-starts-at-one.json"
        vector = json.loads(path.read_text(encoding="utf-8"))
        change(vector)
        with tempfile.TemporaryDirectory() as folder:
            changed = Path(folder) / "changed.json"
            changed.write_text(json.dumps(vector), encoding="utf-8")
            return runner.run_vector(changed, lambda one: host.Host(one, blocks))

    def test_the_unchanged_vector_passes_in_both_modes(self):
        digests = {self.run_changed(lambda vector: None, blocks) for blocks in (False, True)}
        self.assertEqual(len(digests), 1)

    def test_whatever_is_wrong_fails(self):
        first = {"call": "ingest.append", "args": {"messages": []}}
        changes = {
            "another digest": lambda vector: vector.update(store_sha256="0" * 64),
            "no digest": lambda vector: vector.pop("store_sha256"),
            "no steps": lambda vector: vector.update(steps=[]),
            "an unknown field": lambda vector: vector.update(more=1),
            "a step with more": lambda vector: vector["steps"].append(first | {"more": 1}),
            "another result": lambda vector: vector["steps"].append(
                first | {"expect": {"ingested": 7}}
            ),
            "a field that is absent": lambda vector: vector["steps"].append(
                first | {"expect": {"x": 1}}
            ),
            "an error that does not come": lambda vector: vector["steps"].append(
                first | {"expect_error": {"code": "exists"}}
            ),
            "a call that fails": lambda vector: vector["steps"].append(
                {"call": "context.assemble", "args": {"conversation": "nobody", "budget": 1}}
            ),
            "another error": lambda vector: vector["steps"].append(
                {
                    "call": "context.assemble",
                    "args": {"conversation": "nobody", "budget": 1},
                    "expect_error": {"code": "corrupt"},
                }
            ),
            "a reference to nothing": lambda vector: vector["steps"].append(
                {"call": "recall.describe", "args": {"id": "$0.nothing"}}
            ),
            "a script that ends": lambda vector: vector["steps"].extend(
                [
                    {"call": "ingest.append", "args": {"messages": [many()]}},
                    {"call": "drive", "args": {"budget": 1000}},
                ]
            ),
        }
        for name, change in changes.items():
            for blocks in (False, True):
                with self.subTest(name), self.assertRaises(matching.Mismatch):
                    self.run_changed(change, blocks)

    def test_a_host_that_loses_a_commit_is_found(self):
        class Forgetful(host.Host):
            def call(self, name, arguments):
                before = dict(self.store.entries)
                result = super().call(name, arguments)
                if name == "ingest.append":
                    self.store.entries, self.instance = before, None
                return result

        path = runner.VECTORS / "ingest/seq-starts-at-one.json"
        with self.assertRaises((matching.Mismatch, host.Failed)):
            runner.run_vector(path, lambda one: Forgetful(one, False))


def many():
    """Returns a shorthand for messages, enough for a compaction."""
    roles = ["user", "assistant"]
    return {"$generate": {"count": 40, "tokens": 100, "roles": roles, "first": 1}}


if __name__ == "__main__":
    unittest.main()
