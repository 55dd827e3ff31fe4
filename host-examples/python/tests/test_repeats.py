"""Appends whose outcome is unknown, with the engine: nothing is stored twice, nothing left out.

The messages are too short to be recognised by their content.
"""

from __future__ import annotations

import asyncio
import json
import unittest
from functools import partial

from lcm_engine import LcmError, MemoryStore
from lcm_engine.stores import AsyncMemoryStore

from .support import NOW
from .test_engine import message, opened, opened_async

BEFORE = [json.dumps({"role": "user", "content": one}) for one in ("begin", "ok")]


def short(count: int) -> list[str]:
    said = (("user", "yes"), ("assistant", "ok"))
    texts = [json.dumps({"role": role, "content": content}) for role, content in said]
    return [texts[at % 2] for at in range(count)]


class LosingStore(MemoryStore):
    """A memory store that fails in one commit, after the write (`is_stored`) or before it."""

    def __init__(self, number: int, is_stored: bool, beside=lambda: None) -> None:
        super().__init__()
        self.number, self.is_stored, self.beside = number, is_stored, beside
        self.commits = -1

    def commit(self, guards, puts):
        lost = self.commits == self.number
        self.commits += 0 if self.commits < 0 else 1
        if self.is_stored or not lost:
            super().commit(guards, puts)
        if lost:
            self.beside()
            raise OSError("the reply was lost")

    def begin(self) -> None:
        """Starts to count commits, from 0."""
        self.commits = 0


