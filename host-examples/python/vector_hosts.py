"""Adapts the package to the vector runner of `../kit`: a blocking host and an asyncio host.

The loop of `drive` uses the script of a vector in place of a model.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Generator
from typing import Any

from lcm_engine import LcmError
from lcm_engine.component import Program
from lcm_engine.instance import Instance
from lcm_engine.ports import DirectPort
from lcm_engine.sessions import AsyncSession
from lcm_engine.stores import AsyncMemoryStore, MemoryStore, Store
from lcm_engine.stores.base import Guards, Puts
from vectors.runner import Vector

PLANS_MAX = 2_000

Loop = Generator[tuple[str, dict[str, Any]], Any, dict[str, Any]]
"""Yields a function with its arguments, or `complete` with a request."""


def _ended(status: str, reason: str, passes: list[Any]) -> dict[str, Any]:
    ended = {"status": status, "reason": reason, "passes": passes}
    return ended | {"completions": len(passes)}


def sha256_of(store: Store) -> str:
    """Returns the digest of all entries of a store, 64 hex digits."""
    digest, start, more = hashlib.sha256(), "", True
    while more:
        entries, more = store.scan(start, "~~~~", False, 1_000, 1 << 20)
        for key, value in entries:
            for part in (key.encode(), value):
                digest.update(len(part).to_bytes(4, "big") + part)
            start = key + "\0"
    return digest.hexdigest()


class _Host:
    store: Store

    def __init__(self, program: Program, vector: Vector) -> None:
        self.model = vector.model
        self.config_json = vector.config_json
        self.instance = Instance(program, vector.config_json, vector.model.answer)

    def parameters(self, name: str) -> dict[str, bool]:
        """As `Host.parameters`."""
        return self.instance.parameters(name)

    def restart(self, config_json: str | None) -> None:
        """As `Host.restart`."""
        if config_json is not None:
            self.config_json = config_json
        self.instance.config_json = self.config_json
        self.instance.drop()

    def sha256(self) -> str:
        """As `Host.sha256`."""
        return sha256_of(self.store)

    def loop(self, arguments: dict[str, Any], offline: bool) -> Loop:
        """Plans, completes and applies until nothing is left; yields calls and requests."""
        options, now = arguments["options"], {"now": arguments["now"]}
        place = {"conversation": arguments["conversation"]}
        passes: list[Any] = []
        while True:
            asked = place | now | {"budget": arguments["budget"], "options": options}
            plan = yield "compaction.plan", asked
            for request in plan["requests"]:
                while request is not None:
                    if offline:
                        done = yield "compaction.complete_offline", {"request": request}
                        answer = {"done": done}
                    else:
                        answer = yield "complete", request
                    chosen = place | now | {"request_id": request["id"], "answer": answer}
                    outcome = yield "compaction.apply", chosen
                    passes.append(outcome)
                    reason = outcome["reason"]
                    if outcome["applied"] == "refused" and reason.startswith("model-"):
                        return _ended("refused", reason, passes)
                    request = outcome["next"] if outcome["applied"] == "retry" else None
            if plan["status"] != "needs-completions" and not plan["sweep"]:
                return _ended(plan["status"], plan["reason"], passes)
            options = options | {"sweep": plan["sweep"]}


class PlainHost(_Host):
    """An instance over a store that answers at once; conflicts are answers, too."""

    def __init__(self, program: Program, vector: Vector, store: Store | None = None) -> None:
        super().__init__(program, vector)
        self.store = store or MemoryStore()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """As `Host.call`."""
        return self.instance.call(name, arguments, DirectPort(self.store))

    def drive(self, arguments: dict[str, Any], offline: bool) -> Any:
        """As `Host.drive`."""
        flow, result = self.loop(arguments, offline), None
        for _ in range(PLANS_MAX):
            try:
                name, given = flow.send(result)
            except StopIteration as end:
                return end.value
            result = self.model.answer(given) if name == "complete" else self.call(name, given)
        raise AssertionError("`drive` does not end")


class AsyncHost(_Host):
    """A host over an asynchronous store, which makes every first read `would-block`."""

    def __init__(
        self,
        program: Program,
        vector: Vector,
        store: AsyncMemoryStore | None = None,
        conflicts_max: int = 0,
    ) -> None:
        super().__init__(program, vector)
        outer = store or AsyncMemoryStore()
        self.store = outer.inner
        self._session = AsyncSession(
            lambda: self.instance, outer, conflicts_max=conflicts_max, lanes=1
        )

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """As `Host.call`; repeats the call until all its reads are fetched."""
        result = await self._session.call(name, arguments)
        if name == "setup.configure":  # Also configures the instance that follows a conflict.
            self.instance.config_json = arguments["config_json"]
        return result

    async def drive(self, arguments: dict[str, Any], offline: bool) -> Any:
        """As `Host.drive`."""
        flow, result = self.loop(arguments, offline), None
        for _ in range(PLANS_MAX):
            try:
                name, given = flow.send(result)
            except StopIteration as end:
                return end.value
            if name == "complete":
                result = self.model.answer(given)
            else:
                self.model.mark()
                result = await self.call(name, given)
        raise AssertionError("`drive` does not end")


class BesetStore(AsyncMemoryStore):
    """A store that delays every call, and refuses a share of the commits with `conflict`.

    A refused commit writes nothing, and calls `refused`, so that a script can be rewound. At most
    `IN_A_ROW_MAX` commits in a row are refused, so that a repeated call succeeds.
    """

    IN_A_ROW_MAX = 3

    def __init__(
        self,
        delay_seconds: float,
        conflicts_permille: int,
        seed: str,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(delay_seconds)
        self._conflicts_permille = conflicts_permille
        self._random = random.Random(seed)
        self._refused = refused
        self._in_a_row = 0
        self.calls = 0
        self.conflicts = 0

    async def get_many(self, keys: Any) -> Any:
        """As `Store.get_many`."""
        self.calls += 1
        return await super().get_many(keys)

    async def scan(self, *scan: Any) -> Any:
        """As `Store.scan`."""
        self.calls += 1
        return await super().scan(*scan)

    async def commit(self, guards: Guards, puts: Puts) -> None:
        """As `Store.commit`."""
        self.calls += 1
        unlucky = self._random.randrange(1_000) < self._conflicts_permille
        if unlucky and self._in_a_row < self.IN_A_ROW_MAX:
            await asyncio.sleep(self.delay_seconds)
            self._in_a_row += 1
            self.conflicts += 1
            self._refused()
            raise LcmError("conflict", "another writer was faster")
        self._in_a_row = 0
        await super().commit(guards, puts)


async def run_vector(vector: Vector, host: AsyncHost) -> str:
    """As `runner.run_vector`, and awaits the awaitable results of the host."""
    play = vector.play()
    try:
        step, arguments = next(play)
        while True:
            try:
                result = getattr(host, step)(*arguments)
                if asyncio.iscoroutine(result):
                    result = await result
            except Exception as error:
                step, arguments = play.throw(error)
            else:
                step, arguments = play.send(result)
    except StopIteration as end:
        return str(end.value)
