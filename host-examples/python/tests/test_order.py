"""Concurrent calls of one conversation: calls not awaited one by one, and several threads."""

from __future__ import annotations

import asyncio
import json
import threading
import unittest

from lcm_engine import LcmError, MemoryStore
from lcm_engine.stores import AsyncMemoryStore

from .support import temporary_folder
from .test_engine import message, opened, opened_async

MANY = [json.dumps(message(number)) for number in range(250)]
CLOSED = "invalid-input: the store is closed"


class Closing(AsyncMemoryStore):
    """A store with a delay of 1 ms that fails if it is closed before a commit has ended."""

    def __init__(self) -> None:
        super().__init__(delay_seconds=0.001)
        self.is_closed = False

    async def commit(self, guards, puts):
        await super().commit(guards, puts)
        assert not self.is_closed

    async def close(self):
        self.is_closed = True


class Order(unittest.IsolatedAsyncioTestCase):
    def stores(self):
        yield "memory:"
        yield temporary_folder(self) / "a.lcm.db"
        yield Closing()

    async def test_calls_of_a_conversation_have_the_order_in_which_they_were_made(self):
        for store in self.stores():
            async with await opened_async(store) as lcm:
                _, turn, context, _ = await asyncio.gather(
                    lcm.append("c", MANY, append_mode="new"),
                    lcm.turn("c", [message(250)], 1_000_000, append_mode="new"),
                    lcm.assemble("c", 1_000_000),
                    lcm.append("c", [message(251)], append_mode="new"),
                )
                stored = await lcm.messages("c")
            self.assertEqual(stored[:250], MANY)
            self.assertEqual(list(map(json.loads, stored[250:])), [message(250), message(251)])
            self.assertEqual(turn["receipt"]["seq_first"], 251)
            self.assertEqual(len(context["messages"]), 251)

    async def test_what_is_handed_over_is_what_it_was_at_the_call(self):
        async with await opened_async() as lcm:
            given = [message(0), *({"role": "user", "content": one} for one in "ab")]
            kept = [json.dumps(one, separators=(",", ":")) for one in given]
            prices = {"input": 1, "output": 1}
            waiting = lcm.append("c", given, append_mode="new")
            given[0]["content"] = "another"
            given.clear()
            await waiting
            self.assertEqual(await lcm.messages("c"), kept)
            waiting = lcm.advise("c", 1_000, prices)
            prices["input"] = "dear"
            self.assertEqual((await waiting)["advice"], "wait")

    async def test_a_wrong_argument_is_told_to_who_waits(self):
        async with await opened_async() as lcm:
            waiting = lcm.append("c", 7)
            with self.assertRaises(LcmError) as caught:
                await waiting
            self.assertEqual(caught.exception.code, "invalid-input")

    async def test_other_conversations_do_not_wait(self):
        async with await opened_async(Closing()) as lcm:
            long = asyncio.create_task(lcm.append("c", MANY, append_mode="new"))
            await lcm.append("d", [message(1)])
            self.assertFalse(long.done())
            await long

    async def test_closing_waits_for_what_was_called_before(self):
        for store in self.stores():
            lcm = await opened_async(store)
            appends = [lcm.append(name, MANY, append_mode="new") for name in "cd"]
            tasks = [asyncio.create_task(append) for append in appends]
            await lcm.close()
            self.assertTrue(all(task.done() for task in tasks))
            self.assertEqual([task.result()["ingested"] for task in tasks], [250, 250])
            await lcm.close()
            for call in (lcm.status(), lcm.append("c", MANY), lcm.tools()):
                with self.assertRaises(LcmError) as caught:
                    await call
                self.assertEqual(str(caught.exception), CLOSED)

    async def test_who_is_cancelled_while_closing_may_close_again(self):
        for store in self.stores():
            lcm = await opened_async(store)
            appending = asyncio.create_task(lcm.append("c", MANY, append_mode="new"))
            await asyncio.sleep(0)
            closing = [asyncio.create_task(lcm.close()) for _ in range(3)]
            await asyncio.sleep(0)
            closing[0].cancel()
            await asyncio.wait(closing)
            self.assertEqual([task.cancelled() for task in closing], [True, False, False])
            self.assertEqual(appending.result()["ingested"], 250)
            if isinstance(store, Closing):
                self.assertTrue(store.is_closed)

    async def test_a_model_is_not_waited_for_by_others_but_by_closing(self):
        asked, answered = asyncio.Event(), asyncio.Event()

        async def model(request):
            asked.set()
            await answered.wait()
            return "A summary."

        lcm = await opened_async(complete=model)
        compacting = asyncio.create_task(lcm.turn("c", MANY, 6_000))
        await asked.wait()
        self.assertEqual((await lcm.append("c", [message(250)], append_mode="new"))["ingested"], 1)
        self.assertTrue((await lcm.assemble("c", 6_000))["messages"])
        closing = asyncio.create_task(lcm.close())
        while True:
            try:
                await lcm.status()
            except LcmError as error:
                self.assertEqual(str(error), CLOSED)
                break
        self.assertFalse(closing.done())
        answered.set()
        await closing
        self.assertEqual(compacting.result()["compacted"]["status"], "done")

    async def test_a_model_cannot_close_the_store_that_waits_for_it(self):
        ends = []

        async def model(request):
            try:
                await lcm.close()
            except LcmError as error:
                ends.append(str(error))
            return "A summary."

        async with await opened_async(complete=model) as lcm:
            await lcm.append("c", MANY)
            await lcm.compact("c", 6_000)
        said = "conflict: `close` waits for the call that it was called from"
        self.assertEqual(set(ends), {said})

    async def test_who_cannot_wait_for_a_model_cancels(self):
        asked = asyncio.Event()

        async def model(request):
            asked.set()
            await asyncio.Event().wait()

        lcm = await opened_async(complete=model)
        await lcm.append("c", MANY)
        maintaining = asyncio.create_task(lcm.maintain("c", 6_000))
        await asked.wait()
        maintaining.cancel()
        await lcm.close()
        self.assertTrue(maintaining.cancelled())

    async def test_who_is_cancelled_in_line_leaves_it(self):
        async with await opened_async(Closing()) as lcm:
            first = asyncio.create_task(lcm.append("c", MANY, append_mode="new"))
            second = asyncio.create_task(lcm.append("c", MANY, append_mode="new"))
            third = asyncio.create_task(lcm.append("c", [message(250)], append_mode="new"))
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.wait([first, second, third])
            self.assertTrue(second.cancelled())
            self.assertEqual(third.result()["seq_last"], 251)