class UnknownOutcomes(unittest.TestCase):
    def ingested(self, store, said):
        """Ingests `said` after `BEFORE`; returns the receipt and the messages stored after it."""
        with opened(store) as lcm:
            lcm.append("c", BEFORE)
            store.begin()
            receipt = lcm.ingest("c", said)
            self.assertTrue(lcm.check("c")["ok"])
            return receipt, lcm.messages("c")[len(BEFORE) :]

    def test_a_batch_is_stored_once_whether_its_reply_was_lost_or_it_itself(self):
        for count in (2, 150, 350):
            for number in range(4):
                for is_stored in (True, False):
                    said = short(count)
                    receipt, stored = self.ingested(LosingStore(number, is_stored), said)
                    self.assertEqual(stored, said, (count, number, is_stored))
                    self.assertEqual(receipt["ingested"] + receipt["skipped"], count)
                    if not is_stored:
                        self.assertEqual(receipt["ingested"], count)

    def test_what_others_write_before_the_repetition_is_no_reason_to_store_it_again(self):
        said, beside = short(250), json.dumps({"role": "user", "content": "beside"})

        def write():
            with opened(others) as other:
                other.append("c", [beside], append_mode="new")

        store = LosingStore(1, True, write)
        others = MemoryStore()
        others.entries = store.entries
        _, stored = self.ingested(store, said)
        self.assertEqual(stored, [*said[:200], beside, *said[200:]])

    def test_an_outcome_that_stays_unknown_is_the_callers(self):
        class Gone(LosingStore):
            def commit(self, guards, puts):
                self.number = self.commits
                super().commit(guards, puts)

        with self.assertRaises(LcmError) as caught:
            self.ingested(Gone(0, False), short(2))
        self.assertEqual(caught.exception.code, "store-unavailable")

    def test_a_long_list_of_new_messages_is_stored_once_however_it_is_repeated(self):
        said = short(1_050)
        for lost in (None, 0, 3, 10):
            for is_stored in (True, False):
                store = LosingStore(lost, is_stored)
                with opened(store) as lcm:
                    lcm.append("c", BEFORE)
                    store.begin()
                    for repeat, ingested in ((False, 1_050), (True, 0)):
                        receipt = lcm.append("c", said, append_mode="new", repeat=repeat)
                        if not (lost is not None and is_stored):
                            self.assertEqual(receipt["ingested"], ingested)
                        self.assertEqual(lcm.messages("c", 3), said)
                    # With another time, the same list counts as a new list.
                    again = lcm.append("c", said, append_mode="new", now=NOW + 1)
                    self.assertEqual(again["ingested"], 1_050)

    def test_a_list_that_was_broken_off_goes_on_where_it_was(self):
        said = short(1_050)

        class Gone(LosingStore):
            def commit(self, guards, puts):
                if self.commits >= 4:
                    raise OSError("gone")
                super().commit(guards, puts)

        store = Gone(None, True)
        with opened(store) as lcm:
            lcm.append("c", BEFORE)
            store.begin()
            with self.assertRaises(LcmError):
                lcm.append("c", said, append_mode="new")
            self.assertEqual(len(lcm.messages("c", 3)), 400)
            store.begin()
            store.commits = -10_000
            receipt = lcm.append("c", said, append_mode="new", repeat=True)
            self.assertEqual((receipt["ingested"], receipt["skipped"]), (650, 400))
            self.assertEqual(lcm.messages("c", 3), said)

    def test_a_long_list_that_refuses_a_replay_is_completed_by_its_repetition(self):
        said = [json.dumps(message(number)) for number in range(350)]

        class Gone(LosingStore):
            def commit(self, guards, puts):
                if 2 <= self.commits < 100:
                    raise OSError("gone")
                super().commit(guards, puts)

        store = Gone(None, True)
        with opened(store) as lcm:
            lcm.append("c", BEFORE)
            store.begin()
            wanted = {"append_mode": "new", "refuse_replay": True}
            with self.assertRaises(LcmError):
                lcm.append("c", said, **wanted)
            self.assertEqual(len(lcm.messages("c", 3)), 200)
            store.commits = 1_000
            receipt = lcm.append("c", said, **wanted, repeat=True)
            self.assertEqual((receipt["ingested"], receipt["skipped"]), (150, 200))
            self.assertEqual(lcm.append("c", said, **wanted, repeat=True)["ingested"], 0)
            # The same messages at another time are a replay, with `repeat` and without.
            for repeat in (False, True):
                with self.assertRaises(LcmError) as caught:
                    lcm.append("c", said, **wanted, repeat=repeat, now=NOW + 1)
                self.assertEqual(caught.exception.code, "exists")
            self.assertEqual(lcm.messages("c", 3), said)
            # An upload changes the revision of the conversation between two appends.
            large = json.dumps({"role": "user", "content": "large " * 60_000})
            other = [large, *(json.dumps(message(number)) for number in range(1_000, 1_150))]
            self.assertEqual(lcm.append("c", other, **wanted)["ingested"], 151)
            self.assertEqual(lcm.messages("c", 353), other)

    def test_a_list_that_an_outage_ended_is_completed_by_its_repetition(self):
        class Gone(LosingStore):
            """A store that fails after this commit; `is_stored`: the commit itself is made."""

            def standing(self):
                if self.number < self.commits < 1_000:
                    raise OSError("gone")

            def get_many(self, keys):
                self.standing()
                return super().get_many(keys)

            def commit(self, guards, puts):
                self.standing()
                super().commit(guards, puts)

        earlier = [json.dumps({"role": "user", "content": f"earlier {at} ok"}) for at in range(40)]
        for wanted in ({}, {"refuse_replay": True}, {"append_mode": "new"}):
            for said in (short(250), [json.dumps(message(at)) for at in range(250)]):
                for held, number in ((0, 1), (40, 0), (40, 2)):
                    for is_stored in (True, False):
                        case = (wanted, held, number, is_stored)
                        store = Gone(number, is_stored)
                        with opened(store) as lcm:
                            lcm.append("c", BEFORE + earlier[:held], append_mode="new", now=NOW - 1)
                            store.begin()
                            with self.assertRaises(LcmError) as caught:
                                lcm.append("c", said, **wanted)
                            self.assertEqual(caught.exception.code, "store-unavailable", case)
                            store.commits = 1_000
                            receipt = lcm.append("c", said, repeat=True, **wanted)
                            self.assertEqual(receipt["ingested"] + receipt["skipped"], 250)
                            self.assertEqual(lcm.messages("c")[2 + held :], said, case)
                            again = lcm.append("c", said, repeat=True, **wanted)
                            self.assertEqual(again["ingested"], 0, case)
                            self.assertEqual(len(lcm.messages("c")), 252 + held, case)

    def test_messages_with_more_ids_than_one_call_takes_are_stored(self):
        def with_ids(at):
            call_id = f"toolu_01{at}AbCdEfGhIjKlMnOpQr"
            parts = [{"type": "tool_result", "call_id": call_id, "output": f"row {at}"}]
            said = {"role": "tool", "id": f"i{at}", "event_key": f"e{at}", "parts": parts}
            return json.dumps(said)

        for count in (90, 250):
            said = [with_ids(at) for at in range(count)]
            for wanted in ({}, {"append_mode": "new"}, {"refuse_replay": True}):
                with opened() as lcm:
                    self.assertEqual(lcm.append("c", said, **wanted)["ingested"], count)
                    self.assertEqual(lcm.append("c", said)["ingested"], 0)
                    self.assertEqual(lcm.messages("c"), said)
                    self.assertTrue(lcm.check("c")["ok"])

    def test_a_long_list_that_another_stores_meanwhile_is_a_replay(self):
        said = [json.dumps(message(number)) for number in range(350)]

        class Overtaken(MemoryStore):
            beside = None

            def commit(self, guards, puts):
                if self.beside is not None:
                    beside, self.beside = self.beside, None
                    beside()
                super().commit(guards, puts)

        for written, code in ((said, "exists"), (BEFORE, None)):
            stored = [*BEFORE, *written, *(said if code is None else ())]
            store, others = Overtaken(), MemoryStore()
            others.entries = store.entries
            with opened(store) as lcm, opened(others) as other:
                lcm.append("c", BEFORE)
                wanted = {"append_mode": "new", "refuse_replay": True}
                store.beside = partial(other.append, "c", written, append_mode="new", now=NOW + 1)
                if code is None:
                    self.assertEqual(lcm.append("c", said, **wanted)["ingested"], 350)
                else:
                    with self.assertRaises(LcmError) as caught:
                        lcm.append("c", said, **wanted)
                    self.assertEqual(caught.exception.code, code)
                self.assertEqual(lcm.messages("c"), stored)

    def test_what_fails_behind_the_append_of_a_turn_does_not_hide_that_it_is_stored(self):
        class Overtaken(MemoryStore):
            """A store in which every commit after the next `left` commits raises `error`."""

            left = 10**9
            error = None

            def commit(self, guards, puts):
                self.left -= 1
                if self.left < 0:
                    raise self.error
                super().commit(guards, puts)

        told = [message(number) for number in range(120)]
        for code in ("conflict", "store-unavailable"):
            store = Overtaken()
            store.error = LcmError(code, "injected")
            with opened(store, lambda request: "Summary: words.") as lcm:
                lcm._session._conflicts_max = 3
                lcm.append("c", told, append_mode="new")
                store.left = 1
                turn = lcm.turn("c", [message(120)], 3_000, append_mode="new")
                self.assertEqual(turn["receipt"]["ingested"], 1)
                self.assertTrue(turn["decision"]["due"])
                self.assertIsNone(turn["compacted"])
                self.assertEqual(turn["failure"], {"code": code, "message": "injected"})
                # A failure of the append itself is still raised.
                with self.assertRaises(LcmError):
                    lcm.turn("c", [message(121)], 3_000, append_mode="new")
                self.assertEqual(len(lcm.messages("c")), 121)

    def test_odd_reports_of_a_model_are_no_reason_to_fail(self):
        told = [message(number) for number in range(120)]
        odd = [{"output_tokens": 3.5}, {"input_tokens": -5}, {"model": 5}, {"model": "a\ud800"}]
        for report in odd:
            answer = {"text": "Summary: words."} | report
            with opened(complete=lambda request, answer=answer: answer) as lcm:
                lcm.append("c", told, append_mode="new")
                turn = lcm.turn("c", [message(120)], 3_000, append_mode="new")
                self.assertIsNone(turn["failure"])
                self.assertTrue(turn["compacted"]["passes"])
                statuses = [lcm.ask("c", "What is word7?")["status"] for _ in range(2)]
                self.assertEqual(statuses[0], statuses[1], report)
                self.assertNotIn("model-failed", statuses)

    def test_an_asynchronous_store_that_loses_a_reply_has_every_message_once(self):
        async def stored(number: int) -> list[str]:
            store = AsyncMemoryStore()
            store.inner = LosingStore(number, True)
            async with await opened_async(store) as lcm:
                await lcm.append("c", BEFORE)
                store.inner.begin()
                await lcm.ingest("c", short(250))
                return await lcm.messages("c", 3)

        for number in range(3):
            self.assertEqual(asyncio.run(stored(number)), short(250))


if __name__ == "__main__":
    unittest.main()
