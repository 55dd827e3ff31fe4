"""Runs the program `lcm` over real conversations and checks properties of every result.

    python tests/acceptance.py DATA [--lcm PROGRAM] [--jobs N] [--budget N]...

For every *.jsonl file below the folder DATA and each budget: ingest, compact without a model,
assemble. Then these properties must hold:

- the context is within the budget, and no warning says that its tail exceeds the budget;
- a conversation of more than three quarters of the budget has a summary;
- the original messages come back byte for byte, and `check` finds nothing;
- the items of the context, expanded, contain every message exactly once; no item is left out.

Needs only the standard library. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = (16_000, 3_000)
NOW = 1_700_000_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PAGES_MAX = 100_000


class Failed(Exception):
    """A command that failed or printed an unexpected result."""


@dataclass
class Case:
    """One file at one budget, with its result."""

    path: Path
    budget: int
    messages: int = 0
    raw_tokens: int = 0
    tokens: int = 0
    summaries: int = 0
    passes: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    def require(self, holds: bool, finding: str) -> None:
        """Adds a finding unless `holds`."""
        if not holds:
            self.findings.append(finding)


class Lcm:
    """The program `lcm` with a separate store."""

    def __init__(self, program: Path, store: Path) -> None:
        self._command = [str(program), "--store", str(store), "--now", str(NOW)]

    def run(self, *arguments: str) -> bytes:
        """Runs a command that must succeed; returns its standard output."""
        done = subprocess.run([*self._command, *arguments], capture_output=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise Failed(f"`{arguments[0]}` ended with {done.returncode}: {said[:300]}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Runs a command with `--json`; returns its JSON document."""
        output = self.run(*arguments, "--json")
        try:
            return json.loads(output)
        except ValueError as error:
            raise Failed(f"`{arguments[0]} --json` printed no JSON: {output[:200]!r}") from error


def normalised(content: bytes) -> list[bytes]:
    """Returns the messages of a file, without byte-order mark, blank lines and final `\\r`."""
    lines = content.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    lines = [line.rstrip(b"\r") for line in lines]
    return [line for line in lines if line.strip()]


def expanded(lcm: Lcm, summary: str) -> list[tuple[int, bytes]]:
    """Returns seq and text of every message below a summary, from all pages."""
    found: list[tuple[int, bytes]] = []
    rest: list[str] = []
    for _ in range(PAGES_MAX):
        page = lcm.json("expand", summary, "--depth-max", "99", "--include-messages", *rest)
        found += [(one["seq"], one["raw"].encode("utf-8")) for one in page["messages"]]
        if not page["cursor"]:
            return found
        rest = ["--cursor", str(page["cursor"])]
    raise Failed(f"`expand {summary}` has no last page")


def check_items(case: Case, lcm: Lcm, items: list[Any], lines: list[bytes]) -> None:
    """Checks that every message is in exactly one item, and that every item is included."""
    seqs: list[int] = []
    for item in items:
        case.require(item["included"], f"`{item['id']}` is left out: {item['why']}")
        span = list(range(item["seq_first"], item["seq_last"] + 1))
        if item["kind"] == "message":
            seqs += span
            continue
        case.require(item["kind"] in ("leaf", "condensed"), f"kind `{item['kind']}`")
        messages = expanded(lcm, item["id"])
        below = [seq for seq, _ in messages]
        case.require(sorted(below) == span, f"`{item['id']}` expands to other messages")
        wrong = [seq for seq, raw in messages if lines[seq - 1 : seq] != [raw]]
        case.require(not wrong, f"`{item['id']}` expands to other bytes at seq {wrong[:3]}")
        seqs += below
    everything = list(range(1, len(lines) + 1))
    case.require(sorted(seqs) == everything, "the items are not every message exactly once")


def examine(case: Case, lcm: Lcm) -> None:
    """Runs the commands of one case and adds findings to it."""
    lines = normalised(case.path.read_bytes())
    case.messages = len(lines)
    receipt = lcm.json("ingest", str(case.path))
    case.require(receipt["ingested"] == len(lines), f"ingested {receipt['ingested']} messages")
    compacted = lcm.json("compact", "--budget", str(case.budget))
    case.passes = len(compacted["passes"])
    context = lcm.json("assemble", "--budget", str(case.budget), "--explain")
    case.tokens, case.summaries = context["tokens"], context["summaries"]
    case.raw_tokens = lcm.json("status")["message_tokens"]

    case.require(case.tokens <= case.budget, f"{case.tokens} tokens are over the budget")
    over = [line for line in context["warnings"] if "tail-over-budget" in line]
    case.require(not over, f"warning: {over[:1]}")
    if case.raw_tokens * 4 > case.budget * 3:
        case.require(case.summaries > 0, "there is no summary")
    raw = lcm.run("messages", "--raw")
    same = raw == b"".join(line + b"\n" for line in lines)
    case.require(same, "the messages do not come back byte for byte")
    case.require(lcm.json("check")["ok"] is True, "`check` is not ok")
    check_items(case, lcm, context["items"], lines)


def run_case(case: Case, program: Path) -> Case:
    """Examines one case with a temporary store."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            examine(case, Lcm(program, Path(folder) / "x.lcm.db"))
        except (Failed, KeyError, TypeError, IndexError) as error:
            case.findings.append(f"{type(error).__name__}: {error}")
    case.seconds = time.monotonic() - started
    return case


def print_row(case: Case, name: str) -> None:
    """Prints the line of a case in the table, and its findings below."""
    print(
        f"{name:48.48} {case.budget:>7} {case.messages:>8} {case.raw_tokens:>8} {case.tokens:>7} "
        f"{case.summaries:>9} {case.passes:>6} {case.seconds:>7.1f}  "
        f"{'FAILED' if case.findings else 'ok'}"
    )
    for finding in case.findings[:10]:
        print(f"    {finding}")
    sys.stdout.flush()


def main() -> int:
    """Runs the program; returns the exit code, 0 if there is no finding."""
    parser = argparse.ArgumentParser(description="checks `lcm` over real conversations")
    parser.add_argument("data", type=Path)
    parser.add_argument("--lcm", type=Path, default=ROOT / "dist" / "lcm")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=int, action="append")
    options = parser.parse_args()
    files = sorted(options.data.rglob("*.jsonl"))
    cases = [Case(path, budget) for path in files for budget in options.budget or BUDGETS]
    print(
        f"{'file':48} {'budget':>7} {'messages':>8} {'raw':>8} {'tokens':>7} {'summaries':>9} "
        f"{'passes':>6} {'seconds':>7}"
    )
    program = options.lcm.resolve()
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for case in pool.map(lambda case: run_case(case, program), cases):
            print_row(case, str(case.path.relative_to(options.data)))
    failed = sum(bool(case.findings) for case in cases)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
