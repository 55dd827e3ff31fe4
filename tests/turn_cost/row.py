"""One row of the table of `run`, of the figures on standard input: row.py STATE HOST TURN ASSEMBLE

Fails when a turn (append, evaluate, assemble) takes longer than TURN milliseconds beside the commit
of its append, which is the disk's, assembling after a message longer than ASSEMBLE or more than 3
reads, or the same context again more than one.
"""

import json
import sys

state, host, turn_ms, assemble_ms = sys.argv[1:]
of = json.load(sys.stdin)
# An object of workerd commits behind its answer.
of.setdefault("commit_ms", 0.0)
print(
    f"{state:9} | {host:8} | {of['turn_ms']:7.2f} | {of['commit_ms']:7.2f} |"
    f" {of['after_ms']:7.2f} {of['after_reads']} |"
    f" {of['again_ms']:7.2f} {of['again_reads']} | {turn_ms}, {assemble_ms}"
)
held = (
    of["turn_ms"] - of["commit_ms"] <= float(turn_ms)
    and of["after_ms"] <= float(assemble_ms)
    and of["after_reads"] <= 3
    and of["again_reads"] == 1
)
sys.exit(0 if held else f"{state}, {host}: over its bound")
