"""A local server that speaks the Messages interface of Anthropic and Chat Completions of OpenAI.

It refuses what they refuse (`rules.py`) and says what the script says (`script.py`). It knows
nothing but the request: which turn it is stands in what the user said last. The first part of a
path names a run, of which `GET /RUN/report` tells what it did. Prints its port and serves until it
is killed.
"""

import json
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rules
import script

MODEL = "scripted-1"
CHARACTERS_MAX = 48_000
"""Of all messages: 8 for each token of the loops' budget."""

REPORTS: dict[str, Counter[str]] = defaultdict(Counter)


def plain(content: Any) -> str:
    """The text of some content."""
    if isinstance(content, list):
        return "\n".join(plain(one.get("text") or one.get("content")) for one in content)
    return content or ""


class Anthropic:
    """How the Messages interface shows a conversation, and how it answers."""

    check = staticmethod(rules.anthropic)

    @staticmethod
    def texts(message: dict[str, Any]) -> list[str]:
        """What the user said in a message."""
        content = message["content"]
        if message["role"] != "user" or isinstance(content, str):
            return [content] if message["role"] == "user" else []
        return [one["text"] for one in content if one["type"] == "text"]

    @staticmethod
    def results(messages: list[Any]) -> list[str]:
        """What the tools answered at the end."""
        content = messages[-1]["content"]
        blocks = [] if isinstance(content, str) else content
        return [plain(one.get("content")) for one in blocks if one["type"] == "tool_result"]

    @staticmethod
    def prompt(messages: list[Any]) -> str:
        """The prompt of a completion."""
        return plain(messages[0]["content"])

    @staticmethod
    def answer(name: str, text: str | None, calls: list[Any], size: int) -> dict[str, Any]:
        """The body of an answer."""
        content = [{"text": text, "type": "text"}] if text else []
        for at, (tool, given) in enumerate(calls):
            id = f"toolu_{name}_{at}"
            content.append({"id": id, "input": given, "name": tool, "type": "tool_use"})
        return {
            "id": f"msg_{name}",
            "content": content,
            "model": MODEL,
            "role": "assistant",
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "type": "message",
            "usage": {"input_tokens": size // 4, "output_tokens": 10},
        }

    @staticmethod
    def error(why: str) -> dict[str, Any]:
        """The body of a refusal."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": why}}


class OpenAi:
    """The same of Chat Completions."""

    check = staticmethod(rules.openai)

    @staticmethod
    def texts(message: dict[str, Any]) -> list[str]:
        """What the user said in a message."""
        content = message["content"]
        if message["role"] != "user":
            return []
        return [content] if isinstance(content, str) else [part["text"] for part in content]

    @staticmethod
    def results(messages: list[Any]) -> list[str]:
        """What the tools answered at the end."""
        called = [at for at, one in enumerate(messages) if one["role"] == "assistant"]
        after = messages[called[-1] + 1 :] if called else []
        return [plain(one["content"]) for one in after if one["role"] == "tool"]

    @staticmethod
    def prompt(messages: list[Any]) -> str:
        """The prompt of a completion."""
        return plain(messages[-1]["content"])

    @staticmethod
    def answer(name: str, text: str | None, calls: list[Any], size: int) -> dict[str, Any]:
        """The body of an answer."""
        message: dict[str, Any] = {"content": text, "refusal": None, "role": "assistant"}
        for at, (tool, given) in enumerate(calls):
            function = {"arguments": json.dumps(given), "name": tool}
            call = {"id": f"call_{name}_{at}", "function": function, "type": "function"}
            message.setdefault("tool_calls", []).append(call)
        choice = {"finish_reason": "tool_calls" if calls else "stop", "index": 0, "logprobs": None}
        return {
            "id": f"chatcmpl-{name}",
            "choices": [choice | {"message": message}],
            "created": 0,
            "model": MODEL,
            "object": "chat.completion",
            "usage": {"completion_tokens": 10, "prompt_tokens": size // 4, "total_tokens": 0},
        }

    @staticmethod
    def error(why: str) -> dict[str, Any]:
        """The body of a refusal."""
        return {"error": {"message": why, "type": "invalid_request_error", "param": None}}


INTERFACES = {"/v1/messages": Anthropic, "/v1/chat/completions": OpenAi}


def where(api: Any, messages: list[Any]) -> tuple[int, int]:
    """Which turn it is, by what the user said last, and how often the model has spoken in it."""
    step = 0
    for message in reversed(messages):
        for text in reversed(api.texts(message)):
            if text in script.SAID:
                return script.SAID.index(text), step
        step += message["role"] == "assistant"
    raise script.Broken("what the user said last is not in the context")


def speak(api: Any, body: dict[str, Any], report: Counter[str]) -> dict[str, Any]:
    """Answers a request that the rules allow."""
    messages = body["messages"]
    shown = json.dumps(messages, ensure_ascii=False)
    if "tools" not in body:
        prompt = api.prompt(messages)
        kind = "questions" if prompt.startswith("The question:") else "summaries"
        report[kind] += 1
        return api.answer(f"{kind}_{report[kind]}", script.complete(prompt), [], len(shown))
    if len(shown) > CHARACTERS_MAX:
        raise rules.Refused(f"prompt is too long: {len(shown)} characters > {CHARACTERS_MAX}")
    turn, step = where(api, messages)
    project = script.ASKED.get(turn)
    if project and step == 0 and script.code(project) in shown:
        at = shown.index(script.code(project))
        raise script.Broken(f"the code is in the context already: {shown[max(at - 200, 0) : at]}")
    text, calls = script.answer(turn, step, api.results(messages))
    report["answers"] += 1
    report["turns"] += not calls
    report["recalled"] += bool(project and not calls)
    report["calls"] += len(calls)
    report["characters_most"] = max(report["characters_most"], len(shown))
    return api.answer(f"{turn:03}_{step}", text, calls, len(shown))


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # One packet for each answer: else it waits for the other side's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Tells what a run did."""
        self.reply(200, REPORTS[self.path.split("/")[1]])

    def do_POST(self) -> None:
        """Answers for the model."""
        run, _, path = self.path.removeprefix("/").partition("/")
        api, report = INTERFACES[f"/{path}"], REPORTS[run]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            api.check(self.headers, body)
            self.reply(200, speak(api, body, report))
        except (rules.Refused, script.Broken) as error:
            report["refused"] += 1
            print(f"{run}: {type(error).__name__}: {error}", flush=True)
            self.reply(400, api.error(str(error)))

    def reply(self, status: int, body: Any) -> None:
        """Sends JSON."""
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Says nothing of a request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
