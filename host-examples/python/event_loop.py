"""Measures how long the package blocks an event loop: python event_loop.py [MESSAGES]

Ingests MESSAGES messages (default 10,000) into a new SQLite file with `open_async`, compacts them
without a model and assembles. Prints the greatest delay of a timer meanwhile, in milliseconds, and
fails if the delay reaches a second or not all messages were stored.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "src"))

import lcm_engine  # noqa: E402

LATE_MS_MAX = 1_000


def message(number: int) -> dict[str, str]:
    """Returns a message; each number gives another text."""
    words = f"message {number} " + "word " * 40
    return {"role": "user", "content": words, "id": f"m{number}"}


async def watched(name: str, work: Coroutine[Any, Any, Any]) -> float:
    """Runs `work`; prints and returns the greatest delay of a timer meanwhile, in milliseconds."""
    done = asyncio.ensure_future(work)
    late = 0.0
    while not done.done():
        begin = time.perf_counter()
        await asyncio.sleep(0.001)
        late = max(late, time.perf_counter() - begin - 0.001)
    await done
    print(f"{name}: a timer was late by at most {late * 1e3:.0f} ms")
    return late * 1e3


async def main(count: int) -> bool:
    """Runs all steps; returns whether the delays and the stored messages are as required."""
    messages = [message(number) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        async with lcm_engine.open_async(Path(folder) / "a.lcm.db", environment={}) as lcm:
            late = [
                await watched("ingest", lcm.ingest("c", messages)),
                await watched("compact", lcm.compact("c", count * 6)),
                await watched("assemble", lcm.assemble("c", count * 6)),
            ]
            stored = (await lcm.status("c"))["messages"]
    return max(late) < LATE_MS_MAX and stored == count


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main(int((sys.argv[1:] or ["10000"])[0]))) else 1)
