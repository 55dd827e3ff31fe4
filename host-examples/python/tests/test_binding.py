"""The binding to the component: values, the byte shim, faults. Runs over the probe component."""

from __future__ import annotations

import gc
import random
import subprocess
import threading
import unittest
import weakref
from unittest import mock

from wasmtime.component import _types as types

from lcm_engine import LcmError, MemoryStore, byte_shim
from lcm_engine.component import load
from lcm_engine.instance import Instance
from lcm_engine.ports import DirectPort

from .support import (
    PYTHON,
    FailingStore,
    child_environment,
    conflict,
    engine_program,
    probe_program,
    temporary_folder,
)

WITHOUT_PRIVATE_NAMES = """
import warnings
from wasmtime import _ffi
del _ffi.wasmtime_component_vallist_new_uninit
from lcm_engine import byte_shim
from tests.support import probe_program
from lcm_engine import MemoryStore
from lcm_engine.instance import Instance
from lcm_engine.ports import DirectPort
assert not byte_shim.available
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    instance = Instance(probe_program())
assert len(caught) == 1, caught
assert not instance.bulk_bytes
print("plain")
"""


def both() -> list[Instance]:
    return [Instance(probe_program(), bulk_bytes=bulk) for bulk in (True, False)]


class Values(unittest.TestCase):
    def test_the_bulk_path_is_there_with_the_pinned_version(self):
        self.assertTrue(byte_shim.available)
        self.assertTrue(Instance(probe_program()).bulk_bytes)

    def test_both_paths_move_the_same_values(self):
        random_bytes = random.Random(7).randbytes
        sizes = (0, 1, 2, 31, 32, 33, 255, 256, 4096, 10_001)
        puts = [{"key": f"k{size:05}", "value": random_bytes(size)} for size in sizes]
        keys = [put["key"] for put in puts] + ["absent"]
        values = [put["value"] for put in puts] + [None]
        for writer in both():
            store = MemoryStore()
            writer.call("probe.commit", {"puts": puts}, DirectPort(store))
            self.assertEqual(store.get_many(keys), values)
            for reader in both():
                port = DirectPort(store)
                self.assertEqual(reader.call("probe.get_many", {"keys": keys}, port), values)
                page = {"start": "k", "end": "l", "entries_max": 99, "bytes_max": 1 << 20}
                entries, more = reader.call("probe.scan", page, port)
                self.assertFalse(more)
                self.assertEqual([entry["value"] for entry in entries], values[:-1])
                page["reverse"], page["entries_max"] = True, 1
                entries, more = reader.call("probe.scan", page, port)
                self.assertEqual((entries, more), ([puts[-1]], True))

    def test_a_thread_does_not_disturb_a_conversion_of_another(self):
        classes, instance = types.case_test_cache, Instance(probe_program())
        classes.clear()
        classes.add(int)

        def move() -> None:
            puts = {"puts": [{"key": "k", "value": b"value"}]}
            instance.call("probe.commit", puts, DirectPort(MemoryStore()))

        other = threading.Thread(target=move)
        other.start()
        other.join()
        self.assertEqual(list(classes), [int])

    def test_a_mebibyte_in_one_call_passes_both_ways(self):
        value = random.Random(1).randbytes(256 * 1024)
        instance, store = Instance(probe_program()), MemoryStore()
        for key in "abcd":
            puts = {"puts": [{"key": key, "value": value}]}
            instance.call("probe.commit", puts, DirectPort(store))
        read = instance.call("probe.get_many", {"keys": list("abcd")}, DirectPort(store))
        self.assertEqual(read, [value] * 4)

    def test_the_bulk_path_converts_no_single_byte(self):
        store = MemoryStore()
        store.entries["a"] = bytes(range(256))
        converted = []
        for instance in both():
            with mock.patch.object(types.U8, "convert_from_c", autospec=True) as back:
                back.side_effect = lambda ty, value: value.of.u8
                port = DirectPort(store)
                read = instance.call("probe.get_many", {"keys": ["a"]}, port)
            self.assertEqual(read, [store.entries["a"]])
            converted.append(back.call_count)
        self.assertEqual(converted, [0, 256])

    def test_without_the_private_names_the_plain_path_is_taken_and_said(self):
        done = subprocess.run(
            [PYTHON, "-c", WITHOUT_PRIVATE_NAMES],
            env=child_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "plain"), done.stderr)

    def test_arguments_that_do_not_fit_are_named(self):
        instance, port = Instance(probe_program()), DirectPort(MemoryStore())
        cases = (
            ({"keys": "a"}, "`arguments.keys` must be a list"),
            ({"keys": [1]}, "`arguments.keys` must be a string"),
            ({"keys": ["\ud800"]}, "lone surrogate"),
            ({"key": []}, "has no field `key`"),
        )
        for arguments, message in cases:
            with self.assertRaises(LcmError) as caught:
                instance.call("probe.get_many", arguments, port)
            self.assertEqual(caught.exception.code, "invalid-input")
            self.assertIn(message, caught.exception.message)
        page = {"start": "a", "end": "b", "entries_max": 2**32}
        with self.assertRaises(LcmError):
            instance.call("probe.scan", page, port)
        with self.assertRaises(LcmError) as caught:
            instance.call("probe.nothing", {}, port)
        self.assertEqual(caught.exception.code, "unsupported")


