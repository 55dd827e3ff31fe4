"""Judges conversations whose model was broken, called lives: judge.py FILE

Reads the output of `lives.mjs` and `lives.py`, and prints a line for each mode. Fails unless every
life lost no message, asked its model at most once per pause, and has no provisional summary left.
If the model failed, no summary made by extraction may be left. After answers that were rejected,
extracts are final, until `resummarize` asks for new summaries.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import talk
from modes import FORM_MARKS, MODES

PAUSES = [5, 10, 20, 30]
"""Minutes without a request after each failure in a row; a turn takes a minute."""
LIVES = {
    (host, interface)
    for host in ("node", "python", "asyncio")
    for interface in ("chat", "responses", "messages")
}
SHORT = 20
"""Greatest length of a text that another text may contain by chance, in characters."""


def find_early(asked: list[list[int]]) -> Iterator[str]:
    """Yields faults: turns that asked a model during its pause."""
    turns = [turn for turn, _ in asked]
    for at, (one, other) in enumerate(zip(turns, turns[1:], strict=False)):
        pause = PAUSES[min(at, len(PAUSES) - 1)]
        if other - one < pause:
            yield f"turn {other} asked a model that failed in turn {one}, and rests {pause} minutes"


def has_text(summary: str, said: str) -> bool:
    """Returns whether a summary contains the text of a broken model."""
    return summary.strip() == said.strip() or (len(said) > SHORT and said.strip() in summary)


def find_faults(life: dict[str, Any]) -> Iterator[str]:
    """Yields the faults of a life."""
    mode = MODES[life["mode"]]
    yield from life["refused"]
    if life["stored"] != talk.SAID:
        yield f"{len(life['stored'])} messages stored, {len(talk.SAID)} said"
    if life["tokens"] > talk.BUDGET:
        yield f"a context has {life['tokens']} tokens"
    if not life["asked"]:
        yield "no turn asked the model"
    if life["codes"] != [mode.code]:
        yield f"the engine saw {life['codes']}, not {mode.code}"
    if mode.rule not in [*life["rules"], None]:
        yield f"the engine rejected by {life['rules']}, not by {mode.rule}"
    if life["failures"] != ([] if mode.code is None else [mode.code]):
        yield f"turns reported {life['failures']}"
    if mode.has_pause:
        yield from find_early(life["asked"])
    if mode.name != "cut off" and not (life["provisional"] and life["owes"]):
        yield f"{life['provisional']} provisional summaries while the model was broken"
    if life["still_owes"] or life["left"]:
        yield f"{life['left']} provisional summaries after {life['maintains']} times `maintain`"
    yield from find_poor(life["summaries"] if mode.has_pause else [], "after `maintain`")
    yield from find_poor(life["asked_for"], "after `resummarize`")
    for one in life["summaries"] + life["asked_for"]:
        if one["model"] != "offline" and any(mark in one["text"] for mark in FORM_MARKS):
            yield f"a summary has what was around an answer: {one['text'][:60]}"
    for text in [] if mode.is_kept else life["texts"]:
        if any(has_text(one["text"], text) for one in life["summaries"] + life["asked_for"]):
            yield f"a summary has what the broken model said: {text[:60]}"


def find_poor(summaries: list[dict[str, Any]], when: str) -> Iterator[str]:
    """Yields a fault if a summary is left that no model wrote, or that is provisional."""
    poor = [one for one in summaries if one["model"] == "offline" or one["provisional"]]
    if poor:
        yield f"{len(poor)} of {len(summaries)} summaries are poor {when}"


def find_missing(lives: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the combinations of host and API without a life."""
    for mode in {life["mode"] for life in lives}:
        led = {(life["host"], life["interface"]) for life in lives if life["mode"] == mode}
        if led != LIVES:
            yield f"{mode}: no lives of {sorted(LIVES - led)}"


def describe(name: str, lives: list[dict[str, Any]]) -> str:
    """Returns a line about the lives in one mode."""
    mode = MODES[name]
    asked = [len(life["asked"]) for life in lives]
    most = max(requests for life in lives for _, requests in life["asked"])
    extracts = [
        sum(one["model"] == "offline" for one in life["summaries"]) for life in lives
    ]
    return (
        f"{name:28} {mode.code or mode.rule:18} {min(asked)} to {max(asked)} turns asked, "
        f"at most {most} requests; {max(extracts)} extracts are final"
    )


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    lives = [json.loads(line) for line in text.splitlines()]
    faults = list(find_missing(lives))
    for name in dict.fromkeys(life["mode"] for life in lives):
        print(describe(name, [life for life in lives if life["mode"] == name]))
    for life in lives:
        where = f"{life['host']}, {life['interface']}, {life['mode']}"
        faults += [f"{where}: {fault}" for fault in find_faults(life)]
    print("\n".join([*faults, f"{len(lives)} lives, {len(faults)} faults"]))
    sys.exit(1 if faults or not lives else 0)
