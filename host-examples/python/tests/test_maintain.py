"""Deferred compaction: done later, with pauses; models that are slow, busy or stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from lcm_engine import CompletionFailed, LcmError

from .support import NOW
from .test_engine import LINES, message, opened, opened_async

TURN = [message(number) for number in range(120)]
MINUTE_MS = 60_000
SINCE = "2023-11-14T22:13:20.000Z"


def down(request):
    raise CompletionFailed("unavailable", "down")


def refusing(request):
    raise CompletionFailed("auth", "bad key")


class Maintain(unittest.TestCase):
    def begin(self, lcm) -> int:
        """Stores a conversation; returns a budget that it fits, and whose threshold it exceeds."""
        lcm.append("c", TURN)
        return int(lcm.status("c")["context"]["tokens"] * 1.25)

    def test_what_is_due_is_asked_without_doing_it(self):
        async def asynchronous():
            async with await opened_async() as lcm:
                await lcm.append("c", TURN)
                return await lcm.evaluate("c", 4_000), await lcm.evaluate("c", 100_000)

        with opened() as lcm:
            lcm.append("c", TURN)
            digest = lcm.digest()
            due, fits = lcm.evaluate("c", 4_000), lcm.evaluate("c", 100_000)
            self.assertEqual(lcm.digest(), digest)
            self.assertEqual(lcm.turn("c", [], 4_000)["decision"], due)
        self.assertEqual((due["due"], fits["due"]), (True, False))
        self.assertEqual(due["explanation"]["inputs"]["stored_tokens"], due["tokens"])
        self.assertEqual(asyncio.run(asynchronous()), (due, fits))

    def test_a_handle_does_one_pass_of_what_the_turn_before_deferred(self):
        with opened() as lcm:
            budget = self.begin(lcm)
            chat = lcm.conversation("c", budget=budget)
            first = chat.turn(TURN)
            self.assertEqual((first["deferred"], first["compacted"]), (True, None))
            second = chat.turn(TURN)
            self.assertTrue(second["deferred"])
            self.assertEqual(len(second["compacted"]["passes"]), 1)
            self.assertFalse(chat.turn(TURN, defer=False)["deferred"])

    def test_a_handle_tells_of_the_failure_of_what_was_deferred(self):
        with opened(complete=refusing) as lcm:
            budget = self.begin(lcm)
            chat = lcm.conversation("c", budget=budget)
            self.assertIsNone(chat.turn(TURN)["failure"])
            told = chat.turn(TURN)
            self.assertEqual((told["failure"]["code"], told["receipt"]["ingested"]), ("auth", 0))

    def test_a_handle_of_asyncio_does_in_the_background_what_was_deferred(self):
        async def worked():
            async with await opened_async() as lcm:
                await lcm.append("c", TURN)
                budget = int((await lcm.status("c"))["context"]["tokens"] * 1.25)
                chat = lcm.conversation("c", budget=budget)
                first = await chat.turn(TURN)
                self.assertEqual((first["deferred"], first["compacted"]), (True, None))
                await chat.settle()
                self.assertFalse((await chat.evaluate())["due"])
                next_turn = await chat.turn(TURN)
                self.assertEqual((next_turn["deferred"], next_turn["failure"]), (False, None))
                await chat.settle()

        async def refused():
            async with await opened_async(complete=refusing) as lcm:
                await lcm.append("c", TURN)
                budget = int((await lcm.status("c"))["context"]["tokens"] * 1.25)
                chat = lcm.conversation("c", budget=budget)
                self.assertIsNone((await chat.turn(TURN))["failure"])
                await chat.settle()
                told = await chat.turn(TURN)
                self.assertEqual(told["failure"]["code"], "auth")
                await chat.settle()
                self.assertIsNone((await chat.turn(TURN))["failure"])

        async def closed():
            asked = []

            async def complete(request):
                asked.append(request)
                await asyncio.sleep(0.01)
                return "They spoke of work."

            async with await opened_async(complete=complete) as lcm:
                await lcm.append("c", TURN)
                budget = int((await lcm.status("c"))["context"]["tokens"] * 1.25)
                turn = await lcm.conversation("c", budget=budget).turn(TURN)
                self.assertTrue(turn["deferred"])
            return len(asked)

        asyncio.run(worked())
        asyncio.run(refused())
        self.assertGreater(asyncio.run(closed()), 0, "`close` waits")

    def test_a_turn_leaves_for_later_what_can_wait(self):
        with opened() as lcm:
            budget = self.begin(lcm)
            turn = lcm.turn("c", TURN, budget, defer=True)
            self.assertEqual((turn["deferred"], turn["compacted"]), (True, None))
            owed = {"exhausted": False, "failures": 0, "began_at": SINCE, "next_attempt_at": SINCE}
            self.assertEqual(lcm.status("c")["debt"], owed)
            done = lcm.maintain("c", budget)
            self.assertEqual((done["debt"], done["compacted"]["status"]), (None, "done"))
            idle = {"debt": None, "compacted": None, "failure": None}
            self.assertEqual(lcm.maintain("c", budget), idle)
            forced = lcm.turn("c", TURN, 100_000, defer=True, force=True)
            self.assertFalse(forced["deferred"])
        with opened() as lcm:
            must = lcm.turn("c", TURN, 4_000, defer=True)
            self.assertFalse(must["deferred"])
            self.assertEqual(must["compacted"]["status"], "done")
            with self.assertRaises(LcmError) as caught:
                lcm.maintain("c", 0)
            self.assertEqual(caught.exception.code, "invalid-input")

    def test_what_was_observed_counts_until_a_summary_was_made(self):
        with opened() as lcm:
            self.begin(lcm)
            tokens = lcm.status("c")["context"]["tokens"]
            # The observed tokens are 50 above the threshold (three quarters of the budget).
            budget, observed = 2 * tokens, int(1.5 * tokens) + 50
            turn = lcm.turn("c", TURN, budget, defer=True, observed_tokens=observed)
            self.assertEqual((turn["deferred"], turn["decision"]["tokens"]), (True, observed))
            done = lcm.maintain("c", budget, observed_tokens=observed)
            ended = (done["debt"], done["compacted"]["status"], done["compacted"]["reason"])
            self.assertEqual(ended, (None, "done", "reached-target"))

    def test_what_failed_is_tried_again_after_a_pause_that_grows(self):
        with opened(complete=down, retries=0) as lcm:
            budget = self.begin(lcm)
            for minutes, failures, tried in ((0, 1, True), (4, 1, False), (5, 2, True)):
                done = lcm.maintain("c", budget, now=NOW + minutes * MINUTE_MS)
                self.assertEqual(done["debt"]["failures"], failures)
                self.assertEqual(done["compacted"] is not None, tried)
                if tried:
                    self.assertEqual(done["compacted"]["status"], "model-unavailable")
                    self.assertEqual(done["failure"], {"code": "unavailable", "message": "down"})

    def test_a_refused_key_is_said_and_tried_again_after_a_pause(self):
        with opened(complete=refusing) as lcm:
            budget = self.begin(lcm)
            for minutes, failures in ((0, 1), (6, 2)):
                done = lcm.maintain("c", budget, now=NOW + minutes * MINUTE_MS)
                said = {"code": "auth", "message": "bad key"}
                self.assertEqual((done["failure"], done["compacted"]), (said, None))
                self.assertEqual(done["debt"]["failures"], failures)

    def test_one_leaf_at_a_time_is_made_when_enough_lies_outside_the_tail(self):
        with opened(config={"leaf_chunk_tokens_max": 1_000}) as lcm:
            turn = lcm.turn("c", TURN, 100_000, mode="incremental", defer=True)
            self.assertEqual(turn["decision"]["reason"], "leaf-chunk")
            # Below the threshold the engine defers no compaction, so the leaf is made at once.
            self.assertFalse(turn["deferred"])
            (one,) = turn["compacted"]["passes"]
            self.assertEqual((one["purpose"], one["depth"]), ("leaf", 0))
            self.assertEqual(turn["compacted"]["tokens_before"], one["tokens_before"])
            self.assertEqual(lcm.compact("c", 100_000)["status"], "nothing-to-do")

    def test_a_pause_after_answers_in_vain_leaves_work_and_an_open_breaker_no_model(self):
        config = {"leaf_chunk_tokens_max": 1_000, "summary_max_calls_per_window": 1}
        with opened(complete=lambda request: "long " * 50_000, config=config) as lcm:
            done = lcm.turn("c", TURN, 4_000)["compacted"]
            self.assertEqual((done["status"], done["reason"]), ("partial", "spend-limit"))
            rejected, paused = done["warnings"]
            self.assertTrue(rejected.startswith("answer-rejected: too-large"), rejected)
            self.assertTrue(paused.startswith("models-paused: "), paused)
            self.assertEqual(lcm.compact("c", 4_000)["warnings"], [paused])
        with opened(complete=refusing, config=config) as lcm:
            lcm.append("c", TURN)
            for _ in range(5):
                with self.assertRaises(LcmError):
                    lcm.compact("c", 4_000)
            done = lcm.compact("c", 4_000)
            ended = (done["status"], done["reason"])
            self.assertEqual(ended, ("model-unavailable", "breaker-open"))

    def test_an_interrupt_ends_a_pause_at_once_and_is_told_to_the_engine(self):
        def busy(request):
            raise CompletionFailed("rate-limited", "in a minute", 60_000)

        def pause(seconds):
            # Another thread sends the signal while this thread sleeps.
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            sleep(seconds)
            raise AssertionError("the pause came to its end")

        # A process that was begun in the background of a shell ignores interrupts.
        ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, ignored)
        sleep = time.sleep
        with opened(complete=busy) as lcm:
            budget = self.begin(lcm)
            with mock.patch("lcm_engine.lcm.time.sleep", pause):
                with self.assertRaises(KeyboardInterrupt):
                    lcm.maintain("c", budget)
            self.assertEqual(lcm.status("c")["debt"]["failures"], 0)
            self.assertEqual(len(lcm.messages("c")), len(TURN))
            self.assertTrue(lcm.check("c")["ok"])


class Silent(BaseHTTPRequestHandler):
    """An HTTP handler that sends no answer; it waits until the client disconnects."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        self.connection.recv(1)
        self.server.gone.set()

    def log_message(self, *arguments):
        pass


