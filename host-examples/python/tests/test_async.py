"""The adapter for asynchronous stores, over the probe component: fetch, repeat, commit, retry."""

from __future__ import annotations

import asyncio
import unittest

from lcm_engine import LcmError
from lcm_engine.instance import Instance
from lcm_engine.sessions import AsyncSession, Session
from lcm_engine.stores import AsyncMemoryStore, MemoryStore

from .support import (
    FailingAsyncStore,
    FailingStore,
    conflict,
    probe_program,
)


def session(store, **options) -> AsyncSession:
    return AsyncSession(lambda: Instance(probe_program()), store, **options)


class Adapter(unittest.IsolatedAsyncioTestCase):
    async def test_a_read_is_fetched_and_the_call_repeated(self):
        store = AsyncMemoryStore(delay_seconds=0.005)
        store.inner.entries = {"a": b"1", "b": b"2"}
        probe = session(store)
        self.assertEqual(
            await probe.call("probe.get_many", {"keys": ["a", "x", "a"]}), [b"1", None, b"1"]
        )
        page = {"start": "a", "end": "z", "entries_max": 1, "bytes_max": 100}
        entries = [{"key": "a", "value": b"1"}]
        self.assertEqual(await probe.call("probe.scan", page), [entries, True])

    async def test_a_result_waits_for_its_commit(self):
        store = AsyncMemoryStore(delay_seconds=0.005)
        probe = session(store)
        await probe.call("probe.commit", {"puts": [{"key": "a", "value": b"1"}]})
        self.assertEqual(store.inner.entries, {"a": b"1"})

    async def test_an_injected_conflict_is_repeated_with_fresh_values_and_a_new_instance(self):
        store = FailingAsyncStore([conflict(), conflict()], delay_seconds=0.002)
        made = []

        def make() -> Instance:
            made.append(Instance(probe_program()))
            return made[-1]

        probe = AsyncSession(make, store)
        await probe.call("probe.commit", {"puts": [{"key": "a", "value": b"1"}]})
        self.assertEqual(store.inner.entries, {"a": b"1"})
        self.assertEqual(store.inner.commits, 3)
        self.assertEqual([instance.made for instance in made], [3])

    async def test_eight_repetitions_are_the_most(self):
        store = FailingAsyncStore([conflict()] * 20)
        with self.assertRaises(LcmError) as caught:
            await session(store).call("probe.commit", {"puts": []})
        self.assertEqual(caught.exception.code, "conflict")
        self.assertEqual(store.inner.commits, 9)
        plain = FailingStore([conflict()] * 20)
        with self.assertRaises(LcmError):
            Session(Instance(probe_program()), plain).call("probe.commit", {"puts": []})
        self.assertEqual(plain.commits, 9)

    async def test_any_other_commit_error_is_raised_at_once_and_drops_the_instance(self):
        store = FailingAsyncStore([OSError("gone")])
        instance = Instance(probe_program())
        probe = AsyncSession(lambda: instance, store)
        with self.assertRaises(LcmError) as caught:
            await probe.call("probe.commit", {"puts": []})
        self.assertEqual(caught.exception.code, "store-unavailable")
        self.assertEqual(store.inner.commits, 1)
        await probe.call("probe.commit", {"puts": []})
        self.assertEqual(instance.made, 2)

    async def test_a_cancelled_commit_drops_the_instance(self):
        class Slow(AsyncMemoryStore):
            begun = asyncio.Event()

            async def commit(self, guards, puts):
                self.begun.set()
                await super().commit(guards, puts)

        store = Slow(delay_seconds=60)
        instance = Instance(probe_program())
        probe = AsyncSession(lambda: instance, store)
        task = asyncio.create_task(probe.call("probe.commit", {"puts": []}))
        await store.begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        store.delay_seconds = 0
        await probe.call("probe.commit", {"puts": []})
        self.assertEqual(instance.made, 2)

    async def test_a_failed_read_is_raised_and_changes_nothing(self):
        class Broken(AsyncMemoryStore):
            async def get_many(self, keys):
                raise OSError("gone")

        with self.assertRaises(LcmError) as caught:
            await session(Broken()).call("probe.get_many", {"keys": ["a"]})
        self.assertEqual(caught.exception.code, "store-unavailable")

    async def test_calls_of_one_lane_take_turns(self):
        store = AsyncMemoryStore(delay_seconds=0.002)
        probe = session(store, lanes=1)

        async def add(number: int) -> None:
            await probe.call(
                "probe.commit",
                {"guards": [], "puts": [{"key": f"{number:02}", "value": b"x"}]},
            )

        await asyncio.gather(*(add(number) for number in range(20)))
        self.assertEqual(len(store.inner.entries), 20)

    async def test_would_block_that_nothing_explains_is_raised(self):
        class Liar(MemoryStore):
            def get_many(self, keys):
                raise LcmError("would-block", "for ever")

        plain = Session(Instance(probe_program()), Liar())
        with self.assertRaises(LcmError) as caught:
            plain.call("probe.get_many", {"keys": ["a"]})
        self.assertEqual(caught.exception.code, "would-block")


if __name__ == "__main__":
    unittest.main()
