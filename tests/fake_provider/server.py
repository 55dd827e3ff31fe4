"""A local server that acts as a broken provider until a request makes its model work.

It has Chat Completions and Responses of OpenAI and Messages of Anthropic, with their rules for
requests. The first part of a path names a run: `PUT /RUN` begins it with the mode in the body,
`PUT /RUN/works` makes its model work, and `GET /RUN` returns its report. `GET /talk` returns the
input of a program. Prints its port and serves until it is killed.
"""

import json
import os
import random
import socket
import struct
import sys
from http.server import ThreadingHTTPServer
from typing import Any

import talk  # first: it finds the modules of the integrations
import provider
import rules
import server as loops
from modes import MODES, Mode, good

INTERFACES = {
    "v1/chat/completions": provider.Chat,
    "v1/responses": provider.Responses,
    "v1/messages": loops.Anthropic,
}


class Run:
    """A conversation with a model that is broken in one way."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.works = False
        self.requests = 0
        self.said: set[str] = set()
        """Texts of the broken model."""
        self.refused: list[str] = []
        """Reasons for which requests broke the rules of the API."""

    def report(self) -> dict[str, Any]:
        """Returns the report of the run so far."""
        said = sorted(self.said)
        return {"requests": self.requests, "said": said, "refused": self.refused}


def summary(number: int) -> str:
    """Returns a summary that fits any part of the conversation; each number gives another."""
    first, second, third = random.Random(number).sample(talk.WORDS, 3)
    return f"They spoke of a {first}, then of a {second}, and of a {third}."


def find_told(body: dict[str, Any]) -> tuple[str, str]:
    """Returns the instruction and the prompt of a request for a summary."""
    texts = list(provider.list_texts(body))
    prompt = next(text for text in texts if "<source>" in text)
    return max((text for text in texts if text != prompt), key=len), prompt


RUNS: dict[str, Run] = {}


class Handler(loops.Handler):
    """A handler of one connection."""

    def read(self) -> bytes:
        """Returns the body of the request."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def do_PUT(self) -> None:
        """Begins a run, or makes its model work."""
        name, _, act = self.path[1:].partition("/")
        mode = self.read().decode()
        if act == "works":
            RUNS[name].works = True
        else:
            RUNS[name] = Run(MODES[mode])
        self.reply(200, {})

    def do_GET(self) -> None:
        """Returns the input of a program, or the report of a run."""
        if self.path == "/talk":
            shown = {mode.name: [mode.retries, mode.is_late] for mode in MODES.values()}
            self.reply(200, {"said": talk.SAID, "budget": talk.BUDGET, "modes": shown})
        else:
            self.reply(200, RUNS[self.path[1:]].report())

    def do_POST(self) -> None:
        """Answers for the model."""
        name, _, path = self.path[1:].partition("/")
        api, run = INTERFACES[path], RUNS[name]
        body = json.loads(self.read())
        run.requests += 1
        try:
            api.check(self.headers, body)
        except rules.Refused as error:
            run.refused.append(str(error))
            self.reply(400, api.error(str(error)))
            return
        if run.works:
            self.reply(200, good(api, summary(run.requests), run.requests))
        elif run.mode.act in ("reset", "hang-up"):
            self.drop(run.mode.act == "reset")
        elif run.mode.act == "wait":
            self.wait()
        else:
            status, answer, said = run.mode.answer(api, find_told(body))
            run.said |= {said} - {""}
            self.fail(run.mode, status, answer)

    def fail(self, mode: Mode, status: int, answer: Any) -> None:
        """Answers as a broken model, perhaps with half of the answer."""
        is_text = isinstance(answer, str)
        raw = (answer if is_text else json.dumps(answer)).encode()
        self.send_response(status)
        for header, value in mode.headers.items():
            self.send_header(header, value)
        self.send_header("content-type", "text/html" if is_text else "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw if mode.act == "answer" else raw[: len(raw) // 2])
        if mode.act == "stall":
            self.wait()
        elif mode.act == "break-off":
            self.drop(False)

    def wait(self) -> None:
        """Sends nothing until the client disconnects."""
        self.close_connection = True
        self.rfile.read(1)

    def drop(self, is_reset: bool) -> None:
        """Ends the connection, by a reset or by a normal close."""
        self.close_connection = True
        if is_reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())


class Server(ThreadingHTTPServer):
    """The server, for many connections at the same time."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *about: Any) -> None:
        """Ignores errors of disconnected clients."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*about)


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
