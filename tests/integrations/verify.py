"""One line about an integration: verify.py PORT RUN STORE TENTHS_OF_SECONDS

Asks the engine what it stored, and fails unless it is what was said: every text and every id of a
call as often and in the order in which it was said, and no message beside.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import lcm_engine
import play
from provider import leaves

port, run, store, tenths = sys.argv[1:]
with urlopen(f"http://127.0.0.1:{port}/{run}/report") as answer:
    did = json.load(answer)
faults: list[str] = did["refused"][:3]


def require(holds: Any, fault: str) -> None:
    """Notes what does not hold."""
    if not holds:
        faults.append(fault)


def compare(kind: str, said: list[str], stored: list[str]) -> None:
    """Notes the first difference of two lists."""
    pairs = zip([*said, None], [*stored, None], strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if at is not None:
        faults.append(
            f"{len(said)} {kind} said, {len(stored)} stored; first difference at {at}:"
            f" said {said[at : at + 1]}, stored {stored[at : at + 1]}"
        )


def known(texts: list[str], raw: str) -> Iterator[str]:
    """Those of some texts that a stored message has."""
    wanted = set(texts)
    yield from (leaf for leaf in leaves(json.loads(raw)) if leaf in wanted)


with lcm_engine.open(store) as lcm:
    messages = lcm.messages("chat")
    compare("texts", did["texts"], [one for m in messages for one in known(did["texts"], m)])
    compare("ids", did["ids"], [one for m in messages for one in dict.fromkeys(known(did["ids"], m))])
    for message in messages:
        said = any(known(did["texts"] + did["ids"], message))
        require(said or '"reasoning"' in message, f"nobody said {message[:300]}")
    checked, status = lcm.check("chat"), lcm.status("chat")
    require(checked["ok"], f"check: {checked}")
require(did["turn"] == play.TURNS, f"{did['turn']} turns of {play.TURNS} were led")
summaries = sum(level["count"] for level in status["summaries"])
require(summaries and did["summarised"] >= play.TURNS // 3, "no summary was sent")
print(
    f"{run:20} {int(tenths) / 10:5.1f} s  {did['turn']} turns, {len(messages)} messages stored,"
    f" each once, {summaries} summaries, at most {did['characters_most']} characters"
    if not faults
    else f"{run:20} failed"
)
sys.exit("\n".join(faults) or 0)
