"""Tools read only their conversation: in a store of 50 users, no argument of a model gives access
to another user's text, unless the host widens the scope.
"""

from __future__ import annotations

import asyncio
import json
import re
import unittest

import lcm_engine
from lcm_engine import LcmError

NOW = 1_700_000_000_000
USERS = 50
CONFIG = {"freshTailMessagesMax": 1, "leafChunkTokensMax": 1000, "largePayloadTokensMin": 1000}


def name_of(number: int) -> str:
    return f"user-{number:02}"


def filled(lcm: lcm_engine.Lcm) -> list[list[str]]:
    """Stores a conversation per user, with summaries and files; returns all ids of each."""
    names = []
    for number in range(USERS):
        user = name_of(number)
        text = f"heron kept{number:02} " + "word " * 60
        said = [{"role": "user", "content": f"{text}{at}"} for at in range(12)]
        file = {"type": "file", "name": "a.txt", "text": f"heron kept{number:02}\n" * 600}
        lcm.append(user, [*said, {"role": "user", "parts": [file]}])
        lcm.compact(user, 100_000, force=True)
        found = lcm.grep(user, "heron", scope="files")["matches"][0]["id"]
        listed = [
            item["id"]
            for kind in ("messages", "summaries")
            for item in lcm.listing(kind, user)[:3]
        ]
        names.append([user, lcm.grant(user)["id"], found, *listed])
    return names


def calls_of(lcm: lcm_engine.Lcm, names: list[str]) -> list[tuple[str, dict]]:
    """Returns tool calls for all arguments of all tools, with values that a model might try."""
    calls = []
    for tool in lcm.tools("lcm", scope="store"):
        schema = tool["inputSchema"]
        for value in names:
            first = {"pattern": "heron", "prompt": "Which heron is kept?", "id": value}
            base = {key: first[key] for key in schema["required"]}
            calls.append((tool["name"], base))
            for key, property in schema["properties"].items():
                values = {"boolean": True, "integer": property.get("minimum"), "array": [value]}
                tried = property.get("enum", [values.get(property["type"], value)])[-1]
                calls.append((tool["name"], base | {key: tried}))
    return calls


def others(texts: list[str]) -> list[str]:
    return [word for word in re.findall(r"kept\d\d", "\n".join(texts)) if word != "kept00"]


class ToolScope(unittest.TestCase):
    def test_no_argument_of_a_model_reads_a_word_of_another_user(self) -> None:
        prompts: list[str] = []

        def complete(request):
            if request["purpose"] == "ask":
                prompts.append(request["prompt"])
                return "Nothing [msg_0000000000000001]"
            return f"summary {re.findall('kept..', request['prompt'])[0]}"

        with lcm_engine.open(
            "memory:", complete, CONFIG, clock=lambda: NOW, environment={}
        ) as lcm:
            names = filled(lcm)
            calls = calls_of(lcm, [name for list in names[1::24] for name in list])

            def told(**options) -> list[str]:
                made = (lcm.call_tool("user-00", *call, **options) for call in calls)
                return [answer["text"] for answer in made]

            answers = told()
            self.assertGreater(len(calls), 500)
            self.assertEqual(others(answers + prompts), [])
            self.assertTrue(any("kept00" in text for text in answers))
            # A grant of another user is refused like a grant that does not exist.
            grant, unknown = names[1][1], "grant_" + "1" * 16
            refused, made_up = (
                lcm.call_tool("user-00", "lcm_grep", {"pattern": "heron"}, grant=one)["text"]
                for one in (grant, unknown)
            )
            self.assertEqual(refused.replace(grant, unknown), made_up)
            # With the scope `store`, which the host sets, the same calls read other users.
            self.assertGreater(len(others(told(scope="store"))), 100)

    def test_only_the_host_names_the_scope(self) -> None:
        wanted = {"pattern": "heron", "allConversations": True}
        for scope, given, has in (
            ("conversation", None, False),
            ("conversation", "store", True),
            ("store", None, True),
            ("store", "conversation", False),
        ):
            with (
                self.subTest(scope=scope, given=given),
                lcm_engine.open("memory:", scope=scope, environment={}) as lcm,
            ):
                tools = json.dumps(lcm.tools("anthropic", scope=given))
                for name in ("allConversations", "conversationId"):
                    self.assertEqual(name in tools, has)
                lcm.append("a", [{"role": "user", "content": "nothing"}])
                lcm.append("b", [{"role": "user", "content": "the heron"}])
                answer = lcm.call_tool("a", "lcm_grep", wanted, scope=given)
                self.assertEqual("the heron" in answer["text"], has)

    def test_the_scope_holds_in_asyncio(self) -> None:
        async def found(scope, given) -> bool:
            async with lcm_engine.open_async("memory:", scope=scope, environment={}) as lcm:
                await lcm.append("a", [{"role": "user", "content": "nothing"}])
                await lcm.append("b", [{"role": "user", "content": "the heron"}])
                wanted = {"pattern": "heron", "allConversations": True}
                answer = await lcm.call_tool("a", "lcm_grep", wanted, scope=given)
                return "the heron" in answer["text"]

        self.assertFalse(asyncio.run(found("conversation", None)))
        self.assertTrue(asyncio.run(found("store", None)))
        self.assertFalse(asyncio.run(found("store", "conversation")))

    def test_a_scope_that_is_none_is_refused(self) -> None:
        with self.assertRaises(LcmError) as refused:
            lcm_engine.open("memory:", scope="everything", environment={})
        self.assertEqual(refused.exception.code, "invalid-input")
        self.assertIn("`scope` must be `conversation` or `store`", refused.exception.message)
        with lcm_engine.open("memory:", environment={}) as lcm:
            for call in (
                lambda: lcm.tools(scope="everything"),
                lambda: lcm.call_tool("a", "lcm_grep", {}, scope="everything"),
                lambda: lcm.call_tool("a", "lcm_grep", {}, scope=""),
            ):
                with self.assertRaises(LcmError) as refused:
                    call()
                self.assertEqual(refused.exception.code, "invalid-input")


if __name__ == "__main__":
    unittest.main()
