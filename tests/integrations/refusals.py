"""Tests that the rules refuse broken requests, and that the verification finds broken stores.

Takes one valid request for each API and one valid store, and breaks them in many ways.
"""

import json
from pathlib import Path

import play  # first: it adds the modules of the agent loop to the path
import broken_requests
import provider_rules
import verify

LINES = 40
"""Every program must have fewer lines of code, so that a reader sees it at once."""

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "text"}
SAID = {"type": "output_text", "text": "done"}
RESPONSES = {
    "model": "m",
    "input": [
        {"role": "user", "content": "read"},
        THOUGHT,
        CALL,
        OUTPUT,
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [SAID]},
        {"role": "user", "content": [{"type": "input_text", "text": "again"}]},
    ],
}
BROKEN_RESPONSES = [
    (("input",), []),
    (("input", 0, "role"), "tool"),
    (("input", 0, "content"), " "),
    (("input", 1), None),
    (("input", 2), None),
    (("input", 3), None),
    (("input", 1, "id"), "msg_2"),
    (("input", 2, "id"), "call_1"),
    (("input", 2, "callId"), "a"),
    (("input", 2, "arguments"), "{"),
    (("input", 3, "type"), "function_call_result"),
    (("input", 3, "output"), {"type": "text"}),
    (("input", 3, "call_id"), "b"),
    (("input", 4, "id"), "rs_1"),
    (("input", 4, "content", 0, "type"), "text"),
    (("input", 4, "providerData"), {}),
    (("input", 5, "content", 0, "type"), "output_text"),
]
USE = {"functionCall": {"id": "a", "name": "read", "args": {}}, "thoughtSignature": "--__YQ=="}
RESULT = {"functionResponse": {"id": "a", "name": "read", "response": {"result": "text"}}}
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": "read"}]},
        {"role": "model", "parts": [USE]},
        {"role": "user", "parts": [RESULT]},
    ]
}
BROKEN_GEMINI = [
    (("contents",), []),
    (("contents", 0, "role"), "assistant"),
    (("contents", 0, "parts"), []),
    (("contents", 0, "parts", 0, "text"), ""),
    (("contents", 1, "parts", 0, "thoughtSignature"), None),
    (("contents", 1, "parts", 0, "thoughtSignature"), "YQ=="),
    (("contents", 1, "parts", 0, "functionCall", "args"), "{}"),
    (("contents", 1), None),
    (("contents", 2), None),
    (("contents", 2, "role"), "model"),
    (("contents", 2, "parts", 0, "functionResponse", "response"), "text"),
    (("contents", 2, "parts"), [RESULT, RESULT]),
]
DID = {
    "turn": play.TURNS,
    "summarised": play.TURNS,
    "refused": [],
    "texts": ["yes", "Done.", "yes", "text", "Done."],
    "ids": ["a", "a"],
}
STORED = [
    {"role": "user", "content": "yes"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "yes"},
    {"role": "assistant", "tool_calls": [{"id": "a"}]},
    {"role": "tool", "tool_call_id": "a", "content": "text"},
    {"role": "assistant", "content": "Done."},
]
# Index of a message of the valid store, and the messages that replace this message.
BROKEN_STORES = [
    (0, [STORED[0], STORED[0]]),
    (1, []),
    (2, []),
    (3, [STORED[3], STORED[3]]),
    (3, []),
    (4, [STORED[4], STORED[4]]),
    (4, [STORED[4], {"role": "user", "content": "a summary"}]),
    (4, [STORED[5], STORED[4]]),
]
BROKEN_RUNS = [("turn", 59), ("summarised", 0), ("refused", ["turn 5: too long"])]


def count_refusals() -> int:
    """Counts the broken requests of both APIs, all of which must be refused."""
    headers = {"authorization": "Bearer k", "x-goog-api-key": "k"}
    cases = [
        (provider_rules.responses, RESPONSES, BROKEN_RESPONSES),
        (provider_rules.gemini, GEMINI, BROKEN_GEMINI),
    ]
    return broken_requests.count_refusals(headers, cases)


def count_faults() -> int:
    """Counts broken stores and runs; fails if a valid one has a fault or a broken one has none."""
    sound = [json.dumps(message) for message in STORED]
    if faults := list(verify.find_faults(DID, sound)):
        raise SystemExit(f"a sound store has faults: {faults}")
    cases = [(DID | {key: value}, sound) for key, value in BROKEN_RUNS]
    for at, messages in BROKEN_STORES:
        cases.append((DID, sound[:at] + list(map(json.dumps, messages)) + sound[at + 1 :]))
    for did, store in cases:
        if not list(verify.find_faults(did, store)):
            raise SystemExit(f"no fault was found: {did} {store}")
    return len(cases)


def check_lengths() -> None:
    """Fails if a program has `LINES` lines of code or more."""
    for program in Path(__file__).parent.glob("with_*"):
        lines = [line.strip() for line in program.read_text(encoding="utf-8").splitlines()]
        code = [line for line in lines if line and not line.startswith(("//", "/**", '"""'))]
        if len(code) >= LINES:
            raise SystemExit(f"{program.name}: {len(code)} lines of code, not fewer than {LINES}")


if __name__ == "__main__":
    check_lengths()
    print(f"{count_refusals()} broken requests refused, {count_faults()} broken stores found")
