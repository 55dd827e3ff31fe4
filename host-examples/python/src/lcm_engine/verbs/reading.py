"""Contexts, originals, searches, answers and tools of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NotRequired

from .. import flows, paging, questions
from ..flows import Fields, Flow
from ..results import (
    AskResult,
    AssembledContext,
    DescribeOptions,
    Description,
    Dialect,
    EmbedResult,
    EvictionPolicy,
    ExpandResult,
    Grant,
    GrepMode,
    GrepOptions,
    GrepResult,
    GrepScope,
    GrepSort,
    JsonObject,
    Message,
    QuestionPlan,
    ToolAnswer,
    ToolScope,
)
from ..texts import to_texts
from ..verb import Opened, Pages, Stream, Verb


class GrepQuery(GrepOptions):
    """A search as one dict: the pattern and the options of the search."""

    pattern: NotRequired[str]
    """Text, words or regular expression to search for; absent: `vector` alone."""


class Reading(Opened):
    """The verbs that read: contexts, searches, expansion, questions, tools of an agent."""

    @Verb
    def assemble(
        self,
        conversation: str,
        budget: int,
        *,
        dialect: Dialect | None = None,
        policy: EvictionPolicy | None = None,
        prompt: str | None = None,
        reserve_tokens: int = 0,
        model: str | None = None,
        live_messages: Iterable[Message] = (),
        previous: str | None = None,
        explain: bool = False,
        mark_caches: bool = False,
        may_be_new: bool = False,
        now: int | None = None,
    ) -> Flow[AssembledContext]:
        """Assembles a context for a budget in tokens; reads only.

        Only the protected part (newest messages, pinned message, focus brief, live messages) can
        exceed the budget. `mark_caches`: marks messages as cache breakpoints of Anthropic.
        `may_be_new`: whether the conversation need not exist; its context is then empty.

        ```python
        context = lcm.assemble("chat", budget=3_000, dialect="anthropic")
        assert context["tokens"] <= 3_000 and context["messages"][0]["role"] == "user"
        ```
        """
        options = {
            "policy": policy,
            "prompt": prompt,
            "reserve_tokens": reserve_tokens,
            **flows.model_option(model, mark_caches, may_be_new),
            "live_messages": to_texts(live_messages),
            "previous": previous,
            "explain": explain,
        }
        return flows.assemble(
            conversation, budget, dialect or self._dialect, options, self._now(now)
        )

    @Verb
    def describe(
        self,
        conversation: str,
        id: str,
        options: DescribeOptions | None = None,
        *,
        all_conversations: bool | None = None,
        include_content: bool | None = None,
        bytes_max: int | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        start_byte: int | None = None,
        end_byte: int | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> Flow[Description]:
        """Describes a summary, message, file, conversation or version of the system messages.

        The range of a file is `start_line` to `end_line` (from 1, inclusive) or `start_byte` to
        `end_byte` (from 0, exclusive), at most `bytes_max`; `include_content` False: no content.
        `all_conversations`: the id is searched in every conversation of the store.
        `options` is a dict of the same options; an option given by name takes precedence.

        ```python
        summary = lcm.listing("summaries", "chat")[0]
        assert lcm.describe("chat", summary["id"])["seq_first"] == summary["seq_first"]
        ```
        """
        given = paging.named(
            options,
            all_conversations=all_conversations,
            include_content=include_content,
            bytes_max=bytes_max,
            start_line=start_line,
            end_line=end_line,
            start_byte=start_byte,
            end_byte=end_byte,
            grant=grant,
            now=now,
        )
        grant, moment = given.pop("grant", None), self._now(given.pop("now", None))
        return paging.describe(conversation, id, given, grant, moment)

    @Verb
    def expand(
        self,
        conversation: str,
        id: str,
        *,
        depth_max: int | None = None,
        include_messages: bool = False,
        tokens_max: int | None = None,
        cursor: str | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> Flow[ExpandResult]:
        """Returns the sources of a summary; without `tokens_max` all pages.

        ```python
        summary = lcm.listing("summaries", "chat")[0]
        messages = lcm.expand("chat", summary["id"], include_messages=True)["messages"]
        assert messages[0]["raw"] in lcm.messages("chat")  # Byte for byte.
        ```
        """
        options = {
            "depth_max": depth_max,
            "include_messages": include_messages,
            "tokens_max": tokens_max,
            "cursor": cursor,
        }
        return paging.expand(conversation, id, options, grant, self._now(now))

    @Stream
    def iter_expand(
        self,
        conversation: str,
        id: str,
        *,
        depth_max: int | None = None,
        include_messages: bool = False,
        tokens_max: int | None = None,
        cursor: str | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> Pages[ExpandResult]:
        """Yields the pages of an expansion; `tokens_max` bounds one page.

        ```python
        summary = lcm.listing("summaries", "chat")[0]
        for page in lcm.iter_expand("chat", summary["id"], include_messages=True):
            assert page["messages"]
        ```
        """
        options = {
            "depth_max": depth_max,
            "include_messages": include_messages,
            "tokens_max": tokens_max,
            "cursor": cursor,
        }
        return paging.expanded(conversation, id, options, grant, self._now(now))

    @Verb
    def grep(
        self,
        conversation: str,
        query: str | GrepQuery,
        *,
        mode: GrepMode | None = None,
        scope: GrepScope | None = None,
        file_ids: Iterable[str] | None = None,
        cursor: str | None = None,
        start_byte: int | None = None,
        neighbours: int | None = None,
        sort: GrepSort | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        all_conversations: bool | None = None,
        only: bool | None = None,
        vector: Iterable[float] | None = None,
        model: str | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> Flow[GrepResult]:
        """Searches messages, summaries or files for a pattern.

        `query` is the pattern, or a dict of `pattern` and the options; an option given by name
        takes precedence. `all_conversations`: search the whole store; `only`: search without the
        family. With the scope `files` large payloads are searched, all or those of `file_ids`. If
        an answer has a `cursor`, pass it to the same search to continue. `neighbours`: number of
        messages to return before and after each match. `vector`: an embedding of the text to find,
        made with the same model as the vectors of `embed`.

        ```python
        found = lcm.grep("chat", "orchard weather", limit=5)
        assert found["matches"][0]["id"].startswith(("msg_", "sum_"))
        ```
        """
        given = paging.named(
            {"pattern": query} if isinstance(query, str) else query,
            mode=mode,
            scope=scope,
            file_ids=file_ids,
            cursor=cursor,
            start_byte=start_byte,
            neighbours=neighbours,
            sort=sort,
            since=since,
            before=before,
            limit=limit,
            all_conversations=all_conversations,
            only=only,
            vector=vector,
            model=model,
            grant=grant,
            now=now,
        )
        grant, moment = given.pop("grant", None), self._now(given.pop("now", None))
        return paging.grep(conversation, given, grant, moment)

    @Verb
    def embed(
        self,
        conversation: str,
        vectors: Mapping[str, Iterable[float] | None] | None = None,
        *,
        model: str | None = None,
        forget: bool = False,
    ) -> Flow[EmbedResult]:
        """Attaches embeddings to messages and summaries, by id, for `vector` of `grep`.

        None in place of a vector removes the vector. `model`: the model that made the vectors.
        `forget`: removes stored vectors; repeat the call until `stored` is 0. `missing_ids` of the
        answer are ids without a vector, `missing_count` is their number.

        ```python
        missing = lcm.embed("chat", model="small")["missing_ids"]
        vector = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5]
        assert lcm.embed("chat", {missing[0]: vector}, model="small")["stored"] == 1
        ```
        """
        return paging.embed(conversation, vectors, model, forget)

    @Verb
    def ask(
        self,
        conversation: str,
        question: str,
        *,
        query: str | None = None,
        summary_ids: Iterable[str] | None = None,
        answer_tokens_max: int | None = None,
        tokens_max: int | None = None,
        all_conversations: bool | None = None,
        only: bool | None = None,
        grant: str | None = None,
        deadline_ms: int | None = None,
        retries: int | None = None,
        timeout_ms: int | None = None,
        now: int | None = None,
    ) -> Flow[AskResult]:
        """Answers a question from stored messages and cites their ids.

        `query`: words to search for instead of the question. `summary_ids`: summaries to answer
        from; without `query`, only their messages are read. `deadline_ms`: time for the whole call.
        None: the engine's default, or for `retries` and `timeout_ms` the value of `open`. The
        failure of a model is a `status`, not an error.

        ```python
        asked = lcm.ask("chat", "Who ate the quokka?")
        assert asked["status"] == "no-evidence" and asked["answer"] is None
        ```
        """
        given = paging.named(
            None,
            question=question,
            query=query,
            summary_ids=summary_ids,
            answer_tokens_max=answer_tokens_max,
            tokens_max=tokens_max,
            all_conversations=all_conversations,
            only=only,
            grant=grant,
            deadline_ms=deadline_ms,
        )
        asking = self._asking.with_(retries, timeout_ms)
        return questions.ask(conversation, given, lambda: self._now(now), asking)

    @Verb
    def ask_plan(
        self,
        conversation: str,
        question: str,
        *,
        query: str | None = None,
        summary_ids: Iterable[str] | None = None,
        answer_tokens_max: int | None = None,
        tokens_max: int | None = None,
        all_conversations: bool | None = None,
        only: bool | None = None,
        grant: str | None = None,
        now: int | None = None,
    ) -> Flow[QuestionPlan]:
        """Returns the evidence that `ask` would read; asks no model, writes nothing.

        `routing` advises whether a sub-agent should read the evidence. The arguments are as for
        `ask`.

        ```python
        plan = lcm.ask_plan("chat", "Why was the frost alert late?")
        assert plan["status"] == "planned" and plan["routing"]["action"]
        ```
        """
        given = paging.named(
            None,
            question=question,
            query=query,
            summary_ids=summary_ids,
            answer_tokens_max=answer_tokens_max,
            tokens_max=tokens_max,
            all_conversations=all_conversations,
            only=only,
            grant=grant,
            plan_only=True,
        )
        return questions.ask_plan(conversation, given, self._now(now))

    @Verb
    def messages(
        self, conversation: str, seq_first: int = 1, seq_last: int | None = None
    ) -> Flow[list[str]]:
        """Returns the original texts of messages `seq_first` to `seq_last`; None: to the newest.

        ```python
        first, second = lcm.messages("chat", 1, 2)
        assert json.loads(first)["role"] == "user"
        ```
        """
        return paging.messages(conversation, seq_first, seq_last)

    @Stream
    def iter_messages(
        self, conversation: str, seq_first: int = 1, seq_last: int | None = None
    ) -> Pages[str]:
        """Yields the original texts of messages; one engine call reads at most 1 MiB.

        ```python
        for text in lcm.iter_messages("chat"):
            assert json.loads(text)["role"]
        ```
        """
        return paging.messages_from(conversation, seq_first, seq_last)

    @Verb
    def grant(
        self,
        conversation: str,
        *,
        conversations: Iterable[str] | None = None,
        summary_ids: Iterable[str] | None = None,
        depth_max: int | None = None,
        tokens_max: int | None = None,
        ttl_ms: int | None = None,
        parent: str | None = None,
        now: int | None = None,
    ) -> Flow[Grant]:
        """Creates a grant, a limited right to read for a sub-agent.

        Its `id` is the `grant` of `grep`, `describe`, `expand`, `ask`, `tools` and `call_tool`.
        `parent`: the grant to inherit limits from. For other arguments, None is the engine's
        default.

        ```python
        grant = lcm.grant("chat", ttl_ms=60_000)["id"]
        assert lcm.grep("chat", "orchard", grant=grant)["total"] > 0
        ```
        """
        limits = paging.named(
            None,
            conversations=conversations,
            summary_ids=summary_ids,
            depth_max=depth_max,
            tokens_max=tokens_max,
            ttl_ms=ttl_ms,
            parent=parent,
        )
        return paging.grant(conversation, limits, self._now(now))

    @Verb
    def revoke(self, conversation: str, grant: str, *, now: int | None = None) -> Flow[None]:
        """Revokes a grant at once, with all grants that inherit from it.

        ```python
        grant = lcm.grant("chat")["id"]
        lcm.revoke("chat", grant)
        try:
            lcm.grep("chat", "orchard", grant=grant)
        except LcmError as error:
            assert error.code == "denied"
        ```
        """
        return paging.revoke(conversation, grant, self._now(now))

    @Verb
    def tools(
        self,
        dialect: Dialect | None = None,
        *,
        grant: str | None = None,
        scope: ToolScope | None = None,
    ) -> Flow[list[JsonObject]]:
        """Returns the definitions of the agent's tools in the provider's format.

        With `grant`: the tools of a sub-agent. `scope` must be the scope of later calls; None: the
        `scope` of `open`.

        ```python
        names = [tool["name"] for tool in lcm.tools("anthropic")]
        assert "lcm_grep" in names
        ```
        """
        access: Fields = {"grant": grant, "scope": self._scope if scope is None else scope}
        return flows.parsed(
            "tools.definitions", {"dialect": dialect or self._dialect} | access
        )

    @Verb
    def instructions(self, dialect: Dialect | None = None, has_summaries: bool = True) -> Flow[str]:
        """Returns a text for the system prompt that says when to use the tools.

        ```python
        assert "lcm_grep" in lcm.instructions()
        ```
        """
        arguments = {"dialect": dialect or self._dialect, "has_summaries": has_summaries}
        return flows.called("tools.instructions", arguments)

    @Verb
    def call_tool(
        self,
        conversation: str,
        name: str,
        arguments: Mapping[str, object] | str,
        *,
        grant: str | None = None,
        scope: ToolScope | None = None,
        retries: int | None = None,
        timeout_ms: int | None = None,
        now: int | None = None,
    ) -> Flow[ToolAnswer]:
        """Answers a tool call of the agent, or with `grant` of a sub-agent.

        The tool reads the conversation and its family, or with the `scope` `store` the whole
        store (None: the `scope` of `open`). Nothing in `arguments` widens that.

        `failure` reports the failure of a model to your program; `text` reports the failure to the
        agent's model.

        ```python
        answer = lcm.call_tool("chat", "lcm_grep", {"pattern": "orchard"})
        assert not answer["is_error"] and "msg_" in answer["text"]
        ```
        """
        asking = self._asking.with_(retries, timeout_ms)
        access: Fields = {"grant": grant, "scope": self._scope if scope is None else scope}
        return questions.call_tool(
            conversation, name, arguments, access, lambda: self._now(now), asking
        )
