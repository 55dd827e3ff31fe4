"""The walkthrough that every host has: python walkthrough.py [--store PATH]

Stores a conversation, compacts it, assembles a context, expands a summary and reads every message
back. The clock is fixed and summaries are made without a model, so that every host ends with the
same store.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "src"))

import lcm_engine  # noqa: E402

CONVERSATION = "walkthrough"
NOW = 1_700_000_000_000
BATCH_MESSAGES = 16
BUDGET_TOKENS = 3_000


def walkthrough(lcm: lcm_engine.Lcm, lines: list[str]) -> tuple[list[str], bool]:
    """Runs with an empty store; returns lines to print, and whether every message came back."""
    said = []
    for start in range(0, len(lines), BATCH_MESSAGES):
        receipt = lcm.append(CONVERSATION, lines[start : start + BATCH_MESSAGES])
    said.append(f"stored {receipt['seq_last']} messages, {receipt['context_tokens']} tokens")

    done = lcm.compact(CONVERSATION, BUDGET_TOKENS)
    passes, before, after = done["passes"], done["tokens_before"], done["tokens_after"]
    said.append(f"compacted: {done['status']}, {len(passes)} summaries, {before} -> {after}")

    context = lcm.assemble(CONVERSATION, BUDGET_TOKENS, explain=True)
    count, summaries = len(context["messages"]), context["summaries"]
    said.append(f"assembled {count} messages, {summaries} summaries, {context['tokens']} tokens")

    summary = next(item for item in context["items"] if item["kind"] != "message")
    known = lcm.describe(CONVERSATION, summary["id"])
    expanded = lcm.expand(CONVERSATION, summary["id"], depth_max=99, include_messages=True)
    span = f"messages {known['seq_first']} to {known['seq_last']}"
    said.append(f"expanded {known['kind']} {summary['id']}: {span}")
    said.append(f"its first message begins {expanded['messages'][0]['raw'][:60]}")

    equal = lcm.messages(CONVERSATION) == lines
    said.append(f"store digest: {lcm.digest()}")
    said.append(f"every message came back byte for byte: {'yes' if equal else 'no'}")
    return said, equal


def main() -> int:
    """Runs the program; returns the exit code, 0 if every message came back."""
    parser = argparse.ArgumentParser(description="runs the walkthrough over an empty store")
    parser.add_argument("--store", default="memory:", help="a new *.lcm.db file, or memory:")
    store = parser.parse_args().store
    text = (HERE.parent / "walkthrough.jsonl").read_text(encoding="utf-8")
    try:
        with lcm_engine.open(store, clock=lambda: NOW, environment={}) as lcm:
            said, equal = walkthrough(lcm, text.rstrip("\n").split("\n"))
    except lcm_engine.LcmError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(said))
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
