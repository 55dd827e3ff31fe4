"""An event loop continues while a store is busy, and a cancelled call has a certain outcome."""

from __future__ import annotations

import asyncio
import threading
import unittest
from unittest import mock

import lcm_engine
from lcm_engine import LcmError, SqliteStore

from .support import NOW, temporary_folder


class SlowStore(SqliteStore):
    """A store in a file, with slow commits: each commit waits until `goes_on` is set.

    `begun` is set when a commit has begun.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.threads = set()

    def commit(self, guards, puts):
        self.threads.add(threading.get_ident())
        self.begun.set()
        assert self.goes_on.wait(60), "nobody else came to run"
        super().commit(guards, puts)


def said(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"message {number} " + "word " * 40, "id": f"m{number}"}


class Threads(unittest.IsolatedAsyncioTestCase):
    def opened(self):
        path = temporary_folder(self) / "a.lcm.db"
        return lcm_engine.open_async(path, clock=lambda: NOW, environment={})

    async def test_other_tasks_go_on_while_a_file_is_written(self):
        with mock.patch("lcm_engine.opening.SqliteStore", SlowStore):
            async with self.opened() as lcm:
                appending = asyncio.create_task(lcm.append("c", [said(1)]))
                while not lcm.store.begun.is_set():
                    await asyncio.sleep(0)
                self.assertFalse(appending.done())
                lcm.store.goes_on.set()
                self.assertEqual((await appending)["ingested"], 1)
                await lcm.ingest("c", [said(number) for number in range(300)])
                self.assertEqual(len(lcm.store.threads), 1)
                self.assertNotIn(threading.get_ident(), lcm.store.threads)

    async def test_who_is_cancelled_hears_of_it_when_the_call_is_over(self):
        with mock.patch("lcm_engine.opening.SqliteStore", SlowStore):
            async with self.opened() as lcm:
                first = asyncio.create_task(lcm.append("c", [said(1)]))
                await asyncio.to_thread(lcm.store.begun.wait)
                second = asyncio.create_task(lcm.append("c", [said(2)]))
                await asyncio.sleep(0)
                second.cancel()
                first.cancel()
                await asyncio.wait([second])
                self.assertFalse(first.done())
                lcm.store.goes_on.set()
                for task in (second, first):
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                # The first call had begun, so its message is stored; the second was never made.
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


if __name__ == "__main__":
    unittest.main()
