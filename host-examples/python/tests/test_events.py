"""Events: the list that every host reports alike, listeners that fail, and the two examples."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import unittest
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanKind, StatusCode

import lcm_engine
from event_logging import log_events
from event_tracing import trace_events
from lcm_engine import CompletionFailed, LcmError, StoreEvent
from lcm_engine.stores import AsyncMemoryStore

from .support import ROOT, FailingStore, conflict, temporary_folder

SCRIPT_PATH = ROOT / "tests/fixtures/events/script.json"
"""One conversation, and the events that every host reports of it. `LCM_BLESS` writes the events."""
SCRIPT = json.loads(SCRIPT_PATH.read_text(encoding="utf-8"))


class Scripted:
    """The model of the script: gives the answers of a step, in their order."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def __call__(self, request: lcm_engine.CompletionRequest) -> lcm_engine.Completion:
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            raise CompletionFailed(answer["failed"], "injected")
        return {
            "text": answer,
            "finish": "stop",
            "model": "scripted",
            "input_tokens": 100,
            "output_tokens": 10,
        }


def call_of(lcm: Any, step: dict[str, Any]) -> Any:
    """Makes the call of a step."""
    given = {name: value for name, value in step.items() if name not in ("do", "answers")}
    if step["do"] == "append":
        given["append_mode"] = "new"
    return getattr(lcm, step["do"])(**given)


def run(store: FailingStore, on_event: Any, model: Scripted | None = None) -> None:
    """Runs the script in a blocking program."""
    model = model or Scripted()
    config = SCRIPT["config"]
    opened = lcm_engine.open(store, model, config, retries=0, environment={}, on_event=on_event)
    with opened as lcm:
        for step in SCRIPT["steps"]:
            if step["do"] == "conflict":
                store.planned.append(conflict())
                continue
            model.answers = list(step.get("answers", []))
            call_of(lcm, step)
            assert model.answers == [], step


async def run_async(store: Any, conflicts: FailingStore, on_event: Any) -> None:
    """Runs the script in a program of asyncio."""
    model, config = Scripted(), SCRIPT["config"]
    opened = lcm_engine.open_async(
        store, model, config, retries=0, environment={}, on_event=on_event
    )
    async with opened as lcm:
        for step in SCRIPT["steps"]:
            if step["do"] == "conflict":
                conflicts.planned.append(conflict())
                continue
            model.answers = list(step.get("answers", []))
            await call_of(lcm, step)


def comparable(event: StoreEvent) -> dict[str, Any]:
    """Returns an event without the time that a model took."""
    assert "ms" not in event or event["ms"] >= 0
    return {name: value for name, value in event.items() if name != "ms"}


class Events(unittest.TestCase):
    maxDiff = None

    def test_a_conversation_is_reported_as_in_every_host(self) -> None:
        events: list[dict[str, Any]] = []
        run(FailingStore(), lambda event: events.append(comparable(event)))
        if os.environ.get("LCM_BLESS"):
            text = json.dumps(SCRIPT | {"events": events}, indent=2)
            SCRIPT_PATH.write_text(f"{text}\n", encoding="utf-8")
            self.fail("blessed: run the test again")
        self.assertEqual(events, SCRIPT["events"])

    def test_a_program_of_asyncio_gets_the_same_events(self) -> None:
        for store in (FailingStore(), AsyncMemoryStore()):
            events: list[dict[str, Any]] = []
            inner = store if isinstance(store, FailingStore) else FailingStore()
            if isinstance(store, AsyncMemoryStore):
                store.inner = inner
            asyncio.run(run_async(store, inner, lambda event: events.append(comparable(event))))
            self.assertEqual(events, SCRIPT["events"])

    def test_a_store_in_its_own_thread_reports_repetitions_in_the_loop(self) -> None:
        async def write() -> list[StoreEvent]:
            loop, events = asyncio.get_running_loop(), []

            def listen(event: StoreEvent) -> None:
                self.assertIs(asyncio.get_running_loop(), loop)
                events.append(event)

            path = temporary_folder(self) / "a.lcm.db"
            async with lcm_engine.open_async(path, on_event=listen, environment={}) as lcm:
                repeats = [conflict()]
                commit = lcm.store.commit

                def commit_late(guards: Any, puts: Any) -> None:
                    if repeats:
                        raise repeats.pop()
                    commit(guards, puts)

                lcm.store.commit = commit_late  # type: ignore[method-assign, assignment]
                await lcm.append("chat", [{"role": "user", "content": "one"}])
            return events

        events = asyncio.run(write())
        kinds = [event["kind"] for event in events]
        self.assertEqual(kinds, ["conflict-repeated", "messages-stored"])

    def test_a_listener_that_raises_breaks_nothing_and_is_reported_once(self) -> None:
        calls = []

        def listen(event: StoreEvent) -> None:
            calls.append(event["kind"])
            raise RuntimeError("the listener is broken")

        with self.assertLogs("lcm_engine", logging.WARNING) as logs:
            run(FailingStore(), listen)
        self.assertEqual(calls, [event["kind"] for event in SCRIPT["events"]])
        self.assertEqual(len(logs.records), 1)
        self.assertIn("the listener is broken", logs.output[0])

    def test_a_wrong_listener_is_refused_before_the_store_is_opened(self) -> None:
        async def listen(event: StoreEvent) -> None:
            raise AssertionError(event)

        path = temporary_folder(self) / "a.lcm.db"
        for wrong, rule in ((listen, "a coroutine function"), (7, "be a function")):
            with self.assertRaisesRegex(LcmError, f"`on_event` must .*{rule}"):
                lcm_engine.open(path, on_event=wrong, environment={})  # type: ignore[arg-type]
        self.assertFalse(path.exists())

    def test_summaries_without_a_model_are_told_by_their_level(self) -> None:
        events: list[StoreEvent] = []
        config = SCRIPT["config"]
        told = events.append
        with lcm_engine.open("memory:", None, config, environment={}, on_event=told) as lcm:
            lcm.ingest("chat", SCRIPT["steps"][5]["messages"])
            done = lcm.compact("chat", 386)
            made = [event for event in events if event["kind"] == "summary-made"]
            self.assertTrue(made)
            self.assertEqual({one["level"] for one in [*made, *done["passes"]]}, {"fallback"})
            self.assertEqual({one["model"] for one in made}, {"offline"})
            described = lcm.describe("chat", made[0]["summary_id"])
            self.assertEqual(described["level"], "fallback")
        self.assertNotIn("model-called", [event["kind"] for event in events])

    def test_a_question_reports_the_call_of_its_model(self) -> None:
        events: list[StoreEvent] = []
        model = Scripted()
        with lcm_engine.open("memory:", model, environment={}, on_event=events.append) as lcm:
            lcm.append("chat", [{"role": "user", "content": "The gate code is 4711."}])
            model.answers = ["The gate code is 4711."] * 3
            lcm.ask("chat", "What is the gate code?")
        called = [event for event in events if event["kind"] == "model-called"]
        self.assertTrue(called)
        for event in called:
            self.assertEqual((event["conversation"], event["purpose"]), ("chat", "ask"))


