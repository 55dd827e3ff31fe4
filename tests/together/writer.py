"""Writes to a store that other processes write to as well: python writer.py STORE FIRST

FIRST is the number of its first message. `writer.mjs` describes the input and the output.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import lcm_engine
from message import message

BUDGET = 6_000

met = {"conflicts": 0, "unavailable": 0}
next_number = int(sys.argv[2])


def certainly(call: Callable[[], Any]) -> Any:
    """Repeats a call after conflicts; an append whose messages have ids may be repeated."""
    while True:
        try:
            return call()
        except lcm_engine.LcmError as error:
            if error.code == "conflict":
                met["conflicts"] += 1
            elif error.code == "store-unavailable":
                met["unavailable"] += 1
            else:
                raise


def write(lcm: lcm_engine.Lcm, count: int) -> list[str]:
    """Appends `count` messages, sometimes compacts, and assembles; returns the texts."""
    global next_number
    texts = [message("python", next_number + at) for at in range(count)]
    next_number += count
    certainly(lambda: lcm.append("together", texts, append_mode="new"))
    if next_number % 4 == 0:
        certainly(lambda: lcm.compact("together", BUDGET))
    context = certainly(lambda: lcm.assemble("together", BUDGET))
    assert context["tokens"] <= BUDGET, context["tokens"]
    return texts


with lcm_engine.open(sys.argv[1]) as lcm:
    for line in sys.stdin:
        verb, *number = line.split()
        if verb == "digest":
            print(json.dumps({"texts": [], "met": met, "digest": lcm.digest()}), flush=True)
            continue
        end = time.monotonic() + float(number[0])
        texts = write(lcm, next_number % 3 + 1)
        while verb == "for" and time.monotonic() < end:
            texts += write(lcm, next_number % 3 + 1)
        print(json.dumps({"texts": texts, "met": met}), flush=True)
