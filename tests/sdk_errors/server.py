"""A local server that answers `/N/...` with the answer N of the fixture, and `/late/...` never.

Prints its port and serves until it is killed.
"""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures/model-answers.json"
ANSWERS = json.loads(FIXTURE.read_text(encoding="utf-8"))
LATE_SECONDS = 5


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        name = self.path.split("/")[1]
        if name == "late":
            time.sleep(LATE_SECONDS)
            return
        answer = ANSWERS[int(name)]
        is_text = isinstance(answer["body"], str)
        body = (answer["body"] if is_text else json.dumps(answer["body"])).encode()
        self.send_response(answer["status"])
        for header, value in answer["headers"].items():
            self.send_header(header, value)
        self.send_header("content-type", "text/html" if is_text else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
