"""The handle of a conversation, the dialect of `open`, forks, and an unwritable cache folder."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import lcm_engine
from lcm_engine import LcmError, component
from lcm_engine.verbs import Verbs

CALL = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
AGENT = [
    {"role": "user", "content": "Which files?"},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT]},
]
LOST = (
    "messages[1]: `dialect` must be `anthropic` or `auto`, got `lcm`, which loses a tool call or a"
    " tool result of the message"
)


def opened(store: object = "memory:", **options: object) -> lcm_engine.Lcm:
    return lcm_engine.open(store, environment={}, **options)  # type: ignore[arg-type]


def said(last: str) -> list[dict[str, Any]]:
    texts = ["What grows in the north garden?", "Beans and peas, in four rows.", last]
    return [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]


class Handles(unittest.TestCase):
    def test_a_handle_has_the_verbs_of_its_conversation_with_its_settings(self) -> None:
        with opened() as lcm:
            chat = lcm.conversation("c", budget=9_000, dialect="anthropic", model="m")
            self.assertEqual(chat.turn(AGENT)["receipt"]["ingested"], 3)
            assembled = chat.assemble()
            self.assertEqual(assembled["messages"][1], {"role": "assistant", "content": [CALL]})
            other = chat.assemble(5_000, dialect="openai-chat")
            self.assertEqual(len(other["messages"][1]["tool_calls"]), 1)
            self.assertEqual(chat.evaluate(), lcm.evaluate("c", 9_000, model="m"))
            self.assertEqual(chat.describe()["messages"], 3)
            self.assertEqual(chat.status()["messages"], 3)
            self.assertEqual(chat.messages(), lcm.messages("c"))
            self.assertEqual(list(chat.iter_messages(2, 2)), lcm.messages("c", 2, 2))
            self.assertEqual(chat.grep("files", limit=1)["total"], lcm.grep("c", "files")["total"])
            self.assertEqual(chat.tools(), lcm.tools("anthropic"))
            self.assertEqual(chat.instructions(), lcm.instructions("anthropic"))
            self.assertFalse(chat.call_tool("lcm_grep", {"pattern": "files"})["is_error"])
            self.assertEqual(len(chat.listing("messages")), 3)
            self.assertEqual(chat.ingest(AGENT)["ingested"], 0)
            self.assertEqual(chat.estimate(AGENT), lcm.estimate(AGENT, dialect="anthropic"))
            self.assertTrue(chat.check()["ok"])
            self.assertGreater(len(list(chat.export())), 3)
            self.assertEqual(chat.delete()["messages"], 3)

    def test_a_method_of_a_handle_shows_the_arguments_of_its_verb(self) -> None:
        with opened() as lcm:
            chat = lcm.conversation("c", budget=8_000)
            verb = list(inspect.signature(lcm.turn).parameters)
            self.assertEqual(verb[:2], ["conversation", "messages"])
            self.assertEqual(list(inspect.signature(chat.turn).parameters), verb[1:])
            tools = inspect.signature(lcm.tools)
            self.assertEqual(inspect.signature(chat.tools), tools)

    def test_a_handle_sets_aside_what_its_caller_has_seen_and_nothing_else(self) -> None:
        with opened() as lcm:
            chat = lcm.conversation("c", budget=8_000)

            def context() -> str:
                return json.dumps(chat.assemble()["messages"])

            chat.append(said("And in the orchard?"))
            chat.turn(said("And behind the greenhouse?"))
            self.assertIn("greenhouse", context())
            self.assertNotIn("orchard", context())
            lcm.append("c", [{"role": "user", "content": "The well is dry."}])
            chat.turn(said("And along the south wall?"))
            self.assertRegex(context(), "(?s)The well is dry.*south wall")
            chat.delete()
            self.assertEqual(chat.ingest(said("And in the orchard?"))["seq_seen"], 3)

    def test_an_awaited_handle_sets_aside_what_its_caller_has_seen(self) -> None:
        async def main() -> None:
            async with lcm_engine.open_async(environment={}) as lcm:
                chat = lcm.conversation("c", budget=8_000)
                await chat.append(said("And in the orchard?"))
                await chat.append(said("And behind the greenhouse?"))
                context = json.dumps((await chat.assemble())["messages"])
                self.assertIn("greenhouse", context)
                self.assertNotIn("orchard", context)

        asyncio.run(main())

    def test_a_handle_takes_back_its_newest_messages_and_goes_to_them_again(self) -> None:
        with opened() as lcm:
            chat = lcm.conversation("c", budget=8_000)
            chat.append(said("And in the orchard?"))
            popped = chat.pop()
            self.assertEqual((popped["set_aside"], popped["seq_last"]), (1, 2))
            self.assertIn("orchard", str(popped["messages"]))
            self.assertEqual(chat.rewind(to=0, dry_run=True)["set_aside"], 2)
            self.assertEqual(chat.rewind(to=3)["restored"], 1)
            lcm.append("c", [{"role": "user", "content": "The well is dry."}])
            with self.assertRaisesRegex(LcmError, "seq_seen"):
                chat.pop()
            with self.assertRaisesRegex(LcmError, "`to` or `units`"):
                chat.rewind()

    def test_every_verb_of_a_conversation_is_in_the_handle(self) -> None:
        elsewhere = {
            "configure",
            "version",
            "prompts",
            "digest",
            "import_lines",
            "live",
            "maintain_family",
        }
        verbs = {name for name in dir(Verbs) if not name.startswith("_")}
        self.assertEqual(verbs - elsewhere - set(dir(lcm_engine.Conversation)), set())

    def test_a_wrong_handle_is_refused(self) -> None:
        with opened() as lcm:
            with self.assertRaisesRegex(LcmError, "must be a text, not empty"):
                lcm.conversation("")
            with self.assertRaisesRegex(LcmError, "`dialect` must be one of"):
                lcm.conversation("c", dialect="openai_chat")
            chat = lcm.conversation("c", dialect="auto")
            with self.assertRaisesRegex(TypeError, "budget"):
                chat.turn(AGENT)
            self.assertEqual(chat.append(AGENT)["ingested"], 3)
            with self.assertRaisesRegex(LcmError, "the engine writes, got `auto`"):
                chat.assemble(100)
            unknown = lcm.conversation("d", budget=100)
            self.assertEqual(unknown.assemble()["messages"], [])
            summary = "sum_0123456789abcdef"
            for call in (
                unknown.status,
                unknown.check,
                unknown.messages,
                lambda: unknown.listing("grants"),
                lambda: unknown.assemble(may_be_new=False),
                unknown.evaluate,
                unknown.compact,
                unknown.maintain,
                lambda: unknown.advise(prices={"input": 1, "output": 1}),
                lambda: unknown.usage("turn", output_tokens=8),
                lambda: unknown.calibrate("m", 10, 12),
                lambda: unknown.grep("a"),
                unknown.embed,
                lambda: unknown.ask("What?"),
                lambda: unknown.ask_plan("What?"),
                unknown.describe,
                lambda: unknown.describe(summary),
                lambda: unknown.expand(summary),
                unknown.grant,
                lambda: unknown.revoke("grant_0123456789abcdef"),
                unknown.reset,
                unknown.new_session,
                lambda: unknown.archive("idle"),
                unknown.focus,
                unknown.delete,
                lambda: next(iter(unknown.export())),
            ):
                with self.assertRaises(LcmError) as caught:
                    call()
                self.assertEqual(
                    (caught.exception.code, caught.exception.message),
                    ("not-found", "conversation `d` does not exist"),
                )

    def test_an_asynchronous_handle_is_awaited(self) -> None:
        async def main() -> None:
            async with lcm_engine.open_async(environment={}, dialect="anthropic") as lcm:
                chat = lcm.conversation("c", budget=9_000)
                self.assertEqual((await chat.turn(AGENT))["receipt"]["ingested"], 3)
                self.assertEqual((await chat.assemble())["messages"][2]["content"], [RESULT])
                texts = [text async for text in chat.iter_messages()]
                self.assertEqual(texts, await chat.messages())
                self.assertEqual((await chat.describe())["messages"], 3)
                self.assertEqual(len(await chat.listing("messages")), 3)

        asyncio.run(main())


class Dialects(unittest.TestCase):
    def test_one_that_loses_a_call_is_refused(self) -> None:
        with opened() as lcm:
            for call in (lambda: lcm.append("c", AGENT), lambda: lcm.turn("c", AGENT, 100)):
                with self.assertRaises(LcmError) as caught:
                    call()
                self.assertEqual(caught.exception.message, LOST)
            with self.assertRaisesRegex(LcmError, "does not exist"):
                lcm.status("c")

    def test_open_takes_it_once_and_messages_are_what_append_takes(self) -> None:
        with opened(dialect="anthropic") as lcm:
            lcm.append("c", AGENT)
            self.assertEqual(lcm.assemble("c", 9_000)["messages"][2]["content"], [RESULT])
            self.assertIn("input_schema", lcm.tools()[0])
            texts = lcm.messages("c")
            self.assertEqual(lcm.append("d", texts)["ingested"], 3)
            self.assertEqual(lcm.messages("d"), texts)
        with self.assertRaisesRegex(LcmError, "`dialect` must be one of lcm, .*, got `klingon`"):
            opened(dialect="klingon")


def exit_of(child: int, seconds: float = 20) -> int | None:
    """Returns the exit code of a child; None: it does not end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


@unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
class Forks(unittest.TestCase):
    def forked(self, work: object) -> int | None:
        """Runs `work` in a fork; 0: it returned true."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                os._exit(0 if work() else 3)  # type: ignore[operator]
            except BaseException:
                os._exit(4)
        return exit_of(child)

    @staticmethod
    def is_refused(call: object) -> bool:
        try:
            call()  # type: ignore[operator]
        except LcmError as error:
            return error.code == "store-unavailable" and "before a fork" in error.message
        return False

    def test_a_fork_is_told_and_opens_for_itself(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.db"
            begun, ended = threading.Event(), threading.Event()

            def complete(request: object) -> str:
                begun.set()
                ended.wait(30)
                return "The log was read."

            lines = [
                {"role": "assistant" if at % 2 else "user", "content": f"Line {at}. " * 150}
                for at in range(60)
            ]
            with opened(path, complete=complete) as lcm:
                lcm.append("c", lines)
                compacting = threading.Thread(target=lambda: lcm.compact("c", 2_000))
                compacting.start()
                # The fork happens while another thread is in a compaction.
                self.assertTrue(begun.wait(30))

                def work() -> bool:
                    chat = lcm.conversation("c", budget=2_000)
                    calls = (chat.status, chat.compact, lambda: lcm.call("admin.status", {}))
                    told = all(self.is_refused(call) for call in calls)
                    lcm.close()
                    with opened(path) as own:
                        own.append("d", [{"role": "user", "content": "From the fork."}])
                        return told and own.compact("c", 2_000)["tokens_after"] > 0

                code = self.forked(work)
                ended.set()
                compacting.join()
                self.assertEqual(code, 0)
                self.assertEqual(lcm.status("d")["messages"], 1)

    def test_a_fork_of_an_asynchronous_store_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as folder:

            async def make() -> lcm_engine.AsyncLcm:
                lcm = await lcm_engine.open_async(Path(folder) / "x.db", environment={})
                await lcm.append("c", AGENT[:1])
                return lcm

            async def use(lcm: lcm_engine.AsyncLcm) -> bool:
                try:
                    await lcm.status("c")
                except LcmError as error:
                    await lcm.close()
                    return "before a fork" in error.message
                return False

            with asyncio.Runner() as runner:
                lcm = runner.run(make())
                self.assertEqual(self.forked(lambda: asyncio.run(use(lcm))), 0)
                self.assertEqual(runner.run(lcm.status("c"))["messages"], 1)
                runner.run(lcm.close())


class Opening(unittest.TestCase):
    def test_a_component_that_cannot_be_cached_is_warned_of(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file"
            file.write_text("no folder")
            with mock.patch.dict(os.environ, {"LCM_CACHE_DIR": str(file / "cache")}):
                with self.assertWarnsRegex(UserWarning, "cannot be cached in .*/file/cache"):
                    component.load()
            with mock.patch.dict(os.environ, {"LCM_CACHE_DIR": folder}):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    component.load()

    def test_a_store_that_cannot_be_opened_fails_in_open(self) -> None:
        with self.assertRaises(LcmError) as caught:
            opened("/nowhere/at/all/x.db")
        self.assertEqual(caught.exception.code, "store-unavailable")
