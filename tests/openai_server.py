"""A server that speaks OpenAI's protocol, and vLLM's where it goes beyond, and answers out of the prompt.

    with serve() as server:             # in a thread of its own; what it was asked stands in server.asked
    with serve_process(seconds=0.05)    # in a process of its own, for benchmarks

The same request gets the same answer, whoever asks: a live run, or a file of requests that `answer_file` sends here.

Its replies have the members that are documented, in the types that are documented, and no model behind them:

- OpenAI's: https://platform.openai.com/docs/api-reference (chat, completions, models; errors: /docs/guides/error-codes);
- vLLM's, where `Server.is_vllm`: CompletionResponseChoice, ModelCard and ErrorResponse in vllm/entrypoints/openai of
  v0.6 to v0.14, and what completion/serving.py there puts into them. `prompt_logprobs` holds for each token but the first
  an object of the token's id, and of the likeliest ids where more than 0 are asked for; with `echo`, the number that
  `logprobs` asks for counts, and both are in the reply. Without `echo`, `max_tokens` is 1 at least.

It has been compared with these texts, not with a running vLLM.
"""

import argparse
import asyncio
import hashlib
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

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
    drip: float = 0
    """Seconds between one byte and the next."""
    reset: bool = False
    """The connection is closed, and nothing is sent."""


def default_instead(path: str, body: dict[str, Any]) -> None:
    """Answer as usual."""


