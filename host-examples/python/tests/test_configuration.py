"""Configuration: its bounds, its sources, its effect on the package, and its warnings."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tempfile
import unittest
import warnings
from pathlib import Path

from lcm_engine import CompletionFailed, LcmError
from lcm_engine.time_zones import offsets_of

from .test_engine import message, opened, opened_async

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "setup"


def resolved_in(vector):
    """Returns the first step of a vector, which resolves the reference's configuration."""
    return json.loads((VECTORS / f"{vector}.json").read_text())["steps"][0]


def warnings_of(**options):
    """Opens and closes a store; returns the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened(**options).close()
    return sorted(str(warning.message) for warning in caught)


def long(count, words=200):
    return [message(number) | {"content": f"word{number} " * words} for number in range(count)]


class Configuration(unittest.TestCase):
    def test_a_value_out_of_bounds_is_refused_at_once(self):
        with self.assertRaises(LcmError) as caught:
            opened(config={"context_threshold_permille": 5_000})
        self.assertEqual(caught.exception.code, "invalid-input")

    def test_what_is_handed_over_goes_before_the_environment_under_every_name(self):
        keys = ("fresh_tail_messages_max", "freshTailMessagesMax", "freshTailCount")
        variables = ("LCM_FRESH_TAIL_MESSAGES_MAX", "LCM_FRESH_TAIL_COUNT")

        def tail(**options):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with opened(**options) as lcm:
                    lcm.ingest("c", [message(number) for number in range(60)])
                    return lcm.assemble("c", 100_000)["fresh_tail_messages"]

        wanted = tail(config={keys[0]: 2})
        self.assertLess(wanted, tail(config={keys[0]: 40}))
        for variable in variables:
            self.assertEqual(tail(environment={variable: "2"}), wanted)
            for key in keys:
                self.assertEqual(tail(config={key: 2}, environment={variable: "40"}), wanted)

    def test_a_key_without_effect_is_warned_of_and_what_is_wrong_says_where(self):
        async def asynchronous(**options):
            (await opened_async(**options))

        for call in (
            lambda **options: opened(**options),
            lambda **options: asyncio.run(asynchronous(**options)),
        ):
            with self.assertWarnsRegex(UserWarning, "config: `fresh_tale`: unknown key"):
                call(config={"fresh_tale": 4})
            with self.assertWarnsRegex(UserWarning, "config: `LCM_SEEDS`: unknown key"):
                call(environment={"LCM_SEEDS": "4"})
            for options, message_of in (
                ({"config": {"enabled": 7}}, "config: `enabled` must be"),
                ({"environment": {"LCM_ENABLED": "7"}}, "config: `LCM_ENABLED` must be"),
                ({"config": {"timezone": "Mars/Olympus"}}, "got `Mars/Olympus`"),
                ({"config": {"summaryModel": "m"}}, "`summary_model` asks for `m`, so `open`"),
                ({"environment": {"LCM_EXPANSION_MODEL": "m"}}, "`expansion_model` asks for"),
                ({"config": "enabled"}, "`config` must be a dict, not str"),
            ):
                with self.assertRaises(LcmError) as caught:
                    call(**options)
                self.assertEqual(caught.exception.code, "invalid-input")
                self.assertIn(message_of, caught.exception.message)

    def test_the_reference_configuration_loads_and_says_what_has_no_effect(self):
        for vector, count in (
            ("reference-sample-configuration-loads", 57),
            ("reference-variables-are-followed-or-reported", 70),
        ):
            step = resolved_in(vector)
            config, environment = (step["args"][name] for name in ("config_json", "variables_json"))
            report = step["expect"]["report"]
            names = set(config) | set(environment) - {"TZ", "PATH", "LCM_STORE"}
            self.assertGreaterEqual(len(names), count)
            acting = {*report["accepted"], *report["host"]}
            told = {alias["key"] for alias in report["aliased"]}
            told |= {*report["deprecated"], *report["not_followed"], *report["overridden"]}
            own = {name: re.sub("^LCM_", "", name).lower() for name in names}
            self.assertEqual([name for name in names - told if own[name] not in acting], [])
            unused = "config: `database_path`: not used, `open` has a `store`"
            notes = [f"config: `{note['key']}`: {note['note']}" for note in report["notes"]]
            given = {"config": config, "environment": environment}
            said = warnings_of(complete=lambda request: "A summary.", **given)
            self.assertEqual(said, sorted([*notes, unused]))

    def test_a_store_without_a_name_is_the_configured_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "configured.lcm.db")
            ways = ({"config": {"databasePath": path}}, {"environment": {"LCM_DATABASE_PATH": path}})
            for count, options in enumerate(ways, 1):
                with opened(store=None, **options) as lcm:
                    lcm.append("c", [message(count)])
                    self.assertEqual(lcm.status("c")["messages"], count)

    def test_fallback_models_are_asked_in_order_within_the_configured_time(self):
        asked = []

        def complete(request, timeout):
            asked.append((request["model"], timeout))
            if request["model"] == "one/small":
                raise CompletionFailed("unavailable", "down")
            return "Words were said."

        config = {
            "summaryModel": "small",
            "summaryProvider": "one",
            "fallbackProviders": [{"provider": "two", "model": "m"}],
            "summaryTimeoutMs": 2_500,
        }
        for options, seconds in (({}, 2.5), ({"timeout_ms": 1_500}, 1.5)):
            asked.clear()
            with opened(config=config, complete=complete, retries=0, **options) as lcm:
                lcm.append("c", long(40))
                lcm.compact("c", 8_000)
                self.assertEqual(asked[:2], [("one/small", seconds), ("two/m", seconds)])
                asked.clear()
                lcm.configure({"summary_model": "three"})
                lcm.compact("c", 4_000, force=True)
                self.assertEqual(asked[0], ("three", 60.0 if not options else seconds))

    def test_a_compaction_ends_at_its_deadline(self):
        ticks = itertools.count(1_700_000_000_000, 1_000)
        config = {"sweepDeadlineMs": 6_000, "leafChunkTokens": 1_000}
        options = {"complete": lambda request: "Words were said.", "clock": lambda: next(ticks)}
        with opened(config=config, **options) as lcm:
            lcm.append("c", long(40))
            done = lcm.compact("c", 8_000)
            self.assertEqual((done["status"], done["reason"]), ("partial", "deadline"))
            self.assertGreater(len(done["passes"]), 0)

    def test_a_turn_defers_where_the_configuration_says_so(self):
        config = {"proactiveThresholdCompactionMode": "deferred", "fresh_tail_messages_max": 2}
        with opened(config=config) as lcm:
            lcm.append("c", long(40, 90))
            budget = lcm.evaluate("c", 100_000)["tokens"] * 11 // 10
            self.assertTrue(lcm.turn("c", [message(50)], budget)["deferred"])
            self.assertFalse(lcm.turn("c", [message(51)], budget, defer=False)["deferred"])

    def test_a_time_zone_is_a_list_of_offsets_which_summaries_show(self):
        self.assertEqual(offsets_of("UTC"), [{"since": 0, "minutes": 0}])
        berlin = offsets_of("Europe/Berlin")
        self.assertEqual(berlin[0], {"since": 0, "minutes": 60})
        self.assertIn({"since": 1_774_746_000_000, "minutes": 120}, berlin)
        self.assertEqual(len(berlin), 77)
        self.assertEqual(offsets_of("Asia/Kathmandu")[0]["minutes"], 345)
        noon = 1_782_907_200_000  # 2026-07-01T12:00Z
        prompts = []

        def complete(request):
            prompts.append(request["prompt"])
            return "Words were said."

        options = {"config": {"timezone": "Europe/Berlin"}, "clock": lambda: noon}
        with opened(complete=complete, **options) as lcm:
            lcm.append("c", long(40))
            lcm.compact("c", 8_000)
            self.assertIn("[2026-07-01 14:00 user]", prompts[0])
            first = lcm.assemble("c", 8_000)["messages"][0]["content"]
            self.assertIn('earliest_at="2026-07-01T14:00:00"', first)


if __name__ == "__main__":
    unittest.main()
