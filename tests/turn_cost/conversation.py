"""Generates a conversation of an agent with tools: python conversation.py MESSAGES > FILE

One message per line, in the dialect `anthropic`, with about 50 tokens each. Of eight messages, one
is the user's, and six are three calls with their results. The same numbers give the same texts.
"""

import json
import sys

WORDS = ["store", "file", "line", "test", "value", "path"]


def words(number: int) -> str:
    """Returns a unique text of about 50 tokens."""
    said = (f"{WORDS[(number + at * 7) % 6]}{number * at % 97}" for at in range(24))
    return f"n{number} {' '.join(said)}"


def message(number: int) -> dict:
    """Returns the message with this number."""
    text = words(number)
    id = f"toolu_{number - number % 2:020}"
    match number % 8:
        case 0:
            return {"role": "user", "content": text}
        case 1:
            return {"role": "assistant", "content": text}
        case 2 | 4 | 6:
            edit = {"path": f"src/{number}.rs", "text": words(number + 1)}
            call = {"type": "tool_use", "id": id, "name": "edit", "input": edit}
            return {"role": "assistant", "content": [call]}
        case _:
            result = {"type": "tool_result", "tool_use_id": id, "content": text}
            return {"role": "user", "content": [result]}


for number in range(int(sys.argv[1])):
    print(json.dumps(message(number)))
