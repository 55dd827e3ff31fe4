"""The texts of an integration: 60 turns of the agent loop's script, with short repetitions.

Every tenth turn the user says `yes` and the model `Done.`, to test that equal messages are stored
each time. Run as a program, prints the input of a program: {"said": [...], "files": {...}}.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agent_loop"))
import script

TURNS = 60
RESTART = 30
"""Number of turns of the first process; a second process makes the rest."""
BUDGET = 6_000
"""Budget in tokens of every context."""


def is_short(turn: int) -> bool:
    """Returns whether a turn repeats the texts of the tenth turn before."""
    return turn % 10 == 9


SAID = ["yes" if is_short(turn) else script.said(turn) for turn in range(TURNS)]


def answer(turn: int, step: int, results: list[str]) -> tuple[str | None, list]:
    """Returns the model's answer: a text or `None`, and tool calls as (name, arguments)."""
    return ("Done.", []) if is_short(turn) else script.answer(turn, step, results)


if __name__ == "__main__":
    files = {path: text for path, text in script.files().items() if path != script.LOG}
    print(json.dumps({"said": SAID, "files": files}))
