"""A local server with the Messages API of Anthropic and Chat Completions of OpenAI.

The server refuses requests by `rules.py` and answers from `script.py`. It keeps no conversation:
the number of the turn is in the user's last message. The first part of a path names a run;
`GET /RUN/report` returns the counts of the run. Prints its port and serves until it is killed.
"""

import json
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import rules
import script

MODEL = "scripted-1"
CHARACTERS_MAX = 48_000
"""Most characters of all messages of a request: 8 for each token of the loops' budget."""

REPORTS: dict[str, Counter[str]] = defaultdict(Counter)


def plain(content: Any) -> str:
    """Returns the text of a content."""
    if isinstance(content, list):
        return "\n".join(plain(one.get("text") or one.get("content")) for one in content)
    return content or ""


class Anthropic:
    """Reads requests and writes answers of the Messages API."""

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
    """Reads requests and writes answers of Chat Completions."""

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
    """Returns the turn, from the user's last text, and the number of model answers in the turn."""
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
    """A handler of one connection."""

    protocol_version = "HTTP/1.1"
    # Sends each answer as one packet; a second packet would wait for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Returns the report of a run."""
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
        """Logs no request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
