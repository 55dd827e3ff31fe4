"""An event loop goes on while a store is busy, and who is cancelled knows what became of a call."""

from __future__ import annotations

import asyncio
import threading
import time
import unittest
from unittest import mock

import lcm_engine
from lcm_engine import LcmError, SqliteStore

from .support import NOW, temporary_folder

SLOW_SECONDS = 0.5
MESSAGES = 10_000


class SlowStore(SqliteStore):
    """A file on a disk that takes its time; `begun` is set when a commit is under way."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.begun = threading.Event()

    def commit(self, guards, puts):
        self.begun.set()
        time.sleep(SLOW_SECONDS)
        super().commit(guards, puts)


def said(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"message {number} " + "word " * 40, "id": f"m{number}"}


async def longest_wait(work) -> float:
    """Milliseconds that a timer came too late at most while something was done."""
    done = asyncio.ensure_future(work)
    late = [0.0]
    while not done.done():
        begin = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append(time.perf_counter() - begin - 0.001)
    await done
    return max(late) * 1e3


class Threads(unittest.IsolatedAsyncioTestCase):
    def opened(self):
        path = temporary_folder(self) / "a.lcm.db"
        return lcm_engine.open_async(path, clock=lambda: NOW, environment={})

    async def test_other_tasks_go_on_while_a_file_is_written(self):
        with mock.patch("lcm_engine.opening.SqliteStore", SlowStore):
            async with self.opened() as lcm:
                await lcm.status()
                waited = await longest_wait(lcm.append("c", [said(1)]))
                self.assertLess(waited, SLOW_SECONDS * 1e3 / 2)

    async def test_who_is_cancelled_hears_of_it_when_the_call_is_over(self):
        with mock.patch("lcm_engine.opening.SqliteStore", SlowStore):
            async with self.opened() as lcm:
                first = asyncio.create_task(lcm.append("c", [said(1)]))
                await asyncio.to_thread(lcm.store.begun.wait)
                second = asyncio.create_task(lcm.append("c", [said(2)]))
                await asyncio.sleep(0)
                for task in (second, first):
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                # The first had begun and is stored, the second was never made.
                self.assertEqual((await lcm.status("c"))["messages"], 1)
                self.assertTrue((await lcm.check("c"))["ok"])

    async def test_a_closed_store_says_so_and_is_closed_again_for_nothing(self):
        lcm = await self.opened()
        await lcm.append("c", [said(1)])
        for _ in range(2):
            await lcm.close()
        with self.assertRaises(LcmError) as caught:
            await lcm.status()
        self.assertEqual(str(caught.exception), "invalid-input: the store is closed")

    async def test_a_store_of_the_caller_is_called_where_the_loop_runs(self):
        class Own(lcm_engine.MemoryStore):
            threads = set()

            def commit(self, guards, puts):
                self.threads.add(threading.get_ident())
                super().commit(guards, puts)

        store, turns = Own(), 0
        async with lcm_engine.open_async(store, environment={}) as lcm:
            done = asyncio.ensure_future(lcm.ingest("c", [said(number) for number in range(300)]))
            while not done.done():
                turns += 1
                await asyncio.sleep(0)
        self.assertEqual(store.threads, {threading.get_ident()})
        self.assertGreater(turns, 4)

    async def test_how_late_a_timer_comes_during_a_long_ingest_is_told(self):
        texts = [said(number) for number in range(MESSAGES)]
        async with self.opened() as lcm:
            ingest = await longest_wait(lcm.ingest("c", texts))
            compact = await longest_wait(lcm.compact("c", 60_000))
            self.assertEqual((await lcm.status("c"))["messages"], MESSAGES)
        print(f"a timer was late by at most {ingest:.0f} ms while {MESSAGES} messages came in, ")
        print(f"by {compact:.0f} ms while they were compacted")
        self.assertLess(max(ingest, compact), 1_000)


if __name__ == "__main__":
    unittest.main()