class Waiting(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
        self.server.asked, self.server.gone = threading.Event(), threading.Event()
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.server_address[1]

    async def ask(self, request):
        """Asks the silent server as a model would."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            return (await reader.read()).decode()
        finally:
            writer.close()

    def test_a_plain_model_is_told_its_time(self):
        def complete(request, timeout):
            url = f"http://127.0.0.1:{self.port}"
            with urllib.request.urlopen(url, b"{}", timeout=timeout) as answer:
                return answer.read().decode()

        with opened(complete=complete, retries=0, timeout_ms=50) as lcm:
            lcm.append("c", TURN)
            done = lcm.compact("c", 4_000)
            self.assertEqual((done["failure"]["code"], done["completions"]), ("timeout", 1))
            self.assertTrue(self.server.gone.wait(30))
        for wrong in (0, -1, 1.5, "x", True):
            with self.assertRaises(LcmError) as caught:
                opened(timeout_ms=wrong)
            self.assertIn("`timeout_ms`", caught.exception.message)

    async def test_an_awaited_model_that_is_late_is_cancelled(self):
        async with await opened_async(complete=self.ask, retries=0, timeout_ms=50) as lcm:
            await lcm.append("c", TURN)
            done = await lcm.compact("c", 4_000)
            said = "the model did not answer in 0.05 s"
            failure = {"code": "timeout", "message": said, "retry_after_ms": None}
            self.assertEqual((done["failure"], done["completions"]), (failure, 1))
            self.assertTrue(await asyncio.to_thread(self.server.gone.wait, 30))

    async def test_cancelling_ends_the_request_at_once_and_is_told_to_the_engine(self):
        async with await opened_async(complete=self.ask) as lcm:
            await lcm.append("c", TURN)
            calls = (
                lambda: lcm.maintain("c", 4_000),
                lambda: lcm.compact("c", 4_000),
                lambda: lcm.turn("c", TURN, 4_000),
            )
            # Each call asks the model, so the cancelled call before has released its request.
            for call in calls:
                self.server.asked.clear()
                self.server.gone.clear()
                task = asyncio.create_task(call())
                self.assertTrue(await asyncio.to_thread(self.server.asked.wait, 30))
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue(await asyncio.to_thread(self.server.gone.wait, 30))
                self.assertEqual((await lcm.status("c"))["debt"]["failures"], 0)
            self.assertEqual(len(await lcm.messages("c")), len(TURN))

    async def test_the_next_model_serves_and_each_purpose_has_its_own(self):
        asked = []

        def named(name):
            async def complete(request):
                asked.append((name, request["purpose"]))
                return f"{name}: facts"

            return complete

        async def broken(request):
            raise CompletionFailed("unavailable", "down", 1)

        models = {"leaf": [broken, named("leaf")], "default": named("any")}
        async with await opened_async(complete=models, retries=1) as lcm:
            await lcm.append("c", LINES)
            turn = await lcm.turn("c", LINES, 3_000, defer=True)
            done = turn["compacted"] or (await lcm.maintain("c", 3_000))["compacted"]
            self.assertEqual((done["status"], done["failure"]), ("done", None))
            kinds = {one["purpose"] for one in done["passes"]}
            self.assertEqual(kinds, {purpose for _, purpose in asked})
            for name, purpose in asked:
                self.assertEqual(name, "leaf" if purpose == "leaf" else "any")
            (summary, *_) = await lcm.listing("summaries", "c")
            self.assertTrue(json.dumps(summary))


if __name__ == "__main__":
    unittest.main()
