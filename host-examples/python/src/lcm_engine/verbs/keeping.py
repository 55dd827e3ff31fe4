"""What a store has, and the life of its conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import flows, paging
from ..flows import Flow
from ..results import ArchiveCause, CheckResult, ImportReport, ListingKind
from ..texts import to_json
from ..verb import Opened, Pages, Stream, Verb



class Keeping(Opened):
    """Status, sessions, checks, exports and configuration."""

    @Verb
    def configure(self, config: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        """Replaces the configuration, also what came from the environment.

        The answer says what became of each key.

        ```python
        report = lcm.configure({"enabled": True})
        assert report["accepted"] == ["enabled"]
        ```
        """
        return flows.configure(to_json(dict(config), "config"), self._reconfigure)

    @Verb
    def version(self) -> Flow[str]:
        """The version of the engine.

        ```python
        assert lcm.version().count(".") == 2
        ```
        """
        return flows.called("setup.version", {})

    @Verb
    def status(
        self, conversation: str | None = None, *, now: int | None = None
    ) -> Flow[dict[str, Any]]:
        """Counts and sizes of a conversation, or of the whole store.

        ```python
        assert lcm.status("chat")["conversation"] == "chat"
        assert lcm.status()["conversations"] == 1
        ```
        """
        return paging.status(conversation, self._now(now))

    @Verb
    def family(
        self, conversation: str, family: str, *, dry_run: bool = False, now: int | None = None
    ) -> Flow[dict[str, Any]]:
        """Makes the conversation one of a family, whose members are searched together.

        ```python
        lcm.family("chat", "orchard")
        lcm.append("other", [{"role": "user", "content": "A quokka."}], family="orchard")
        assert lcm.grep("chat", "quokka")["total"] == 1
        ```
        """
        arguments = {"family": family, "dry_run": dry_run}
        return paging.life(conversation, "family", arguments, self._now(now))

    @Verb
    def reset(
        self,
        conversation: str,
        *,
        successor: str | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[dict[str, Any]]:
        """Archives the conversation; `conversation` of the answer is the empty one to go on in.

        ```python
        fresh = lcm.reset("chat")["conversation"]
        lcm.append(fresh, [{"role": "user", "content": "Start again."}])
        ```
        """
        arguments = {"successor": successor, "dry_run": dry_run}
        return paging.life(conversation, "reset", arguments, self._now(now))

    @Verb
    def new_session(
        self,
        conversation: str,
        *,
        retain_depth: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[dict[str, Any]]:
        """Withdraws messages and summaries of less than this depth from the context.

        They are found, expanded and exported as before. -1: everything stays.

        ```python
        assert lcm.new_session("chat")["messages"] > 0
        assert lcm.grep("chat", "orchard")["total"] > 0  # Withdrawn messages are found as before.
        ```
        """
        arguments = {"retain_depth": retain_depth, "dry_run": dry_run}
        return paging.life(conversation, "new", arguments, self._now(now))

    @Verb
    def archive(
        self,
        conversation: str,
        cause: ArchiveCause,
        *,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[dict[str, Any]]:
        """Archives the conversation: it is read as before and not written to.

        ```python
        lcm.archive("chat", "session-end")
        assert lcm.messages("chat", 1, 1)
        ```
        """
        arguments = {"cause": cause, "dry_run": dry_run}
        return paging.life(conversation, "archive", arguments, self._now(now))

    @Verb
    def focus(
        self,
        conversation: str,
        text: str | None = None,
        *,
        seq_last: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[dict[str, Any]]:
        """Sets the brief that stands for the summaries of messages up to `seq_last`.

        Absent, that is the newest message. Without `text` there is no brief any more.

        ```python
        lcm.focus("chat", "The retry queue is fixed; the report is open.")
        assert lcm.focus("chat")["focus"] is None  # Removed again.
        ```
        """
        arguments = {"text": text, "seq_last": seq_last, "dry_run": dry_run}
        return paging.life(conversation, "focus", arguments, self._now(now))

    @Verb
    def check(self, conversation: str) -> Flow[CheckResult]:
        """Whether what is stored of a conversation agrees with itself.

        ```python
        assert lcm.check("chat")["ok"]
        ```
        """
        return paging.check(conversation)

    @Verb
    def digest(self, *, logical: bool = False) -> Flow[str]:
        """SHA-256 of the whole store, 64 hex digits; `logical`: of its meaning, not its bytes.

        ```python
        before = lcm.digest()
        lcm.assemble("chat", budget=8_000)  # Reads only.
        assert lcm.digest() == before
        ```
        """
        return paging.digest(logical)

    @Verb
    def listing(self, kind: ListingKind, conversation: str | None = None) -> Flow[list[Any]]:
        """All entries of a kind: `conversations`, or `summaries`, `messages`, `grants` of one.

        ```python
        ids = [entry["conversation"] for entry in lcm.listing("conversations")]
        assert ids == ["chat"]
        ```
        """
        return paging.listing(kind, conversation)

    @Stream
    def export(self, conversation: str | None = None) -> Pages[str]:
        """The lines of an export of a conversation, or of all, without line ends.

        `conflict`: somebody wrote to it meanwhile; what was taken is no export.

        ```python
        lines = list(lcm.export("chat"))
        assert lines[0].startswith('{"header":')
        ```
        """
        return paging.exported(conversation)

    @Verb
    def import_lines(self, lines: Iterable[str], *, now: int | None = None) -> Flow[ImportReport]:
        """Takes an export in; everything is verified before the first message is stored.

        Repeating it changes nothing.

        ```python
        lines = list(lcm.export("chat"))
        assert lcm.import_lines(lines)["ingested"] == 0  # All of it is stored already.
        ```
        """
        return paging.import_lines(lines, self._now(now))
