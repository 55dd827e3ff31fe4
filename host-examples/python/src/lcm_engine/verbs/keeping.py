"""Status, checks and exports of a store, and the life of its conversations."""

from __future__ import annotations

from collections.abc import Iterable

from .. import flows, paging
from ..flows import Flow
from ..results import (
    ArchiveAnswer,
    ArchiveCause,
    CheckResult,
    Configuration,
    ConfigurationReport,
    DeletionResult,
    FamilyAnswer,
    FocusAnswer,
    ImportReport,
    ListedItem,
    ListingKind,
    LiveAnswer,
    NewSessionAnswer,
    ResetAnswer,
    RewindAnswer,
    StatusReport,
)
from ..texts import to_json
from ..verb import Opened, Pages, Stream, Verb
from .overloads import listing_verb, status_verb


class Keeping(Opened):
    """The verbs of status, sessions, checks, exports and configuration."""

    @Verb
    def configure(self, config: Configuration) -> Flow[ConfigurationReport]:
        """Replaces the configuration, including values of the environment.

        The report lists the treatment of each key. The store does not change, even if the new
        configuration names another `database_path`.

        ```python
        report = lcm.configure({"enabled": True})
        assert report["accepted"] == ["enabled"]
        ```
        """
        return flows.configure(to_json(dict(config), "config"), self._follow)

    @Verb
    def version(self) -> Flow[str]:
        """Returns the version of the engine.

        ```python
        assert lcm.version().count(".") == 2
        ```
        """
        return flows.called("setup.version", {})

    @status_verb
    def status(
        self, conversation: str | None = None, *, now: int | None = None
    ) -> Flow[StatusReport]:
        """Returns counts and sizes of a conversation, or of the whole store.

        ```python
        assert lcm.status("chat")["conversation"] == "chat"
        assert lcm.status()["conversations"] == 1
        ```
        """
        return paging.status(conversation, self._now(now))

    @Verb
    def family(
        self, conversation: str, family: str, *, dry_run: bool = False, now: int | None = None
    ) -> Flow[FamilyAnswer]:
        """Adds the conversation to a family, whose members are searched together.

        ```python
        lcm.family("chat", "orchard")
        lcm.append("other", [{"role": "user", "content": "A quokka."}], family="orchard")
        assert lcm.grep("chat", "quokka")["total"] == 1
        ```
        """
        arguments = {"family": family, "dry_run": dry_run}
        return paging.life(conversation, "family", arguments, self._now(now))

    @Verb
    def live(self, family: str) -> Flow[LiveAnswer]:
        """Lists the `members` of a family, and finds the `conversation` that is not archived.

        Of several the latest to join; None when all are archived.

        ```python
        lcm.family("chat", "orchard")
        fresh = lcm.reset("chat")["conversation"]
        assert lcm.live("orchard")["conversation"] == fresh
        ```
        """
        return paging.life("", "live", {"family": family}, self._now(None))

    @Verb
    def reset(
        self,
        conversation: str,
        *,
        successor: str | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[ResetAnswer]:
        """Archives the conversation; `conversation` of the answer is the empty successor.

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
    ) -> Flow[NewSessionAnswer]:
        """Withdraws messages and summaries below a depth from the context.

        Withdrawn messages are found, expanded and exported as before. `retain_depth`: least depth
        of the summaries that stay; -1: everything stays; None: as configured.

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
    ) -> Flow[ArchiveAnswer]:
        """Archives the conversation: reads work as before, writes fail.

        ```python
        lcm.archive("chat", "session-end")
        assert lcm.messages("chat", 1, 1)
        ```
        """
        arguments = {"cause": cause, "dry_run": dry_run}
        return paging.life(conversation, "archive", arguments, self._now(now))

    @Verb
    def delete(self, conversation: str, *, now: int | None = None) -> Flow[DeletionResult]:
        """Deletes the conversation, and what other conversations have of it.

        Grants of other conversations that cover it are deleted, too, and so are questions and
        answers with evidence from it. After a crash the next `delete` of the id continues; until
        then other calls of the conversation fail with `denied`.

        ```python
        assert lcm.delete("chat")["messages"] == 64
        lcm.append("chat", [{"role": "user", "content": "A new conversation."}])
        ```
        """
        return paging.delete(conversation, lambda: self._now(now))

    @Verb
    def focus(
        self,
        conversation: str,
        text: str | None = None,
        *,
        seq_last: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[FocusAnswer]:
        """Sets the brief that replaces the summaries of messages up to `seq_last` in contexts.

        `seq_last` None: the newest message. `text` None: removes the brief.

        ```python
        lcm.focus("chat", "The retry queue is fixed; the report is open.")
        assert lcm.focus("chat")["focus"] is None  # Removed again.
        ```
        """
        arguments = {"text": text, "seq_last": seq_last, "dry_run": dry_run}
        return paging.life(conversation, "focus", arguments, self._now(now))

    @Verb
    def rewind(
        self,
        conversation: str,
        *,
        to: int | None = None,
        units: int | None = None,
        seq_seen: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[RewindAnswer]:
        """Sets aside the messages after the seq `to`, or the newest `units`.

        They stay stored, and are in no context. If `to` was set aside, its branch comes back.

        ```python
        assert lcm.rewind("chat", to=62)["set_aside"] == 2
        assert lcm.rewind("chat", to=64)["restored"] == 2
        ```
        """
        arguments = {"to": to, "units": units, "seq_seen": seq_seen, "dry_run": dry_run}
        return paging.life(conversation, "rewind", arguments, self._now(now))

    @Verb
    def pop(
        self,
        conversation: str,
        *,
        seq_seen: int | None = None,
        dry_run: bool = False,
        now: int | None = None,
    ) -> Flow[RewindAnswer]:
        """Sets aside the newest message, or the newest call with its results, and returns it.

        ```python
        popped = lcm.pop("chat")
        assert popped["seq_last"] == 64 - popped["set_aside"]
        ```
        """
        arguments = {"units": 1, "seq_seen": seq_seen, "dry_run": dry_run}
        return paging.life(conversation, "rewind", arguments, self._now(now))

    @Verb
    def check(self, conversation: str) -> Flow[CheckResult]:
        """Checks that the stored records of a conversation are consistent.

        ```python
        assert lcm.check("chat")["ok"]
        ```
        """
        return paging.check(conversation)

    @Verb
    def digest(self, *, logical: bool = False) -> Flow[str]:
        """Returns the SHA-256 of the store, 64 hex digits; `logical`: of the content, not bytes.

        ```python
        before = lcm.digest()
        lcm.assemble("chat", budget=8_000)  # Reads only.
        assert lcm.digest() == before
        ```
        """
        return paging.digest(logical)

    @listing_verb
    def listing(self, kind: ListingKind, conversation: str | None = None) -> Flow[list[ListedItem]]:
        """Lists `conversations`, `deletions`, or the `summaries`, `messages` or `grants` of one.

        ```python
        ids = [entry["conversation"] for entry in lcm.listing("conversations")]
        assert ids == ["chat"]
        ```
        """
        return paging.listing(kind, conversation)

    @Stream
    def export(self, conversation: str | None = None) -> Pages[str]:
        """Yields the lines of an export of one or all conversations, without line ends.

        Raises `conflict` if another writer changed the conversation; the lines so far are then no
        valid export.

        ```python
        lines = list(lcm.export("chat"))
        assert lines[0].startswith('{"header":')
        ```
        """
        return paging.exported(conversation)

    @Verb
    def import_lines(self, lines: Iterable[str], *, now: int | None = None) -> Flow[ImportReport]:
        """Imports an export; all lines are verified before the first message is stored.

        A repeated import changes nothing.

        ```python
        lines = list(lcm.export("chat"))
        assert lcm.import_lines(lines)["ingested"] == 0  # All of it is stored already.
        ```
        """
        return paging.import_lines(lines, self._now(now))
