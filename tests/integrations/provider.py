"""A local server that answers as the model of an integration, with the rules of a provider.

It counts turns: the user's last text must be the text of the script for this turn. The first part
of a path names a run; `GET /RUN/report` returns the texts and the refusals of the run. Prints its
port and serves until it is killed.
"""

import base64
import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import play  # first: it adds the modules of the agent loop to the path
import provider_rules
import rules
import script
import server as loops

CHARACTERS_MAX = 5 * play.BUDGET
"""Most characters of all texts of a request."""


def list_texts(value: Any) -> Iterator[str]:
    """Yields all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from list_texts(inner)


class Chat(loops.OpenAi):
    """Chat Completions of OpenAI."""

    @staticmethod
    def shown(body: dict[str, Any]) -> list[Any]:
        """Returns the messages of a request."""
        return body["messages"]


class Responses:
    """The Responses API of OpenAI; the model sends a reasoning item before tool calls."""

    check = staticmethod(provider_rules.responses)
    error = staticmethod(loops.OpenAi.error)

    @staticmethod
    def shown(body: dict[str, Any]) -> list[Any]:
        """The items of a request."""
        return body["input"]

    @staticmethod
    def texts(item: dict[str, Any]) -> list[str]:
        """What the user said in an item."""
        content = item.get("content", "")
        if item.get("role") != "user":
            return []
        return [content] if isinstance(content, str) else [part["text"] for part in content]

    @staticmethod
    def results(items: list[Any]) -> list[str]:
        """What the tools answered at the end."""
        end = len(items)
        while items[end - 1].get("type") == "function_call_output":
            end -= 1
        return [loops.plain(item["output"]) for item in items[end:]]

    @staticmethod
    def answer(name: str, text: str | None, calls: list[Any], size: int) -> dict[str, Any]:
        """The body of an answer."""
        output: list[dict[str, Any]] = []
        if calls:
            output.append({"type": "reasoning", "id": f"rs_{name}", "summary": []})
        if text:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            message = {"type": "message", "id": f"msg_{name}", "role": "assistant"}
            output.append(message | {"status": "completed", "content": [part]})
        for at, (tool, given) in enumerate(calls):
            ids = {"id": f"fc_{name}_{at}", "call_id": f"call_{name}_{at}", "status": "completed"}
            call = {"type": "function_call", "name": tool, "arguments": json.dumps(given)}
            output.append(call | ids)
        return {
            "id": f"resp_{name}", "object": "response", "created_at": 0, "status": "completed",
            "model": loops.MODEL, "output": output, "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "top_p": 1.0,
            "usage": {
                "input_tokens": size // 4, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": size // 4 + 10,
            },
        }  # fmt: skip


class Gemini:
    """`generateContent` of Gemini; the model adds a thought signature to its calls."""

    check = staticmethod(provider_rules.gemini)

    @staticmethod
    def shown(body: dict[str, Any]) -> list[Any]:
        """The contents of a request."""
        return body["contents"]

    @staticmethod
    def texts(content: dict[str, Any]) -> list[str]:
        """What the user said in a content."""
        said = content["role"] == "user"
        return [part["text"] for part in content["parts"] if said and "text" in part]

    @staticmethod
    def results(contents: list[Any]) -> list[str]:
        """What the tools answered at the end."""
        parts = [part.get("functionResponse") for part in contents[-1]["parts"]]
        return ["\n".join(list_texts(answer["response"])) for answer in parts if answer]

    @staticmethod
    def answer(name: str, text: str | None, calls: list[Any], size: int) -> dict[str, Any]:
        """The body of an answer."""
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for at, (tool, given) in enumerate(calls):
            id = f"call_{name}_{at}"
            signed = base64.b64encode(provider_rules.signature(id)).decode()
            call = {"functionCall": {"id": id, "name": tool, "args": given}}
            parts.append(call | ({} if at else {"thoughtSignature": signed}))
        content = {"role": "model", "parts": parts}
        counted = {"promptTokenCount": size // 4, "candidatesTokenCount": 10}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": counted | {"totalTokenCount": size // 4 + 10},
            "modelVersion": loops.MODEL,
        }

    @staticmethod
    def error(why: str) -> dict[str, Any]:
        """The body of a refusal."""
        return {"error": {"code": 400, "message": why, "status": "INVALID_ARGUMENT"}}


INTERFACES = {
    "v1/chat/completions": Chat,
    "v1/responses": Responses,
    "v1beta/models/gemini-scripted:generateContent": Gemini,
}


class Run:
    """The state of one integration: its turn, its texts, and its refusals."""

    def __init__(self) -> None:
        self.turn = self.step = self.characters_most = self.summarised = 0
        self.texts: list[str] = []
        """Texts of the user, the model and the tools, in order."""
        self.ids: list[str] = []
        """Ids of the calls of an answer, and then those of their results, in order."""
        self.due: list[str] = []
        self.refused: list[str] = []

    def record_request(self, api: Any, shown: list[Any]) -> list[str]:
        """Records the new texts of a request, and returns its new tool results."""
        said = [text for one in shown for text in api.texts(one)]
        expected = play.SAID[self.turn]
        if not said or said[-1] != expected:
            raise script.Broken(f"the user said last {said[-1:]}, not `{expected}`")
        results = api.results(shown)
        if len(results) != len(self.due):
            raise script.Broken(f"{len(results)} results for {self.due}")
        self.texts += [expected] if self.step == 0 else results
        self.ids += self.due
        characters = sum(map(len, list_texts(shown)))
        if characters > CHARACTERS_MAX:
            raise rules.Refused(f"prompt is too long: {characters} > {CHARACTERS_MAX} characters")
        self.characters_most = max(self.characters_most, characters)
        self.summarised += "<summary" in json.dumps(shown)
        return results

    def answer_request(self, api: Any, body: dict[str, Any]) -> dict[str, Any]:
        """Answers a request that the rules allow."""
        if self.turn == play.TURNS:
            raise script.Broken("all turns were led")
        shown = api.shown(body)
        text, calls = play.answer(self.turn, self.step, self.record_request(api, shown))
        name = f"{self.turn:03}_{self.step}"
        self.texts += [text] if text else []
        self.due = [f"call_{name}_{at}" for at in range(len(calls))]
        self.ids += self.due
        self.turn, self.step = (self.turn, self.step + 1) if calls else (self.turn + 1, 0)
        return api.answer(name, text, calls, sum(map(len, list_texts(shown))))


RUNS: dict[str, Run] = {}


class Handler(loops.Handler):
    """A handler of one connection."""

    def do_GET(self) -> None:
        """Returns the report of a run."""
        self.reply(200, vars(RUNS[self.path.split("/")[1]]))

    def do_POST(self) -> None:
        """Answers for the model."""
        name, _, path = self.path.removeprefix("/").partition("/")
        api, run = INTERFACES[path.partition("?")[0]], RUNS.setdefault(name, Run())
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            api.check(self.headers, body)
            self.reply(200, run.answer_request(api, body))
        except (rules.Refused, script.Broken) as error:
            run.refused.append(f"turn {run.turn}: {error}")
            self.reply(400, api.error(str(error)))


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
