"""One row of the table of `run`, of figures on standard input: row.py STATE HOST BOUND_MS [TURN_MS]

Fails when assembling after a message takes longer than the bound or more than 3 reads, the same
context again more than one, or the whole turn (append, evaluate, assemble) longer than its bound.
"""

import json
import sys

state, host, bound_ms, *turn_bound_ms = sys.argv[1:]
of = json.load(sys.stdin)
print(
    f"{state:9} | {host:6} | {of['turn_ms']:7.2f} | {of['after_ms']:7.2f} {of['after_reads']} |"
    f" {of['again_ms']:7.2f} {of['again_reads']} | {' '.join([bound_ms, *turn_bound_ms])}"
)
held = of["after_ms"] <= float(bound_ms) and of["after_reads"] <= 3 and of["again_reads"] == 1
held = held and all(of["turn_ms"] <= float(bound) for bound in turn_bound_ms)
sys.exit(0 if held else f"{state}, {host}: over its bound")
