"""Provisional summaries, from the first failure of a model until the model works again."""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable
from unittest import mock

import lcm_engine
from lcm_engine import CompletionFailed, compaction, family

from . import sdk_errors
from .support import NOW, ROOT

MINUTE_MS = 60_000
BUDGETS = [4_500, 2_500]
"""Budgets in tokens: the context exceeds the threshold of both, and the second budget itself."""
SAID = "They spoke of a garden, a river and a letter."
OF_A_REQUEST = ["context-too-long", "policy"]
"""Failures of one request; another request to the same model may succeed."""
WORDS = ["garden", "river", "market", "letter", "window", "harvest", "song"]
ANSWERS = json.loads((ROOT / "tests/fixtures/model-answers.json").read_text("utf-8"))
SHAPES = [sdk_errors.openai, sdk_errors.anthropic, sdk_errors.google, sdk_errors.requests]
SAYS_NOTHING = {
    "an empty answer": "",
    "an acknowledgement": "OK.",
    "three dots": "...",
    "a line": "---",
    "none": "None",
    "not applicable": "N/A",
    "an apology": "I'm sorry, but I can't assist with that request.",
    "an excuse": "I cannot summarize this conversation.",
    "an offer": "Sure! What would you like me to do next?",
    "an error as a text": "Error: rate limit exceeded, please try again later.",
    "one sentence, 60 times": "They spoke of a garden beside a river. " * 60,
}

Complete = Callable[[lcm_engine.CompletionRequest], object]


def message(number: int) -> dict[str, str]:
    """A message of about 100 tokens."""
    said = " ".join(WORDS[(at * number + at) % len(WORDS)] for at in range(76))
    role = "user" if number % 2 else "assistant"
    return {"role": role, "content": f"{number} {said}"}


MESSAGES = [message(number) for number in range(1, 41)]


def raising(error: Exception) -> Complete:
    def complete(request):
        raise error

    return complete


def faults() -> list[tuple[str, Complete, str | None]]:
    """Returns faults: name, model callback, and code; None: the model answers, but unusably."""
    found: list[tuple[str, Complete, str | None]] = []
    for at, answer in enumerate(ANSWERS):
        shape = SHAPES[at % len(SHAPES)]
        name = f"{shape.__name__}: {answer['what']}"
        found.append((name, raising(shape(answer)), answer["code"]))
    found.append(("an answer too late", raising(TimeoutError("late")), "timeout"))
    for what, text in SAYS_NOTHING.items():
        found.append((what, lambda request, text=text: text, None))
    found.append(("its instruction", lambda request: request["system"].splitlines()[0], None))
    found.append(("a line of it", lambda request: line_of(request["prompt"]), None))
    for finish in ["length", "refusal"]:
        answer = {"text": SAID, "finish": finish}
        found.append((f"a finish {finish}", lambda request, answer=answer: answer, None))
    return found


def line_of(prompt: str) -> str:
    return next(line for line in prompt.splitlines() if "garden river" in line)


class Provisional(unittest.TestCase):
    def test_nothing_stays_provisional_when_the_model_works_again(self):
        for what, fails, code in faults():
            for budget in BUDGETS:
                with self.subTest(what, budget=budget):
                    self.live(budget, fails, code)

    def live(self, budget: int, fails: Complete, code: str | None) -> None:
        now, asked = [NOW], [0]
        model = [fails]

        def complete(request):
            asked[0] += 1
            return model[0](request)

        options = {"retries": 0}
        is_failure = code is not None and code not in OF_A_REQUEST
        opening = lcm_engine.open("memory:", complete, clock=lambda: now[0], environment={})
        with opening as lcm:
            turn = lcm.turn("c", MESSAGES, budget, defer=False, **options)
            self.assertEqual(turn["receipt"]["ingested"], len(MESSAGES))
            self.assertEqual((turn["failure"] or {}).get("code"), code)
            self.assertTrue(asked[0] == 1 if is_failure else asked[0] > 0, asked)

            # After a failure no model is asked in the next minutes, so that users do not wait.
            before = asked[0]
            for minute in range(1, 5):
                now[0] += MINUTE_MS
                lcm.turn(
                    "c", [message(100 + minute)], budget, append_mode="new", defer=False, **options
                )
                if is_failure:
                    self.assertEqual(asked[0], before, f"after {minute} minutes")

            model[0] = lambda request: SAID
            for _ in range(10):
                now[0] += 31 * MINUTE_MS
                if lcm.maintain("c", budget, **options)["debt"] is None:
                    break
            else:
                self.fail("`maintain` still owes")
            status = lcm.status("c")
            self.assertTrue(status["summaries"])
            self.assertEqual(status["provisional"], 0)


class Handles(unittest.TestCase):
    def test_a_handle_makes_summaries_again_below_the_threshold(self):
        now, model = [NOW], [raising(ConnectionError("down"))]
        complete = lambda request: model[0](request)  # noqa: E731
        opening = lcm_engine.open("memory:", complete, clock=lambda: now[0], environment={})
        with opening as lcm:
            lcm.turn("c", MESSAGES, BUDGETS[1], defer=False, retries=0)
            chat = lcm.conversation("c", budget=2 * BUDGETS[0])
            self.assertGreater(lcm.status("c")["provisional"], 0)
            model[0] = lambda request: SAID
            for number in range(1, 20):
                now[0] += 31 * MINUTE_MS
                turn = chat.turn([{"role": "user", "content": f"Turn {number}."}])
                self.assertFalse(turn["decision"]["due"], "below the threshold")
                if lcm.status("c")["provisional"] == 0:
                    break
            self.assertEqual(lcm.status("c")["provisional"], 0)
            self.assertFalse(chat.turn([{"role": "user", "content": "The end."}])["deferred"])


