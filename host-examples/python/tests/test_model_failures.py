"""How errors of SDKs and returned values of callbacks become failures and answers."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import urllib.error
import unittest
from http import HTTPStatus
from types import SimpleNamespace

import lcm_engine
from lcm_engine import CompletionFailed, LcmError, completions
from lcm_engine.failure_table import FAILURE_TABLE
from lcm_engine.model_failures import read_raised

from . import sdk_errors
from .sdk_errors import Headers, error_of, wrapped
from .support import NOW, ROOT

ANSWERS = json.loads((ROOT / "tests/fixtures/model-answers.json").read_text(encoding="utf-8"))
QUESTION = "What is message 3?"
MESSAGES = [
    {"role": "assistant" if n % 2 else "user", "content": f"message {n}: " + f"word{n} " * 60}
    for n in range(120)
]


def documented() -> list[tuple[str, str, tuple[str, ...]]]:
    """Returns the rows of the document's table between its marks."""
    text = (ROOT / "docs/model-failures.md").read_text(encoding="utf-8")
    table = re.split("<!-- /?model-failures -->", text)[1]
    rows = []
    for line in table.strip().split("\n")[2:]:
        evidence, code, values = line[2:-2].split(" | ")
        rows.append((evidence, code.strip("`"), tuple(re.findall("`([^`]+)`", values))))
    return rows


def bare(evidence: str, value: str) -> Exception:
    """Returns an error with only one piece of evidence."""
    match evidence:
        case "name":
            return error_of([value])
        case "code":
            return error_of(["E"], code=value.upper())
        case "status":
            return error_of(["E"], status_code=529 if value == "5xx" else int(value))
        case _:
            body = {"error": {"message": f"So: {value} (7)"}}
            return sdk_errors.anthropic({"status": 400, "body": body, "headers": {}})


def code_of(raised: Exception) -> str:
    return read_raised(raised)[0]


class Table(unittest.TestCase):
    def test_the_table_of_failures_is_that_of_the_document(self):
        self.assertEqual(list(FAILURE_TABLE), documented())

    def test_each_value_of_the_table_means_its_code(self):
        rows = [row for row in FAILURE_TABLE if row[0] != "finish"]
        for evidence, code, values in rows:
            for value in values:
                with self.subTest(evidence=evidence, value=value):
                    raised = bare(evidence, value)
                    self.assertEqual(code_of(raised), code)
                    self.assertEqual(code_of(wrapped(raised)), code)

    def test_an_error_in_a_list_and_one_without_an_error_object_are_read(self):
        message = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        for body in (
            [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}],
            {"message": "Input is too long for requested model."},
            {"message": "This model's maximum context length is 4096 tokens.", "code": 400},
            {"message": "too many tokens: total number of tokens in the prompt cannot exceed 9"},
        ):
            for raised in (
                error_of(["E"], status_code=400, body=body),
                error_of(["E"], f"400 {json.dumps(body)}", status_code=400),
            ):
                self.assertEqual(code_of(raised), "context-too-long", body)

    def test_every_word_for_the_end_of_an_answer_is_understood(self):
        rows = [row for row in FAILURE_TABLE if row[0] == "finish"]
        words = [(value, code) for _, code, values in rows for value in values]
        words += [(word, "stop") for word in ("STOP", "end_turn", "", "stop_sequence", "a-new")]
        self.assertGreater(len(words), 30)
        for word, code in words:
            for finish in (word, word.upper(), word.replace("_", "-")):
                answer = completions.answered({"text": "t", "finish": finish}, {})
                given = answer["done"]["finish"] if "done" in answer else answer["failed"]["code"]
                self.assertEqual(given, code, finish)

    def test_an_answer_of_a_provider_means_the_same_in_the_error_of_every_sdk(self):
        shapes = ("openai", "anthropic", "google", "langchain_google", "requests")
        for name in shapes:
            for answer in ANSWERS:
                raised = getattr(sdk_errors, name)(answer)
                for error in (raised, wrapped(wrapped(raised)), ExceptionGroup("g", [raised])):
                    with self.subTest(sdk=name, answer=answer["what"]):
                        expected = (answer["code"], answer["retry_after_ms"])
                        self.assertEqual(read_raised(error), expected)


