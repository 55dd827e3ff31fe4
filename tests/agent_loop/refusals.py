"""Shows that the rules refuse: one sound request for each interface, and what breaks it."""

import copy
from typing import Any

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
# Where in the messages of a request something is replaced, and by what; nothing: taken out.
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


def broken(request: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The request with one thing replaced, or taken out."""
    request = copy.deepcopy(request)
    inside: Any = request["messages"]
    for step in path[:-1]:
        inside = inside[step]
    if value is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return request


def main() -> None:
    """Fails when a sound request is refused, or a broken one is not."""
    headers = {"x-api-key": "k", "anthropic-version": "v", "authorization": "Bearer k"}
    refused = 0
    for check, sound, list_of_broken in [
        (rules.anthropic, ANTHROPIC, BROKEN_ANTHROPIC),
        (rules.openai, OPENAI, BROKEN_OPENAI),
    ]:
        check(headers, copy.deepcopy(sound))
        for path, value in list_of_broken:
            try:
                check(headers, broken(sound, path, value))
            except rules.Refused:
                refused += 1
                continue
            raise SystemExit(f"{check.__name__}: {path} = {value} is not refused")
    print(f"{refused} broken requests refused")


if __name__ == "__main__":
    main()
