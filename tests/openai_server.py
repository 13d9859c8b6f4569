"""A server that speaks OpenAI's protocol (chat, completions, echo with log-probabilities) and answers out of the prompt.

The same request gets the same answer, whoever asks: a live run, or a file of requests that `answer_file` sends here.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WORDS = ["Paris", "Rome", "A", " B", "The answer is C.", "42", "yes", "no idea, sorry", "甲"]


@dataclass
class Odd:
    """An answer that is none of the usual ones."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    """Before anything is sent."""
    cut: int | None = None
    """So many bytes of the body are sent, of those that were announced."""
    reset: bool = False
    """The connection is closed, and nothing is sent."""


class Server:
    """The server's address, what it was asked, and what it answers to some requests instead of its own answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.instead: Callable[[str, dict[str, Any]], tuple[int, Any] | Odd | None] = lambda path, body: None
        self.url = ""
        self.keys: list[str | None] = []
        self.models: list[str] | None = None
        """What /v1/models lists; None: it is not there."""
        self.stopping = threading.Event()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any] | Odd:
        self.asked.append((path, body))
        found = self.instead(path, body)
        if found is not None:
            return found
        if path == "/v1/chat/completions":
            return 200, answer_chat(body)
        if path == "/v1/completions":
            return 200, answer_completions(body)
        return 404, {"error": {"message": f"no such endpoint: {path}", "type": "invalid_request_error"}}


def draw(*parts: Any) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:6], "big")


def envelope(body: dict[str, Any], kind: str, choices: list[Any], tokens: tuple[int, int]) -> dict[str, Any]:
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return {
        "id": f"x-{time.time_ns()}",
        "object": kind,
        "created": int(time.time()),
        "model": f"{body['model']}-2026-01-01",
        "choices": choices,
        "usage": usage,
    }


def answer_chat(body: dict[str, Any]) -> dict[str, Any]:
    prompt = "\n".join(str(message["content"]) for message in body["messages"])
    choices = []
    for index in range(body.get("n", 1)):
        number = draw(prompt, index)
        message: dict[str, Any] = {"role": "assistant", "content": WORDS[number % len(WORDS)], "refusal": None}
        if number % 7 == 0:
            message |= {"content": None, "refusal": "I cannot help with that."}
        elif number % 5 == 0:
            message |= {"reasoning_content": "Let me think."}
        reason = ["stop", "length"][number % 2]
        choices.append({"index": index, "message": message, "logprobs": None, "finish_reason": reason})
    choices.reverse()  # the order is that of `index`
    return envelope(body, "chat.completion", choices, (len(prompt.split()), 3))


def answer_completions(body: dict[str, Any]) -> dict[str, Any]:
    prompt = body["prompt"]
    pieces = re.findall(r"\s*\S+|\s+$", prompt)
    if body.get("echo") and body["max_tokens"] <= 1:
        extra = [" more"] * body["max_tokens"]
        tokens = [*pieces, *extra]
        offsets = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
        logprobs = [None, *(-(draw(tokens[: index + 1]) % 5000) / 1000 - 0.01 for index in range(1, len(tokens)))]
        choice = {
            "index": 0,
            "text": "".join(tokens),
            "logprobs": {"tokens": tokens, "token_logprobs": logprobs, "text_offset": offsets, "top_logprobs": None},
            "finish_reason": "length",
        }
        return envelope(body, "text_completion", [choice], (len(pieces), len(extra)))
    choices = []
    for index in range(body.get("n", 1)):
        number = draw(prompt, index)
        text = f" {WORDS[number % len(WORDS)]}"
        reason = ["stop", "length"][number % 2]
        choices.append({"index": index, "text": text, "logprobs": None, "finish_reason": reason})
    return envelope(body, "text_completion", choices, (len(pieces), 3))


@contextmanager
def serve(server: Server | None = None, port: int = 0) -> Iterator[Server]:
    """Serve on a free port of this machine, or go on with a server of before."""
    server = server or Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.keys.append(self.headers.get("Authorization"))
            found = server.answer(self.path, body)
            self.say(found if isinstance(found, Odd) else Odd(*found))

        def do_GET(self) -> None:
            if self.path == "/v1/models" and server.models is not None:
                self.say(Odd(200, {"object": "list", "data": [{"id": name} for name in server.models]}))
            else:
                self.say(Odd(404, {"error": {"message": "not found"}}))

        def say(self, odd: Odd) -> None:
            server.stopping.wait(odd.seconds)
            if odd.reset:
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            data = odd.body if isinstance(odd.body, bytes) else json.dumps(odd.body).encode()
            self.send_response(odd.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in odd.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: odd.cut])
            if odd.cut is not None:
                self.close_connection = True

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """A client that has gone is no fault of this server's."""

    httpd = Listener(("127.0.0.1", port), Handler)
    server.stopping.clear()
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def post(url: str, body: Any) -> tuple[int, Any]:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def answer_file(server: Server, path: Path) -> list[dict[str, Any]]:
    """Send each request of a file to the server; return the lines of OpenAI's output file."""
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        request = json.loads(line)
        assert request["method"] == "POST"
        status, body = post(server.url + request["url"], request["body"])
        lines.append(
            {
                "id": f"batch_req_{number}",
                "custom_id": request["custom_id"],
                "response": {"status_code": status, "request_id": f"r{number}", "body": body},
                "error": None,
            }
        )
    return lines


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path
