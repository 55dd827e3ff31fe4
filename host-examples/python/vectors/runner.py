"""Runs the golden vectors over a memory store, plain or asynchronous.

In: a vector file. Out: the digest of the store after its last step, or `Mismatch`. The loop of
`drive` and `offline` is the package's own.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from lcm_engine import LcmError, compaction, flows
from lcm_engine.component import Program
from lcm_engine.instance import Instance
from lcm_engine.models import Asking, models_of
from lcm_engine.ports import DirectPort
from lcm_engine.sessions import AsyncSession
from lcm_engine.stores import AsyncMemoryStore, MemoryStore
from lcm_engine.texts import to_json

from . import matching, shorthand
from .matching import Mismatch
from .scripted import ScriptedModel

PLANS_MAX = 2_000
_VECTOR_FIELDS = {"description", "config", "steps", "completions", "store_sha256"}
_STEP_FIELDS = {"call", "args", "expect", "expect_error", "note"}


class PlainHost:
    """An instance over a store that answers at once; conflicts are answers, too."""

    def __init__(self, program: Program, config_json: str | None, model: ScriptedModel) -> None:
        self.store = MemoryStore()
        self.instance = Instance(program, config_json, model.answer)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a function once."""
        return self.instance.call(name, arguments, DirectPort(self.store))


class AsyncHost:
    """The same over an asynchronous store, which makes every first read `would-block`."""

    def __init__(self, program: Program, config_json: str | None, model: ScriptedModel) -> None:
        outer = AsyncMemoryStore()
        self.store = outer.inner
        self.instance = Instance(program, config_json, model.answer)
        self._session = AsyncSession(lambda: self.instance, outer, conflicts_max=0, lanes=1)
        self._runner = asyncio.Runner()

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a function as often as its reads ask for."""
        return self._runner.run(self._session.call(name, arguments))


class _Run:
    def __init__(self, program: Program, vector: dict[str, Any], asynchronous: bool) -> None:
        self.model = ScriptedModel(vector.get("completions", []))
        config = vector.get("config")
        make = AsyncHost if asynchronous else PlainHost
        self.host = make(program, None if config is None else to_json(config), self.model)
        self.results: list[Any] = []
        self.plans = 0

    def step(self, step: dict[str, Any]) -> None:
        if set(step) - _STEP_FIELDS or {"expect", "expect_error"} <= set(step):
            raise Mismatch("a step has unknown fields, or both `expect` and `expect_error`")
        args = shorthand.references_resolved(step.get("args"), self.results)
        wanted_error = step.get("expect_error")
        try:
            result = self._perform(step["call"], args)
        except LcmError as error:
            self.results.append(None)
            if wanted_error is None:
                raise Mismatch(f"failed with {error}") from error
            if error.code != wanted_error["code"]:
                raise Mismatch(f"expected `{wanted_error['code']}`, failed with {error}") from error
            if "message" in wanted_error:
                matching.check(wanted_error["message"], error.message, "message")
            return
        self.results.append(result)
        if wanted_error is not None:
            raise Mismatch(f"expected `{wanted_error['code']}`, came {matching.shorten(result)}")
        if "expect" in step:
            matching.check(step["expect"], result, "result")

    def _perform(self, name: str, args: Any) -> Any:
        if name == "restart":
            if args and set(args) != {"config"}:
                raise Mismatch("`restart` has only the argument `config`")
            if args:
                self.host.instance.config_json = to_json(args["config"])
            self.host.instance.drop()
            return None
        if name in ("drive", "offline"):
            return self._drive(args or {}, name == "offline")
        result = self.call(name, args)
        if self.model.missing:
            raise Mismatch("no scripted completion fits")
        return result

    def call(self, name: str, args: Any) -> Any:
        parameters = self.host.instance.parameters(name)
        return self.host.call(name, shorthand.arguments(name, args, parameters))

    def _drive(self, args: dict[str, Any], offline: bool) -> Any:
        if set(args) - {"conversation", "budget", "now", "options"}:
            raise Mismatch("`drive` has an unknown argument")
        now = args.get("now", shorthand.NOW)
        # The script answers in place of the callback.
        models = models_of(None if offline else lambda request: None)
        work = compaction.Work(
            args.get("conversation", shorthand.CONVERSATION),
            args.get("budget", 0),
            args.get("options") or {},
            lambda: now,
            Asking(models),
        )
        flow = compaction.drive(work)
        return self._run_flow(flow)

    def _run_flow(self, flow: flows.Flow[Any]) -> Any:
        result = None
        while True:
            try:
                effect = flow.send(result)
            except StopIteration as end:
                return end.value
            if isinstance(effect, flows.Call):
                result = self._call_of_flow(effect)
            elif isinstance(effect, flows.Complete):
                result = self.model.answer(effect.request)
            else:
                raise Mismatch(f"the loop wants `{type(effect).__name__}`")
            if self.model.missing:
                raise Mismatch("no scripted completion fits")

    def _call_of_flow(self, effect: flows.Call) -> Any:
        if effect.name == "compaction.plan":
            self.plans += 1
            if self.plans > PLANS_MAX:
                raise Mismatch(f"`drive` has not ended after {PLANS_MAX} plans")
        return self.host.call(effect.name, effect.arguments)

    def digest(self) -> str:
        """The digest, computed here; the engine must compute the same."""
        independent = self.host.store.sha256()
        by_engine = self.call("admin.digest", None)
        if independent not in by_engine:
            raise Mismatch(f"admin.digest says {by_engine}, the store is {independent}")
        return independent


def run_vector(path: Path, program: Program, asynchronous: bool) -> str:
    """Runs one vector and returns the digest of its store, 64 hex digits."""
    vector = json.loads(path.read_text(encoding="utf-8"))
    if set(vector) - _VECTOR_FIELDS or not vector.get("steps"):
        raise Mismatch("a vector has unknown fields, or no steps")
    run = _Run(program, vector, asynchronous)
    for index, step in enumerate(vector["steps"]):
        try:
            run.step(step)
        except (Mismatch, LcmError) as error:
            raise Mismatch(f"step {index} ({step.get('call')}): {error}") from error
    digest = run.digest()
    expected = vector.get("store_sha256")
    if not expected:
        raise Mismatch("no `store_sha256`: it is not blessed")
    if digest != expected:
        raise Mismatch(f"store is {digest}, expected {expected}")
    return digest
