"""Parses contexts with the types of the providers' own packages.

Reads JSON lines {"dialect", "messages"} from a file, as the test
`a_sample_of_contexts_is_written_down` writes them, and fails on the first arrays that a package
does not accept: unknown types, unknown members and missing members count. Run by tests/sdk/run.
"""

import json
import sys
import typing
from collections import Counter

# The packages declare lists as iterables, whose elements pydantic would validate only on iteration.
typing.Iterable = typing.List

from typing_extensions import is_typeddict  # noqa: E402
import anthropic.types  # noqa: E402
import google.genai.types  # noqa: E402
import openai.types.chat  # noqa: E402
import openai.types.responses  # noqa: E402
from pydantic import ConfigDict, TypeAdapter, ValidationError  # noqa: E402

SHOWN_MAX = 10


def forbid_unknown_members():
    """Makes every undeclared member an error, as providers do."""
    strict = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
    for name, module in list(sys.modules.items()):
        if name.startswith(("anthropic.types", "openai.types")):
            for kind in list(vars(module).values()):
                if is_typeddict(kind):
                    kind.__pydantic_config__ = strict


def checks():
    """Returns for each dialect a function that raises if messages do not have its types."""
    forbid_unknown_members()
    chat = openai.types.chat.ChatCompletionMessageParam
    typed = {
        "anthropic": typing.List[anthropic.types.MessageParam],
        "openai-chat": typing.List[chat],
        "openai-responses": openai.types.responses.ResponseInputParam,
    }
    found = {name: TypeAdapter(kind).validate_python for name, kind in typed.items()}
    gemini = TypeAdapter(typing.List[google.genai.types.Content])
    # Only the JSON form has bytes as base64, so the messages are validated as JSON text.
    found["gemini"] = lambda messages: gemini.validate_json(json.dumps(messages))
    return found


# Members of assistant messages that only other providers of the dialect know and get back.
OF_OTHERS = {"openai-chat": {"reasoning_content"}}

# One array for each dialect that its package must refuse, to show that the check can fail.
REFUSED = {
    "anthropic": [{"role": "user", "content": [{"type": "novel"}]}],
    "openai-chat": [{"role": "user", "content": "q", "timestamp": 5}],
    "openai-responses": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}],
    "gemini": [{"role": "user", "parts": [{"ofTomorrow": {}}]}],
}


def nearest(error):
    """Returns the errors for the type that fits best, of all types that an element may have."""
    branches = {}
    for one in error.errors(include_url=False):
        loc = one["loc"]
        branches.setdefault(loc[:2], []).append(
            ".".join(str(step) for step in loc) + ": " + one["msg"] + f" ({one['input']!r:.80})"
        )
    return "; ".join(min(branches.values(), key=len)[:4])


def main(path):
    check = checks()
    for dialect, messages in REFUSED.items():
        try:
            check[dialect](messages)
        except ValidationError:
            continue
        sys.exit(f"{dialect}: the check takes {messages}")
    parsed, failed = Counter(), 0
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            context = json.loads(line)
            for message in context["messages"]:
                for key in OF_OTHERS.get(context["dialect"], ()):
                    message.pop(key, None)
            try:
                check[context["dialect"]](context["messages"])
                parsed[context["dialect"]] += 1
            except ValidationError as error:
                failed += 1
                if failed <= SHOWN_MAX:
                    print(f"line {number}, {context['dialect']}: {nearest(error)}")
    print(", ".join(f"{dialect} {count}" for dialect, count in sorted(parsed.items())))
    print(f"{sum(parsed.values())} passed, {failed} failed")
    sys.exit(failed > 0 or not parsed)


if __name__ == "__main__":
    main(sys.argv[1])
