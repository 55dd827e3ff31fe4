"""The whole package with the engine: stored messages come back, from every kind of store."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import subprocess
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import lcm_engine
from lcm_engine import CompletionFailed, LcmError
from lcm_engine.stores import AsyncMemoryStore, MemoryStore
from walkthrough import BATCH_MESSAGES, BUDGET_TOKENS, CONVERSATION, walkthrough

from .support import (
    HERE,
    NOW,
    PYTHON,
    ROOT,
    FailingAsyncStore,
    FailingStore,
    child_environment,
    conflict,
    temporary_folder,
)

LINES = (HERE.parent / "walkthrough.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
BYTE_FOR_BYTE = "every message came back byte for byte: yes"


def opened(store="memory:", complete=None, **options) -> lcm_engine.Lcm:
    options = {"clock": lambda: NOW, "environment": {}} | options
    return lcm_engine.open(store, complete, **options)


async def opened_async(store="memory:", complete=None, **options) -> lcm_engine.AsyncLcm:
    options = {"clock": lambda: NOW, "environment": {}} | options
    return await lcm_engine.open_async(store, complete, **options)


def message(number: int, words: int = 60) -> dict[str, str]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"message {number}: " + f"word{number} " * words}


class Ingest(unittest.TestCase):
    def test_messages_come_back_byte_for_byte(self):
        odd = [
            ' {"role" : "user", "content":"a\\u00e9b" , "x":[1, 2.50]} ',
            '{"role":"assistant","content":"\\ud83d lone"}',
            '{"role":"user","content":"\u4f60\u597d \U0001f1ee\U0001f1f8"}',
        ]
        with opened() as lcm:
            receipt = lcm.append("c", odd)
            self.assertEqual((receipt["seq_first"], receipt["seq_last"]), (1, 3))
            self.assertEqual(lcm.messages("c"), odd)
            self.assertEqual(lcm.messages("c", 2, 2), odd[1:2])

    def test_a_transcript_is_ingested_once_however_often_it_comes(self):
        texts = [json.dumps(message(number)) for number in range(250)]
        with opened() as lcm:
            first = lcm.ingest("c", texts[:230])
            self.assertEqual((first["ingested"], first["skipped"]), (230, 0))
            digest = lcm.digest()
            again = lcm.ingest("c", texts[:230])
            self.assertEqual((again["ingested"], again["skipped"]), (0, 230))
            self.assertEqual(lcm.digest(), digest)
            longer = lcm.ingest("c", texts)
            self.assertEqual((longer["ingested"], longer["skipped"]), (20, 230))
            self.assertEqual((longer["seq_first"], longer["seq_last"]), (231, 250))
            self.assertEqual(lcm.append("c", texts)["ingested"], 0)
            self.assertEqual(lcm.messages("c"), texts)
            self.assertTrue(lcm.check("c")["ok"])

    def test_a_message_over_half_a_mebibyte_is_staged(self):
        large = json.dumps(
            {"role": "user", "content": "\u4e2d\u6587 x" * 150_000}, ensure_ascii=False
        )
        self.assertGreater(len(large.encode()), 1024 * 1024)
        texts = [json.dumps(message(1)), large, json.dumps(message(2))]
        with opened() as lcm:
            self.assertEqual(lcm.ingest("c", texts)["ingested"], 3)
            self.assertEqual(lcm.messages("c"), texts)
            self.assertEqual(lcm.ingest("c", texts)["ingested"], 0)
            self.assertTrue(lcm.check("c")["ok"])

    def test_a_large_message_that_comes_first_is_staged_for_its_family(self):
        large = json.dumps({"role": "user", "content": "x" * 600_000})
        for pattern, ingested in (("family", 0), ("c", 1)):
            for store in ("append", "ingest"):
                with opened(config={"ignore_session_patterns": [pattern]}) as lcm:
                    receipt = getattr(lcm, store)("c", [large], family="family")
                    self.assertEqual(receipt["ingested"], ingested)
                    self.assertEqual(bool(lcm.store.entries), ingested == 1)

    def test_new_messages_are_new_even_when_equal(self):
        with opened() as lcm:
            lcm.append("c", [message(1)], append_mode="new")
            self.assertEqual(lcm.append("c", [message(1)], append_mode="new")["ingested"], 1)

    def test_a_message_that_is_none_is_refused_and_nothing_stored(self):
        with opened() as lcm:
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [message(1), '{"role":"nobody"}'])
            self.assertEqual(caught.exception.code, "invalid-input")
            self.assertEqual(lcm.store.entries, {})

    def test_a_conflict_is_repeated_without_a_trace(self):
        with opened() as plain, opened(FailingStore([None, conflict(), conflict()])) as beset:
            for lcm in (plain, beset):
                lcm.append("c", [message(1)])
                lcm.append("c", [message(2)])
            self.assertEqual(plain.digest(), beset.digest())

    def test_a_commit_of_unknown_outcome_may_be_repeated(self):
        class Vanishing(MemoryStore):
            lost = False

            def commit(self, guards, puts):
                super().commit(guards, puts)
                if self.lost:
                    self.lost = False
                    raise OSError("the answer was lost")

        store = Vanishing()
        with opened(store) as lcm:
            lcm.append("c", [message(1)])
            store.lost = True
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [message(2)], append_mode="new")
            self.assertEqual(caught.exception.code, "store-unavailable")
            lcm.append("c", [message(2)], append_mode="new", repeat=True)
            self.assertEqual(len(lcm.messages("c")), 2)


class Tools(unittest.TestCase):
    def test_the_tools_of_an_agent_lead_to_the_words(self):
        with opened() as lcm:
            lcm.append("c", ['{"role":"user","content":"The release is called heron."}'])
            names = [tool["name"] for tool in lcm.tools("anthropic")]
            self.assertEqual(names, ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_budget"])
            self.assertIn("never instructions", lcm.instructions("anthropic"))
            found = lcm.call_tool("c", "lcm_grep", {"pattern": "heron"})
            self.assertFalse(found["is_error"])
            call = found["text"].split("Next: lcm_describe ", 1)[1].split("}", 1)[0] + "}"
            described = lcm.call_tool("c", "lcm_describe", call)
            self.assertTrue(described["text"].endswith('"The release is called heron."}'))
            wrong = lcm.call_tool("c", "lcm_grep", {"pattern": "heron", "limit": 0})
            self.assertTrue(wrong["is_error"])
            self.assertIn("`limit` must be a whole number from 1 to 200", wrong["text"])
            prompt = {"prompt": "What is the release called?"}
            asked = lcm.call_tool("c", "lcm_expand_query", prompt)
            self.assertFalse(asked["is_error"], asked["text"])
            cited = r"(?s)Cited: msg_.*The release is called heron\. \[msg_"
            self.assertRegex(asked["text"], cited)

    def test_a_sub_agent_reads_on_a_grant_until_it_is_spent_or_revoked(self):
        with opened() as lcm:
            lcm.append("c", ['{"role":"user","content":"The release is called heron."}'])
            grant = lcm.grant("c", tokens_max=100)["id"]
            names = [tool["name"] for tool in lcm.tools("anthropic", grant=grant)]
            self.assertEqual(names, ["lcm_grep", "lcm_describe", "lcm_expand"])
            found = lcm.grep("c", "heron", grant=grant)["grant"]
            self.assertEqual(found["tokens_left"], 100 - found["tokens"])
            told = lcm.call_tool("c", "lcm_grep", {"pattern": "heron"}, grant=grant)
            self.assertFalse(told["is_error"])
            [listed] = lcm.listing("grants", "c")
            self.assertEqual(listed["tokens_left"], 100 - 2 * found["tokens"])
            below = lcm.grant("c", parent=grant, conversations=["c"])
            self.assertEqual((below["depth_max"], below["parent"]), (2, grant))
            for _ in range(2):
                self.assertIsNone(lcm.revoke("c", grant))
            for refused in (grant, below["id"]):
                with self.assertRaises(LcmError) as caught:
                    lcm.grep("c", "heron", grant=refused)
                self.assertEqual(caught.exception.code, "denied")

    def test_a_grant_works_asynchronously(self):
        async def left() -> int:
            async with await opened_async() as lcm:
                await lcm.append("c", [message(1)])
                grant = (await lcm.grant("c", tokens_max=100))["id"]
                found = await lcm.grep("c", "message", grant=grant)
                await lcm.revoke("c", grant)
                return found["grant"]["tokens_left"] + found["grant"]["tokens"]

        self.assertEqual(asyncio.run(left()), 100)

    def test_an_asynchronous_host_has_them_too(self):
        async def told() -> tuple[str, str]:
            async with await opened_async() as lcm:
                await lcm.append("c", [message(1)])
                answer = await lcm.call_tool("c", "lcm_grep", {"pattern": "message"})
                return await lcm.instructions(has_summaries=False), answer["text"]

        instructions, answer = asyncio.run(told())
        self.assertTrue(instructions.startswith("Everything said in this conversation"))
        self.assertIn("Matches: 1 ", answer)


class Compaction(unittest.TestCase):
    def test_the_model_is_asked_and_its_summaries_can_be_expanded(self):
        asked = []

        def complete(request):
            asked.append(request["purpose"])
            return f"Summary number {len(asked)} of words."

        texts = [json.dumps(message(number)) for number in range(120)]
        with opened(complete=complete) as lcm:
            lcm.ingest("c", texts)
            done = lcm.compact("c", 4_000)
            self.assertEqual(done["status"], "done")
            self.assertEqual(done["completions"], len(asked))
            self.assertGreater(len(asked), 0)
            self.assertLess(done["tokens_after"], done["tokens_before"])
            context = lcm.assemble("c", 4_000, explain=True)
            self.assertLessEqual(context["tokens"], 4_000)
            first = context["items"][0]
            self.assertNotEqual(first["kind"], "message")
            found = lcm.expand("c", first["id"], depth_max=99, include_messages=True)
            raw = [one["raw"] for one in found["messages"]]
            self.assertEqual(raw, texts[: len(raw)])
            self.assertEqual(len(raw), first["seq_last"] - first["seq_first"] + 1)
            self.assertEqual(lcm.compact("c", 4_000)["status"], "nothing-to-do")
            self.assertTrue(lcm.check("c")["ok"])

    def test_expand_joins_all_pages_unless_one_is_asked_for(self):
        texts = [json.dumps(message(number, words=3_000)) for number in range(60)]
        with opened(config={"leaf_chunk_tokens_max": 1_000_000}) as lcm:
            lcm.ingest("c", texts)
            lcm.compact("c", 20_000)
            item = lcm.assemble("c", 20_000, explain=True)["items"][0]
            found = lcm.expand("c", item["id"], depth_max=99, include_messages=True)
            self.assertEqual([one["raw"] for one in found["messages"]], texts[: item["seq_last"]])
            self.assertGreater(sum(len(one["raw"]) for one in found["messages"]), 1_000_000)
            self.assertIsNone(found["cursor"])
            options = {"depth_max": 99, "include_messages": True}
            capped = lcm.expand("c", item["id"], **options, tokens_max=20_000)
            self.assertTrue(capped["truncated"])
            cursor = capped["cursor"]
            rest = lcm.expand("c", item["id"], depth_max=99, include_messages=True, cursor=cursor)
            seqs = [one["seq"] for one in capped["messages"] + rest["messages"]]
            self.assertEqual(seqs, list(range(1, seqs[-1] + 1)))
            grant = lcm.grant("c", tokens_max=1_000_000, depth_max=10)["id"]
            paid = lcm.expand("c", item["id"], depth_max=99, include_messages=True, grant=grant)
            self.assertEqual(paid["messages"], found["messages"])
            self.assertEqual(paid["grant"]["tokens"], paid["tokens"])
            self.assertEqual(paid["grant"]["tokens_left"], 1_000_000 - paid["tokens"])

    def test_a_key_that_is_refused_writes_nothing(self):
        def complete(request):
            raise CompletionFailed("auth", "no such key")

        with opened(complete=complete) as lcm:
            lcm.ingest("c", [message(number) for number in range(120)])
            before = lcm.digest(logical=True)
            with self.assertRaises(LcmError) as caught:
                lcm.compact("c", 4_000)
            self.assertEqual(caught.exception.code, "completion-failed")
            self.assertIn("no such key", caught.exception.message)
            said = {"code": "auth", "message": "no such key"}
            self.assertEqual(caught.exception.failure, said)
            self.assertEqual(lcm.digest(logical=True), before)

    def test_a_turn_appends_and_compacts_when_it_is_due(self):
        with opened() as lcm:
            messages = [message(number) for number in range(120)]
            first = lcm.turn("c", messages[:2], 100_000)
            self.assertEqual(first["receipt"]["ingested"], 2)
            self.assertEqual((first["decision"]["due"], first["compacted"]), (False, None))
            second = lcm.turn("c", messages, 4_000)
            self.assertEqual(second["receipt"]["ingested"], 118)
            self.assertEqual(second["compacted"]["status"], "done")
            self.assertTrue(second["compacted"]["passes"])

    def test_a_turn_keeps_its_messages_when_the_model_fails(self):
        def complete(request):
            raise CompletionFailed("auth", "no such key")

        async def asynchronous():
            async with await opened_async(complete=complete) as lcm:
                return await lcm.turn("c", messages, 4_000), await lcm.messages("c")

        messages = [message(number) for number in range(120)]
        with opened(complete=complete) as lcm:
            turn, kept = lcm.turn("c", messages, 4_000), lcm.messages("c")
        for done, stored in ((turn, kept), asyncio.run(asynchronous())):
            self.assertEqual((done["receipt"]["ingested"], done["compacted"]), (120, None))
            self.assertEqual(done["failure"], {"code": "auth", "message": "no such key"})
            self.assertEqual(len(stored), 120)

    def test_how_a_model_failed_is_said_where_room_was_made_without_it(self):
        def boom(request):
            raise RuntimeError("boom")

        async def asynchronous(complete):
            async with await opened_async(complete=complete, retries=0) as lcm:
                return await lcm.turn("c", messages, 4_000)

        messages = [message(number) for number in range(120)]
        said = "RuntimeError: boom"
        with opened(complete=boom, retries=0) as lcm:
            plain = lcm.turn("c", messages, 4_000)
        for turn in (plain, asyncio.run(asynchronous(boom))):
            compacted = turn["compacted"]
            self.assertTrue(compacted["passes"])
            self.assertEqual(turn["failure"], {"code": "other", "message": said})
            self.assertEqual(compacted["failure"], turn["failure"] | {"retry_after_ms": None})
            self.assertEqual(compacted["warnings"][-1], f"completion-failed: other: {said}")

    def test_a_turn_with_a_wrong_argument_stores_nothing(self):
        told = [json.dumps({"role": "user", "content": one}) for one in "abc"]
        wrong = [
            {"budget": "x"},
            {"budget": 0},
            {"mode": "new"},
            {"dialect": "lmc"},
            {"requests_max": "many"},
            {"observed_tokens": -1},
            {"target": 0},
            {"model": ""},
            {"append_mode": "old"},
            {"defer": "later"},
            {"now": "x"},
        ]

        def check(stored, turn, messages):
            for given in wrong:
                with self.assertRaises(LcmError) as caught:
                    turn(**{"budget": 1_000, "append_mode": "new"} | given)
                self.assertEqual(caught.exception.code, "invalid-input", given)
                if stored:
                    self.assertEqual(len(messages()), stored)
                else:
                    with self.assertRaises(LcmError) as caught:
                        messages()
                    self.assertEqual(caught.exception.code, "not-found", given)
            options = {"append_mode": "new", "now": NOW + stored}
            self.assertEqual(turn(100_000, **options)["receipt"]["ingested"], 3)
            again = turn(100_000, repeat=True, **options)
            self.assertEqual(again["receipt"]["ingested"], 0)
            self.assertEqual(messages(), told * (1 + stored // 3))

        with opened() as lcm:
            for stored in (0, 3):
                check(stored, functools.partial(lcm.turn, "c", told), lambda: lcm.messages("c"))
        with asyncio.Runner() as runner:
            other = runner.run(opened_async())

            def turn(*args, **options):
                return runner.run(other.turn("c", told, *args, **options))

            check(0, turn, lambda: runner.run(other.messages("c")))

    def test_of_a_list_of_new_messages_that_has_a_wrong_one_nothing_is_stored(self):
        many = [message(number) for number in range(150)]
        with opened() as lcm:
            lcm.append("c", many[:1])
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [*many, {"content": "no role"}], append_mode="new")
            self.assertEqual(caught.exception.code, "invalid-input")
            self.assertEqual(len(lcm.messages("c")), 1)

    def test_what_summaries_are_asked_for_is_replaced_by_the_configuration(self):
        config = {"prompt_overrides": {"leaf": "Task: only prices."}}

        async def asynchronous():
            async with await opened_async(config=config) as lcm:
                return await lcm.prompts()

        with opened(config=config) as lcm:
            leaf, aggressive, *others = lcm.prompts()
        self.assertEqual(asyncio.run(asynchronous()), [leaf, aggressive, *others])
        self.assertEqual((leaf["name"], leaf["text"]), ("leaf", "Task: only prices."))
        self.assertGreaterEqual(leaf["version"], 2**31)
        self.assertFalse(aggressive["overridden"])
        self.assertEqual([one["name"] for one in others], ["session", "phase", "durable"])

    def test_what_was_spent_is_summed_and_advice_weighs_the_prices(self):
        messages = [message(number) for number in range(120)]
        spent = {"input_tokens": 9000, "cache_read_tokens": 8000, "cache_write_tokens": 900}
        spent |= {"output_tokens": 70, "cost_micros": 45}
        prices = {"input": 3_000_000, "output": 15_000_000, "cache_read": 300_000}
        now = 1_700_000_000_000

        async def asynchronous():
            async with await opened_async() as lcm:
                await lcm.append("c", messages, now=now)
                usage = await lcm.usage("c", "turn", **spent, now=now)
                cold = await lcm.advise("c", 90_000, prices, cache_ms=1000, now=now + 2000)
                few = await lcm.advise("c", 90_000, prices, turns=1, now=now)
                return usage, cold, few, await lcm.advise("c", 1_000, prices, turns=1, now=now)

        def plain():
            with opened() as lcm:
                lcm.append("c", messages, now=now)
                usage = lcm.usage("c", "turn", **spent, now=now)
                cold = lcm.advise("c", 90_000, prices, cache_ms=1000, now=now + 2000)
                few = lcm.advise("c", 90_000, prices, turns=1, now=now)
                return usage, cold, few, lcm.advise("c", 1_000, prices, turns=1, now=now)

        usage, cold, few, over = plain()
        self.assertEqual(asyncio.run(asynchronous()), (usage, cold, few, over))
        self.assertEqual(usage["usage"]["turns"], {"calls": 1, **spent})
        self.assertEqual((few["advice"], few["cache"], few["turns"]), ("wait", "warm", 1))
        self.assertEqual(cold["cache"], "cold")
        self.assertEqual((over["advice"], over["reason"]), ("compact", "over-budget"))

    def test_a_brief_and_what_is_not_stored_are_part_of_a_context(self):
        messages = [message(number) for number in range(120)]
        live = [{"role": "user", "content": "not stored"}]

        async def asynchronous():
            async with await opened_async() as lcm:
                await lcm.append("c", messages)
                await lcm.compact("c", 8_000)
                before = await lcm.assemble("c", 8_000)
                token = before["prefix"]["token"]
                focus = await lcm.focus("c", "What matters now.")
                after = await lcm.assemble("c", 8_000, live_messages=live, previous=token)
                return before, focus, after, await lcm.focus("c")

        def plain():
            with opened() as lcm:
                lcm.append("c", messages)
                lcm.compact("c", 8_000)
                before = lcm.assemble("c", 8_000)
                token = before["prefix"]["token"]
                focus = lcm.focus("c", "What matters now.")
                after = lcm.assemble("c", 8_000, live_messages=live, previous=token)
                return before, focus, after, lcm.focus("c")

        for before, focus, after, gone in (plain(), asyncio.run(asynchronous())):
            self.assertGreater(before["summaries"], 1)
            self.assertEqual((focus["changed"], focus["focus"]["seq_last"]), (True, 120))
            self.assertEqual((after["summaries"], after["prefix"]["broken_why"]), (1, "focus"))
            self.assertEqual(after["messages"][-1], live[0])
            self.assertEqual(after["prefix"]["breakpoints"], [0, len(after["messages"]) - 1])
            self.assertIsNone(gone["focus"])

    def test_a_turn_takes_what_a_compaction_takes(self):
        messages = [message(number) for number in range(120)]

        async def asynchronous(**options):
            async with await opened_async() as lcm:
                await lcm.append("c", messages)
                await lcm.calibrate("c", "m", 1_000, 3_000)
                return await lcm.turn("c", messages, 40_000, **options)

        def plain(**options):
            with opened() as lcm:
                lcm.append("c", messages)
                lcm.calibrate("c", "m", 1_000, 3_000)
                return lcm.turn("c", messages, 40_000, **options)

        for turn in (plain, lambda **options: asyncio.run(asynchronous(**options))):
            inputs = turn()["decision"]["explanation"]
            self.assertNotIn("calibration", inputs)
            decision = turn(model="m")["decision"]
            self.assertEqual(decision["explanation"]["calibration"]["model"], "m")
            self.assertLess(decision["threshold"], turn()["decision"]["threshold"])
            self.assertEqual(turn(force=True)["decision"]["reason"], "forced")
            under = turn(mode="until-under", target=2_000)
            self.assertEqual(under["decision"]["threshold"], 2_000)
            self.assertTrue(under["compacted"]["passes"])

    def test_an_exhausted_model_gives_way_to_the_fallback_over_the_budget(self):
        def complete(request):
            raise RuntimeError("broken")

        with opened(complete=complete, retries=0) as lcm:
            lcm.ingest("c", [message(number) for number in range(120)])
            done = lcm.compact("c", 4_000)
            self.assertEqual(done["completions"], 1)
            self.assertEqual(done["failure"]["message"], "RuntimeError: broken")
            self.assertTrue(all(one["level"] == "fallback" for one in done["passes"]))
            self.assertLessEqual(lcm.assemble("c", 4_000)["tokens"], 4_000)

    def test_a_coroutine_as_plain_callback_is_refused(self):
        async def complete(request):
            return "never"

        with opened(complete=complete) as lcm:
            lcm.ingest("c", [message(number) for number in range(120)])
            with self.assertRaises(LcmError) as caught:
                lcm.compact("c", 4_000)
            self.assertIn("open_async", caught.exception.message)


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def fill(self, lcm: lcm_engine.AsyncLcm) -> None:
        for start in range(0, len(LINES), BATCH_MESSAGES):
            await lcm.append(CONVERSATION, LINES[start : start + BATCH_MESSAGES])

    async def test_an_asynchronous_store_with_delay_and_conflicts_ends_with_the_same_bytes(self):
        with opened() as plain:
            walkthrough(plain, LINES)
            wanted = plain.digest()
        failures = [None, conflict(), None, None, conflict(), conflict()]
        store = FailingAsyncStore(failures, delay_seconds=0.001)
        async with await opened_async(store) as lcm:
            await self.fill(lcm)
            await lcm.compact(CONVERSATION, BUDGET_TOKENS)
            self.assertEqual(await lcm.digest(), wanted)
            self.assertEqual(await lcm.messages(CONVERSATION), LINES)
            self.assertEqual(store.inner.planned, [])
            self.assertTrue((await lcm.check(CONVERSATION))["ok"])

    async def test_appending_goes_on_while_the_model_thinks(self):
        thinking, appended = asyncio.Event(), asyncio.Event()

        async def complete(request):
            thinking.set()
            await appended.wait()
            return "A summary of what was said."

        for store in (MemoryStore(), AsyncMemoryStore(delay_seconds=0.001)):
            thinking.clear()
            appended.clear()
            async with await opened_async(store, complete) as lcm:
                await self.fill(lcm)
                compacting = asyncio.create_task(lcm.compact(CONVERSATION, BUDGET_TOKENS))
                thought = asyncio.create_task(thinking.wait())
                await asyncio.wait({compacting, thought}, return_when=asyncio.FIRST_COMPLETED)
                self.assertTrue(thinking.is_set(), compacting)
                receipt = await lcm.append(CONVERSATION, [message(1)])
                await lcm.assemble(CONVERSATION, BUDGET_TOKENS)
                self.assertEqual(receipt["seq_last"], len(LINES) + 1)
                appended.set()
                done = await compacting
                self.assertEqual(done["status"], "done")
                self.assertEqual(len(await lcm.messages(CONVERSATION)), len(LINES) + 1)
                self.assertTrue((await lcm.check(CONVERSATION))["ok"])

    async def test_many_conversations_at_once(self):
        store = AsyncMemoryStore(delay_seconds=0.001)
        async with await opened_async(store) as lcm:

            async def converse(name: str) -> None:
                for number in range(5):
                    await lcm.append(name, [message(number)], append_mode="new")

            names = [f"c{number}" for number in range(12)]
            await asyncio.gather(*(converse(name) for name in names))
            for name in names:
                self.assertEqual(len(await lcm.messages(name)), 5)

    async def test_an_asynchronous_store_is_refused_by_plain_open(self):
        with self.assertRaises(LcmError) as caught:
            opened(AsyncMemoryStore())
        self.assertEqual(caught.exception.code, "invalid-input")


class Walkthrough(unittest.TestCase):
    def run_script(self, *arguments: str) -> list[str]:
        done = subprocess.run(
            [PYTHON, str(HERE / "walkthrough.py"), *arguments],
            env=child_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def lcm(self, *arguments: str) -> str:
        program = ROOT / "dist" / "lcm"
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"lcm {arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def test_memory_and_file_end_with_the_same_bytes(self):
        path = temporary_folder(self) / "x.lcm.db"
        in_memory, in_file = self.run_script(), self.run_script("--store", str(path))
        self.assertEqual(in_memory, in_file)
        self.assertEqual(in_file[-1], BYTE_FOR_BYTE)

    @unittest.skipUnless((ROOT / "dist" / "lcm").exists(), "dist/lcm is not built")
    def test_the_program_reads_the_store_that_python_wrote(self):
        path = str(temporary_folder(self) / "x.lcm.db")
        said = self.run_script("--store", path)
        digest = said[-2].removeprefix("store digest: ")
        self.assertEqual(self.lcm("--store", path, "digest"), digest)
        self.lcm("--store", path, "--conversation", CONVERSATION, "check")
        raw = self.lcm("--store", path, "--conversation", CONVERSATION, "messages", "--raw")
        self.assertEqual(raw.split("\n"), LINES)

    @unittest.skipUnless((ROOT / "dist" / "lcm").exists(), "dist/lcm is not built")
    def test_python_reads_the_store_that_the_program_wrote(self):
        path = str(temporary_folder(self) / "x.lcm.db")
        common = ("--store", path, "--conversation", "c", "--now", str(NOW))
        self.lcm(*common, "ingest", str(HERE.parent / "walkthrough.jsonl"))
        self.lcm(*common, "compact", "--budget", str(BUDGET_TOKENS))
        digest = self.lcm("--store", path, "digest")
        with opened(path) as lcm:
            self.assertEqual(lcm.messages("c"), LINES)
            self.assertEqual(lcm.digest(), digest)
            self.assertTrue(lcm.check("c")["ok"])
        self.assertEqual(os.listdir(Path(path).parent), ["x.lcm.db"])


class Threads(unittest.TestCase):
    def test_threads_share_one_open_store(self):
        path = temporary_folder(self) / "x.lcm.db"
        with opened(path) as lcm:

            def converse(name: str) -> None:
                for number in range(10):
                    lcm.append(name, [message(number)], append_mode="new")

            names = ["a", "a", "b", "c"]
            with ThreadPoolExecutor(len(names)) as pool:
                list(pool.map(converse, names))
            self.assertEqual([len(lcm.messages(name)) for name in "abc"], [20, 10, 10])
            self.assertTrue(all(lcm.check(name)["ok"] for name in "abc"))

    def test_two_open_stores_on_one_file_do_not_lose_a_message(self):
        path = temporary_folder(self) / "x.lcm.db"

        def converse(name: str) -> None:
            with opened(path) as lcm:
                for number in range(20):
                    said = {"role": "user", "content": f"{name} {number}"}
                    lcm.append("c", [said], append_mode="new")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(converse, "xy"))
        with opened(path) as lcm:
            said = [json.loads(text)["content"] for text in lcm.messages("c")]
            for name in "xy":
                mine = [text for text in said if text.startswith(name)]
                self.assertEqual(mine, [f"{name} {number}" for number in range(20)])
            self.assertTrue(lcm.check("c")["ok"])


class Administration(unittest.TestCase):
    def test_status_listing_and_describe(self):
        with opened() as lcm:
            walkthrough(lcm, LINES)
            status = lcm.status(CONVERSATION)
            self.assertEqual(status["messages"], len(LINES))
            (known,) = lcm.listing("conversations")
            self.assertIn(CONVERSATION, json.dumps(known))
            self.assertEqual(len(lcm.listing("messages", CONVERSATION)), len(LINES))
            self.assertGreater(len(lcm.listing("summaries", CONVERSATION)), 1)
            with self.assertRaises(LcmError) as caught:
                lcm.describe(CONVERSATION, "sum_1111111111111111")
            self.assertEqual(caught.exception.code, "not-found")


class Reads(unittest.TestCase):
    def test_an_estimate_is_what_the_messages_would_count(self):
        async def asynchronous():
            async with await opened_async() as lcm:
                return await lcm.estimate(LINES)

        system = {"role": "system", "content": "x" * 4_000}
        with opened() as lcm:
            lcm.append("c", LINES)
            digest = lcm.digest()
            tokens = lcm.assemble("c", 100_000)["tokens"]
            self.assertEqual(lcm.estimate(LINES), tokens)
            self.assertEqual(lcm.estimate([]), 0)
            self.assertEqual(lcm.estimate([system, *LINES]), 1_000 + tokens)
            self.assertEqual(lcm.estimate([system], dialect="openai-chat"), 1_000)
            self.assertEqual(asyncio.run(asynchronous()), tokens)
            self.assertEqual(lcm.digest(), digest)
            with self.assertRaises(LcmError) as caught:
                lcm.estimate([{"content": "no role"}])
            self.assertEqual(caught.exception.code, "invalid-input")

    def test_what_is_near_is_found_by_vectors(self):
        said = ["The heron stands in the water.", "An invoice was paid.", "Rain on the roof."]
        forms = [[0.9 if k % 3 == at else -0.1 for k in range(8)] for at in range(3)]
        with opened() as lcm:
            lcm.append("c", [{"role": "user", "content": text} for text in said])
            backlog = lcm.embed("c")["missing_ids"]
            # Newest first.
            vectors = {id: forms[2 - at] for at, id in enumerate(backlog)}
            kept = lcm.embed("c", vectors, model="m")
            self.assertEqual((kept["stored"], kept["missing_count"]), (3, 0))
            self.assertEqual(kept["missing_ids"], [])
            for at, vector in enumerate(forms):
                found = lcm.grep("c", "absent", vector=vector, model="m", limit=1)
                self.assertEqual(found["matches"][0]["snippet"], said[at])
            with self.assertRaises(LcmError) as caught:
                lcm.grep("c", "absent", vector=[1.0] * 9)
            self.assertEqual(caught.exception.code, "invalid-input")
            name = f"`vectors.{backlog[0]}` must be a list"
            refused = [
                ([1.0], "dict of ids"),
                ({backlog[0]: 1.0}, name),
                ({backlog[0]: ["a"]}, f"{name} of numbers"),
            ]
            for wrong, message in refused:
                with self.assertRaises(LcmError) as caught:
                    lcm.embed("c", wrong)
                self.assertIn(message, caught.exception.message)
            self.assertEqual(lcm.embed("c", forget=True)["stored"], 0)

    def test_arguments_that_json_cannot_hold_are_invalid_input(self):
        with opened() as lcm:
            lcm.append("c", [{"role": "user", "content": "a plain message"}])
            refused = [
                (lambda: lcm.grep("c", "plain", file_ids="file_1"), "`file_ids` must be a list"),
                (lambda: lcm.grep("c", "plain", vector="12"), "`vector` must be a list"),
                (lambda: lcm.grep("c", "plain", vector=[1, "x"]), "`vector` must be a list of"),
                (lambda: lcm.grep("c", "plain", vector=[float("nan")]), "must be a JSON value"),
                (lambda: lcm.grep("c", "plain", since=datetime.now()), "must be a JSON value"),
                (lambda: lcm.ask("c", "?", summary_ids="sum_1"), "`summary_ids` must be a list"),
                (lambda: lcm.grant("c", conversations="c"), "`conversations` must be a list"),
                (lambda: lcm.embed("c", {"msg_1": "12"}), "`vectors.msg_1` must be a list"),
            ]
            for call, message in refused:
                with self.assertRaises(LcmError) as caught:
                    call()
                self.assertEqual(caught.exception.code, "invalid-input")
                self.assertIn(message, caught.exception.message)
            files = (name for name in ("file_0000000000000000",))
            with self.assertRaises(LcmError) as caught:
                lcm.grep("c", "plain", scope="files", file_ids=files)
            self.assertEqual(caught.exception.code, "not-found")

    def test_grep_and_describe_take_keywords_and_dicts(self):
        async def asynchronous():
            async with await opened_async() as lcm:
                await lcm.append("c", LINES)
                found = await lcm.grep("c", "the", limit=2)
                id = found["matches"][0]["id"]
                return found, await lcm.describe("c", id, include_content=False)

        with opened() as lcm:
            lcm.append("c", LINES)
            found = lcm.grep("c", "the", limit=2, scope="messages")
            self.assertEqual(len(found["matches"]), 2)
            document = {"pattern": "the", "limit": 2}
            self.assertEqual(lcm.grep("c", document), lcm.grep("c", "the", limit=2))
            self.assertEqual(len(lcm.grep("c", document, limit=1)["matches"]), 1)
            id = found["matches"][0]["id"]
            described = lcm.describe("c", id, {"include_content": False})
            self.assertEqual(described, lcm.describe("c", id, include_content=False))
            ranges = ("bytes_max", "start_line", "end_line", "start_byte", "end_byte")
            for name in ranges:
                with self.assertRaises(LcmError) as caught:
                    lcm.describe("c", id, **{name: -1})
                self.assertIn(name, caught.exception.message)
            beside = lcm.grep("c", "the", limit=1, scope="messages", neighbours=1)["matches"][0]
            after = [one["seq"] for one in beside["neighbours_after"]]
            self.assertEqual(after, [beside["seq"] + 1])
            files = {"file_ids": [], "cursor": id}
            with self.assertRaises(LcmError) as caught:
                lcm.grep("c", "the", scope="files", **files)
            self.assertEqual(caught.exception.code, "invalid-input")
            names = ("mode", "scope", "sort", "since", "before", "limit", "all_conversations")
            for name in (*names, "only", "cursor", "start_byte", "neighbours"):
                with self.assertRaises(LcmError) as caught:
                    lcm.grep("c", "the", **{name: -1})
                self.assertIn(name, caught.exception.message)
            expected = (lcm.grep("c", "the", limit=2), described)
            self.assertEqual(asyncio.run(asynchronous()), expected)
            for call in (lcm.grep, lcm.describe):
                with self.assertRaises(LcmError) as caught:
                    call("c", *([id] if call == lcm.describe else []), 7)
                self.assertEqual(caught.exception.code, "invalid-input")


if __name__ == "__main__":
    unittest.main()
