"""What asking a live model costs around the model: requests a second, and CPU time of each.

    python -m benchmarks.live                         # 64 in flight, 3,000 requests a cell
    python -m benchmarks.live --in-flight 4 16 64

A server in a process of its own answers after 50 ms; nothing is computed. "miss" is a run whose cache is empty, "hit"
the same run again. CPU is user+sys of the process that asks, threads and cache included, from the first request to the
last result; starting is left out. HELM's clients are run by HELM's executor and need the package `openai`. Other work
on the machine disturbs requests a second far more than CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
from time import perf_counter
from typing import Any

from benchmarks.measuring import ROOT

SECONDS = 0.05
WORDS = 60
OURS = "helm_ext.clients.OpenAICompatibleClient"

SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "OpenAICompatibleClient, chat": (OURS, {"endpoint": "chat"}),
    "OpenAICompatibleClient, completions": (OURS, {"endpoint": "completions"}),
    "HELM OpenAIClient": ("helm.clients.openai_client.OpenAIClient", {"openai_model_name": "t", "api_key": "none"}),
    "HELM OpenAILegacyCompletionsClient": (
        "helm.clients.openai_client.OpenAILegacyCompletionsClient",
        {"openai_model_name": "t", "api_key": "none"},
    ),
}


def make_executor(system: str, url: str, in_flight: int, folder: str, *, cached: bool) -> Any:
    """Return the executor of a system: ours for our client, HELM's for HELM's."""
    from helm.benchmark.executor import ExecutionSpec, Executor
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment
    from helm.common.authentication import Authentication
    from helm.common.cache_backend_config import SqliteCacheBackendConfig

    from helm_ext.running.executor import LiveExecutor

    class_name, args = SYSTEMS[system]
    register_model_deployment(
        ModelDeployment(
            name="bench/t",
            model_name="bench/t",
            tokenizer_name="simple/tokenizer1",
            client_spec=ClientSpec(class_name, {"base_url": f"{url}/v1", **args}),
        )
    )
    spec = ExecutionSpec(
        url=None,
        auth=Authentication(""),
        local_path=folder,
        parallelism=in_flight,
        sqlite_cache_backend_config=SqliteCacheBackendConfig(folder) if cached else None,
    )
    return (LiveExecutor if class_name == OURS else Executor)(spec)


def make_state(number: int) -> Any:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.scenarios.scenario import Input, Instance
    from helm.common.request import Request

    states = []
    for row in range(number):
        instance = Instance(Input("question"), [], split="test", id=str(row))
        prompt = f"{row} " + "word " * WORDS
        request = Request(model="bench/t", model_deployment="bench/t", prompt=prompt, temperature=0, max_tokens=5)
        states.append(RequestState(instance, None, None, 0, None, request, None, 0, False))
    return ScenarioState(AdapterSpec(), states)


def ask(system: str, url: str, in_flight: int, number: int, *, cached: bool) -> dict[str, list[float]]:
    """Return requests a second and CPU milliseconds each, in this process, by what was measured."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        executor = make_executor(system, url, in_flight, folder, cached=cached)
        executor.execute(make_state(1))  # imports, the connection to the server
        for what in ["miss", "hit"] if cached else ["no cache"]:
            state = make_state(number)
            before, started = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
            done = executor.execute(state)
            seconds, after = perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
            if not all(one.result.success for one in done.request_states):
                raise SystemExit(f"{system}: requests without an answer")
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[what] = [number / seconds, 1000 * used / number]
    return found


def measure(system: str, url: str, in_flight: int, number: int) -> dict[str, list[float]]:
    """Return what `ask` finds, without and with a cache, each in a process of its own."""
    found = {}
    for cached in (False, True):
        command = [sys.executable, "-m", "benchmarks.live", "--one", system, url, str(in_flight), str(number)]
        done = subprocess.run([*command, str(cached)], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{system}:\n{done.stderr[-2000:]}")
        found.update(json.loads(done.stdout.splitlines()[-1]))
    return found


async def serve() -> None:
    """Answer any request alike, on a free port, and print the address. HELM's completions client insists on tokens."""
    from aiohttp import web

    logprobs = {"tokens": [" Paris"], "token_logprobs": [-0.5], "top_logprobs": [{" Paris": -0.5}], "text_offset": [0]}
    message = {"role": "assistant", "content": "Paris"}
    choice = {"index": 0, "message": message, "text": " Paris", "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": WORDS, "completion_tokens": 1, "total_tokens": WORDS + 1}
    reply = {"id": "x", "object": "chat.completion", "created": 1, "model": "t", "usage": usage}

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(SECONDS)
        said = choice if "chat" in request.path else choice | {"logprobs": logprobs}
        return web.json_response(reply | {"choices": [said]})

    application = web.Application(client_max_size=1 << 28)
    application.router.add_post("/{anything:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    if "--serve" in sys.argv:
        asyncio.run(serve())
        return
    if "--one" in sys.argv:
        system, url, in_flight, number, cached = sys.argv[sys.argv.index("--one") + 1 :]
        print("\n" + json.dumps(ask(system, url, int(in_flight), int(number), cached=cached == "True")))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__.splitlines()[0])
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64])
    parser.add_argument("--requests", type=int, default=3000)
    arguments = parser.parse_args()
    columns = ("no cache", "miss", "hit")
    print(f"{'':36}{'in flight':>10}" + "".join(f"{name:>20}" for name in columns))
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.live", "--serve"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        url = server.stdout.readline().strip() if server.stdout else ""
        for in_flight in arguments.in_flight:
            for system in SYSTEMS:
                if "HELM" in system and importlib.util.find_spec("openai") is None:
                    print(f"{system:36}{in_flight:10}   not measured: the package openai is not installed")
                    continue
                found = measure(system, url, in_flight, arguments.requests)
                cells = "".join(f"{found[name][0]:9,.0f}/s {found[name][1]:5.2f} ms" for name in columns)
                print(f"{system:36}{in_flight:10}{cells}", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
