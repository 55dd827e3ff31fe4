"""Contexts: refusals of providers, and marks for a provider's cache."""

from __future__ import annotations

import asyncio
import unittest

from lcm_engine import LcmError

from .test_engine import LINES, opened, opened_async

PROVIDERS = ("anthropic", "openai-chat", "openai-responses", "gemini")
CALL = {"type": "tool_use", "id": "t1", "name": "edit", "input": {}}
BROKEN = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": "on"},
]


class Contexts(unittest.TestCase):
    def test_what_a_provider_would_refuse_is_said_and_what_was_assembled_is_not_refused(self):
        async def asynchronous():
            async with await opened_async() as lcm:
                return await lcm.validate(BROKEN, "anthropic")

        with opened() as lcm:
            lcm.append("c", LINES)
            for dialect in PROVIDERS:
                messages = lcm.assemble("c", 100_000, dialect=dialect)["messages"]
                self.assertEqual(lcm.validate(messages, dialect), [])
            findings = lcm.validate(BROKEN, "anthropic")
            self.assertEqual((len(findings), "t1" in findings[0]), (1, True))
            self.assertEqual(asyncio.run(asynchronous()), findings)
            for messages, dialect, code in (
                (BROKEN, "lcm", "unsupported"),
                (BROKEN, "lmc", "invalid-input"),
                (["no JSON"], "anthropic", "invalid-input"),
            ):
                with self.assertRaises(LcmError) as raised:
                    lcm.validate(messages, dialect)
                self.assertEqual(raised.exception.code, code)

    def test_marks_for_a_cache_are_set_where_they_are_asked_for_and_accepted(self):
        with opened() as lcm:
            previous, stable = None, []
            for number in range(0, len(LINES), 8):
                lcm.append("c", LINES[number : number + 8])
                options = {"dialect": "anthropic", "previous": previous, "mark_caches": True}
                context = lcm.assemble("c", 100_000, **options)
                self.assertEqual(lcm.validate(context["messages"], "anthropic"), [])
                messages = enumerate(context["messages"])
                marked = [at for at, message in messages if "cache_control" in str(message)]
                self.assertEqual(marked, context["prefix"]["breakpoints"])
                previous = context["prefix"]["token"]
                stable.append(context["prefix"]["stable_tokens"])
            self.assertIsNone(stable[0])
            self.assertGreater(stable[-1], 0)
