"""Measures the CPU time of a turn that appends the whole list: python lists.py CONVERSATION

As `lists.mjs`, in Python.
"""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host-examples/python/src"))

import lcm_engine

MESSAGES = 400
TURNS = 60

lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
messages = [json.loads(line) for line in lines]
costs, first = [], MESSAGES - TURNS
with lcm_engine.open(":memory:") as lcm:
    chat = lcm.conversation("c", budget=200_000, dialect="anthropic")
    chat.append(messages[:first])
    for turn in range(1, TURNS + 1):
        begin = time.process_time()
        receipt = chat.append(messages[: first + 2 * turn])
        costs.append((time.process_time() - begin) * 1e3)
        if receipt["ingested"] != 2:
            raise SystemExit(f"{receipt['ingested']} messages were stored, not 2")
print(f"{statistics.median(costs):.1f}")
