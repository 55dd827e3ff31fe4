"""The slot of system messages: filled by a list in one call or many, and by the option `system`."""

from __future__ import annotations

import unittest

from lcm_engine import LcmError

from .test_engine import opened


def list_of(text: str, count: int) -> list[dict[str, object]]:
    """Returns a list of `count` messages after a system prompt."""
    messages: list[dict[str, object]] = [{"role": "system", "content": text}]
    for at in range(count):
        asked = f"Where does parcel number {at} of the hall go?"
        answer = f"Parcel number {at - 1} goes to the depot."
        role, content = ("assistant", answer) if at % 2 else ("user", asked)
        messages.append({"role": role, "content": content})
    return messages


class SystemMessages(unittest.TestCase):
    def test_the_prompt_of_a_list_fills_the_slot_in_one_call_or_in_many(self) -> None:
        with opened() as lcm:
            for at, count in enumerate((4, 250, 260)):
                text = f"Rule {at} of the halls."
                lcm.append("chat", list_of(text, count), dialect="openai-chat")
                context = lcm.assemble("chat", budget=100_000, dialect="openai-chat")
                self.assertEqual(context["system"], text)
                self.assertEqual(len(context["messages"]), count)
            status = lcm.status("chat")
            self.assertEqual(status["messages"], 260)
            self.assertEqual(status["system"]["versions"], 3)

    def test_the_option_fills_the_slot_beside_the_list(self) -> None:
        with opened() as lcm:
            hello = {"role": "user", "content": "Hello"}
            blocks = [{"type": "text", "text": "Be kind."}]
            lcm.append("chat", [hello], dialect="anthropic", system=blocks)
            context = lcm.assemble("chat", budget=1_000, dialect="anthropic")
            self.assertEqual(context["system"], "Be kind.")
            lcm.turn("chat", [{"role": "user", "content": "And now?"}], 1_000, system="Be brief.")
            self.assertEqual(lcm.assemble("chat", budget=1_000)["system"], "Be brief.")
            lcm.ingest("long", list_of("", 300)[1:], system="Be slow.")
            self.assertEqual(lcm.assemble("long", budget=100_000)["system"], "Be slow.")
            prompt = "Rule of the halls.\n" * 10_000
            lcm.append("chat", [hello], system=prompt)
            self.assertEqual(lcm.assemble("chat", budget=100_000)["system"], prompt)
            with self.assertRaises(LcmError) as caught:
                lcm.append("chat", [hello], system=7)
            self.assertEqual(caught.exception.code, "invalid-input")