class Evidence(unittest.TestCase):
    def test_a_status_and_a_pause_are_found_in_every_place_and_container(self):
        places = [
            {"status": 429},
            {"statusCode": 429},
            {"status_code": 429},
            {"code": 429},
            {"code": HTTPStatus.TOO_MANY_REQUESTS},
            {"response": SimpleNamespace(status=429)},
            {"response": SimpleNamespace(status_code=429)},
            {"response": {"statusCode": 429}},
        ]
        for members in places:
            self.assertEqual(code_of(error_of(["E"], **members)), "rate-limited", members)
        containers = [
            {"Retry-After": "7"},
            {"retry-after": ["7"]},
            {b"retry-after": b"7"},
            Headers({"Retry-After": "7"}),
            [("retry-after", "7")],
            {"retry-after-ms": "7000", "retry-after": "9"},
        ]
        for headers in containers:
            for members in ({"headers": headers}, {"response": SimpleNamespace(headers=headers)}):
                self.assertEqual(read_raised(error_of(["E"], **members))[1], 7_000, headers)
        self.assertEqual(read_raised(error_of(["E"], retry_after_ms=9))[1], 9)

    def test_a_pause_may_be_a_date(self):
        def dated(then: str) -> int | None:
            headers = {"date": "Wed, 21 Oct 2015 07:28:00 GMT", "retry-after": then}
            return read_raised(error_of(["E"], headers=headers))[1]

        self.assertEqual(dated("Wed, 21 Oct 2015 07:28:07 GMT"), 7_000)
        self.assertEqual(dated("Wed, 21 Oct 2015 07:27:00 GMT"), 0)
        self.assertEqual(dated("1e300"), 86_400_000)
        for odd in ("-1", "soon", ""):
            self.assertIsNone(dated(odd), odd)

    def test_time_limits_and_lost_connections_are_told_apart_from_other_errors(self):
        lost = ["APIConnectionError", "APIError", "OpenAIError"]
        rows = [
            ("timeout", TimeoutError()),
            ("timeout", asyncio.TimeoutError()),
            ("timeout", socket.timeout("timed out")),
            ("timeout", error_of(["APITimeoutError", *lost], "Request timed out.")),
            ("timeout", error_of(["ReadTimeout", "TimeoutException", "TransportError"], "")),
            ("timeout", error_of(["PoolTimeout", "TimeoutException", "TransportError"], "")),
            ("timeout", error_of(["ServerTimeoutError", "TimeoutError", "ClientError"], "")),
            ("timeout", urllib.error.URLError(TimeoutError("timed out"))),
            ("timeout", error_of(["OpenAITimeout", "ModelTimeoutError", "ModelError"])),
            ("unavailable", error_of(lost, "Connection error.")),
            ("unavailable", error_of(["ConnectError", "NetworkError", "TransportError"], "")),
            ("unavailable", error_of(["ClientConnectorError", "ClientConnectionError"], "")),
            ("unavailable", ConnectionRefusedError(111, "Connection refused")),
            ("unavailable", socket.gaierror(-2, "Name or service not known")),
            ("unavailable", wrapped(ConnectionResetError(104, "reset"))),
            ("unavailable", urllib.error.URLError(ConnectionRefusedError(111, "refused"))),
            ("auth", error_of(["DefaultCredentialsError"], "no credentials")),
            ("auth", TypeError("Could not resolve authentication method. Expected api_key")),
            ("auth", ValueError("Error code: 401 - {'error': {}}")),
            ("rate-limited", error_of(["ModelRateLimitError", "ModelError"])),
            ("rate-limited", ValueError("429 Resource has been exhausted")),
            ("rate-limited", ValueError("HTTP 429: slow down")),
            ("context-too-long", ValueError("HTTP 400: prompt is too long: 9 tokens > 8")),
            ("context-too-long", error_of(["OpenAIContextOverflowError", "BadRequestError",
                                           "ContextOverflowError"], status_code=400)),
            ("policy", error_of(["ContentPolicyViolationError"], status_code=400)),
            ("other", error_of(["OutputParserException"], "Invalid json output: rate")),
            ("other", RuntimeError("boom")),
            ("other", ValueError("the report of 429 pages")),
            ("other", KeyError("choices")),
        ]
        for code, raised in rows:
            with self.subTest(repr(raised)):
                self.assertEqual(code_of(raised), code)

    def test_an_error_that_resists_reading_is_read_all_the_same(self):
        class Hostile(Exception):
            def __str__(self):
                raise ValueError("no")

            def __getattribute__(self, name):
                if name.startswith("__"):
                    return super().__getattribute__(name)
                raise ValueError("no")

        loop = RuntimeError("loop")
        loop.__cause__ = wrapped(loop)
        body: dict[str, object] = {}
        body["error"] = body
        self.assertEqual(code_of(loop), "other")
        self.assertEqual(code_of(Hostile()), "other")
        self.assertEqual(code_of(error_of(["E"], status=429, body=body)), "rate-limited")
        self.assertEqual(completions.failed(Hostile(), {})["failed"]["code"], "other")
        long = completions.failed(RuntimeError("x" * 9_000), {})["failed"]
        self.assertEqual(len(long["message"]), 303)
        # An own `code` of this package wins over any other evidence of the error.
        own = CompletionFailed("policy", "no")
        own.status_code = 429
        self.assertEqual(code_of(own), "policy")

    def test_a_refusal_that_an_sdk_raises_is_an_answer(self):
        for name in ("ModelRefusalError", "ContentFilterFinishReasonError"):
            done = completions.failed(error_of([f"OpenAI{name}", name], "no"), {})["done"]
            self.assertEqual((done["finish"], done["text"]), ("refusal", ""))


def members(**given: object) -> object:
    return SimpleNamespace(**given)


