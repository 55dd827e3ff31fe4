"""Every verb has an example in its docstring, and each example runs unchanged."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import unittest
from typing import Any

import lcm_engine
from lcm_engine.verb import Stream, Verb
from lcm_engine.verbs import Verbs

from .support import NOW, ROOT

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(prose: str | None) -> list[str]:
    """Returns the programs in a docstring."""
    return EXAMPLE.findall(inspect.cleandoc(prose or ""))


def verbs() -> dict[str, Any]:
    """Returns every verb by its name."""
    described = {name: inspect.getattr_static(Verbs, name) for name in dir(Verbs)}
    return {name: one for name, one in described.items() if isinstance(one, (Verb, Stream))}


def run(program: str, lines: list[str]) -> None:
    """Runs a program with `lcm`, an open store that has the conversation `chat`."""
    with lcm_engine.open(clock=lambda: NOW, environment={}) as lcm:
        lcm.append("chat", lines)
        lcm.compact("chat", 3_000)
        exec(program, {"lcm": lcm, "json": json, "LcmError": lcm_engine.LcmError})


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        text = (ROOT / "host-examples" / "walkthrough.jsonl").read_text(encoding="utf-8")
        self.lines = text.rstrip("\n").split("\n")

    def test_every_verb_has_an_example_that_runs(self) -> None:
        found = verbs()
        self.assertGreater(len(found), 30)
        for name, verb in found.items():
            with self.subTest(verb=name):
                programs = examples(verb.described.__doc__)
                self.assertTrue(programs, f"`{name}` has no example")
                for program in programs:
                    run(program, self.lines)

    def test_a_missing_or_a_wrong_example_is_noticed(self) -> None:
        self.assertEqual(examples("Has none."), [])
        wrong = textwrap.indent('Checks.\n\n```python\nassert lcm.version() == ""\n```\n', "    ")
        (program,) = examples(wrong)
        with self.assertRaises(AssertionError):
            run(program, self.lines)


if __name__ == "__main__":
    unittest.main()
