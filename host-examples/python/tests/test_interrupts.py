"""Signals, and exceptions inside a store or a model, end the call but not the process."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import unittest

from lcm_engine import LcmError, MemoryStore
from lcm_engine.instance import Instance
from lcm_engine.ports import DirectPort

from .support import PYTHON, child_environment, probe_program
from .test_engine import message, opened

BEGIN = """
import os, signal, sys, threading, time
import lcm_engine
from lcm_engine import MemoryStore
# A process that was begun in the background of a shell ignores interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

def said(number):
    return [{"role": "user", "content": f"message {number}"}]

"""

IN_EVERY_IMPORT = """
from lcm_engine.instance import Instance
from lcm_engine.ports import DirectPort
from tests.support import probe_program

class Leaving(BaseException):
    pass

class Store(MemoryStore):
    raised = None
    def get_many(self, keys):
        raise self.raised
    scan = commit = lambda self, *arguments: self.get_many(())

page = {"start": "a", "end": "b", "entries_max": 1, "bytes_max": 1}
calls = {"get_many": {"keys": []}, "scan": page, "commit": {}}
for bulk in (True, False):
    instance, made = Instance(probe_program(), bulk_bytes=bulk), 0
    for kind in (KeyboardInterrupt, SystemExit, Leaving):
        for name, arguments in calls.items():
            store = Store()
            store.raised = kind()
            try:
                instance.call(f"probe.{name}", arguments, DirectPort(store))
            except BaseException as error:
                assert error is store.raised, repr(error)
            made += 1
            port = DirectPort(MemoryStore())
            assert instance.call("probe.get_many", {"keys": ["a"]}, port) == [None]
            assert instance.made == made + 1, (instance.made, made)
"""

IN_A_MODEL = """
class Leaving(BaseException):
    pass

raised = Leaving()
def complete(request):
    raise raised

lcm = lcm_engine.open("memory:", complete, environment={})
lcm.append("c", [*said(1), *(said(f"{number} " + "word " * 90)[0] for number in range(99))])
try:
    lcm.maintain("c", 3_000)
except BaseException as error:
    assert error is raised
assert lcm.status("c")["debt"]["failures"] == 0
try:
    lcm.compact("c", 3_000)  # asks again: the request was given back
except BaseException as error:
    assert error is raised
else:
    raise AssertionError("the request is still leased")
assert lcm.check("c")["ok"]
"""

AT_ANY_MOMENT = """
import random
wanted, caught, goes_on = 100, 0, threading.Event()
moments = random.Random(7)

def interrupt():
    for _ in range(wanted):
        goes_on.wait()
        goes_on.clear()
        for _ in range(moments.randrange(40)):
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGINT)

lcm = lcm_engine.open("memory:", environment={})
lcm.append("c", said(0))
thread = threading.Thread(target=interrupt)
thread.start()
number = 0
while caught < wanted:
    try:
        goes_on.set()
        while True:
            number += 1
            lcm.append("c", said(number), append_mode="new")
    except KeyboardInterrupt:
        caught += 1
thread.join()
assert lcm.check("c")["ok"]
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""

INSIDE_OF_A_STORE = """
class Slow(MemoryStore):
    slow = False
    def get_many(self, keys):
        if self.slow:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(600)
        return super().get_many(keys)

store = Slow()
lcm = lcm_engine.open(store, environment={})
lcm.append("c", said(0))
store.slow = True
try:
    lcm.append("c", said(1))
except KeyboardInterrupt:
    store.slow = False
assert lcm.append("c", said(1))["ingested"] == 1
"""

WITHOUT_ROOM = """
import inspect

def deep(frames):
    return deep(frames - 1) if frames else lcm.status("c")

lcm = lcm_engine.open("memory:", environment={})
lcm.append("c", said(0))
ends, limit = [], sys.getrecursionlimit() - len(inspect.stack())
for frames in range(limit - 200, limit):
    try:
        ends.append(deep(frames)["messages"])
    except RecursionError:
        ends.append(None)
assert ends[0] == 1 and ends[-1] is None, ends
assert lcm.check("c")["ok"]
"""

CLOSED_BESIDE = """
import tempfile
folder = tempfile.TemporaryDirectory()
ends = []

def write(lcm, begun):
    number = 0
    try:
        while True:
            number += 1
            lcm.append("c", said(number), append_mode="new")
            begun.set()
    except lcm_engine.LcmError as error:
        ends.append(str(error))

for turn in range(10):
    lcm = lcm_engine.open(os.path.join(folder.name, f"{turn}.lcm.db"), environment={})
    begun = threading.Event()
    threads = [threading.Thread(target=write, args=(lcm, begun)) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait()
    lcm.close()
    lcm.close()
    for thread in threads:
        thread.join()
assert ends == ["invalid-input: the store is closed"] * 20, set(ends)
folder.cleanup()
"""


