"""One store written by Node, Python and the program `lcm`: together.py ROUNDS SECONDS

First the writers take turns for ROUNDS rounds: each appends, compacts and assembles, then
`lcm check` must report ok and every message must be stored, in order. Node and Python run as one
process each for ten rounds, so that their caches become older than the file; `lcm` is a new process
for every command. Then all write to one conversation at the same time, for SECONDS seconds: no
message may be lost or stored twice, and the order of each writer must be kept.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from message import message

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/together"
PYTHON = ROOT / "host-examples/python/.venv/bin/python"
PROGRAM = ROOT / "dist/lcm"
BUDGET = "6000"
RESTART_ROUNDS = 10
# Most conflicts in a row of one command with the other writers.
LOST_MAX = 1_000


class Process:
    """A writer in a separate process."""

    def __init__(self, name: str, command: list[Any], store: Path) -> None:
        self.name, self.command, self.store = name, command, store
        self.written = 0
        self.met: dict[str, int] = {}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, line: str) -> list[str]:
        """Sends a line to the writer; returns the texts that it stored."""
        said = self.tell(line)
        self.met = said["met"]
        self.written += len(said["texts"])
        return list(said["texts"])

    def digest(self) -> str:
        """Returns the digest of the store, as this writer reads it."""
        return str(self.tell("digest")["digest"])

    def tell(self, line: str) -> dict[str, Any]:
        """Sends a line to the writer; returns its answer."""
        if self.process is None:
            environment = os.environ | {"PYTHONPATH": str(ROOT / "host-examples/python/src")}
            command = [*self.command, self.store, str(self.written)]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, encoding="utf-8", env=environment
            )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"the writer in {self.name} failed")
        return dict(json.loads(answer))

    def end(self) -> None:
        """Closes the store."""
        if self.process is not None:
            assert self.process.stdin
            self.process.stdin.close()
            if self.process.wait(60) != 0:
                sys.exit(f"the writer in {self.name} failed at its end")
            self.process = None


def program(store: Path, *command: str, given: str | None = None) -> Any:
    """Returns the answer of `lcm`; None: a conflict with other writers, or a busy file."""
    whole = [PROGRAM, "--store", store, "--conversation", "together", *command, "--json"]
    done = subprocess.run(whole, input=given, capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if done.returncode in (4, 5) and "corrupt" not in done.stderr:
        return None
    sys.exit(f"lcm {command}: {done.stderr}")


class Program:
    """The program `lcm` as a writer."""

    name = "lcm"

    def __init__(self, store: Path) -> None:
        self.store = store
        self.written = 0
        self.met = {"lost": 0}

    def certainly(self, *command: str, given: str | None = None) -> Any:
        """Repeats a command after conflicts; an append whose messages have ids may be repeated."""
        for _ in range(LOST_MAX):
            if (answer := program(self.store, *command, given=given)) is not None:
                return answer
            self.met["lost"] += 1
        sys.exit(f"lcm {command}: lost {LOST_MAX} times in a row")

    def ask(self, line: str) -> list[str]:
        """Runs the command of a line, as `writer.py` does; returns the texts that were stored."""
        verb, number = line.split()
        end = time.monotonic() + float(number)
        texts = self.write()
        while verb == "for" and time.monotonic() < end:
            texts += self.write()
        return texts

    def digest(self) -> str:
        """Returns the digest of the store, as this writer reads it."""
        return str(program(self.store, "digest")["sha256"])

    def write(self) -> list[str]:
        """Appends, sometimes compacts, and assembles."""
        count = self.written % 3 + 1
        texts = [message("lcm", self.written + at) for at in range(count)]
        self.written += count
        lines = "".join(f"{text}\n" for text in texts)
        self.certainly("ingest", "--append-mode", "new", "-", given=lines)
        if self.written % 4 == 0:
            self.certainly("compact", "--budget", BUDGET)
        context = self.certainly("assemble", "--budget", BUDGET)
        assert context["tokens"] <= int(BUDGET), context["tokens"]
        return texts

    def end(self) -> None:
        """Does nothing: no process is running."""


def stored(store: Path) -> list[str]:
    """Returns the original texts of all stored messages."""
    command = [PROGRAM, "--store", store, "--conversation", "together", "messages", "--raw"]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode().split("\n")[:-1]


def check(store: Path, when: str) -> None:
    """Fails unless `lcm check` finds no fault."""
    found = program(store, "check")
    if found is None or not found["ok"]:
        sys.exit(f"{when}: {found}")


def in_turn(writers: list[Any], store: Path, rounds: int) -> None:
    """Lets the writers write one after the other, and checks the store."""
    expected: list[str] = []
    for number in range(1, rounds + 1):
        for writer in writers:
            expected += writer.ask(f"round {number}")
        check(store, f"round {number}")
        if stored(store) != expected:
            sys.exit(f"round {number}: the messages are not those that were written")
        if number % RESTART_ROUNDS == 0:
            for writer in writers:
                writer.end()
    print(f"{rounds} rounds in turn: {len(expected)} messages, each round checked")


def at_once(writers: list[Any], store: Path, seconds: float) -> None:
    """Lets all writers write at the same time, and checks the store."""
    before = stored(store)
    wrote: dict[str, list[str]] = {}

    def work(writer: Any) -> None:
        wrote[writer.name] = writer.ask(f"for {seconds}")

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(wrote) < len(writers):
        sys.exit("a writer failed")
    check(store, "at the same time")
    after = stored(store)
    if after[: len(before)] != before:
        sys.exit("what was stored before has changed")
    new = after[len(before) :]
    for name, texts in wrote.items():
        found = [text for text in new if f'"{name}-' in text[:60]]
        if found != texts:
            lost, doubled = len(set(texts) - set(found)), len(found) - len(set(found))
            sys.exit(f"{name}: {lost} lost, {doubled} doubled, or another order")
    if len(new) != sum(map(len, wrote.values())):
        sys.exit("there are messages that nobody wrote")
    if len({writer.digest() for writer in writers}) != 1:
        sys.exit("the writers do not see the same store")
    summaries = program(store, "status")["summaries"]
    made = sum(level["count"] for level in summaries)
    if made == 0:
        sys.exit("nothing was compacted")
    counted = (f"{writer.name} {len(wrote[writer.name])} {writer.met}" for writer in writers)
    counts = ", ".join(counted)
    print(f"{seconds:g} s at the same time: {counts}; {made} summaries, checked")


def main() -> None:
    """Runs both parts with one store file."""
    rounds, seconds = int(sys.argv[1]), float(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "together.lcm.db"
        writers = [
            Process("node", ["node", HERE / "writer.mjs"], store),
            Process("python", [PYTHON, HERE / "writer.py"], store),
            Program(store),
        ]
        in_turn(writers, store, rounds)
        at_once(writers, store, seconds)
        for writer in writers:
            writer.end()


if __name__ == "__main__":
    main()
