"""The cost of turns and summaries, and advice whether compacting now saves money."""

from __future__ import annotations

import asyncio
import unittest

from .support import NOW
from .test_engine import message, opened, opened_async

TURN = [message(number) for number in range(120)]
PRICES = {"input": 3_000_000, "output": 15_000_000, "cache_read": 300_000, "cache_write": 3_750_000}

# Pairs of changed arguments of `advise`: the two answers of a pair must differ.
DIFFERENT = [
    ({"budget": 9_000}, {}),
    ({"prices": PRICES | {"summary_input": 1_000_000}}, {}),
    ({"prices": PRICES | {"summary_output": 5_000_000}}, {}),
    ({"observed_tokens": 60_000}, {}),
    ({"turns": None}, {}),
    ({"now": NOW + 60_000, "cache_ms": 59_999}, {"now": NOW + 60_000}),
    ({"budget": 27_000, "model": "m"}, {"budget": 27_000}),
]


def asked(changes):
    """Returns the arguments of `advise` with these changes."""
    return {"conversation": "c", "budget": 100_000, "prices": PRICES, "turns": 40} | changes


class Money(unittest.TestCase):
    def test_every_argument_of_advise_counts(self):
        def plain():
            with opened() as lcm:
                lcm.append("c", TURN)
                lcm.usage("c", "turn", input_tokens=9_000)
                lcm.calibrate("c", "m", 1_000, 3_000)
                return [[lcm.advise(**asked(one)) for one in pair] for pair in DIFFERENT]

        async def asynchronous():
            async with await opened_async() as lcm:
                await lcm.append("c", TURN)
                await lcm.usage("c", "turn", input_tokens=9_000)
                await lcm.calibrate("c", "m", 1_000, 3_000)
                return [[await lcm.advise(**asked(one)) for one in pair] for pair in DIFFERENT]

        answers = plain()
        self.assertEqual(asyncio.run(asynchronous()), answers)
        for (changed, _), (one, other) in zip(DIFFERENT, answers, strict=True):
            self.assertNotEqual(one, other, changed)

    def test_advice_below_the_threshold_is_followed_with_force(self):
        with opened() as lcm:
            lcm.append("c", TURN)
            tokens = lcm.status("c")["context"]["tokens"]
            # Without prices for the cache, every turn pays the full price of the whole context.
            budget, prices = int(tokens * 1.4), {"input": 3_000_000, "output": 15_000_000}
            self.assertEqual(lcm.advise("c", budget, prices, turns=500)["advice"], "compact")
            self.assertEqual(lcm.compact("c", budget)["status"], "nothing-to-do")
            done = lcm.compact("c", budget, force=True)
            self.assertEqual(done["status"], "done")
            self.assertLess(done["tokens_after"], tokens)

    def test_a_dry_run_of_a_report_stores_nothing(self):
        with opened() as lcm:
            lcm.append("c", TURN)
            said = lcm.usage("c", "summary", output_tokens=7, dry_run=True)
            self.assertEqual(said["usage"]["summaries"]["output_tokens"], 7)
            self.assertEqual(lcm.status("c")["usage"]["summaries"]["calls"], 0)
