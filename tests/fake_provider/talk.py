"""The messages of a conversation whose model is broken, and the budget of its context.

Import this module first: it adds the modules of the integrations and the agent loop to the path.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations"))
import play  # noqa: F401  it finds the modules of the agent loop

TURNS = 40
BUDGET = 2_500
"""Budget in tokens, with which compaction begins after a quarter of the turns."""
WORDS = ["garden", "river", "market", "letter", "window", "harvest", "song"]


def said(at: int) -> str:
    """Returns the text of a message, of about 100 tokens."""
    words = (WORDS[(number * (at + 1) + number) % len(WORDS)] for number in range(60))
    return f"{at} garden river {' '.join(words)}"


SAID = [said(at) for at in range(2 * TURNS - 1)]
"""All messages in turn: of the user, of the model, and so on; the last is of the user."""
