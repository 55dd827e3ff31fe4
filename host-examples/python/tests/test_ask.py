"""Questions: answers of the real component, offline, by a model, and by a failing model."""

from __future__ import annotations

import asyncio
import re
import unittest

import lcm_engine
from lcm_engine import CompletionFailed, LcmError

NOW = 1_700_000_000_000
QUESTION = "What is the release called?"
SAID = [
    {"role": "user", "content": "The release is called heron."},
    {"role": "user", "content": "Lunch is at noon."},
]


def opened(complete=None, **options) -> lcm_engine.Lcm:
    lcm = lcm_engine.open(
        "memory:", complete=complete, clock=lambda: NOW, environment={}, **options
    )
    lcm.append("c", SAID)
    return lcm


async def opened_async(complete=None, **options) -> lcm_engine.AsyncLcm:
    lcm = await lcm_engine.open_async(
        "memory:", complete=complete, clock=lambda: NOW, environment={}, **options
    )
    await lcm.append("c", SAID)
    return lcm


def first_id(request) -> str:
    """Returns the first message id in a prompt."""
    return re.search(r"msg_[0-9a-f]{16}", request["prompt"])[0]


class Questions(unittest.TestCase):
    def test_without_a_model_a_question_is_answered_by_quoting(self):
        with opened() as lcm:
            asked = lcm.ask("c", QUESTION)
            self.assertEqual(asked["status"], "answered")
            self.assertRegex(asked["answer"], r"called heron\. \[msg_[0-9a-f]{16}\]")
            self.assertEqual(len(asked["cited_ids"]), 1)
            self.assertEqual(asked["cited_conversations"], ["c"])
            self.assertEqual((asked["completions"], asked["failure"]), (1, None))
            nothing = lcm.ask("c", "zeppelin")
            self.assertEqual((nothing["status"], nothing["answer"]), ("no-evidence", None))
            for wrong in ({"deadline_ms": 0}, {"answer_tokens_max": 0}, {"query": "x" * 20_000}):
                with self.assertRaises(LcmError) as caught:
                    lcm.ask("c", QUESTION, **wrong)
                self.assertEqual(caught.exception.code, "invalid-input")
            with self.assertRaises(LcmError) as caught:
                lcm.ask("d", QUESTION)
            self.assertEqual(caught.exception.code, "not-found")

    def test_a_model_is_asked_as_the_engine_says_a_second_time_for_a_search(self):
        requests = []

        def model(request):
            requests.append(request)
            if len(requests) == 1:
                return "NOT FOUND\nSEARCH: lunch"
            return f"Heron [{first_id(request)}], not [msg_ffffffffffffffff]."

        with opened({"ask": model}) as lcm:
            asked = lcm.ask("c", QUESTION, tokens_max=40, answer_tokens_max=77)
            self.assertEqual((asked["status"], asked["completions"]), ("answered", 2))
            self.assertEqual(asked["cited_ids"], [first_id(requests[1])])
            self.assertEqual(asked["rejected_ids"], ["msg_ffffffffffffffff"])
            self.assertIn("at most 77 tokens", requests[0]["prompt"])
            self.assertNotIn("noon", requests[0]["prompt"])
            self.assertIn("noon", requests[1]["prompt"])

    def test_how_the_model_failed_is_a_status(self):
        def refusing(request):
            raise CompletionFailed("auth", "key refused")

        with opened({"ask": refusing}) as lcm:
            asked = lcm.ask("c", QUESTION)
            self.assertEqual(asked["status"], "model-failed")
            self.assertEqual(asked["failure"], {"code": "auth", "message": "key refused"})

    def test_a_tool_whose_model_failed_says_so(self):
        def refusing(request):
            raise CompletionFailed("auth", "key refused")

        async def asynchronous():
            async with await opened_async({"ask": refusing}) as lcm:
                return await lcm.call_tool("c", "lcm_expand_query", {"prompt": QUESTION})

        with opened({"ask": refusing}) as lcm:
            told = lcm.call_tool("c", "lcm_expand_query", {"prompt": QUESTION})
            self.assertEqual(told["failure"], {"code": "auth", "message": "key refused"})
            self.assertIn("the model gave no answer (model-failed)", told["text"])
            self.assertEqual(asyncio.run(asynchronous()), told)
            found = lcm.call_tool("c", "lcm_grep", {"pattern": "heron"})
            self.assertEqual((found["is_error"], found["failure"]), (False, None))
        with opened({"ask": lambda request: f"Heron [{first_id(request)}]."}) as lcm:
            told = lcm.call_tool("c", "lcm_expand_query", {"prompt": QUESTION})
            self.assertIn("Heron", told["text"])
            self.assertIsNone(told["failure"])

    def test_a_wrong_deadline_is_called_by_its_name(self):
        with opened() as lcm:
            with self.assertRaises(LcmError) as caught:
                lcm.ask("c", QUESTION, deadline_ms=0)
            self.assertIn("`deadline_ms` must be from 1 to 600000, got 0", caught.exception.message)
            with self.assertRaises(LcmError) as caught:
                lcm.ask("c", QUESTION, timeout_ms=0)
            self.assertIn("`timeout_ms`", caught.exception.message)

    def test_a_model_hears_of_the_deadline_and_is_not_asked_again_behind_it(self):
        given = []

        def late(request, timeout):
            given.append(timeout)
            raise CompletionFailed("unavailable", "down", 40_000)

        with opened({"ask": late}, retries=2) as lcm:
            asked = lcm.ask("c", QUESTION, deadline_ms=20)
            self.assertEqual(asked["status"], "timed-out")
            self.assertIn("no answer in 20 ms", asked["failure"]["message"])
        self.assertEqual(len(given), 1)
        self.assertTrue(0 < given[0] <= 0.02, given)

    def test_an_interrupt_is_told_to_the_engine(self):
        def interrupted(request):
            raise KeyboardInterrupt

        with opened({"ask": interrupted}) as lcm:
            with self.assertRaises(KeyboardInterrupt):
                lcm.ask("c", QUESTION)
            with self.assertRaises(KeyboardInterrupt):
                lcm.call_tool("c", "lcm_expand_query", {"prompt": QUESTION})
            # The question before is not open any more, and neither is this one afterwards.
            with self.assertRaises(KeyboardInterrupt):
                lcm.ask("c", QUESTION)

    def test_a_second_question_is_told_that_it_is_busy(self):
        inside = []

        def model(request):
            inside.append(lcm.ask("c", "When is lunch?"))
            return f"Heron [{first_id(request)}]."

        with opened({"ask": model}) as lcm:
            self.assertEqual(lcm.ask("c", QUESTION)["status"], "answered")
        [beside] = inside
        self.assertEqual((beside["status"], beside["answer"]), ("busy", None))
        self.assertEqual(beside["expires_at"], "2023-11-14T22:15:50.000Z")

    def test_a_question_on_a_grant_takes_what_it_reads(self):
        with opened() as lcm:
            grant = lcm.grant("c", tokens_max=1_000)["id"]
            asked = lcm.ask("c", QUESTION, grant=grant)
            tokens = asked["source_tokens"]
            note = {"tokens": tokens, "tokens_left": 1_000 - tokens, "truncated": False}
            self.assertEqual(asked["grant"], note)
            self.assertEqual(lcm.listing("grants", "c")[0]["tokens_left"], 1_000 - tokens)
            lcm.revoke("c", grant)
            with self.assertRaises(LcmError) as caught:
                lcm.ask("c", QUESTION, grant=grant)
            self.assertEqual(caught.exception.code, "denied")


class AwaitedQuestions(unittest.IsolatedAsyncioTestCase):
    async def test_a_question_is_awaited(self):
        async def model(request):
            return f"Heron [{first_id(request)}]."

        async with await opened_async({"ask": model}) as lcm:
            asked = await lcm.ask("c", QUESTION)
            self.assertEqual((asked["status"], asked["cited_conversations"]), ("answered", ["c"]))

    async def test_an_awaited_model_ends_at_the_deadline_or_with_its_task(self):
        begun = asyncio.Event()

        async def slow(request):
            begun.set()
            await asyncio.sleep(60)

        async with await opened_async({"ask": slow}) as lcm:
            asked = await lcm.ask("c", QUESTION, deadline_ms=20)
            self.assertEqual(asked["status"], "timed-out")
            for _ in range(2):  # The cancelled first question does not block the second.
                begun.clear()
                task = asyncio.create_task(lcm.ask("c", QUESTION))
                await begun.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            self.assertEqual((await lcm.ask("c", QUESTION, deadline_ms=20))["status"], "timed-out")
