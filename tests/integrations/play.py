"""What is said in an integration: 60 turns of the script of the agent loop, with short repetitions.

Every tenth turn the user says `yes` and the model `Done.`, so that equal messages are stored as
often as they were said. Run alone, prints what a program needs: {"said": [...], "files": {...}}.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agent_loop"))
import script

TURNS = 60
RESTART = 30
"""Turns of the first process; a second process continues."""
BUDGET = 6_000
"""Tokens of the context that each program asks for."""


def is_short(turn: int) -> bool:
    """Whether a turn repeats what was said ten turns before."""
    return turn % 10 == 9


SAID = ["yes" if is_short(turn) else script.said(turn) for turn in range(TURNS)]


def answer(turn: int, step: int, results: list[str]) -> tuple[str | None, list]:
    """Returns what the model says: a text or `None`, and calls as (name, arguments)."""
    return ("Done.", []) if is_short(turn) else script.answer(turn, step, results)


if __name__ == "__main__":
    files = {path: text for path, text in script.files().items() if path != script.LOG}
    print(json.dumps({"said": SAID, "files": files}))