class Faults(unittest.TestCase):
    def test_an_error_of_the_store_reaches_the_guest_as_its_record(self):
        for instance in both():
            store = FailingStore([conflict()])
            with self.assertRaises(LcmError) as caught:
                instance.call("probe.commit", {"puts": []}, DirectPort(store))
            self.assertEqual(str(caught.exception), "conflict: injected")
            instance.call("probe.commit", {"puts": []}, DirectPort(store))
            self.assertEqual(instance.made, 1)

    def test_an_unknown_commit_outcome_drops_the_instance(self):
        for failure in (LcmError("store-unavailable", "gone"), RuntimeError("bug")):
            instance, store = Instance(probe_program()), FailingStore([failure])
            with self.assertRaises(LcmError) as caught:
                instance.call("probe.commit", {"puts": []}, DirectPort(store))
            self.assertEqual(caught.exception.code, "store-unavailable")
            instance.call("probe.commit", {"puts": []}, DirectPort(store))
            self.assertEqual(instance.made, 2)

    def test_an_awaitable_answer_of_a_synchronous_store_is_refused(self):
        class Sneaky(MemoryStore):
            async def get_many(self, keys):
                return []

        instance = Instance(probe_program())
        with self.assertRaises(LcmError) as caught:
            instance.call("probe.get_many", {"keys": ["a"]}, DirectPort(Sneaky()))
        self.assertEqual(caught.exception.code, "invalid-input")
        self.assertIn("asynchronous = True", caught.exception.message)

    def test_an_answer_of_the_wrong_type_is_a_trap_and_a_new_instance(self):
        class Unchecked(DirectPort):
            def get_many(self, keys):
                return ["text"]

        for instance in both():
            with self.assertRaises(LcmError) as caught:
                instance.call("probe.get_many", {"keys": ["a"]}, Unchecked(MemoryStore()))
            self.assertEqual(caught.exception.code, "trap")
            store = MemoryStore()
            self.assertEqual(
                instance.call("probe.get_many", {"keys": ["a"]}, DirectPort(store)), [None]
            )
            self.assertEqual(instance.made, 2)

    def test_an_instance_goes_with_its_owner(self):
        for instance in both():
            instance.call("probe.get_many", {"keys": ["a"]}, DirectPort(MemoryStore()))
        owned = weakref.ref(instance)
        del instance
        gc.collect()
        self.assertIsNone(owned())

    def test_an_instance_may_not_grow_beyond_its_bound(self):
        instance = Instance(probe_program(), memory_bytes_max=1 << 20)
        store = MemoryStore()
        puts = {"puts": [{"key": "a", "value": bytes(2 << 20)}]}
        with self.assertRaises(LcmError) as caught:
            instance.call("probe.commit", puts, DirectPort(store))
        self.assertEqual(caught.exception.code, "trap")
        self.assertEqual(store.entries, {})


class Compiled(unittest.TestCase):
    def test_the_compiled_component_is_kept_and_a_damaged_one_replaced(self):
        folder = temporary_folder(self)
        code = "from lcm_engine.component import load; print(load().sha256)"
        environment = child_environment() | {"LCM_CACHE_DIR": str(folder)}

        def run() -> str:
            done = subprocess.run(
                [PYTHON, "-c", code], env=environment, capture_output=True, text=True, check=True
            )
            return done.stdout.strip()

        first = run()
        (kept,) = folder.iterdir()
        self.assertIn(first, kept.name)
        self.assertIn("wasmtime-50.0.1", kept.name)
        written = kept.stat().st_mtime_ns
        self.assertEqual(run(), first)
        self.assertEqual(kept.stat().st_mtime_ns, written)
        kept.write_bytes(b"damaged")
        self.assertEqual(run(), first)
        self.assertEqual(list(folder.iterdir()), [kept])
        self.assertGreater(kept.stat().st_size, 10_000)

    def test_the_engine_imports_nothing_but_its_own_interfaces(self):
        program = engine_program()
        imports = program.component.type.imports(program.engine)
        self.assertTrue(imports)
        self.assertTrue(all(name.startswith("lcm:engine/") for name in imports), list(imports))

    def test_a_missing_component_says_so(self):
        with self.assertRaises(LcmError) as caught:
            load("nowhere.wasm")
        self.assertEqual(caught.exception.code, "not-found")


if __name__ == "__main__":
    unittest.main()
