"""Prints a table row for `run`, from figures on standard input: row.py STATE HOST TURN ASSEMBLE

Fails if a turn (append, evaluate, assemble) takes longer than TURN milliseconds, without the time
of the append's commit, which depends on the disk. Also fails if an assembly after a new message
takes longer than ASSEMBLE milliseconds or more than 3 reads, or a repeated one more than 1 read.
"""

import json
import sys

state, host, turn_ms, assemble_ms = sys.argv[1:]
of = json.load(sys.stdin)
# A Durable Object commits after its answer, so this host reports no commit time.
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