class Examples(unittest.TestCase):
    def test_logging_warns_of_what_needs_a_person(self) -> None:
        logger = logging.getLogger("test.lcm")
        with self.assertLogs(logger, logging.DEBUG) as logs:
            run(FailingStore(), log_events(logger))
        self.assertEqual(len(logs.records), len(SCRIPT["events"]))
        warned = [one for one in logs.records if one.levelno == logging.WARNING]
        rejected = [one for one in warned if one.lcm["kind"] == "summary-rejected"]
        self.assertEqual(len(rejected), 1)
        self.assertIn("rule=findings", rejected[0].getMessage())
        self.assertIn("srv/logs/gateway.log", rejected[0].getMessage())
        failures = sum(event.get("error") is not None for event in SCRIPT["events"])
        failed = [one for one in warned if one.lcm["kind"] == "model-called"]
        self.assertEqual(len(failed), failures)

    def test_spans_have_the_names_of_opentelemetry(self) -> None:
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("request"):
            run(FailingStore(), trace_events(tracer, "scripted"))
        *calls, request = exporter.get_finished_spans()
        called = [event for event in SCRIPT["events"] if event["kind"] == "model-called"]
        self.assertEqual(len(calls), len(called))
        for span, event in zip(calls, called, strict=True):
            found = span.attributes or {}
            self.assertEqual(span.kind, SpanKind.CLIENT)
            self.assertEqual(found[names.GEN_AI_OPERATION_NAME], "chat")
            self.assertEqual(found[names.GEN_AI_PROVIDER_NAME], "scripted")
            self.assertEqual(found[names.GEN_AI_CONVERSATION_ID], event["conversation"])
            self.assertEqual(found.get(names.GEN_AI_REQUEST_MODEL), event["model"])
            self.assertEqual(found.get(ERROR_TYPE), event["error"])
            self.assertEqual(span.status.status_code is StatusCode.ERROR, bool(event["error"]))
            if event["error"] is None:
                self.assertEqual(span.name, "chat scripted")
                self.assertEqual(found[names.GEN_AI_RESPONSE_MODEL], "scripted")
                self.assertEqual(found[names.GEN_AI_RESPONSE_FINISH_REASONS], ("stop",))
                self.assertEqual(found[names.GEN_AI_USAGE_INPUT_TOKENS], 100)
                self.assertEqual(found[names.GEN_AI_USAGE_OUTPUT_TOKENS], 10)
        rejected = [one for one in request.events if one.name == "lcm.summary-rejected"]
        self.assertEqual(len(rejected), 1)
        self.assertEqual((rejected[0].attributes or {})["lcm.rule"], "findings")


class Script(unittest.TestCase):
    def test_the_script_shows_each_kind(self) -> None:
        schema = json.loads((ROOT / "schema/events.json").read_text(encoding="utf-8"))
        shapes = [one["$ref"].rpartition("/")[2] for one in schema["$defs"]["StoreEvent"]["oneOf"]]
        kinds = {schema["$defs"][name]["properties"]["kind"]["enum"][0] for name in shapes}
        self.assertEqual({event["kind"] for event in SCRIPT["events"]}, kinds)
        reasons = set(schema["$defs"]["SkipReason"]["enum"])
        skipped = [event for event in SCRIPT["events"] if event["kind"] == "messages-skipped"]
        self.assertEqual({event["reason"] for event in skipped}, reasons)


if __name__ == "__main__":
    unittest.main()
