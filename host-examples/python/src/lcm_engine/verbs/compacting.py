"""Compaction, at once or later, and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import compaction, flows, paging
from ..errors import LcmError
from ..family import maintain_family
from ..flows import Fields, Flow
from ..results import (
    AdviseAnswer,
    AppendMode,
    CalibrateAnswer,
    CompactionMode,
    CompactReport,
    Decision,
    FamilyReport,
    JsonValue,
    MaintainReport,
    Message,
    ReadDialect,
    SummaryPrompt,
    TokenPrices,
    TurnReport,
    UsageAnswer,
    UsagePurpose,
)
from ..texts import to_texts
from ..verb import Opened, Verb


class Compacting(Opened):
    """The verbs of compaction and of its cost."""

    @Verb
    def turn(
        self,
        conversation: str,
        messages: Iterable[Message],
        budget: int,
        *,
        dialect: ReadDialect | None = None,
        append_mode: AppendMode = "transcript",
        repeat: bool = False,
        undated: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        seq_seen: int | None = None,
        system: JsonValue = None,
        mode: CompactionMode = "threshold",
        force: bool = False,
        target: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        requests_max: int = 1,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lease_ms: int = 120_000,
        defer: bool | None = None,
        now: int | None = None,
    ) -> Flow[TurnReport]:
        """Stores the messages of a turn, and compacts when compaction is due and cannot wait.

        A call with an invalid argument stores nothing. A failure after the append is not raised but
        returned as `failure`, with the receipt. `append_mode` and `repeat` are options of `append`.
        `defer`: compaction that can wait is left for `maintain`; None: as the key `turn_compaction`
        says, by default `deferred`. A handle (`lcm.conversation`) calls `maintain` itself.

        ```python
        turn = lcm.turn("chat", [{"role": "user", "content": "What failed?"}], budget=8_000)
        assert turn["receipt"]["ingested"] == 1 and not turn["decision"]["due"]
        ```
        """
        if not isinstance(defer, bool | None):
            raise LcmError("invalid-input", "`defer` must be True or False")
        intake = {
            "dialect": dialect or self._dialect,
            "append_mode": append_mode,
            "repeat": repeat,
            "undated": undated,
            "refuse_replay": refuse_replay,
            "family": family,
            "seq_seen": seq_seen,
            "system": system,
        }
        options = {
            "mode": mode,
            "force": force,
            "target": target,
            "observed_tokens": observed_tokens,
            "model": model,
            "requests_max": requests_max,
            "lease_ms": lease_ms,
        }
        work = self._work(conversation, budget, options, self._now(now), retries, timeout_ms)
        return compaction.turn(work, to_texts(messages), intake, defer, lambda: self._now(now))

    @Verb
    def evaluate(
        self,
        conversation: str,
        budget: int,
        *,
        mode: CompactionMode = "threshold",
        force: bool = False,
        target: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        now: int | None = None,
    ) -> Flow[Decision]:
        """Returns whether compaction is due, and why; reads only.

        ```python
        decision = lcm.evaluate("chat", budget=100_000)
        assert not decision["due"] and decision["reason"] == "below-threshold"
        ```
        """
        options = {
            "mode": mode,
            "force": force,
            "target": target,
            "observed_tokens": observed_tokens,
            "model": model,
        }
        work = self._work(conversation, budget, options, now)
        return flows.evaluate(work.question())

    @Verb
    def compact(
        self,
        conversation: str,
        budget: int,
        *,
        mode: CompactionMode = "threshold",
        force: bool = False,
        target: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        requests_max: int = 1,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lease_ms: int = 120_000,
        passes_max: int | None = None,
        now: int | None = None,
    ) -> Flow[CompactReport]:
        """Summarises messages and summaries, pass by pass, until nothing is due or it must stop.

        `requests_max`: most completions at the same time. `retries` and `timeout_ms`: by default
        as for `open`. `lease_ms`: time for which no other compaction gets the same requests, by
        default 2 minutes; the lease ends with the call. `passes_max`: most passes of the call;
        with this limit a failure of the model also ends the call. None: no limit.

        ```python
        done = lcm.compact("chat", budget=2_000)
        assert done["tokens_after"] < done["tokens_before"]
        ```
        """
        options = {
            "mode": mode,
            "force": force,
            "target": target,
            "observed_tokens": observed_tokens,
            "model": model,
            "requests_max": requests_max,
            "lease_ms": lease_ms,
            "passes_max": passes_max,
        }
        work = self._work(conversation, budget, options, now, retries, timeout_ms)
        return compaction.compact(work)

    @Verb
    def maintain(
        self,
        conversation: str,
        budget: int,
        *,
        observed_tokens: int | None = None,
        model: str | None = None,
        requests_max: int = 1,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lease_ms: int = 120_000,
        passes_max: int | None = None,
        now: int | None = None,
    ) -> Flow[MaintainReport]:
        """Does deferred compaction if the engine decides that it is due.

        Call `maintain` after a turn, when no user waits. The engine first compares the context with
        the budget again. After a failure it waits longer and longer before the next attempt.

        ```python
        done = lcm.maintain("chat", budget=8_000)
        assert done["debt"] is None  # No compaction was deferred.
        ```
        """
        options = {
            "observed_tokens": observed_tokens,
            "model": model,
            "requests_max": requests_max,
            "lease_ms": lease_ms,
            "passes_max": passes_max,
        }
        work = self._work(conversation, budget, options, now, retries, timeout_ms)
        return compaction.maintain(work)

    @Verb
    def maintain_family(
        self,
        family: str,
        budget: int,
        *,
        model: str | None = None,
        requests_max: int = 1,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lease_ms: int = 120_000,
        passes_max: int | None = None,
        now: int | None = None,
    ) -> Flow[FamilyReport]:
        """Calls `maintain` for every conversation of a family, the latest to join first.

        After a failure of a model the rest is left, in `unserved`. Another failure concerns one
        conversation and is in its report; only `invalid-input` is raised. Of an archived
        conversation only provisional summaries are made again.

        ```python
        lcm.family("chat", "orchard")
        done = lcm.maintain_family("orchard", budget=8_000)
        assert done["reports"][0]["conversation"] == "chat" and not done["unserved"]
        ```
        """
        options = {
            "model": model,
            "requests_max": requests_max,
            "lease_ms": lease_ms,
            "passes_max": passes_max,
        }
        work = self._work("", budget, options, now, retries, timeout_ms)
        return maintain_family(family, work)

    @Verb
    def resummarize(
        self,
        conversation: str,
        budget: int,
        *,
        summary_ids: Sequence[str] | None = None,
        force: bool = False,
        model: str | None = None,
        requests_max: int = 1,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lease_ms: int = 120_000,
        passes_max: int | None = None,
        now: int | None = None,
    ) -> Flow[CompactReport]:
        """Makes provisional summaries again, even if earlier attempts failed.

        A summary is provisional if the configured model failed to write its text, or that of a
        source. `compact` and `maintain` also make them again. `summary_ids`: by default all.

        ```python
        done = lcm.resummarize("chat", budget=8_000)
        assert done["status"] == "nothing-to-do"  # Nothing is provisional.
        ```
        """
        options = {
            "force": force,
            "model": model,
            "requests_max": requests_max,
            "lease_ms": lease_ms,
            "passes_max": passes_max,
            "summary_ids": None if summary_ids is None else list(summary_ids),
        }
        work = self._work(conversation, budget, options, now, retries, timeout_ms)
        return compaction.resummarize(work)

    def _work(
        self,
        conversation: str,
        budget: int,
        options: Fields,
        now: int | None,
        retries: int | None = None,
        timeout_ms: int | None = None,
    ) -> compaction.Work:
        asking = self._asking.with_(retries, timeout_ms)
        asking = asking.about(conversation)
        return compaction.Work(conversation, budget, options, lambda: self._now(now), asking)

    @Verb
    def prompts(self) -> Flow[list[SummaryPrompt]]:
        """Returns the prompts of summaries as configured, by depth: `name`, `version`, `text`, ...

        ```python
        names = [prompt["name"] for prompt in lcm.prompts()]
        assert "leaf" in names
        ```
        """
        return paging.prompts()

    @Verb
    def calibrate(
        self,
        conversation: str,
        model: str,
        estimated_tokens: int,
        prompt_tokens: int,
        *,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[CalibrateAnswer]:
        """Reports the tokens that a provider counted in a prompt, and the estimate of the prompt.

        The estimate is `tokens` of the assembly plus `estimate` of the messages that were added.
        After this report, calls with this `model` measure their budget in the model's tokens.

        ```python
        lcm.calibrate("chat", "gpt-5", estimated_tokens=1_000, prompt_tokens=1_200)
        context = lcm.assemble("chat", budget=8_000, model="gpt-5")
        ```
        """
        arguments = {
            "model": model,
            "estimated_tokens": estimated_tokens,
            "prompt_tokens": prompt_tokens,
            "dry_run": dry_run,
        }
        return paging.life(conversation, "calibrate", arguments, self._now(now))

    @Verb
    def usage(
        self,
        conversation: str,
        purpose: UsagePurpose,
        *,
        input_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        output_tokens: int = 0,
        cost_micros: int = 0,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[UsageAnswer]:
        """Reports the usage of one answer of a model; returns the sums so far.

        `purpose` is `turn` or `summary`. `input_tokens` counts the whole prompt, cached or
        not; the cost is in millionths of one currency.

        ```python
        sums = lcm.usage("chat", "turn", input_tokens=1_200, output_tokens=80)["usage"]
        assert sums["turns"]["calls"] == 1
        ```
        """
        arguments = {
            "purpose": purpose,
            "input_tokens": input_tokens,
            "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens,
            "output_tokens": output_tokens,
            "cost_micros": cost_micros,
            "dry_run": dry_run,
        }
        return paging.life(conversation, "usage", arguments, self._now(now))

    @Verb
    def advise(
        self,
        conversation: str,
        budget: int,
        prices: TokenPrices,
        *,
        cache_ms: int | None = None,
        turns: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        now: int | None = None,
    ) -> Flow[AdviseAnswer]:
        """Compares the cost of compacting now with the cost of waiting; changes nothing.

        `prices` are of a million tokens, in millionths of a currency: `input`, `output`, and where
        they differ `cache_read`, `cache_write`, `summary_input`, `summary_output`. `cache_ms` is
        the time for which the provider keeps a prefix, `turns` the number of prompts to come.

        ```python
        prices = {"input": 3_000_000, "output": 15_000_000}
        assert lcm.advise("chat", 100_000, prices)["advice"] == "wait"
        ```
        """
        arguments = {
            "budget": budget,
            "prices": prices,
            "cache_ms": cache_ms,
            "turns": turns,
            "observed_tokens": observed_tokens,
            "model": model,
        }
        return paging.life(conversation, "advise", arguments, self._now(now))
