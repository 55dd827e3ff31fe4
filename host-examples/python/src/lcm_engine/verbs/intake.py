"""Intake: storing and checking messages."""

from __future__ import annotations

from collections.abc import Iterable

from .. import flows, intake
from ..flows import Flow
from ..results import AppendMode, Dialect, JsonValue, Message, ReadDialect, Receipt
from ..texts import to_texts
from ..verb import Opened, Verb


class Intake(Opened):
    """The verbs that store messages, or check messages before they are stored."""

    @Verb
    def append(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: ReadDialect | None = None,
        append_mode: AppendMode = "transcript",
        repeat: bool = False,
        undated: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        seq_seen: int | None = None,
        system: JsonValue = None,
        now: int | None = None,
    ) -> Flow[Receipt]:
        """Stores the newest messages of a conversation that are not stored yet.

        The content of the list, whole or its end, is compared with the stored messages. With the
        `append_mode` `new`, every message is new unless its id or event key is stored.
        `seq_seen`: the `seq_seen` of the caller's last receipt. If the list diverges from the
        stored messages, messages that it lacks are set aside only if the caller has seen them all.
        `repeat`: the call repeats a call whose outcome is unknown. `system`: the system prompt, if
        it is not in the list.
        `undated`: a new message without a `timestamp` has no time instead of `now`.
        `refuse_replay`: a likely replay is an error (`exists`) instead of a warning.

        ```python
        receipt = lcm.append("new", [{"role": "user", "content": "Where do logs go?"}])
        assert receipt["ingested"] == 1
        ```
        """
        task = {
            "task": "append",
            "conversation": conversation,
            "dialect": dialect or self._dialect,
            "append_mode": append_mode,
            "repeat": repeat,
            "undated": undated,
            "refuse_replay": refuse_replay,
            "family": family,
            "seq_seen": seq_seen,
            "system": system,
        }
        return intake.intake(task, to_texts(messages), self._now(now))

    @Verb
    def ingest(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: ReadDialect | None = None,
        undated: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        seq_seen: int | None = None,
        system: JsonValue = None,
        now: int | None = None,
    ) -> Flow[Receipt]:
        """Stores the missing messages of a whole transcript of any length.

        ```python
        transcript = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
        assert lcm.ingest("new", transcript)["ingested"] == 2
        assert lcm.ingest("new", transcript)["ingested"] == 0
        ```
        """
        task = {
            "task": "ingest",
            "conversation": conversation,
            "dialect": dialect or self._dialect,
            "undated": undated,
            "refuse_replay": refuse_replay,
            "family": family,
            "seq_seen": seq_seen,
            "system": system,
        }
        return intake.intake(task, to_texts(messages), self._now(now))

    @Verb
    def estimate(
        self, messages: Iterable[Message], *, dialect: ReadDialect | None = None
    ) -> Flow[int]:
        """Estimates the tokens of messages that a host adds to a context; stores nothing.

        ```python
        tokens = lcm.estimate([{"role": "system", "content": "Answer in one sentence."}])
        assert 0 < tokens < 20
        ```
        """
        return flows.estimate(dialect or self._dialect, to_texts(messages))

    @Verb
    def validate(
        self, messages: Iterable[Message], dialect: Dialect | None = None
    ) -> Flow[list[str]]:
        """Returns the reasons why the provider of `dialect` would refuse messages, a line each.

        ```python
        refusals = lcm.validate([{"role": "user", "content": ""}], "anthropic")
        assert refusals == ["messages[0]: blank content"]
        ```
        """
        return flows.validate(dialect or self._dialect, to_texts(messages))
