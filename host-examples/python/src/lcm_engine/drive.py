"""Tasks of several calls: the engine returns instructions, and the host carries them out.

In: a task and what only the host has, its messages and models. Out: the result of the task.
`wit/drive.wit` describes the instructions; the host decides nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .completions import Answered
from .errors import LcmError
from .flows import Call, Fields, Flow, Pause, is_stop, told
from .models import Asking
from .models_asking import ask_all
from .refusal import task_error, task_result
from .results import CompactionPass, CompletionRequest
from .texts import byte_length, piece, to_json, upload_id


@dataclass
class Outcome:
    """The outcome of a task; `wit/drive.wit` describes the members of `result`."""

    result: Fields = field(default_factory=dict)
    passes: list[CompactionPass] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, instruction: Fields) -> None:
        """Keeps what an instruction reports of the task."""
        if "pass" in instruction:
            self.passes.append(instruction["pass"])
        self.warnings = list(dict.fromkeys(self.warnings + instruction.get("warnings", [])))
        self.result |= instruction.get("note", {}) | instruction.get("result", {})


class _Driver:
    """A task in progress."""

    def __init__(self, texts: list[str], asking: Asking | None) -> None:
        self.texts = list(texts)
        """The messages; a reference replaces a large message after its upload."""
        self.sizes = [byte_length(text) for text in texts]
        self.asking = asking
        self.kept: list[str] = []
        self.requests: list[CompletionRequest] = []
        self.answers: dict[int, Answered] = {}

    def perform(self, instruction: Fields) -> Flow[Fields]:
        """Carries out an instruction; returns its event."""
        if instruction["do"] == "complete":
            return {"answers": (yield from self.complete(instruction))}
        if instruction["do"] == "call":
            return {"result": (yield from self.call(instruction))}
        return {"staged": (yield from self.stage(instruction))}

    def call(self, instruction: Fields) -> Flow[Any]:
        name, arguments = instruction["call"], dict(instruction["arguments"])
        messages: Fields = instruction.get("messages", {})
        if messages:
            arguments["messages"] = self.cut(messages)
        if "entries" in instruction:
            asked, entries = arguments["transcript_json"][:-1], ",".join(self.kept)
            arguments["transcript_json"] = f'{asked},"entries":[{entries}]}}'
        place = instruction.get("request")
        if place is not None:
            arguments = {"answer": self.answers.get(place)} | arguments
            arguments["request_id"] = self.requests[place]["id"]
        result = yield Call(name, arguments, once="once" in instruction)
        if "keep" in instruction:
            before = self.kept if messages["index_first"] else []
            self.kept = [*before, result.strip()[1:-1]]
        elif name == "compaction.plan":
            self.requests = result["requests"]
        elif place is not None and result["next"] is not None:
            self.requests[place] = result["next"]
        return result

    def cut(self, messages: Fields) -> list[str]:
        """Returns the messages of one call: as many as fit, at least one unless `count` is 0."""
        start, size, taken = messages["index_first"], 0, 0
        for length in self.sizes[start : start + messages["count"]]:
            size += length
            if taken and size > messages["bytes_max"]:
                break
            taken += 1
        return self.texts[start : start + taken]

    def stage(self, instruction: Fields) -> Flow[int]:
        """Uploads the messages of a range that are too large for a call."""
        start, staged = instruction["index_first"], 0
        for index in range(start, start + instruction["count"]):
            text = self.texts[index]
            if self.sizes[index] > instruction["bytes_max"] and not text.startswith("@upload "):
                self.texts[index] = yield from self.upload(text, instruction)
                staged += 1
        return staged

    def upload(self, text: str, instruction: Fields) -> Flow[str]:
        raw, arguments = text.encode(), dict(instruction["arguments"])
        family, upload, offset = arguments.pop("family"), upload_id(raw), 0
        extra = {"bytes": len(raw)} | ({} if family is None else {"family": family})
        arguments |= {"upload": upload, "extra_json": to_json(extra)}
        while offset < len(raw):
            part = piece(raw, offset, instruction["piece_bytes_max"])
            offset = yield Call("ingest.stage", arguments | {"offset": offset, "text": part})
        return f"@upload {upload}"

    def complete(self, instruction: Fields) -> Flow[list[Fields]]:
        """Lets the models complete requests; returns the states of the answers."""
        assert self.asking is not None
        start, count = instruction["index_first"], instruction["count"]
        answers = yield from ask_all(self.asking, self.requests[start : start + count])
        events = []
        for index, (answer, asked) in enumerate(answers, start):
            self.answers[index] = answer
            state = {"done": True} if "done" in answer else answer
            events.append(state | {"asked": asked})
        return events


def drive(
    task: Fields,
    now: Callable[[], int],
    texts: list[str] | None = None,
    asking: Asking | None = None,
) -> Flow[Outcome]:
    """Carries out a task; raises the error that the task fails with.

    An exception that stops a compaction is raised after the task has given its requests back and
    recorded the end of a deferred compaction.
    """
    driver, outcome = _Driver(texts or [], asking), Outcome()
    if texts is not None:
        count, longest = len(texts), max(driver.sizes, default=0)
        task = task | {"count": count, "bytes": sum(driver.sizes), "bytes_longest": longest}
    begin = {"task_json": to_json(task), "now": now()}
    instruction = yield from told("drive.begin", begin)
    stop: BaseException | None = None
    while instruction["do"] not in ("done", "fail"):
        outcome.take(instruction)
        if wait_ms := instruction.get("wait_ms"):
            yield Pause(random.uniform(0, wait_ms / 1000))
        try:
            event = yield from driver.perform(instruction)
        except LcmError as error:
            event = {"error": {"code": error.code, "message": error.message}}
        except BaseException as error:
            if asking is None or stop is not None or not is_stop(error):
                raise
            event, stop = {"stopped": True}, error
        arguments = {"token": instruction["token"], "event_json": json.dumps(event)}
        instruction = yield from told("drive.step", arguments | {"now": now()})
    if stop is not None:
        raise stop
    if instruction["do"] == "fail":
        raise task_error(instruction["error"], driver.answers)
    outcome.take(instruction)
    outcome.result = task_result(outcome.result, driver.answers)
    return outcome
