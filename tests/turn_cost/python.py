"""Measures the cost of one more message in Python: python python.py STORE CONVERSATION

As `measure` of `node.mjs`: appends lines of the file CONVERSATION that are not stored yet, one by
one, and assembles twice after each. Prints the figures as a line of JSON.
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
from lcm_engine.stores.sqlite import SqliteStore

CONVERSATION = "c"
BUDGET = 128_000
TIMES = 31


class Counting:
    """A store that counts its reads and measures the time of its last commit."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.reads = 0
        self.commit_ms = 0.0
        self.close = store.close

    def commit(self, *writes: Any) -> None:
        begin = time.perf_counter()
        self.store.commit(*writes)
        self.commit_ms = (time.perf_counter() - begin) * 1e3

    def get_many(self, *keys: Any) -> Any:
        self.reads += 1
        return self.store.get_many(*keys)

    def scan(self, *range: Any) -> Any:
        self.reads += 1
        return self.store.scan(*range)


def timed(store: Counting, call: Callable[[], Any]) -> tuple[Any, float, int]:
    """Makes a call; returns its result, its milliseconds and its number of reads."""
    store.reads = 0
    begin = time.perf_counter()
    found = call()
    return found, (time.perf_counter() - begin) * 1e3, store.reads


def measure(lcm: lcm_engine.Lcm, store: Counting, lines: list[str]) -> dict[str, Any]:
    def assemble(previous: str | None) -> Any:
        return lcm.assemble(CONVERSATION, BUDGET, dialect="anthropic", previous=previous)

    def turn(line: str, previous: str) -> Any:
        lcm.append(CONVERSATION, [line], dialect="anthropic", append_mode="new")
        lcm.evaluate(CONVERSATION, BUDGET)
        return timed(store, lambda: assemble(previous))

    stored = lcm.status(CONVERSATION)["messages"]
    token = assemble(None)["prefix"]["token"]
    turns, commits, after, again = [], [], [], []
    for line in lines[stored : stored + TIMES]:
        (context, *cost), *of_turn = timed(store, lambda: turn(line, token))
        turns.append(of_turn)
        commits.append(store.commit_ms)
        after.append(cost)
        token = context["prefix"]["token"]
        same, *cost = timed(store, lambda: assemble(token))
        again.append(cost)
        assert same["prefix"]["sha256"] == context["prefix"]["sha256"], "not the same context"
    assert len(turns) == TIMES, "too few messages are left"
    return {
        "turn_ms": statistics.median(ms for ms, _ in turns),
        "commit_ms": statistics.median(commits),
        "after_ms": statistics.median(ms for ms, _ in after),
        "again_ms": statistics.median(ms for ms, _ in again),
        "after_reads": max(reads for _, reads in after),
        "again_reads": max(reads for _, reads in again),
    }


store = Counting(SqliteStore(sys.argv[1]))
lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
with lcm_engine.open(store) as lcm:
    print(json.dumps(measure(lcm, store, lines)))
