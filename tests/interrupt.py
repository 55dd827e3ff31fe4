"""Interrupts `lcm compact` at random moments; checks that it ends at once and loses nothing.

    python tests/interrupt.py [--lcm PROGRAM] [--moments N] [--seed N]

The model is a slow program, so that most moments are during a completion. After each SIGINT, `lcm`
must end with exit code 130 within two seconds, without a running child process. The store must be
consistent and have every message, byte for byte. Then `compact` without an interrupt must finish.
A moment counts as *between* if summaries were made before it. The last line is
`N passed, N failed`.
"""

from __future__ import annotations

import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kill import (
    Failed,
    Lcm,
    Scene,
    begin_store,
    check_partition,
    options_of,
    require,
    transcript,
)

MESSAGES = 400
BUDGET = 2_000
THINKS_SECONDS = 0.05
ENDS_SECONDS = 2.0
INTERRUPTED = 130
STARTED_SECONDS = 0.02
"""Least time before a signal: earlier the program may not have its signal handler yet."""
MODEL = """#!/bin/sh
cat >/dev/null
sleep {seconds}
echo '{{"text": "They spoke of rivers, stones, lamps and bridges."}}'
"""


def compact(model: Path) -> list[str]:
    """Returns the arguments of the command to interrupt."""
    arguments = ["compact", "--budget", str(BUDGET), "--llm", f"exec:{model}"]
    return [*arguments, "--retries", "0"]


def rehearse(scene: Scene, program: Path, folder: Path) -> None:
    """Runs the command without an interrupt, to measure its duration."""
    lcm = Lcm(program, begin_store(scene, folder))
    scene.revision_before = lcm.revision()
    started = time.monotonic()
    lcm.run(*scene.arguments)
    scene.high = time.monotonic() - started
    scene.revision_after = lcm.revision()
    commits = scene.revision_after - scene.revision_before
    require(commits >= 10, f"`compact` makes only {commits} commits")


def left_running(model: Path) -> bool:
    """Returns whether a process of the model still runs."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue  # It ended just now.
        if str(model).encode() in command and b"--llm" not in command:
            return True
    return False


def interrupt_once(
    scene: Scene, model: Path, program: Path, folder: Path, source: random.Random
) -> tuple[float, bool]:
    """Interrupts at one moment; returns the seconds until the end, and if it was *between*."""
    while True:
        lcm = Lcm(program, begin_store(scene, folder))
        delay = source.uniform(STARTED_SECONDS, scene.high * 0.9)
        running = lcm.begin(scene.arguments)
        try:
            code = running.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            break
        require(code == 0, f"`compact` ended with {code} before the interrupt")
        # The command ended before the signal: the machine was faster than in `rehearse`.
        scene.high = delay
    sent = time.monotonic()
    running.send_signal(signal.SIGINT)
    try:
        code = running.wait(timeout=10 * ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        raise Failed(f"`compact` did not end within {10 * ENDS_SECONDS} s") from None
    took = time.monotonic() - sent
    require(code == INTERRUPTED, f"`compact` ended with {code} after {delay:.3f} s")
    require(took < ENDS_SECONDS, f"`compact` took {took:.2f} s to end")
    require(not left_running(model), "the model is still running")
    lcm.check()
    require(lcm.raw() == scene.content, "messages were lost or doubled")
    check_partition(lcm, scene.content.count(b"\n"))
    made = lcm.revision() > scene.revision_before
    finished = lcm.json(*scene.arguments)
    require(finished["status"] in ("done", "nothing-to-do"), f"then it was {finished['status']}")
    require(finished["tokens_after"] <= BUDGET, f"then it had {finished['tokens_after']} tokens")
    lcm.check()
    require(lcm.raw() == scene.content, "messages were lost or doubled at the end")
    return took, made


def make_scene(program: Path, folder: Path, seed: int) -> tuple[Scene, Path]:
    """Returns a store with messages to compact, and the slow model."""
    model = folder / "slow-model"
    model.write_text(MODEL.format(seconds=THINKS_SECONDS))
    model.chmod(model.stat().st_mode | stat.S_IXUSR)
    content = transcript(MESSAGES, seed)
    file = folder / "backlog.jsonl"
    file.write_bytes(content)
    start = folder / "start.lcm.db"
    Lcm(program, start).run("ingest", str(file))
    return Scene("compact", compact(model), start, content), model


def main() -> int:
    """Runs the program; returns the exit code, 0 if every moment passed."""
    options = options_of("interrupts `lcm compact`")
    source = random.Random(options.seed)
    program = options.lcm.resolve()
    passed = failed = between = 0
    longest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            scene, model = make_scene(program, folder, options.seed)
            rehearse(scene, program, folder)
        except Failed as error:
            print(f"FAILED without an interrupt: {error}\n0 passed, 1 failed")
            return 1
        commits = scene.revision_after - scene.revision_before
        print(f"compact: {commits} commits in {scene.high:.2f} s")
        for moment in range(options.moments):
            try:
                took, made = interrupt_once(scene, model, program, folder, source)
                longest = max(longest, took)
                between += made
                passed += 1
            except Failed as error:
                failed += 1
                print(f"FAILED moment {moment}: {error}")
            sys.stdout.flush()
    print(f"{between} of {options.moments} moments behind a commit; the longest end {longest:.2f} s")
    if options.moments and not between:
        failed += 1
        print("FAILED: no moment lay behind a commit")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