class Families(unittest.TestCase):
    def test_a_family_is_served_until_nothing_is_owed_its_archived_conversations_included(self):
        now, model = [NOW], [raising(ConnectionError("down"))]
        clock, options = (lambda: now[0]), {"retries": 0}
        budget = BUDGETS[1]
        with lcm_engine.open(
            "memory:", lambda request: model[0](request), clock=clock, environment={}
        ) as lcm:
            for id in ["a", "b", "c"]:
                now[0] += 1
                lcm.turn(id, MESSAGES, budget, defer=False, family="garden", **options)
            lcm.turn("other", MESSAGES, budget, defer=False, **options)
            members = [lcm.reset("b")["conversation"], "c", "b", "a"]
            self.assertEqual(lcm.live("garden")["members"], members)

            def owed() -> list[bool]:
                return [lcm.status(id)["provisional"] > 0 for id in ["a", "b", "c", "other"]]

            self.assertEqual(owed(), [True, True, True, True])
            now[0] += 31 * MINUTE_MS
            done = lcm.maintain_family("garden", budget, **options)
            self.assertEqual([one["conversation"] for one in done["reports"]], members[:2])
            self.assertEqual(done["unserved"], members[2:])
            self.assertEqual((done["reports"][1]["failure"] or {})["code"], "unavailable")

            model[0] = lambda request: SAID
            for _ in range(10):
                now[0] += 31 * MINUTE_MS
                reports = lcm.maintain_family("garden", budget, **options)["reports"]
                self.assertEqual([one["conversation"] for one in reports], members)
                if all(one["debt"] is None and one["failure"] is None for one in reports):
                    break
            else:
                self.fail("`maintain_family` still owes")
            self.assertEqual(owed(), [False, False, False, True])
            with self.assertRaises(lcm_engine.LcmError) as refused:
                lcm.append("b", [message(1)])
            self.assertEqual(refused.exception.code, "denied")
            for key, tokens, code in [("river", budget, "not-found"), ("garden", 0, "invalid-input")]:
                with self.assertRaises(lcm_engine.LcmError) as refused:
                    lcm.maintain_family(key, tokens)
                self.assertEqual(refused.exception.code, code)

    def test_a_conversation_that_cannot_be_served_does_not_hold_up_its_family(self):
        failed = lcm_engine.LcmError("corrupt", "`h/x` is damaged")
        served: list[str] = []

        def maintain(work):
            served.append(work.conversation)
            if work.conversation == "b":
                raise failed
            yield from ()
            failure = {"code": "auth", "message": "no"} if work.conversation == "c" else None
            return {"debt": None, "compacted": None, "failure": failure}

        def live(*_):
            yield from ()
            return {"members": ["a", "b", "c", "d"]}

        def served_by(code: str):
            nonlocal failed
            failed = lcm_engine.LcmError(code, "`h/x` is damaged")
            asking = mock.Mock()
            work = compaction.Work("", 1, {}, lambda: NOW, asking)
            with mock.patch.object(compaction, "maintain", maintain):
                with mock.patch.object(family.paging, "life", live):
                    flow = family.maintain_family("garden", work)
                    with self.assertRaises(StopIteration) as ended:
                        next(flow)
                    return ended.exception.value

        done = served_by("corrupt")
        self.assertEqual((served, done["unserved"]), (["a", "b", "c"], ["d"]))
        failure = {"code": "corrupt", "message": "`h/x` is damaged"}
        self.assertEqual(done["reports"][1]["failure"], failure)
        with self.assertRaises(lcm_engine.LcmError):
            served_by("invalid-input")


class NextModel(unittest.TestCase):
    def test_the_next_model_is_asked_after_an_answer_that_says_nothing_or_was_cut_off(self):
        for what, fails, code in faults():
            if code is not None or what == "a finish refusal":
                continue
            asked = []

            def last(request, asked=asked):
                asked.append(request)
                return SAID

            with self.subTest(what), lcm_engine.open(
                "memory:", [fails, last], clock=lambda: NOW, environment={}
            ) as lcm:
                done = lcm.turn("c", MESSAGES, BUDGETS[0], defer=False)["compacted"]
                self.assertTrue(asked)
                self.assertEqual({made["provisional"] for made in done["passes"]}, {False})
                self.assertEqual(lcm.status("c")["provisional"], 0)

    def test_without_a_better_answer_the_first_counts(self):
        def cut(request):
            return {"text": SAID, "finish": "length"}

        def blank(request):
            return "OK."

        with lcm_engine.open(
            "memory:", [cut, blank], clock=lambda: NOW, environment={}
        ) as lcm:
            done = lcm.turn("c", MESSAGES, BUDGETS[0], defer=False)["compacted"]
            # At level `normal` the answer counts as cut off; at level `aggressive` it is accepted.
            self.assertEqual({made["level"] for made in done["passes"]}, {"aggressive"})

    def test_a_cut_off_answer_counts_if_the_next_model_refuses(self):
        def cut(request):
            return {"text": SAID, "finish": "length"}

        for code in ["auth", "policy", "context-too-long"]:

            def refuses(request, code=code):
                raise CompletionFailed(code, "refused")

            with self.subTest(code), lcm_engine.open(
                "memory:", [cut, refuses], clock=lambda: NOW, environment={}
            ) as lcm:
                turn = lcm.turn("c", MESSAGES, BUDGETS[0], defer=False)
                done = turn["compacted"]
                self.assertIsNone(done["failure"])
                self.assertEqual({made["level"] for made in done["passes"]}, {"aggressive"})