WRONG = [
    (None, "got None"),
    (7, "got the number 7"),
    ({}, "a mapping with no members"),
    (["text"], "got a list"),
    ({"text": 1}, "a mapping whose `text` is the number 1"),
    ({"summary": "t"}, "a mapping with summary"),
    (ValueError("x"), "a ValueError (raise it)"),
    (members(choices=[]), "a Chat Completions answer (return answer.choices[0]"),
    (members(output_text="t", output=[]), "a Responses answer (return answer.output_text)"),
    (members(content=[], stop_reason="end_turn"), "an Anthropic message (return the texts"),
    (members(candidates=[], text="t"), "a Gemini answer (return answer.text)"),
    (members(content="t"), "a message (return its text)"),
    (iter(["t"]), "a stream (return its whole text)"),
    ({"text": "t", "finish": 7}, "the provider's word for its end, got the number 7"),
]


def opened(complete) -> lcm_engine.Lcm:
    return lcm_engine.open("memory:", complete, clock=lambda: NOW, environment={})


class BlankAnswers(unittest.TestCase):
    def test_after_an_answer_whose_text_an_sdk_left_out_the_next_model_is_asked(self):
        for finish in [None, "stop", "length", "refusal"]:
            done = completions.answered({"text": None, "finish": finish}, {})["done"]
            self.assertEqual((done["text"], done["finish"]), ("", finish or "stop"))

        def blank(request):
            return {"text": None}

        def other(request):
            return "The host decides nothing."

        with opened([blank, other]) as lcm:
            turn = lcm.turn("c", MESSAGES, 4_000)
            self.assertIsNone(turn["failure"])
            made = turn["compacted"]["passes"][0]
            self.assertEqual((made["level"], made["provisional"]), ("normal", False))


class WrongAnswers(unittest.TestCase):
    def test_a_wrong_answer_is_an_error_of_the_program_and_not_one_of_the_model(self):
        for answer, got in WRONG:
            asked = []

            def complete(request, answer=answer, asked=asked):
                asked.append(request)
                return answer

            def fallback(request):
                raise AssertionError("another model was asked")

            with self.subTest(got), opened([complete, fallback]) as lcm:
                turn = lcm.turn("c", MESSAGES, 4_000)
                self.assertEqual((turn["receipt"]["ingested"], turn["compacted"]), (120, None))
                self.assertEqual(turn["failure"]["code"], "invalid-input")
                message = turn["failure"]["message"]
                self.assertIn(got, message)
                self.assertRegex(message, "must (return|be)")
                self.refuses(message, lambda: lcm.compact("c", 4_000))
                self.refuses(message, lambda: lcm.maintain("c", 4_000))
                self.refuses(message, lambda: lcm.ask("c", QUESTION))
                prompt = {"prompt": QUESTION}
                self.refuses(message, lambda: lcm.call_tool("c", "lcm_expand_query", prompt))
                # No summary was made from a wrong answer, and no question stays open.
                self.assertEqual(list(lcm.listing("summaries", conversation="c")), [])
                self.refuses(message, lambda: lcm.ask("c", QUESTION))
                self.assertEqual(len(asked), 6)

    def refuses(self, message, call):
        with self.assertRaises(LcmError) as caught:
            call()
        self.assertEqual((caught.exception.code, caught.exception.message),
                         ("invalid-input", message))

    def test_a_coroutine_function_needs_open_async(self):
        async def complete(request):
            return "text"

        with opened(complete) as lcm:
            failure = lcm.turn("c", MESSAGES, 4_000)["failure"]
            self.assertEqual(failure["code"], "invalid-input")
            self.assertIn("open_async", failure["message"])

    def test_asyncio_programs_get_the_same_error(self):
        async def complete(request):
            return None

        async def work():
            opening = lcm_engine.open_async(
                "memory:", complete, clock=lambda: NOW, environment={}
            )
            async with opening as lcm:
                turn = await lcm.turn("c", MESSAGES, 4_000)
                for _ in range(2):
                    with self.assertRaises(LcmError) as caught:
                        await lcm.ask("c", QUESTION)
                return turn["failure"], caught.exception

        failure, raised = asyncio.run(work())
        self.assertEqual(failure, {"code": raised.code, "message": raised.message})
        self.assertEqual(raised.code, "invalid-input")


class Codes(unittest.TestCase):
    def test_every_verb_reports_the_models_own_code(self):
        answer = {"status": 401, "body": {"error": {"message": "bad key"}}, "headers": {}}

        def complete(request):
            raise wrapped(sdk_errors.openai(answer))

        failure = {"code": "auth", "message": "RuntimeError: the summary could not be made"}
        with opened(complete) as lcm:
            self.assertEqual(lcm.turn("c", MESSAGES, 4_000)["failure"], failure)
            self.assertEqual(lcm.ask("c", QUESTION)["failure"], failure)
            told = lcm.call_tool("c", "lcm_expand_query", {"prompt": QUESTION})
            self.assertEqual(told["failure"], failure)
            with self.assertRaises(LcmError) as caught:
                lcm.compact("c", 4_000)
            self.assertEqual(caught.exception.code, "completion-failed")
            self.assertEqual(caught.exception.failure, failure)
            self.assertEqual(lcm.maintain("c", 4_000)["failure"], failure)
