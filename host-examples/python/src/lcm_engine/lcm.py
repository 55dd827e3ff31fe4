"""The package for programs whose calls may block: `open` and `Lcm`.

In: conversations, messages, budgets. Out: plain dicts. Every method is a flow run to its end here;
what it does stands in `flows` and `paging`, and what is decided, in the engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from . import compaction, completions, flows, paging
from .component import Program, load
from .errors import LcmError
from .instance import MEMORY_BYTES_MAX, Instance
from .models import Asking, Complete, Model, models_of
from .opening import RETRIES, Clock, configured, open_path, wall_clock
from .results import (
    Advice,
    Asked,
    AppendMode,
    Assembled,
    Compaction,
    CompactionMode,
    Decision,
    Dialect,
    Grant,
    GrepMode,
    GrepScope,
    GrepSort,
    Maintained,
    Policy,
    Prices,
    Receipt,
    Reported,
    SpentOn,
    ToolAnswer,
    Turn,
)
from .sessions import Session
from .stores import Store
from .texts import Message, to_texts

def open(
    store: str | os.PathLike[str] | Store = "memory:",
    complete: Complete | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    wasm: bytes | str | os.PathLike[str] | None = None,
    clock: Clock = wall_clock,
    retries: int = RETRIES,
    environment: Mapping[str, str] | None = None,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    timeout_ms: int = completions.TIMEOUT_MS,
) -> Lcm:
    """Opens a store with the engine over it.

    - `store`: path of a `*.lcm.db` file, made when absent; `memory:`; or any `Store`.
    - `complete`: asks a model (`completions.answered` says what it may return, `CompletionFailed`
      how it fails); a list is a fallback chain, a dict has either by purpose, with `default` for
      the rest. None: summaries are made without a model, deterministically.
    - `config`: the configuration object; `LCM_*` variables of `environment` (None: of the
      process) come before it.
    - `clock`: the time of every call that names none.
    - `retries`: how often a failing model is asked again.
    - `memory_bytes_max`: bound of an instance.
    - `timeout_ms`: how long one answer may take. A `complete` with a parameter `timeout` is given
      it in seconds, to hand it to its HTTP client.
    """
    if getattr(store, "asynchronous", False):
        raise LcmError("invalid-input", "the store is asynchronous: use `open_async`")
    program = load(wasm)
    config_json = configured(program, config, environment)
    return Lcm(
        program,
        open_path(store) if isinstance(store, (str, os.PathLike)) else store,
        complete,
        config_json,
        clock,
        retries,
        memory_bytes_max,
        timeout_ms,
    )


class Lcm:
    """An open store. Made by `open`; usable as a context manager."""

    def __init__(
        self,
        program: Program,
        store: Store,
        complete: Complete | None,
        config_json: str | None,
        clock: Clock,
        retries: int,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        timeout_ms: int = completions.TIMEOUT_MS,
    ) -> None:
        self.store = store
        self._clock = clock
        self._asking = Asking(models_of(complete), 1 + retries, together=False)
        self._timeout_seconds = completions.checked_timeout(timeout_ms) / 1000
        instance = Instance(program, config_json, memory_bytes_max=memory_bytes_max)
        self._session = Session(instance, store)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Calls a function of the interface by name (`admin.status`), with plain values."""
        return self._session.call(name, dict(arguments))

    def _run(self, flow: flows.Flow[Any]) -> Any:
        try:
            effect = next(flow)
            while True:
                try:
                    result = self._perform(effect)
                except Exception as error:
                    effect = flow.throw(error)
                except KeyboardInterrupt as error:
                    # One that broke off an engine call is not told to the engine.
                    if isinstance(effect, flows.Call):
                        raise
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            return end.value

    def _perform(self, effect: flows.Effect) -> Any:
        match effect:
            case flows.Call(name, arguments, once):
                return self._session.call(name, arguments, once)
            case flows.Complete(request, model, seconds):
                return self._ask(request, model, self._seconds(seconds))
            case flows.Pause(seconds):
                return time.sleep(seconds)
            case flows.Together(several):
                return [self._run(flow) for flow in several]

    def _ask(self, request: Any, model: Model, seconds: float) -> Any:
        try:
            answer = model(request, seconds)
            return completions.answered(completions.refuse_awaitable(answer))
        except LcmError:
            raise
        except Exception as error:
            return completions.failed(error)

    def _seconds(self, most: float | None) -> float:
        return self._timeout_seconds if most is None else min(most, self._timeout_seconds)

    def _now(self, now: int | None) -> int:
        return self._clock() if now is None else now

    def append(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: Dialect = "lcm",
        new: bool = False,
        repeat: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        now: int | None = None,
    ) -> Receipt:
        """Stores what is not stored yet of the newest messages of a conversation.

        A list that one engine call takes is recognised against the stored tail; a longer one is
        ingested (see `ingest`). `new`: every message is new unless its id or event key is stored.
        `repeat`: this call repeats one whose outcome is unknown. `refuse_replay`: a likely replay
        is an error (`exists`) instead of a warning.
        """
        texts = to_texts(messages)
        now = self._now(now)
        return self._run(  # type: ignore[no-any-return]
            flows.append(conversation, dialect, texts, new, repeat, refuse_replay, now, family)
        )

    def ingest(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: Dialect = "lcm",
        refuse_replay: bool = False,
        family: str | None = None,
        now: int | None = None,
    ) -> Receipt:
        """Stores what is missing of a whole transcript, however long it is."""
        texts = to_texts(messages)
        now = self._now(now)
        return self._run(  # type: ignore[no-any-return]
            flows.ingest(conversation, dialect, texts, refuse_replay, now, family)
        )

    def turn(
        self,
        conversation: str,
        messages: Iterable[Message],
        budget: int,
        *,
        dialect: Dialect = "lcm",
        append_mode: AppendMode = "transcript",
        repeat: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        mode: CompactionMode = "threshold",
        force: bool = False,
        target: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        requests_max: int = 1,
        defer: bool = False,
        now: int | None = None,
    ) -> Turn:
        """One turn: stores messages, asks whether compaction is due, and does what is.

        Nothing is stored when an argument is wrong. The messages are then stored whatever the
        model does: how it failed is `failure` beside the receipt. `append_mode` and `repeat` are
        as `new` and `repeat` of `append`. `defer`: compaction that can wait is left for
        `maintain`.
        """
        intake = {
            "append_mode": append_mode,
            "repeat": repeat,
            "refuse_replay": refuse_replay,
            "family": family,
            "defer": defer,
        }
        options = compaction.options(mode, force, target, observed_tokens, model, requests_max)
        moment = self._now(now)
        work = self._work(conversation, budget, options, lambda: moment)
        return self._run(  # type: ignore[no-any-return]
            compaction.turn(work, dialect, to_texts(messages), intake)
        )

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
    ) -> Decision:
        """Whether compaction is due, and why; reads only."""
        options = compaction.options(mode, force, target, observed_tokens, model)
        work = self._work(conversation, budget, options, lambda: self._now(now))
        return self._run(compaction.evaluate(work.question()))  # type: ignore[no-any-return]

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
        now: int | None = None,
    ) -> Compaction:
        """Summarises what is due, pass by pass; does nothing when nothing is."""
        options = compaction.options(mode, force, target, observed_tokens, model, requests_max)
        work = self._work(conversation, budget, options, lambda: self._now(now))
        return self._run(compaction.compact(work))  # type: ignore[no-any-return]

    def maintain(
        self,
        conversation: str,
        budget: int,
        *,
        observed_tokens: int | None = None,
        model: str | None = None,
        requests_max: int = 1,
        now: int | None = None,
    ) -> Maintained:
        """Does compaction that was put off, when it is time for it: after a turn, when nobody waits.

        The engine measures anew and pauses after failures.
        """
        options = {
            "observed_tokens": observed_tokens,
            **flows.model_option(model),
            "requests_max": requests_max,
        }
        work = self._work(conversation, budget, options, lambda: self._now(now))
        return self._run(compaction.maintain(work))  # type: ignore[no-any-return]

    def _work(
        self, conversation: str, budget: int, options: dict[str, Any], now: Clock
    ) -> compaction.Work:
        return compaction.Work(conversation, budget, options, now, self._asking)

    def assemble(
        self,
        conversation: str,
        budget: int,
        *,
        dialect: Dialect = "lcm",
        policy: Policy | None = None,
        prompt: str | None = None,
        reserve_tokens: int = 0,
        model: str | None = None,
        live_messages: Iterable[Message] = (),
        previous: str | None = None,
        explain: bool = False,
        now: int | None = None,
    ) -> Assembled:
        """A context that fits the budget, in tokens; reads only."""
        options = {
            "policy": policy,
            "prompt": prompt,
            "reserve_tokens": reserve_tokens,
            **flows.model_option(model),
            "live_messages": to_texts(live_messages),
            "previous": previous,
            "explain": explain,
        }
        return self._run(  # type: ignore[no-any-return]
            flows.assemble(conversation, budget, dialect, options, self._now(now))
        )

    def estimate(self, messages: Iterable[Message], *, dialect: Dialect = "lcm") -> int:
        """Estimated tokens of messages; stores nothing. For what is sent beside the context."""
        return self._run(  # type: ignore[no-any-return]
            flows.estimate(dialect, to_texts(messages))
        )

    def validate(self, messages: Iterable[Message], dialect: Dialect) -> list[str]:
        """Why the provider of `dialect` would refuse messages, a line each; empty: it would not."""
        return self._run(  # type: ignore[no-any-return]
            flows.validate(dialect, to_texts(messages))
        )

    def describe(
        self,
        conversation: str,
        id: str,
        options: Mapping[str, Any] | None = None,
        *,
        all: bool | None = None,
        content: bool | None = None,
        bytes_max: int | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        start_byte: int | None = None,
        end_byte: int | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> dict[str, Any]:
        """What is known of a summary, message or file.

        Of a file it says what is read: `start_line` and `end_line` (from 1, inclusive) or
        `start_byte` and `end_byte` (from 0, exclusive), `bytes_max`, `content` (False: nothing).
        `all`: the id is looked for in every conversation of the store.
        `options` is a dict of the same; what is given by name comes before it.
        """
        given = paging.named(
            options,
            all=all,
            content=content,
            bytes_max=bytes_max,
            start_line=start_line,
            end_line=end_line,
            start_byte=start_byte,
            end_byte=end_byte,
        )
        return self._run(  # type: ignore[no-any-return]
            paging.describe(conversation, id, given, grant, self._now(now))
        )

    def expand(
        self,
        conversation: str,
        id: str,
        *,
        depth: int | None = None,
        messages: bool = False,
        token_cap: int | None = None,
        after: str | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> dict[str, Any]:
        """What a summary was made from; without `token_cap` and `after` everything, all pages."""
        options = {"depth": depth, "messages": messages, "token_cap": token_cap, "after": after}
        return self._run(  # type: ignore[no-any-return]
            paging.expand(conversation, id, options, grant, self._now(now))
        )

    def grep(
        self,
        conversation: str,
        query: str | Mapping[str, Any],
        *,
        mode: GrepMode | None = None,
        scope: GrepScope | None = None,
        file_ids: Iterable[str] | None = None,
        start_id: str | None = None,
        start_byte: int | None = None,
        neighbours: int | None = None,
        sort: GrepSort | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        all: bool | None = None,
        only: bool | None = None,
        vector: Iterable[float] | None = None,
        model: str | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> dict[str, Any]:
        """Searches for a pattern.

        `query` is the pattern, or a dict of it (`pattern`) and the options; what is given by name
        comes before it. `all`: every conversation of the store; `only`: not the family. With the
        scope `files` large payloads are searched, all or those of `file_ids`; `start_id` and
        `start_byte` go on where an answer says `unscanned_from`. `neighbours`: so many messages
        before and after each one that is found.
        `vector`: an embedding of what is looked for, by the model of `embed`.
        """
        given = paging.named(
            {"pattern": query} if isinstance(query, str) else query,
            mode=mode,
            scope=scope,
            file_ids=file_ids,
            start_id=start_id,
            start_byte=start_byte,
            neighbours=neighbours,
            sort=sort,
            since=since,
            before=before,
            limit=limit,
            all=all,
            only=only,
            vector=vector,
            model=model,
        )
        return self._run(  # type: ignore[no-any-return]
            paging.grep(conversation, given, grant, self._now(now))
        )

    def embed(
        self,
        conversation: str,
        vectors: Mapping[str, Iterable[float] | None] | None = None,
        *,
        model: str | None = None,
        forget: bool = False,
    ) -> dict[str, Any]:
        """Attaches embeddings to messages and summaries, by id, for `vector` of `grep`.

        None in place of a vector: it is to have none. `model`: the name of the model that made them;
        `forget`: those that are there are removed, to be called until `stored` is 0. The answer has
        `next`, ids to go on with, and `missing`, how many there are.
        """
        return self._run(  # type: ignore[no-any-return]
            paging.embed(conversation, vectors, model, forget)
        )

    def ask(
        self,
        conversation: str,
        question: str,
        *,
        query: str | None = None,
        summaries: Iterable[str] | None = None,
        max_tokens: int | None = None,
        token_cap: int | None = None,
        all: bool | None = None,
        only: bool | None = None,
        grant: str | None = None,
        deadline_ms: int | None = None,
        now: int | None = None,
    ) -> Asked:
        """Has a question answered from what was said, with the ids that say so.

        `query`: what to search for in its place; `summaries`: ids to answer from, without `query`
        only from what they stand for; `deadline_ms`: how long all of it may take. What is None is
        the engine's default. A model that fails or takes too long is no error but a `status`.
        """
        given = paging.named(
            None,
            question=question,
            query=query,
            summaries=summaries,
            max_tokens=max_tokens,
            token_cap=token_cap,
            all=all,
            only=only,
            grant=grant,
            timeout_ms=deadline_ms,
        )
        return self._run(  # type: ignore[no-any-return]
            compaction.ask(conversation, given, lambda: self._now(now), self._asking)
        )

    def grant(
        self,
        conversation: str,
        *,
        conversations: Iterable[str] | None = None,
        summaries: Iterable[str] | None = None,
        depth_max: int | None = None,
        tokens_max: int | None = None,
        ttl_ms: int | None = None,
        from_grant: str | None = None,
        now: int | None = None,
    ) -> Grant:
        """Makes a grant, a limited right to read for a sub-agent.

        Its `id` is the `grant` of `grep`, `describe`, `expand` and `ask`, and the `caller` of `call_tool`.
        `from_grant`: one that it inherits from. What is None is the engine's default.
        """
        limits = paging.named(
            None,
            conversations=conversations,
            summaries=summaries,
            depth_max=depth_max,
            tokens_max=tokens_max,
            ttl_ms=ttl_ms,
            **{"from": from_grant},
        )
        return self._run(  # type: ignore[no-any-return]
            paging.grant(conversation, limits, self._now(now))
        )

    def revoke(self, conversation: str, grant: str, *, now: int | None = None) -> None:
        """Ends a grant at once, with those that inherit from it."""
        self._run(paging.revoke(conversation, grant, self._now(now)))

    def messages(
        self, conversation: str, seq_from: int = 1, seq_to: int | None = None
    ) -> list[str]:
        """The original texts of messages `seq_from` to `seq_to`, both included; None: the last."""
        return self._run(  # type: ignore[no-any-return]
            paging.messages(conversation, seq_from, seq_to)
        )

    def status(self, conversation: str | None = None, *, now: int | None = None) -> dict[str, Any]:
        """Counts and sizes of a conversation, or of the whole store."""
        return self._run(  # type: ignore[no-any-return]
            paging.status(conversation, self._now(now))
        )

    def family(
        self, conversation: str, key: str, *, dry_run: bool = False, now: int | None = None
    ) -> dict[str, Any]:
        """Makes the conversation one of a family, whose members are searched together."""
        arguments = {"key": key, "dry_run": dry_run}
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "family", arguments, self._now(now))
        )

    def reset(
        self,
        conversation: str,
        *,
        successor: str | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> dict[str, Any]:
        """Archives the conversation; `conversation` of the answer is the empty one to go on in."""
        arguments = {"successor": successor, "dry_run": dry_run}
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "reset", arguments, self._now(now))
        )

    def new_session(
        self,
        conversation: str,
        *,
        retain_depth: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> dict[str, Any]:
        """Withdraws messages and summaries of less than this depth from the context.

        They are found, expanded and exported as before. -1: everything stays.
        """
        arguments = {"retain_depth": retain_depth, "dry_run": dry_run}
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "new", arguments, self._now(now))
        )

    def archive(
        self, conversation: str, cause: str, *, dry_run: bool = False, now: int | None = None
    ) -> dict[str, Any]:
        """Archives the conversation: it is read as before and not written to."""
        arguments = {"cause": cause, "dry_run": dry_run}
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "archive", arguments, self._now(now))
        )

    def focus(
        self,
        conversation: str,
        text: str | None = None,
        *,
        seq_last: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> dict[str, Any]:
        """Sets the brief that stands for the summaries of messages up to `seq_last`.

        Absent, that is the newest message. Without `text` there is no brief any more.
        """
        arguments = {"text": text, "seq_last": seq_last, "dry_run": dry_run}
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "focus", arguments, self._now(now))
        )

    def calibrate(
        self,
        conversation: str,
        model: str,
        estimated_tokens: int,
        prompt_tokens: int,
        *,
        dry_run: bool = False,
        now: int | None = None,
    ) -> dict[str, Any]:
        """Reports what a provider counted of a prompt, and the estimate of the same prompt.

        The estimate is `tokens` of the assembly and the `estimate` of what was added to it. With
        `model` the other calls then keep their budgets in this model's tokens.
        """
        arguments = {
            "model": model,
            "estimated_tokens": estimated_tokens,
            "prompt_tokens": prompt_tokens,
            "dry_run": dry_run,
        }
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "calibrate", arguments, self._now(now))
        )

    def usage(
        self,
        conversation: str,
        purpose: SpentOn,
        *,
        input_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        output_tokens: int = 0,
        cost_micros: int = 0,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Reported:
        """Reports what one answer of a model took; returns the sums so far.

        `purpose` is `turn` or `summary`. `input_tokens` are those of the whole prompt, in the
        provider's cache or not; the cost is in millionths of one currency.
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
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "usage", arguments, self._now(now))
        )

    def advise(
        self,
        conversation: str,
        budget: int,
        prices: Prices,
        *,
        cache_ms: int | None = None,
        turns: int | None = None,
        observed_tokens: int | None = None,
        model: str | None = None,
        now: int | None = None,
    ) -> Advice:
        """Whether compacting now costs less than waiting: `advice`, `reason` and what both cost.

        `prices` are of a million tokens, in millionths of a currency: `input`, `output`, and where
        they differ `cache_read`, `cache_write`, `summary_input`, `summary_output`. `cache_ms` is
        how long the provider keeps a prefix, `turns` how many prompts are to come. Changes nothing.
        """
        arguments = {
            "budget": budget,
            "prices": prices,
            "cache_ms": cache_ms,
            "turns": turns,
            "observed_tokens": observed_tokens,
            "model": model,
        }
        return self._run(  # type: ignore[no-any-return]
            paging.life(conversation, "advise", arguments, self._now(now))
        )

    def prompts(self) -> list[dict[str, Any]]:
        """What summaries are asked for as configured, by depth: `name`, `version`, `text`, ..."""
        return self._run(paging.prompts())  # type: ignore[no-any-return]

    def check(self, conversation: str) -> dict[str, Any]:
        """Whether what is stored of a conversation agrees with itself."""
        return self._run(paging.check(conversation))  # type: ignore[no-any-return]

    def digest(self, *, logical: bool = False) -> str:
        """SHA-256 of the whole store, 64 hex digits; `logical`: of its meaning, not its bytes."""
        return self._run(paging.digest(logical))  # type: ignore[no-any-return]

    def listing(self, kind: str, conversation: str | None = None) -> list[Any]:
        """All entries of a kind: `conversations`, or `summaries`, `messages`, `grants` of one."""
        return self._run(paging.listing(kind, conversation))  # type: ignore[no-any-return]

    def tools(self, dialect: Dialect = "lcm", *, caller: str | None = None) -> list[Any]:
        """Definitions of the agent's tools in the provider's format.

        With `caller`, a grant, those of a sub-agent.
        """
        return self._run(  # type: ignore[no-any-return]
            flows.parsed("tools.definitions", {"dialect": dialect, "caller": caller})
        )

    def instructions(self, dialect: Dialect = "lcm", has_summaries: bool = True) -> str:
        """Text for the system prompt that says when to use the tools."""
        arguments = {"dialect": dialect, "has_summaries": has_summaries}
        return self.call("tools.instructions", arguments)  # type: ignore[no-any-return]

    def call_tool(
        self,
        conversation: str,
        name: str,
        arguments: Any,
        *,
        caller: str | None = None,
        now: int | None = None,
    ) -> ToolAnswer:
        """Answers a tool call of the agent; `caller` is the grant of a sub-agent."""
        return self._run(  # type: ignore[no-any-return]
            compaction.call_tool(
                conversation, name, arguments, caller, lambda: self._now(now), self._asking
            )
        )

    def close(self) -> None:
        """Closes the store."""
        self._session.instance.drop()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
