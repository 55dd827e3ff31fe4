"""Tests that the rules refuse: one valid request for each API, and changes that break it."""

import broken_requests
import rules

TOOL = {"name": "read_file", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "a", "name": "read_file", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "text"}
CALL = {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}

ANTHROPIC = {
    "model": "m",
    "max_tokens": 1,
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "read"},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [RESULT]},
    ],
}
OPENAI = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "read"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "text"},
    ],
}
# Paths begin at the messages of a request.
BROKEN_ANTHROPIC = [
    ((0, "role"), "assistant"),
    ((0, "role"), "system"),
    ((0, "content"), " "),
    ((0, "content"), []),
    ((0, "name"), "ann"),
    ((1,), None),
    ((2,), None),
    ((2, "content"), "no result"),
    ((2, "content"), [RESULT, RESULT]),
    ((2, "content"), [{"type": "text", "text": "first"}, RESULT]),
    ((2, "content", 0, "tool_use_id"), "b"),
    ((1, "content", 0, "input"), "{}"),
    ((1, "content", 0, "id"), "with space"),
    ((1, "content"), [USE, USE]),
]
BROKEN_OPENAI = [
    ((0, "role"), "model"),
    ((0, "content"), ""),
    ((0, "timestamp"), 5),
    ((1,), None),
    ((2,), None),
    ((1, "tool_calls"), []),
    ((1, "tool_calls"), [CALL, CALL]),
    ((1, "tool_calls", 0, "function", "arguments"), {}),
    ((1, "tool_calls", 0, "function", "arguments"), "\"{}\""),
    ((2, "tool_call_id"), "b"),
    ((2, "role"), "user"),
]


def in_messages(breaks: broken_requests.Breaks) -> broken_requests.Breaks:
    """Returns the breaks with paths that begin at the request."""
    return [(("messages", *path), value) for path, value in breaks]


def main() -> None:
    """Counts the refusals of both APIs."""
    headers = {"x-api-key": "k", "anthropic-version": "v", "authorization": "Bearer k"}
    refused = broken_requests.count_refusals(
        headers,
        [
            (rules.anthropic, ANTHROPIC, in_messages(BROKEN_ANTHROPIC)),
            (rules.openai, OPENAI, in_messages(BROKEN_OPENAI)),
        ],
    )
    print(f"{refused} broken requests refused")


if __name__ == "__main__":
    main()
