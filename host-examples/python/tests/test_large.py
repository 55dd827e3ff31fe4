"""A message of 30 MB: uploaded in bounded pieces, stored unchanged, shown as a reference."""

from __future__ import annotations

import json
import re
import unittest

import lcm_engine
from lcm_engine import LcmError
from lcm_engine.stores import MemoryStore

CALL_BYTES_MAX = 1 << 20
LINE = "a row of output with some words in it\n"


class Measured(MemoryStore):
    """A store that records the most bytes of values that one of its calls read or wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.most_bytes = 0
        self.commits = 0

    def get_many(self, keys):
        values = super().get_many(keys)
        self.most_bytes = max(self.most_bytes, sum(len(value or b"") for value in values))
        return values

    def commit(self, guards, puts):
        moved = sum(len(value or b"") for _, value in [*guards, *puts])
        self.most_bytes = max(self.most_bytes, moved)
        self.commits += 1
        super().commit(guards, puts)


def result(count: int) -> str:
    """Returns a tool result of about `count` bytes."""
    output = LINE * -(-count // len(LINE))
    part = {"type": "tool_result", "call_id": "1", "output": output}
    return json.dumps({"role": "tool", "parts": [part]})


class Large(unittest.TestCase):
    def test_a_result_of_30_mb_comes_back_and_is_shown_as_a_reference(self):
        store = Measured()
        text = result(30_000_000)
        with lcm_engine.open(store, environment={}) as lcm:
            self.assertEqual(lcm.append("c", [text])["ingested"], 1)
            context = lcm.assemble("c", budget=10_000)
            self.assertLess(context["tokens"], 1_000)
            shown = context["messages"][0]["parts"][0]["output"]
            file_id = re.search("file_[0-9a-f]{16}", shown)[0]
            part = lcm.describe("c", file_id, {"start_line": 700_001, "end_line": 700_002})
            self.assertEqual(part["content"], LINE * 2)
            self.assertTrue(lcm.messages("c") == [text], "the message came back otherwise")
        self.assertLessEqual(store.most_bytes, CALL_BYTES_MAX)

    def test_more_than_32_mib_is_refused_and_nothing_is_written(self):
        store = Measured()
        with lcm_engine.open(store, environment={}) as lcm:
            with self.assertRaises(LcmError) as caught:
                lcm.append("c", [result(34_000_000)])
        self.assertEqual((caught.exception.code, store.commits), ("limit-exceeded", 0))


if __name__ == "__main__":
    unittest.main()
