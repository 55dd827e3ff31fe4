"""A list of over a hundred messages that grows: nothing is stored twice or left out.

Only the end of such a list is compared, unless the conversation changed meanwhile.
"""

from __future__ import annotations

import unittest

from lcm_engine import MemoryStore
from lcm_engine.proofs import CONVERSATIONS_MAX, Proofs

from .test_engine import opened


def said(count: int) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    text = "message {} of a conversation that has many of them"
    return [{"role": roles[at % 2], "content": text.format(at)} for at in range(count)]


class GrowingLists(unittest.TestCase):
    def test_a_proof_gives_way_to_another_writer_an_undo_and_a_deletion(self):
        store = MemoryStore()
        with opened(store) as lcm, opened(store) as other:
            chat = lcm.conversation("c", budget=100_000)
            chat.append(said(120))
            self.assertEqual(chat.append(said(122))["ingested"], 2)
            other.append("c", [{"role": "user", "content": "a message of another program"}])
            self.assertEqual(chat.append(said(124))["ingested"], 2)
            self.assertEqual(chat.status()["messages"], 125)

            lcm.delete("c")
            again = lcm.conversation("c", budget=100_000)
            again.append(said(120))
            self.assertTrue(again.append(said(110))["warnings"][0].startswith("set-aside: "))
            self.assertEqual(again.append(said(120))["ingested"], 0)
            self.assertEqual(again.status()["messages"], 120)

            # Another program deletes it and begins one that comes to the same revision.
            other.delete("c")
            revision = lcm.append("c", said(120))["revision"]
            other.delete("c")
            for at in range(revision):
                text = f"number {at} of the other program"
                other.append("c", [{"role": "user", "content": text}])
            self.assertEqual(other.status("c")["revision"], revision)
            self.assertEqual(lcm.append("c", said(122))["ingested"], 122)

    def test_only_the_newest_conversations_and_long_lists_are_known(self):
        proofs, texts = Proofs(), [str(at) for at in range(100)]
        for number in range(CONVERSATIONS_MAX + 1):
            proofs.keep({"conversation": str(number), "dialect": "lcm"}, texts, number)

        def find(conversation: str, more: list[str], **task: str) -> dict:
            given = {"conversation": conversation, "dialect": "lcm"} | task
            return proofs.find(given, texts + more)

        self.assertEqual(find("7", ["a"]), {"proven": 100, "proven_revision": 7})
        self.assertEqual(find("0", ["a"]), {}, "the oldest was dropped")
        self.assertEqual(find("7", []), {}, "nothing is new")
        self.assertEqual(find("7", ["a"], dialect="gemini"), {}, "another dialect")
        self.assertEqual(find("7", ["a"], append_mode="new"), {}, "no list is compared")
        proofs.keep({"conversation": "7", "dialect": "lcm"}, texts[:99], 9)
        self.assertEqual(find("7", ["a"]), {}, "one call compares a short list")
