"""Measures the CPU time of a turn that hands over the whole list: python lists.py CONVERSATION

As `lists.mjs`, in Python.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host-examples/python/src"))

import lcm_engine

MESSAGES = 400
TURNS = 60
List = list[dict[str, Any]]


def marked(messages: List) -> List:
    """Returns a list whose newest message has a mark of the prompt cache."""
    content = messages[-1]["content"]
    block = {"type": "text", "text": content} if isinstance(content, str) else content[0]
    block = block | {"cache_control": {"type": "ephemeral"}}
    return [*messages[:-1], messages[-1] | {"content": [block]}]


def measure(messages: List, write: Callable[[List], List]) -> float:
    """Returns the CPU milliseconds of a turn in the middle; `write` makes the list of a turn."""
    costs, first = [], MESSAGES - TURNS
    with lcm_engine.open(":memory:") as lcm:
        chat = lcm.conversation("c", budget=200_000, dialect="anthropic")
        chat.append(messages[:first])
        for turn in range(1, TURNS + 1):
            given = write(messages[: first + 2 * turn])
            begin = time.process_time()
            receipt = chat.append(given)
            costs.append((time.process_time() - begin) * 1e3)
            if receipt["ingested"] != 2:
                raise SystemExit(f"{receipt['ingested']} messages were stored, not 2")
    return statistics.median(costs)


lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
conversation = [json.loads(line) for line in lines]
figures = {"grown": measure(conversation, list), "marked": measure(conversation, marked)}
print(json.dumps(figures))
