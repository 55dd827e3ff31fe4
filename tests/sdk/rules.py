"""Checks contexts by the rules that the providers document for arrays of messages.

Independent of the engine: pairing of calls and results, roles, signatures, members, ids and media,
as the APIs answer them with status 400. Reads JSON lines {"dialect", "messages"} as check.py does
and prints the refused arrays by rule. First refuses every array of broken.py, to show that each
rule can fail. Run by tests/sdk/run.
"""

import json
import sys
from collections import Counter

import rules_anthropic
import rules_chat
import rules_gemini
import rules_responses
from broken import ACCEPTED, BROKEN
from shapes import Refusal

RULES = {
    "anthropic": rules_anthropic.check,
    "gemini": rules_gemini.check,
    "openai-chat": rules_chat.check,
    "openai-responses": rules_responses.check,
}


def find_refusal(dialect, messages):
    """Returns the rule that the array breaks and what breaks it, or nothing."""
    # No provider accepts an empty array: it is the context of a conversation without messages.
    if messages:
        try:
            RULES[dialect](messages)
        except Refusal as refusal:
            return refusal.args
    return None


def test_rules():
    """Checks that the rules refuse each broken array for its reason, and accept the others."""
    for dialect, kind, messages in BROKEN:
        refusal = find_refusal(dialect, messages)
        if not refusal or kind not in refusal[0]:
            sys.exit(f"{dialect}: {kind!r} expected, got {refusal} for {json.dumps(messages)}")
    for dialect, messages in ACCEPTED:
        if refusal := find_refusal(dialect, messages):
            sys.exit(f"{dialect}: {refusal} for {json.dumps(messages)}")


def main(path):
    test_rules()
    passed, refused, shown = Counter(), Counter(), {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            context = json.loads(line)
            dialect = context["dialect"]
            refusal = find_refusal(dialect, context["messages"])
            if not refusal:
                passed[dialect] += 1
                continue
            kind = f"{dialect}: {refusal[0]}"
            refused[kind] += 1
            smallest = shown.get(kind)
            if not smallest or len(line) < smallest[0]:
                shown[kind] = len(line), number, json.dumps(refusal[1])[:400]
    for kind, count in refused.most_common():
        _, number, detail = shown[kind]
        print(f"{count} refused, {kind}; the shortest is line {number}: {detail}")
    print(", ".join(f"{dialect} {count}" for dialect, count in sorted(passed.items())))
    print(f"{passed.total()} passed, {refused.total()} refused, {len(BROKEN)} broken refused")
    sys.exit(bool(refused) or not passed)


if __name__ == "__main__":
    main(sys.argv[1])
