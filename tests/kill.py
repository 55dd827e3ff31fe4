"""Kills the program `lcm` at random moments; checks that nothing is lost or stored twice.

    python tests/kill.py [--lcm PROGRAM] [--moments N] [--seed N]

Half of the moments are during `ingest`, half during `compact`. After each SIGKILL the store must be
consistent, its messages must be the beginning of the transcript (all of it for `compact`), and the
same command, repeated, must complete the rest. A moment counts as *between* if the command had made
some but not all of its commits, by the revision of the conversation. The last line is
`N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOW = 1_700_000_000_000
BUDGET = 3_000
MESSAGES = {"ingest": 6_000, "compact": 1_500}
BETWEEN_MIN = 20
BETWEEN_SHARE = 20 / 50
NOT_FOUND = 3
WORDS = "river stone lamp copper garden engine window paper signal winter bridge market".split()


class Failed(Exception):
    """A property that does not hold."""


def require(holds: bool, finding: str) -> None:
    """Raises `Failed` unless `holds`."""
    if not holds:
        raise Failed(finding)


def transcript(count: int, seed: int) -> bytes:
    """Returns a generated conversation, one message per line."""
    source = random.Random(seed)
    lines = []
    for number in range(1, count + 1):
        role = "user" if number % 2 else "assistant"
        text = " ".join(source.choices(WORDS, k=source.randint(20, 120)))
        lines.append(
            json.dumps({"id": f"m{number:06}", "role": role, "content": f"{number}: {text}"})
        )
    return ("\n".join(lines) + "\n").encode()


@dataclass
class Scene:
    """One command: its input, and its result in a run without a kill."""

    command: str
    arguments: list[str]
    start: Path | None
    """The store before the command; None: a new store."""
    content: bytes
    revision_before: int = 0
    revision_after: int = 0
    logical: str = ""
    low: float = 0.0
    high: float = 0.0
    """Range in seconds, `low` to `high`, from which moments are drawn."""


class Lcm:
    """The program `lcm` with one store file."""

    def __init__(self, program: Path, store: Path) -> None:
        self.store = store
        self._command = [str(program), "--store", str(store), "--now", str(NOW)]

    def begin(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        """Starts a command."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen([*self._command, *arguments], stdout=quiet, stderr=quiet)

    def run(
        self, *arguments: str, allowed: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs a command that must end with one of the allowed codes."""
        done = subprocess.run([*self._command, *arguments], capture_output=True, check=False)
        said = done.stderr.decode(errors="replace").strip()[:300]
        require(
            done.returncode in allowed, f"`{arguments[0]}` ended with {done.returncode}: {said}"
        )
        return done

    def json(self, *arguments: str) -> Any:
        """Returns the JSON document of a command."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def revision(self) -> int:
        """Returns the number of commits of the conversation; 0: it does not exist yet."""
        if not self.store.exists():
            return 0
        done = self.run("status", "--json", allowed=(0, NOT_FOUND))
        return 0 if done.returncode == NOT_FOUND else int(json.loads(done.stdout)["revision"])

    def raw(self) -> bytes:
        """Returns the original texts of all messages."""
        return self.run("messages", "--raw").stdout

    def check(self) -> None:
        """Fails unless `lcm check` finds no fault."""
        report = self.json("check")
        require(report["ok"] is True, f"`check` found {report['checks']}")


def begin_store(scene: Scene, folder: Path) -> Path:
    """Makes a fresh copy of the scene's start store; returns its path."""
    store = folder / "x.lcm.db"
    for name in ("x.lcm.db", "x.lcm.db-wal", "x.lcm.db-shm"):
        (folder / name).unlink(missing_ok=True)
    if scene.start is not None:
        shutil.copyfile(scene.start, store)
    return store


def rehearse(scene: Scene, program: Path, folder: Path) -> None:
    """Runs the command without a kill, to know its duration and its result."""
    lcm = Lcm(program, begin_store(scene, folder))
    scene.revision_before = lcm.revision()
    started = time.monotonic()
    lcm.run(*scene.arguments)
    scene.high = time.monotonic() - started
    scene.revision_after = lcm.revision()
    scene.logical = lcm.run("digest", "--logical").stdout.decode().strip()
    commits = scene.revision_after - scene.revision_before
    require(commits >= 10, f"`{scene.command}` makes only {commits} commits")
    require(lcm.raw() == scene.content, "the messages do not come back byte for byte")


def check_partition(lcm: Lcm, count: int) -> None:
    """Checks that the items of the context contain every message once, in order."""
    context = lcm.json("assemble", "--budget", str(BUDGET), "--explain")
    following = 1
    for item in context["items"]:
        require(item["seq_first"] == following, f"`{item['id']}` does not begin at {following}")
        following = item["seq_last"] + 1
    require(following == count + 1, f"the context ends at {following - 1} of {count}")


def check_killed(scene: Scene, lcm: Lcm, revision: int) -> None:
    """Checks the store right after the kill."""
    if revision == 0:
        require(scene.start is None, "the conversation is gone")
        return
    lcm.check()
    raw = lcm.raw()
    if scene.command == "compact":
        require(raw == scene.content, "messages were lost or doubled")
        check_partition(lcm, scene.content.count(b"\n"))
    else:
        whole = scene.content.startswith(raw) and raw.endswith(b"\n")
        require(whole, "the messages are not the beginning of the transcript")


def check_repeated(scene: Scene, lcm: Lcm) -> None:
    """Checks that the repeated command completes the rest, and does nothing the second time.

    A compaction is repeated after the lease of the killed compaction, which lasts two minutes.
    """
    later = ["--now", str(time.time_ns() // 1_000_000 + 130_000)]
    arguments = scene.arguments + (later if scene.command == "compact" else [])
    lcm.run(*arguments)
    lcm.check()
    require(lcm.raw() == scene.content, "after the repetition messages are lost or doubled")
    check_partition(lcm, scene.content.count(b"\n"))
    if scene.command == "ingest":
        logical = lcm.run("digest", "--logical").stdout.decode().strip()
        require(logical == scene.logical, "the repetition ends with another store")
    revision = lcm.revision()
    lcm.run(*arguments)
    require(lcm.revision() == revision, "a third run still writes")


def kill_once(scene: Scene, program: Path, folder: Path, source: random.Random) -> bool:
    """Kills at one moment; returns whether it was between the first and the last commit."""
    lcm = Lcm(program, begin_store(scene, folder))
    delay = source.uniform(scene.low, scene.high)
    running = lcm.begin(scene.arguments)
    try:
        code: int | None = running.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
        code = running.wait()
    require(code in (0, -signal.SIGKILL), f"`{scene.command}` ended with {code}")
    revision = lcm.revision()
    # Adapts the range so that the next moments fall between commits, even on a busy machine.
    if revision == scene.revision_before:
        scene.low = (scene.low + delay) / 2
    elif code == 0:
        scene.high = max((scene.high + delay) / 2, scene.low * 1.1)
    elif scene.high - delay < (scene.high - scene.low) / 10:
        scene.high *= 1.1
    check_killed(scene, lcm, revision)
    check_repeated(scene, lcm)
    return code != 0 and scene.revision_before < revision < scene.revision_after


def scenes(program: Path, folder: Path, seed: int) -> list[Scene]:
    """Returns the commands to kill."""
    made = []
    for command, count in MESSAGES.items():
        content = transcript(count, seed)
        file = folder / f"{command}.jsonl"
        file.write_bytes(content)
        if command == "ingest":
            made.append(Scene(command, ["ingest", str(file)], None, content))
            continue
        start = folder / "start.lcm.db"
        Lcm(program, start).run("ingest", str(file))
        arguments = ["compact", "--budget", str(BUDGET)]
        made.append(Scene(command, arguments, start, content))
    return made


def options_of(description: str) -> argparse.Namespace:
    """Returns the options of the command line: `lcm`, `moments`, `seed`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lcm", type=Path, default=ROOT / "dist" / "lcm")
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    """Runs the program; returns the exit code, 0 if every moment passed."""
    options = options_of("kills `lcm` and checks its store")
    source = random.Random(options.seed)
    program = options.lcm.resolve()
    passed = failed = 0
    between = dict.fromkeys(MESSAGES, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            acts = scenes(program, folder, options.seed)
            for scene in acts:
                rehearse(scene, program, folder)
        except Failed as error:
            print(f"FAILED without a kill: {error}\n0 passed, 1 failed")
            return 1
        for scene in acts:
            commits = scene.revision_after - scene.revision_before
            print(f"{scene.command}: {commits} commits in {scene.high:.2f} s")
        for moment in range(options.moments):
            scene = acts[moment % len(acts)]
            try:
                between[scene.command] += kill_once(scene, program, folder, source)
                passed += 1
            except Failed as error:
                failed += 1
                print(f"FAILED moment {moment} ({scene.command}): {error}")
            sys.stdout.flush()
    counted = sum(between.values())
    print(f"{counted} of {options.moments} moments between first and last commit: {between}")
    if counted < min(BETWEEN_MIN, options.moments * BETWEEN_SHARE):
        failed += 1
        print(f"FAILED: too few moments between commits, at least {BETWEEN_MIN} are wanted")
    else:
        passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
