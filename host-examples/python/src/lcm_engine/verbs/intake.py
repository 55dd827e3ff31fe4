"""How messages enter a conversation."""

from __future__ import annotations

from collections.abc import Iterable

from .. import flows, intake
from ..flows import Flow
from ..results import AppendMode, Dialect, Receipt
from ..texts import Message, to_texts
from ..verb import Opened, Verb


class Intake(Opened):
    """Appending, ingesting, and what messages are before they are stored."""

    @Verb
    def append(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: Dialect = "lcm",
        append_mode: AppendMode = "transcript",
        repeat: bool = False,
        refuse_replay: bool = False,
        family: str | None = None,
        now: int | None = None,
    ) -> Flow[Receipt]:
        """Stores what is not stored yet of the newest messages of a conversation.

        A list that one engine call takes is recognised against the stored tail; a longer one is
        ingested (see `ingest`). With the `append_mode` `new`
        every message is new unless its id or event key is stored.
        `repeat`: this call repeats one whose outcome is unknown. `refuse_replay`: a likely replay
        is an error (`exists`) instead of a warning.

        ```python
        receipt = lcm.append("new", [{"role": "user", "content": "Where do logs go?"}])
        assert receipt["ingested"] == 1
        ```
        """
        task = {
            "task": "append",
            "conversation": conversation,
            "dialect": dialect,
            "append_mode": append_mode,
            "repeat": repeat,
            "refuse_replay": refuse_replay,
            "family": family,
        }
        return intake.intake(task, to_texts(messages), self._now(now))

    @Verb
    def ingest(
        self,
        conversation: str,
        messages: Iterable[Message],
        *,
        dialect: Dialect = "lcm",
        refuse_replay: bool = False,
        family: str | None = None,
        now: int | None = None,
    ) -> Flow[Receipt]:
        """Stores what is missing of a whole transcript, however long it is.

        ```python
        transcript = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
        assert lcm.ingest("new", transcript)["ingested"] == 2
        assert lcm.ingest("new", transcript)["ingested"] == 0
        ```
        """
        task = {
            "task": "ingest",
            "conversation": conversation,
            "dialect": dialect,
            "refuse_replay": refuse_replay,
            "family": family,
        }
        return intake.intake(task, to_texts(messages), self._now(now))

    @Verb
    def estimate(self, messages: Iterable[Message], *, dialect: Dialect = "lcm") -> Flow[int]:
        """Estimated tokens of messages; stores nothing. For what is sent beside the context.

        ```python
        tokens = lcm.estimate([{"role": "system", "content": "Answer in one sentence."}])
        assert 0 < tokens < 20
        ```
        """
        return flows.estimate(dialect, to_texts(messages))

    @Verb
    def validate(self, messages: Iterable[Message], dialect: Dialect) -> Flow[list[str]]:
        """Why the provider of `dialect` would refuse messages, a line each; empty: it would not.

        ```python
        refusals = lcm.validate([{"role": "user", "content": ""}], "anthropic")
        assert refusals == ["messages[0]: blank content"]
        ```
        """
        return flows.validate(dialect, to_texts(messages))
