"""Configuration: its bounds, where it comes from, and what is said of it when a store opens."""

from __future__ import annotations

import asyncio
import unittest
import warnings

from lcm_engine import LcmError

from .test_engine import message, opened, opened_async


class Configuration(unittest.TestCase):
    def test_a_value_out_of_bounds_is_refused_at_once(self):
        with self.assertRaises(LcmError) as caught:
            opened(config={"context_threshold_permille": 5_000})
        self.assertEqual(caught.exception.code, "invalid-input")

    def test_the_environment_comes_before_the_configuration_under_every_name(self):
        keys = ("fresh_tail_messages_max", "freshTailMessagesMax", "freshTailCount")
        variables = ("LCM_FRESH_TAIL_MESSAGES_MAX", "LCM_FRESH_TAIL_COUNT")

        def tail(**options):
            with opened(**options) as lcm:
                lcm.ingest("c", [message(number) for number in range(60)])
                return lcm.assemble("c", 100_000)["fresh_tail_messages"]

        wanted = tail(config={keys[0]: 2})
        self.assertLess(wanted, tail(config={keys[0]: 40}))
        for key in keys:
            for variable in variables:
                self.assertEqual(tail(config={key: 40}, environment={variable: "2"}), wanted)

    def test_a_key_that_there_is_not_is_warned_of_and_what_is_wrong_says_where(self):
        async def asynchronous(**options):
            (await opened_async(**options))

        for call in (
            lambda **options: opened(**options),
            lambda **options: asyncio.run(asynchronous(**options)),
        ):
            with self.assertWarnsRegex(UserWarning, "config: unknown key `fresh_tale`"):
                call(config={"fresh_tale": 4})
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call(environment={"LCM_SEEDS": "4"})
            for options, source in (
                ({"config": {"enabled": 7}}, "config: "),
                ({"environment": {"LCM_ENABLED": "7"}}, "environment: "),
                ({"config": "enabled"}, "`config` must be a dict, not str"),
            ):
                with self.assertRaises(LcmError) as caught:
                    call(**options)
                self.assertEqual(caught.exception.code, "invalid-input")
                self.assertIn(source, caught.exception.message)
