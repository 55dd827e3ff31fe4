"""Texts, batches, tasks and the rules for models. The engine only returns instructions; its store
calls are faked."""

from __future__ import annotations

import io
import json
import unittest
from types import SimpleNamespace
from typing import Any

from lcm_engine import (
    CompletionFailed,
    LcmError,
    compaction,
    completions,
    flows,
    intake,
    paging,
    texts,
)
from lcm_engine.instance import Instance
from lcm_engine.models import Asking, models_of
from lcm_engine.ports import DeferredPort

from .support import engine_program


class Script:
    """Runs a flow. Functions by call name give the answers; calls and requests are recorded."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.pauses: list[float] = []
        self.requests: list[str] = []

    def run(self, flow: flows.Flow[Any]) -> Any:
        return self.resume(flow, next(flow))

    def resume(self, flow: flows.Flow[Any], effect: flows.Effect) -> Any:
        """Performs the rest of a flow that waits for this effect."""
        try:
            while True:
                try:
                    result = self.perform(effect)
                except LcmError as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            return end.value

    def perform(self, effect: flows.Effect) -> Any:
        match effect:
            case flows.Call(name, arguments) if name.startswith("drive."):
                return Instance(engine_program()).call(name, arguments, DeferredPort({}, {}))
            case flows.Call("compaction.judge_answer", _):
                return None
            case flows.Call(name, arguments):
                self.calls.append((name, arguments))
                return self.answers[name.partition(".")[2]](arguments)
            case flows.Complete(request, _):
                self.requests.append(request["id"])
                return self.answers["complete"](request)
            case flows.Pause(seconds):
                self.pauses.append(seconds)
            case flows.Together(several):
                return [self.run(flow) for flow in several]
            case flows.Alone(_, flow):
                return self.run(flow)


class Expansion(unittest.TestCase):
    def test_what_was_paid_for_is_not_lost_with_the_next_page(self):
        def page(arguments):
            if "cursor" in arguments["options_json"]:
                raise LcmError("store-unavailable", "gone")
            note = {"tokens": 3, "tokens_left": 7, "truncated": spent}
            page = {"id": "s", "summaries": [1], "messages": [], "tokens": 3, "truncated": True}
            return json.dumps(page | {"cursor": "c1", "grant": note})

        for spent in (False, True):
            script = Script(expand=page)
            read = script.run(paging.expand("c", "s", {}, "grant_1", 0))
            self.assertEqual((read["summaries"], read["cursor"]), ([1], "c1"))
            self.assertEqual(len(script.calls), 1 if spent else 2)
        with self.assertRaises(LcmError):
            Script(expand=page).run(paging.expand("c", "s", {}, None, 0))


class Texts(unittest.TestCase):
    def test_json_is_compact_and_only_lone_surrogates_are_escaped(self):
        self.assertEqual(
            texts.to_json({"b": [1, "\u00e9\u2028"], "a": None}),
            '{"b":[1,"\u00e9\u2028"],"a":null}',
        )
        (text,) = texts.to_texts([{"role": "user", "content": "x\ud83d y \U0001f600"}])
        self.assertEqual(text, '{"role":"user","content":"x\\ud83d y \U0001f600"}')
        self.assertEqual(json.loads(text)["content"], "x\ud83d y \U0001f600")
        for bad in ("\ud83d", 7, {"a": float("nan")}, {"a": object()}):
            with self.assertRaises(LcmError) as caught:
                texts.to_texts(["{}", bad])
            self.assertEqual(caught.exception.code, "invalid-input")
            self.assertTrue(caught.exception.message.startswith("`messages.1` "))
        with self.assertRaises(LcmError) as caught:
            texts.to_texts([["role"]])
        message = "`messages.0` must be an object or JSON text, not list"
        self.assertEqual(caught.exception.message, message)
        for bad in (None, 7, "{}", {"role": "user", "content": "x"}):
            with self.assertRaises(LcmError) as caught:
                texts.to_texts(bad)
            self.assertIn("`messages` must be a list", caught.exception.message)

    def test_objects_of_an_sdk_are_messages(self):
        def model(**members):
            def dump(*, mode, by_alias, warnings, exclude=frozenset()):
                self.assertEqual((mode, by_alias, warnings), ("json", True, False))
                kept = {key: value for key, value in members.items() if key not in exclude}
                if any(isinstance(value, io.IOBase) for value in kept.values()):
                    raise ValueError("no JSON")
                return kept

            return SimpleNamespace(model_dump=dump)

        answer = model(role="assistant", content=[{"type": "text", "text": "hi"}])
        written = '{"role":"assistant","content":[{"type":"text","text":"hi"}]}'
        self.assertEqual(texts.to_texts([answer]), [written])
        self.assertEqual(texts.to_texts(answer), [written])
        held = {"role": "assistant", "content": [model(type="text", text="hi")]}
        self.assertEqual(texts.to_texts([held]), [written])
        image = model(role="assistant", content=[{"type": "text", "text": "hi"}], artifact=io.BytesIO())
        self.assertEqual(texts.to_texts([image]), [written])
        self.assertEqual(texts.to_texts([model(outputs=None)]), ['{"outputs":null}'])
        item = model(type="function_call_output", call_id="c", output="x")
        self.assertEqual(len(texts.to_texts([item, {"role": "user", "content": None}])), 2)
        for member, wanted in (
            ("choices", "completion.choices[0].message"),
            ("output", "response.output"),
            ("candidates", "response.candidates[0].content"),
        ):
            for given in (model(**{member: []}), [model(**{member: []})]):
                with self.assertRaises(LcmError) as caught:
                    texts.to_texts(given)
                self.assertEqual(caught.exception.code, "invalid-input")
                self.assertIn(wanted, caught.exception.message)

    def test_batches_keep_both_bounds_and_the_order(self):
        small = [f"{number}" for number in range(250)]
        self.assertEqual([len(part) for part in texts.batches(small)], [100, 100, 50])
        large = ["\u00e9" * 100_000, "x" * 324_288, "y", "z" * 600_000, "w"]
        parts = list(texts.batches(large))
        self.assertEqual([len(part) for part in parts], [2, 1, 1, 1])
        self.assertEqual([text for part in parts for text in part], large)

    def test_pieces_end_between_characters_and_join_to_the_text(self):
        for letter in ("x", "\u00e9", "\u4e2d", "\U0001f600"):
            raw = ("a" + letter * 150_000).encode()
            offset, joined = 0, b""
            while offset < len(raw):
                piece = texts.piece(raw, offset, 192 * 1024).encode()
                self.assertTrue(0 < len(piece) <= 192 * 1024)
                joined += piece
                offset += len(piece)
            self.assertEqual(joined, raw)


def identified(arguments: dict[str, Any]) -> str:
    """Returns fake identities: the hash of a message is its text."""
    return json.dumps([{"hash": text} for text in arguments["messages"]])


def storing(task: str, parts: list[str], **options: Any) -> flows.Flow[Any]:
    """Returns the flow that stores these texts at time 1."""
    return intake.intake({"task": task, "conversation": "c", **options}, parts, 1)


class Ingest(unittest.TestCase):
    @staticmethod
    def receipt(arguments: dict[str, Any]) -> dict[str, Any]:
        count = len(arguments["messages"])
        return {
            "revision": 7,
            "ingested": count,
            "skipped": 0,
            "seq_first": 1 if count else None,
            "seq_last": count or None,
            "context_tokens": 5,
            "warnings": [],
        }

    def test_a_large_message_is_staged_and_named_by_its_hash(self):
        large = "x" * 600_000
        script = Script(
            identify=identified,
            stage=lambda a: a["offset"] + len(a["text"]),
            append=self.receipt,
        )
        parts = ["small", large, "end"]
        script.run(storing("append", parts, append_mode="new", family="f"))
        names = [name.partition(".")[2] for name, _ in script.calls]
        self.assertEqual(names, [*["identify"] * 3, *["stage"] * 4, *["append"] * 3])
        staged = script.calls[3][1]
        sha256 = texts.upload_id(large.encode())
        self.assertEqual(script.calls[8][1]["messages"], [f"@upload {sha256}"])
        self.assertEqual(staged["upload"], sha256)
        self.assertEqual(staged["extra_json"], '{"bytes":600000,"family":"f"}')

    def test_only_what_is_missing_is_appended_as_new(self):
        script = Script(
            identify=identified,
            reconcile=lambda a: json.dumps(
                {
                    "missing_ranges": [
                        {"index_first": 1, "index_last": 2},
                        {"index_first": 4, "index_last": 4},
                    ],
                    "revision": 3,
                    "warnings": ["w"],
                }
            ),
            append=lambda a: self.receipt(a) | {"revision": 4},
        )
        receipt = script.run(storing("ingest", list("abcde"), refuse_replay=True))
        transcript = json.loads(script.calls[1][1]["transcript_json"])
        self.assertEqual([entry["hash"] for entry in transcript["entries"]], list("abcde"))
        appended = [arguments for _, arguments in script.calls[2:]]
        self.assertEqual([one["messages"] for one in appended], [list("bc"), list("e")])
        self.assertEqual({one["options"]["append_mode"] for one in appended}, {"new"})
        extras = [json.loads(one["options"]["extra_json"]) for one in appended]
        self.assertEqual(extras, [{"revision": 3}, {"revision": 4}])
        # `refuse_replay` is an option of `reconcile`, which judges the whole transcript. With the
        # option on each append, some batches would be stored before a refusal.
        self.assertIs(transcript["refuse_replay"], True)
        self.assertEqual((receipt["ingested"], receipt["skipped"]), (3, 2))
        self.assertEqual(receipt["warnings"], ["w"])

    def test_a_short_list_is_one_call_in_the_mode_asked_for(self):
        for mode in ("transcript", "new"):
            script = Script(append=self.receipt)
            script.run(storing("append", ["a"], append_mode=mode, repeat=True))
            ((_, arguments),) = script.calls
            options = {"append_mode": mode, "extra_json": '{"repeat":true}', "partial": False}
            self.assertEqual(arguments["options"], options)


class Conversation(Script):
    """A fake conversation of texts without ids that knows no list. `fault` runs before and after
    each append: it may raise, and may write as another writer would."""

    def __init__(self, fault: Any = lambda moment, stored: None) -> None:
        super().__init__(
            identify=identified,
            reconcile=self.reconcile,
            stage=lambda a: a["offset"] + len(a["text"]),
            append=self.append,
        )
        self.fault = fault
        self.stored: list[str] = []
        self.continued = 0

    def names(self) -> list[str]:
        return [name.partition(".")[2] for name, _ in self.calls]

    def reconcile(self, arguments: dict[str, Any]) -> str:
        transcript = json.loads(arguments["transcript_json"])
        entries = transcript["entries"]
        count = len(self.stored)
        known = [entry["hash"] for entry in entries[:count]] == self.stored
        first = count if known else transcript["confirmed"]
        last = len(entries) - 1
        missing = [{"index_first": first, "index_last": last}] if first <= last else []
        warnings = [] if known else ["none"]
        return json.dumps({"missing_ranges": missing, "revision": count, "warnings": warnings})

    def append(self, arguments: dict[str, Any]) -> dict[str, Any]:
        options = json.loads(arguments["options"].get("extra_json", "{}"))
        if "continues" in options:
            self.continued += 1
            raise LcmError("conflict", "the beginning of the list is unknown")
        if options.get("revision", len(self.stored)) != len(self.stored):
            raise LcmError("conflict", "the conversation moved on")
        self.fault("before", self.stored)
        self.stored += arguments["messages"]
        self.fault("after", self.stored)
        return Ingest.receipt(arguments) | {"revision": len(self.stored)}


class ConcurrentIngest(unittest.TestCase):
    texts = [f"{number}" for number in range(250)]

    def flow(self) -> flows.Flow[Any]:
        return storing("ingest", self.texts)

    def test_two_at_the_same_time_store_every_message_once(self):
        for lead in range(1, 6):
            script = Conversation()
            # The second flow runs completely after the first `lead` steps of the first flow.
            first = self.flow()
            effect = next(first)
            for _ in range(lead):
                try:
                    result = script.perform(effect)
                except LcmError as error:
                    effect = first.throw(error)
                else:
                    effect = first.send(result)
            second = script.run(self.flow())
            receipt = script.resume(first, effect)
            self.assertEqual(script.stored, self.texts)
            self.assertEqual(receipt["ingested"] + second["ingested"], 250)
            for one in (receipt, second):
                self.assertEqual(one["ingested"] + one["skipped"], 250)

    def test_what_was_confirmed_is_not_stored_again_when_others_write(self):
        def fault(moment, stored):
            if moment == "before" and len(stored) == 100:
                stored.append("other")
                raise LcmError("conflict", "lost")

        script = Conversation(fault)
        receipt = script.run(self.flow())
        self.assertEqual(script.stored, self.texts[:100] + ["other"] + self.texts[100:])
        self.assertEqual((receipt["ingested"], receipt["skipped"]), (250, 0))
        self.assertEqual(receipt["warnings"], [])

    def test_an_append_of_unknown_outcome_is_looked_for_and_not_sent_again(self):
        for lost_at, ingested in (("before", 250), ("after", 150)):
            faults = [LcmError("store-unavailable", "the reply was lost")]

            def fault(moment, stored, lost_at=lost_at, faults=faults):
                if moment == lost_at and stored and faults:
                    raise faults.pop()

            script = Conversation(fault)
            receipt = script.run(self.flow())
            self.assertEqual(script.stored, self.texts)
            self.assertEqual((receipt["ingested"], receipt["skipped"]), (ingested, 250 - ingested))

    def test_a_conflict_without_progress_is_raised_after_so_many_repetitions(self):
        def fault(moment, stored):
            raise LcmError("conflict", "lost")

        script = Conversation(fault)
        with self.assertRaises(LcmError) as caught:
            script.run(self.flow())
        self.assertEqual(caught.exception.code, "conflict")
        self.assertEqual(script.names().count("append") - script.continued, 257)
        self.assertEqual(len(script.pauses), 256)

    def test_large_messages_are_staged_before_the_plan_that_appends_rely_on(self):
        script = Conversation()
        script.run(storing("ingest", ["a", "x" * 600_000]))
        names = [*["identify"] * 2, "reconcile", *["stage"] * 4, "reconcile", *["append"] * 2]
        self.assertEqual(script.names(), names)


def plan(status: str, *ids: str, sweep: str = "") -> dict[str, Any]:
    requests = [{"id": id, "purpose": "leaf"} for id in ids]
    reason = "" if requests else "below-threshold"
    return {"status": status, "reason": reason, "requests": requests, "sweep": sweep}


def outcome(applied: str, reason: str = "", following: str | None = None) -> dict[str, Any]:
    next_one = following and {"id": following, "purpose": "leaf"}
    tokens = {"tokens_before": 9, "tokens_after": 8 if applied == "committed" else 9}
    made = {"summary_id": "s", "purpose": "leaf", "depth": 0, "level": "normal", "capped": False}
    said = {"applied": applied, "reason": reason, "next": next_one, "warnings": []}
    return {**said, **made, **tokens}


def decided(arguments: dict[str, Any]) -> dict[str, Any]:
    explanation = {"inputs": {"stored_tokens": 8}, "warnings": []}
    return {"due": False, "must": False, "explanation_json": json.dumps(explanation)}


DONE = {"done": {"text": "t"}}


def any_model(request):
    """A model that is never called: the script answers instead."""


def failed(code: str, pause: int | None = None) -> dict[str, Any]:
    return {"failed": {"code": code, "message": "m", "retry_after_ms": pause}}


class Drive(unittest.TestCase):
    def drive(self, plans, outcomes, answers, models=any_model, **asking):
        plans, outcomes, answers = iter(plans), iter(outcomes), iter(answers)
        self.script = Script(
            plan=lambda a: next(plans),
            apply=lambda a: next(outcomes),
            complete=lambda a: next(answers),
            complete_offline=lambda a: {"text": "offline"},
            evaluate=decided,
        )
        asking = Asking(models_of(models), **asking)
        work = compaction.Work("c", 100, {"requests_max": 2}, lambda: 1, asking)
        return self.script.run(compaction.compact(work))

    def applied(self) -> list[dict[str, Any]]:
        return [a for name, a in self.script.calls if name == "compaction.apply"]

    def test_retries_are_followed_and_the_sweep_handed_on(self):
        result = self.drive(
            [plan("needs-completions", "a", "b", sweep="s1"), plan("nothing-due", sweep="s2"),
             plan("nothing-due")],
            [outcome("retry", following="a2"), outcome("committed"), outcome("stale")],
            [DONE] * 3,
        )  # fmt: skip
        self.assertEqual(self.script.requests, ["a", "b", "a2"])
        self.assertEqual((result["status"], result["reason"]), ("done", "below-threshold"))
        self.assertEqual((len(result["passes"]), result["completions"]), (1, 3))
        sweeps = [a["options"].get("sweep") for n, a in self.script.calls if n == "compaction.plan"]
        self.assertEqual(sweeps, [None, "s1", "s2"])

    def test_together_asks_all_requests_of_a_plan_before_the_first_is_applied(self):
        self.drive(
            [plan("needs-completions", "a", "b"), plan("nothing-due")],
            [outcome("retry", following="a2"), outcome("committed"), outcome("committed")],
            [DONE] * 3,
            together=True,
        )
        self.assertEqual(self.script.requests, ["a", "b", "a2"])

    def test_a_refusal_of_the_model_ends_the_loop(self):
        with self.assertRaises(LcmError) as caught:
            self.drive(
                [plan("needs-completions", "a")],
                [outcome("refused", "model-auth")],
                [failed("auth")],
                asks=3,
            )
        self.assertEqual(caught.exception.code, "completion-failed")
        self.assertEqual((self.script.requests, self.script.pauses), (["a"], []))

    def test_a_refusal_without_progress_does_not(self):
        result = self.drive(
            [plan("needs-completions", "a", "b"), plan("nothing-due")],
            [outcome("refused", "no-progress"), outcome("committed")],
            [DONE] * 2,
        )
        self.assertEqual((result["status"], len(result["passes"])), ("done", 1))

    def test_a_model_is_asked_again_and_once_exhausted_no_more(self):
        result = self.drive(
            [plan("needs-completions", "a"), plan("needs-completions", "b"), plan("nothing-due")],
            [outcome("committed"), outcome("committed")],
            [failed("timeout"), failed("rate-limited", 40), failed("other")],
            asks=3,
        )
        self.assertEqual(self.script.requests, ["a"] * 3)
        self.assertEqual(self.script.pauses, [0.5, 0.04])
        applied = self.applied()
        self.assertEqual([a["answer"] for a in applied], [failed("other")] * 2)
        overs = [a["options"]["fallback_over_tokens"] for a in applied]
        self.assertEqual(overs, [100, 100])
        self.assertEqual(result["failure"]["code"], "other")

    def test_a_failure_that_another_try_mended_is_none(self):
        result = self.drive(
            [plan("needs-completions", "a"), plan("nothing-due")],
            [outcome("committed")],
            [failed("timeout"), DONE],
            asks=2,
        )
        self.assertIsNone(result["failure"])

    def test_context_too_long_goes_to_the_engine_as_it_is(self):
        self.drive(
            [plan("needs-completions", "a"), plan("nothing-due")],
            [outcome("committed")],
            [failed("context-too-long")],
            asks=3,
        )
        (applied,) = self.applied()
        self.assertNotIn("fallback_over_tokens", applied["options"])

    def test_pauses_double_and_a_model_that_wants_a_long_one_gives_way(self):
        plans = [plan("needs-completions", "a"), plan("nothing-due")]
        self.drive(plans, [outcome("committed")], [failed("other")] * 9, asks=9)
        self.assertEqual(self.script.pauses, [0.5, 1, 2, 4, 8, 16, 32, 60])
        answers = [failed("rate-limited", 60_000), failed("rate-limited", 60_001), DONE]
        models = [any_model, any_model]
        self.drive(plans, [outcome("committed")], answers, asks=9, models=models)
        self.assertEqual(self.script.pauses, [60])
        self.assertEqual(self.script.requests, ["a"] * 3)

    def test_a_refused_key_goes_to_no_other_model(self):
        plans = [plan("needs-completions", "a")]
        refused = [outcome("refused", "model-auth")]
        with self.assertRaises(LcmError):
            self.drive(plans, refused, [failed("auth")], asks=9, models=[any_model] * 2)
        self.assertEqual(self.script.requests, ["a"])

    def test_offline_asks_the_engine(self):
        self.drive(
            [plan("needs-completions", "a"), plan("nothing-due")],
            [outcome("committed")],
            [],
            models=None,
        )
        (applied,) = self.applied()
        self.assertEqual(applied["answer"], {"done": {"text": "offline"}})


class Models(unittest.TestCase):
    def test_answers_of_callbacks(self):
        for request, model in (({"model": None}, "default"), ({"model": "m"}, "m")):
            done = completions.answered("t", request)["done"]
            self.assertEqual((done["finish"], done["model"]), ("stop", model))
        full = {
            "text": "t",
            "finish": "length",
            "model": "m",
            "input_tokens": 1,
            "output_tokens": 2,
        }
        self.assertEqual(completions.answered(full, {}), {"done": full})
        plain = completions.answered("t", {})
        for odd in (-5, 3.5, 2**32, "12", True, float("nan"), [1]):
            told = {"text": "t", "input_tokens": odd, "output_tokens": odd}
            self.assertEqual(completions.answered(told, {}), plain)
        self.assertEqual(completions.answered({"text": "t", "model": 5}, {}), plain)
        lone = completions.answered({"text": "t", "model": "a\ud800"}, {})["done"]
        self.assertEqual(lone["model"], "a?")
        for bad in (None, {}, {"text": 1}, {"text": "t", "finish": 7}):
            with self.assertRaises(LcmError):
                completions.answered(bad, {})

    def test_what_callbacks_raise(self):
        raised = completions.failed(CompletionFailed("auth", "no\nkey", 9), {})
        wanted = {"code": "auth", "message": "no key", "retry_after_ms": 9}
        self.assertEqual(raised, {"failed": wanted})
        raised = completions.failed(TimeoutError(), {})["failed"]
        self.assertEqual(raised["code"], "timeout")
        raised = completions.failed(ValueError("x"), {})
        self.assertEqual(raised["failed"]["code"], "other")
        raised = completions.failed(CompletionFailed("nonsense", "x"), {})
        self.assertEqual(raised["failed"]["code"], "other")
        for odd, pause in ((-5, None), ("9", None), (True, None), (9.5, 9), (2**70, 2**53 - 1)):
            told = completions.failed(CompletionFailed("auth", None, odd), {})["failed"]
            self.assertEqual((told["message"], told["retry_after_ms"]), ("None", pause))

    def test_each_purpose_has_models_of_its_own_and_the_rest_the_default(self):
        def one(request):
            return "one"

        def two(request, *, timeout):
            return f"two in {timeout}"

        models = models_of({"leaf": [one, two], "condensed": None, "default": two})
        self.assertEqual([model({}, 3) for model in models.of("leaf")], ["one", "two in 3"])
        for purpose in ("condensed", "ask"):
            self.assertEqual([model({}, 3) for model in models.of(purpose)], ["two in 3"])
        self.assertEqual(models_of({"leaf": one}).of("ask"), ())
        self.assertEqual(models_of(None).of("leaf"), ())
        for wrong, message in (
            ({"leaves": one}, "unknown purpose `leaves`"),
            ({"leaf": "m"}, "`complete.leaf` must be a function"),
            ("m", "`complete` must be a function"),
            ([1], "`complete` must be a function"),
        ):
            with self.assertRaises(LcmError) as caught:
                models_of(wrong)
            self.assertIn(message, caught.exception.message)


if __name__ == "__main__":
    unittest.main()
