"""Prints one line about an integration: verify.py PORT RUN STORE TENTHS_OF_SECONDS

Fails unless the store has exactly the texts and call ids of the run, each as often and in the same
order, and no other message.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import play
from provider import list_texts


def find_said(said: list[str], message: str) -> list[str]:
    """Returns the texts in a stored message that are in `said`."""
    wanted = set(said)
    return [leaf for leaf in list_texts(json.loads(message)) if leaf in wanted]


def find_difference(kind: str, said: list[str], stored: list[str]) -> Iterator[str]:
    """Yields the first difference between two lists, or nothing."""
    pairs = zip([*said, None], [*stored, None], strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if at is not None:
        first = f"said {said[at : at + 1]}, stored {stored[at : at + 1]}"
        yield f"{len(said)} {kind} said, {len(stored)} stored; number {at}: {first}"


def find_faults(did: dict[str, Any], messages: list[str]) -> Iterator[str]:
    """Yields the faults of a run and of the messages that it stored."""
    yield from did["refused"]
    texts, ids = did["texts"], did["ids"]
    stored = [one for message in messages for one in find_said(texts, message)]
    yield from find_difference("texts", texts, stored)
    # A message may have one id under two names; a call and its result are two messages.
    stored = [one for message in messages for one in dict.fromkeys(find_said(ids, message))]
    yield from find_difference("ids", ids, stored)
    for message in messages:
        if not find_said(texts + ids, message) and json.loads(message).get("type") != "reasoning":
            yield f"nobody said {message[:300]}"
    if did["turn"] != play.TURNS:
        yield f"{did['turn']} turns of {play.TURNS} were led"
    if did["summarised"] < play.TURNS:
        yield f"{did['summarised']} requests had a summary"


def main() -> None:
    """Prints the line, and fails with the faults if there are any."""
    import lcm_engine

    port, run, store, tenths = sys.argv[1:]
    with urlopen(f"http://127.0.0.1:{port}/{run}/report") as answer:
        did = json.load(answer)
    with lcm_engine.open(store) as lcm:
        messages, checked, status = lcm.messages("chat"), lcm.check("chat"), lcm.status("chat")
        items = lcm.assemble("chat", play.BUDGET, dialect="lcm", explain=True)["items"]
    faults = list(find_faults(did, messages))
    if not checked["ok"]:
        faults.append(f"check: {checked}")
    summaries = sum(level["count"] for level in status["summaries"])
    faults += [f"set aside: {item}" for item in items if item["kind"] == "withdrawn"]
    print(
        f"{run:22} {int(tenths) / 10:5.1f} s  {did['turn']} turns,"
        f" {len(messages)} messages once each, {summaries} summaries,"
        f" at most {did['characters_most']} characters"
    )
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