class Compactions(unittest.IsolatedAsyncioTestCase):
    async def test_two_at_the_same_time_ask_a_model_once(self):
        asked = []

        async def model(request):
            asked.append(request["id"])
            await asyncio.sleep(0)
            return f"Summary number {len(asked)}."

        for one, two in (("compact", "compact"), ("maintain", "maintain"), ("maintain", "compact")):
            asked.clear()
            async with await opened_async(complete=model) as lcm:
                await lcm.append("c", MANY)
                both = [getattr(lcm, name)("c", 6_000) for name in (one, two)]
                first, second = await asyncio.gather(*both)
                summaries = await lcm.listing("summaries", "c")
            done = [each.get("compacted", each) for each in (first, second)]
            self.assertEqual(len(asked), len(set(asked)))
            self.assertEqual(len(done[0]["passes"]), len(summaries))
            self.assertIn(done[1] and done[1]["status"], (None, "nothing-to-do"))

    async def test_two_handles_of_a_store_ask_a_model_once(self):
        asked = []

        async def model(request):
            asked.append(request["id"])
            return f"Summary number {len(asked)}."

        path = temporary_folder(self) / "a.lcm.db"
        async with (
            await opened_async(path, complete=model) as one,
            await opened_async(str(path), complete=model) as other,
        ):
            await one.append("c", MANY)
            await asyncio.gather(one.compact("c", 6_000), other.maintain("c", 6_000))
        self.assertTrue(asked)
        self.assertEqual(len(asked), len(set(asked)))

    async def test_a_turn_behind_a_compaction_finds_nothing_left_to_do(self):
        asked, answered = asyncio.Event(), asyncio.Event()

        async def model(request):
            asked.set()
            await answered.wait()
            return "A summary."

        async with await opened_async(complete=model) as lcm:
            await lcm.append("c", MANY)
            first = asyncio.create_task(lcm.compact("c", 6_000))
            await asked.wait()
            second = asyncio.create_task(lcm.turn("c", [message(250)], 6_000, append_mode="new"))
            while (await lcm.status("c"))["messages"] < 251:
                pass
            answered.set()
            self.assertTrue((await first)["passes"])
            self.assertEqual((await second)["compacted"]["status"], "nothing-to-do")

    async def test_a_model_that_compacts_what_it_is_asked_for_is_refused(self):
        ends = []

        async def model(request):
            try:
                await lcm.compact("c", 6_000)
            except LcmError as error:
                ends.append(error.code)
            return "A summary."

        async with await opened_async(complete=model) as lcm:
            await lcm.append("c", MANY)
            await lcm.compact("c", 6_000)
        self.assertEqual(set(ends), {"conflict"})

    def test_two_threads_ask_a_model_once(self):
        asked, both, ends = [], threading.Barrier(2), []

        def model(request):
            asked.append(request["id"])
            return f"Summary number {len(asked)}."

        def compact(lcm):
            both.wait()
            ends.append(lcm.compact("c", 6_000))

        store = MemoryStore()
        with opened(store, model) as lcm, opened(store, model) as other:
            lcm.append("c", MANY)
            threads = [threading.Thread(target=compact, args=(one,)) for one in (lcm, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            summaries = lcm.listing("summaries", "c")
        self.assertEqual(len(asked), len(set(asked)))
        first, second = ends
        self.assertEqual((len(first["passes"]), second["passes"]), (len(summaries), []))

    def test_a_pass_is_listed_by_the_compaction_that_made_it(self):
        for said in ("Both say the same.", None):
            others = []

            def model(request, said=said, others=others):
                if not others:
                    with opened(elsewhere, lambda request: said or "The other one.") as other:
                        others.append(other.compact("c", 6_000))
                return said or "This one."

            store, elsewhere = MemoryStore(), MemoryStore()
            elsewhere.entries = store.entries  # Two objects over one store, like two processes.
            with opened(store, model) as lcm:
                lcm.append("c", MANY)
                mine, (theirs,) = lcm.compact("c", 6_000), others
            one, two = ({each["summary_id"] for each in done["passes"]} for done in (mine, theirs))
            self.assertTrue(two)
            self.assertEqual(one & two, set())
            self.assertLess(mine["tokens_after"], 6_000)

    def test_a_blocking_model_that_compacts_what_it_is_asked_for_is_refused(self):
        ends = []

        def model(request):
            try:
                lcm.maintain("c", 6_000)
            except LcmError as error:
                ends.append(error.code)
            return "A summary."

        with opened(complete=model) as lcm:
            lcm.append("c", MANY)
            self.assertTrue(lcm.compact("c", 6_000)["passes"])
        self.assertEqual(set(ends), {"conflict"})


class BlockingModels(unittest.IsolatedAsyncioTestCase):
    async def test_one_that_blocks_does_not_stop_the_loop(self):
        asked, answered = threading.Event(), threading.Event()

        def model(request):
            asked.set()
            return "A summary." if answered.wait(30) else None

        async with await opened_async(complete=model, retries=0) as lcm:
            await lcm.append("c", MANY)
            compacting = asyncio.create_task(lcm.compact("c", 6_000))
            while not asked.is_set():
                await asyncio.sleep(0)
            self.assertTrue((await lcm.assemble("c", 6_000))["messages"])
            answered.set()
            done = await compacting
        self.assertEqual((done["status"], done["failure"]), ("done", None))

    async def test_what_it_raises_and_what_it_returns_is_understood(self):
        async def later(request):
            return "A summary."

        def stops(request):
            raise StopIteration

        class Callable:
            async def __call__(self, request):
                return "A summary."

        async with await opened_async(complete=stops, retries=0) as lcm:
            await lcm.append("c", MANY)
            failure = (await lcm.compact("c", 6_000))["failure"]
            self.assertIn("StopIteration", failure["message"])
        for complete in (lambda request: later(request), Callable()):
            async with await opened_async(complete=complete, retries=0) as lcm:
                await lcm.append("c", MANY)
                self.assertIsNone((await lcm.compact("c", 6_000))["failure"])


if __name__ == "__main__":
    unittest.main()