class Server:
    """The server's address, what it was asked, and what it answers to some requests instead of its own answer.

    Its attributes may be changed while it serves.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.url = ""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.keys: list[str | None] = []
        """The header Authorization of each of these."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.instead: Callable[[str, dict[str, Any]], tuple[int, Any] | Odd | None] = default_instead
        self.seconds = seconds
        """How long each answer takes."""
        self.models: list[str] | None = None
        """What /v1/models lists, and no other model is known; None: it is not there, and any name will do."""
        self.key: str | None = None
        """The only key that is accepted; None: any, or none."""
        self.endpoints = {"chat/completions", "completions"}
        self.refuses: set[str] = set()
        """Names of parameters that are an error, as top_k is for OpenAI."""
        self.ignores: set[str] = set()
        """Names of parameters that are as if they had not been sent."""
        self.is_vllm = False
        self.generates = False
        """Answer with a text of many words, drawn as a model would: a word is a token, and limits, stops, seeds,
        temperature and top_k count. Otherwise with one of WORDS."""
        self.stopping = threading.Event()

    def answer(self, path: str, body: dict[str, Any], key: str | None = None) -> tuple[int, Any] | Odd:
        """Return the answer to a request."""
        self.asked.append((path, body))
        self.keys.append(key)
        found = self.instead(path, body)
        if found is not None:
            return found
        if self.key is not None and key != f"Bearer {self.key}":
            # OpenAI's wording; vLLM says {"error": "Unauthorized"}
            return 401, error("Incorrect API key provided: " + str(key)[-4:], "invalid_api_key", self.is_vllm, 401)
        endpoint = path.removeprefix("/v1/")
        if endpoint not in self.endpoints:
            return 404, error(f"no such endpoint: {path}", None, self.is_vllm, 404)
        if self.models is not None and body.get("model") not in self.models:
            said = f"The model `{body.get('model')}` does not exist."
            return 404, error(said, "model_not_found", self.is_vllm, 404)
        for name in sorted(self.refuses & body.keys()):
            return 400, error(f"Unrecognized request argument supplied: {name}", None, self.is_vllm, 400)
        body = {name: value for name, value in body.items() if name not in self.ignores}
        if endpoint == "chat/completions":
            return 200, self.speak(body) if self.generates else answer_chat(body)
        scored = body.get("echo") or "prompt_logprobs" in body
        if self.is_vllm and body.get("max_tokens") == 0 and not body.get("echo"):
            return 400, error("max_tokens must be at least 1, got 0.", None, self.is_vllm, 400)
        if self.generates and not scored:
            return 200, self.speak(body)
        return 200, answer_completions(body, is_vllm=self.is_vllm)

    def list_models(self, key: str | None) -> tuple[int, Any]:
        """Return the answer to GET /v1/models."""
        if self.models is None:
            return 404, error("not found", None, self.is_vllm, 404)
        if self.key is not None and key != f"Bearer {self.key}":
            return 401, error("Incorrect API key provided", "invalid_api_key", self.is_vllm, 401)
        cards = [{"id": name, "object": "model", "created": 1, "owned_by": "tests"} for name in self.models]
        if self.is_vllm:
            cards = [card | {"root": card["id"], "parent": None, "max_model_len": 2048} for card in cards]
        return 200, {"object": "list", "data": cards}

    def speak(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a reply with texts that are drawn word by word."""
        is_chat = "messages" in body
        prompt = str(body["messages"] if is_chat else body["prompt"])
        most = body.get("max_completion_tokens", body.get("max_tokens", 16))
        is_greedy = body.get("temperature", 1) == 0 or body.get("top_k") == 1
        choices, count = [], 0
        for index in range(body.get("n", 1)):
            luck = None if is_greedy else (body.get("seed", time.time_ns()), index)
            words = [f" w{draw(prompt, luck, place) % 97}" for place in range(24)]
            text, reason = "".join(words[:most]), "length" if most < len(words) else "stop"
            stops = body.get("stop") or []
            ends = [text.find(stop) for stop in ([stops] if isinstance(stops, str) else stops) if stop in text]
            if ends:
                text, reason = text[: min(ends)], "stop"
            count += len(text.split())
            said = {"message": {"role": "assistant", "content": text, "refusal": None}} if is_chat else {"text": text}
            choices.append({"index": index, **said, "logprobs": None, "finish_reason": reason})
        kind = "chat.completion" if is_chat else "text_completion"
        return envelope(body, kind, choices, (len(prompt.split()), count))


def error(message: str, code: str | None, is_vllm: bool, status: int) -> dict[str, Any]:
    """Return the body of an error: OpenAI's, or vLLM's, whose code is the status."""
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    if is_vllm:
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


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


def answer_completions(body: dict[str, Any], is_vllm: bool = False) -> dict[str, Any]:
    prompt = body["prompt"]
    pieces = re.findall(r"\s*\S+|\s+$", prompt)
    asked = body.get("prompt_logprobs", body.get("logprobs") if body.get("echo") else None) if is_vllm else None
    if body.get("echo") and body["max_tokens"] <= 1:
        extra = [" more"] * body["max_tokens"]
        tokens = [*pieces, *extra]
        offsets = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
        choice = {
            "index": 0,
            "text": "".join(tokens),
            "logprobs": {
                "tokens": tokens,
                "token_logprobs": score(tokens),
                "text_offset": offsets,
                "top_logprobs": None,
            },
            "finish_reason": "length",
        }
        if body.get("logprobs") is None:
            choice["logprobs"] = None
        if is_vllm:
            choice |= {"stop_reason": None, "prompt_logprobs": None if asked is None else explain(pieces, asked)}
        # vLLM makes one token more than it is asked for here, and counts it
        counted = max(1, len(extra)) if is_vllm else len(extra)
        return envelope(body, "text_completion", [choice], (len(pieces), counted))
    choices = []
    for index in range(body.get("n", 1)):
        number = draw(prompt, index)
        text = f" {WORDS[number % len(WORDS)]}"
        reason = ["stop", "length"][number % 2]
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
        if body.get("logprobs") is not None:
            choice["logprobs"] = {
                "tokens": [text],
                "token_logprobs": [-0.5],
                "text_offset": [0],
                "top_logprobs": [{text: -0.5}],
            }
        if is_vllm:
            choice |= {"stop_reason": None, "prompt_logprobs": None if asked is None else explain(pieces, asked)}
        choices.append(choice)
    return envelope(body, "text_completion", choices, (len(pieces), 3))


def score(tokens: list[str]) -> list[float | None]:
    """Return a log-probability for each token of a text but the first."""
    return [None, *(-(draw(tokens[: index + 1]) % 5000) / 1000 - 0.01 for index in range(1, len(tokens)))]


def explain(pieces: list[str], number: int) -> list[dict[str, Any] | None]:
    """Return vLLM's prompt_logprobs: of each token, and of as many likeliest ones."""
    found: list[dict[str, Any] | None] = []
    for place, logprob in enumerate(score(pieces)):
        if logprob is None:
            found.append(None)
            continue
        number_of = draw(pieces[place]) % 50_000
        rank = 1 + draw(pieces[: place + 1]) % 3
        entry = {str(number_of): {"logprob": logprob, "rank": rank, "decoded_token": pieces[place]}}
        for likelier in range(1, number + 1):
            if likelier != rank:
                other = {"logprob": -0.001 * likelier, "rank": likelier, "decoded_token": f" top{likelier}"}
                entry[str(50_000 + likelier)] = other
        found.append(entry)
    return found


def make_application(server: Server) -> web.Application:
    async def ask(request: web.Request) -> web.StreamResponse:
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            body = json.loads(await request.read())
            given = request.path, body, request.headers.get("Authorization")
            if server.instead is default_instead:
                found = server.answer(*given)
            else:  # a test may wait in there
                found = await asyncio.to_thread(server.answer, *given)
            return await say(request, found if isinstance(found, Odd) else Odd(*found))
        finally:
            server.in_flight -= 1

    async def say(request: web.Request, odd: Odd) -> web.StreamResponse:
        await wait(odd.seconds or server.seconds)
        transport = request.transport
        if odd.reset and transport is not None:
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        data = odd.body if isinstance(odd.body, bytes) else json.dumps(odd.body).encode()
        headers = {"Content-Type": "application/json", **odd.headers}
        if odd.drip:
            response = web.StreamResponse(status=odd.status, headers={**headers, "Content-Length": str(len(data))})
            await response.prepare(request)
            for byte in data:
                await response.write(bytes([byte]))
                await wait(odd.drip)
                if transport is None or transport.is_closing() or server.stopping.is_set():
                    break
            return response
        if odd.cut is None:
            return web.Response(status=odd.status, body=data, headers=headers)
        response = web.StreamResponse(status=odd.status, headers={**headers, "Content-Length": str(len(data))})
        await response.prepare(request)
        await response.write(data[: odd.cut])
        if transport is not None:
            transport.close()
        return response

    async def wait(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not server.stopping.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(min(left, 0.05))

    async def models(request: web.Request) -> web.StreamResponse:
        return await say(request, Odd(*server.list_models(request.headers.get("Authorization"))))

    async def counted(request: web.Request) -> web.StreamResponse:
        return web.json_response({"asked": len(server.asked), "most_in_flight": server.most_in_flight})

    application = web.Application(client_max_size=1 << 28)
    application.router.add_get("/counted", counted)
    application.router.add_get("/v1/models", models)
    application.router.add_post("/{anything:.*}", ask)
    return application


async def start(server: Server, port: int) -> web.AppRunner:
    """Serve on a port, or on a free one; return what is to be cleaned up."""
    runner = web.AppRunner(make_application(server), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024, reuse_address=True)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    return runner


@contextmanager
def serve(server: Server | None = None, port: int = 0) -> Iterator[Server]:
    """Serve on a free port of this machine, or go on with a server of before."""
    server = server or Server()
    server.stopping.clear()
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(256))  # for `instead`
    thread = threading.Thread(target=loop.run_forever, name="openai_server", daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(start(server, port), loop).result()
    try:
        yield server
    finally:
        server.stopping.set()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def serve_process(*options: str) -> Iterator[str]:
    """Serve in a process of its own (see main for the options); yields the address. `counted` says what it was asked."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def counted(url: str) -> dict[str, int]:
    """Return how often a server was asked, and the most requests at one time."""
    with urllib.request.urlopen(f"{url}/counted") as response:
        return json.loads(response.read())


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", action="append")
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--generates", action="store_true")
    given = parser.parse_args()
    server = Server(given.seconds)
    server.models, server.is_vllm, server.generates = given.model, given.vllm, given.generates

    async def run() -> None:
        runner = await start(server, given.port)
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.stopping.set()
        await runner.cleanup()

    asyncio.run(run())


def post(url: str, body: Any) -> tuple[int, Any]:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as response:
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


if __name__ == "__main__":
    main()