class Processes(unittest.TestCase):
    """Tests that run in separate processes, because a fault would end the process."""

    def survives(self, code: str) -> None:
        done = subprocess.run(
            [PYTHON, "-c", BEGIN + textwrap.dedent(code) + "\nprint('survived')\n"],
            env=child_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        self.assertEqual((done.returncode, done.stdout), (0, "survived\n"), done.stderr)

    def test_any_exception_of_a_store_reaches_the_caller_and_drops_the_instance(self):
        self.survives(IN_EVERY_IMPORT)

    def test_any_exception_of_a_model_reaches_the_caller_and_is_told_to_the_engine(self):
        self.survives(IN_A_MODEL)

    def test_an_interrupt_at_any_moment_ends_one_call(self):
        self.survives(AT_ANY_MOMENT)

    def test_an_interrupt_does_not_wait_for_a_store(self):
        self.survives(INSIDE_OF_A_STORE)

    def test_a_call_near_the_recursion_limit_is_refused(self):
        self.survives(WITHOUT_ROOM)

    def test_closing_waits_for_the_engine_call_of_another_thread(self):
        self.survives(CLOSED_BESIDE)


class Refusals(unittest.TestCase):
    def test_a_store_that_calls_its_own_engine_is_refused(self):
        lcm, store = self.begin(lambda lcm: lcm.status())
        lcm._session._conflicts_max = 0
        with lcm:
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [message(2)])
            self.assertEqual(caught.exception.code, "conflict")
            self.assertIn("a store called the engine", caught.exception.message)
            self.assertEqual(lcm.append("c", [message(2)])["ingested"], 1)

    def begin(self, meanwhile):
        """Returns an engine and its store, which calls `meanwhile` during its next read."""

        class Curious(MemoryStore):
            closed = 0

            def get_many(self, keys):
                if self.calls:
                    meanwhile(self.calls.pop())
                return super().get_many(keys)

            def close(self):
                self.closed += 1

        store = Curious()
        store.calls = []
        lcm = opened(store)
        lcm.append("c", [message(1)])
        store.calls.append(lcm)
        return lcm, store

    def test_closing_from_a_handler_waits_for_the_call_that_it_came_in(self):
        def handle(number, frame):
            lcm.close()

        before = signal.signal(signal.SIGTERM, handle)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        lcm, store = self.begin(lambda lcm: signal.raise_signal(signal.SIGTERM))
        self.assertEqual(lcm.append("c", [message(2)])["ingested"], 1)
        self.assertEqual(store.closed, 1)
        with self.assertRaises(LcmError) as caught:
            lcm.status()
        self.assertEqual(caught.exception.message, "the store is closed")

    def handled(self, handler):
        """Returns a store that raises a signal after commit number `left`; `handler` handles it."""
        before = signal.signal(signal.SIGTERM, lambda number, frame: handler())
        self.addCleanup(signal.signal, signal.SIGTERM, before)

        class Signalled(MemoryStore):
            left = -1

            def commit(self, guards, puts):
                super().commit(guards, puts)
                self.left -= 1
                if self.left == 0:
                    signal.raise_signal(signal.SIGTERM)

        return Signalled()

    def test_an_append_by_a_handler_is_refused_and_no_conflict_of_the_call_it_came_in(self):
        for count in (1, 250):
            said = [message(number) for number in range(count)]
            store = self.handled(lambda: lcm.append("log", [message(0)], append_mode="new"))
            with opened(store) as lcm:
                store.left = 1
                with self.assertRaises(LcmError) as caught:
                    lcm.append("c", said, append_mode="new")
                self.assertIn("a store called the engine", caught.exception.message)
                stored = len(lcm.messages("c"))
                self.assertEqual(stored, min(count, 100))
                receipt = lcm.append("c", said, append_mode="new", repeat=True)
                self.assertEqual(receipt["ingested"], count - stored)
                self.assertEqual(len(lcm.messages("c")), count)

    def test_what_a_handler_raises_in_a_store_is_no_fault_of_the_store(self):
        raised = [TimeoutError("too slow"), LcmError("store-unavailable", "by hand")]
        for error in [*raised, LcmError("conflict", "by hand")]:
            def handle(error=error):
                raise error

            for verb, options in (("append", {"append_mode": "new"}), ("ingest", {})):
                store = self.handled(handle)
                with opened(store) as lcm:
                    store.left = 2
                    said = [message(number) for number in range(350)]
                    with self.assertRaises(type(error)) as caught:
                        getattr(lcm, verb)("c", said, **options)
                    self.assertIs(caught.exception, error)
                    self.assertEqual(len(lcm.messages("c")), 200)
                    self.assertTrue(lcm.check("c")["ok"])

    def test_what_a_handler_raises_behind_the_engine_is_no_conflict_of_the_call(self):
        error = LcmError("conflict", "by hand")

        def handle(number, frame):
            raise error

        before = signal.signal(signal.SIGTERM, handle)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with opened() as lcm:
            call = lcm._session.instance._call

            def signalled(*arguments):
                # No code of the caller runs during the call, so the signal waits for its end.
                value = call(*arguments)
                if calls and arguments[0] == "ingest.append":
                    calls.pop()
                    signal.raise_signal(signal.SIGTERM)
                return value

            calls = [1]
            lcm._session.instance._call = signalled
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [message(1)], append_mode="new")
            self.assertIs(caught.exception, error)
            self.assertEqual(len(lcm.messages("c")), 1)

    def test_handlers_are_left_as_they_were_and_none_is_called_twice(self):
        caught = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        ours = signal.getsignal(signal.SIGTERM)

        class Signalling(MemoryStore):
            def get_many(self, keys):
                signal.raise_signal(signal.SIGTERM)
                return super().get_many(keys)

        call = ("probe.get_many", {"keys": ["a"]}, DirectPort(Signalling()))
        instance = Instance(probe_program())
        self.assertEqual(instance.call(*call), [None])
        self.assertEqual(caught, [signal.SIGTERM])
        self.assertIs(signal.getsignal(signal.SIGTERM), ours)
        # In other threads signal handlers never run, so the package does not replace them.
        thread = threading.Thread(target=instance.call, args=call)
        thread.start()
        thread.join()
        self.assertEqual(instance.made, 1)
        self.assertIs(signal.getsignal(signal.SIGTERM), ours)
        self.assertEqual(sys.getrefcount(instance), 2)


if __name__ == "__main__":
    unittest.main()
