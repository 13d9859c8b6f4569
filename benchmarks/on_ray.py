"""How many answers a second Ray actors bring, and what one costs: a model that answers after 50 ms, no cache.

    python -m benchmarks.on_ray                                  # 1, 2, 4, 8 actors of 64 threads
    python -m benchmarks.on_ray --actors 1 2 --threads 16 --seconds 20

"Ideal" is threads times actors by 50 ms. Measured once all actors are ready; "first answer" is from the start of Ray.
CPU is user+sys: of the driver with Ray's threads in it, and of the actors together.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_of(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(actors: int, threads: int, seconds: float) -> None:
    """Print one line. Run in a process of its own."""
    os.environ.update(HELM_EXT_RAY_ACTORS=str(actors), HELM_EXT_RAY_CPUS=str(2 / max(2, actors)))
    sys.argv[1:] = ["--plugins", str(HERE / "latency_model.py")]
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.executor import ExecutionSpec, Executor
    from helm.benchmark.run import import_user_plugins
    from helm.benchmark.scenarios.scenario import Input, Instance
    from helm.common.authentication import Authentication
    from helm.common.request import Request

    from helm_ext.running.ray_runner import RayExecutor

    import_user_plugins([str(HERE / "latency_model.py")])
    model = "latency/model"

    def make_state(numbers: range) -> ScenarioState:
        states = [
            RequestState(
                Instance(Input(""), [], id=str(number)), None, None, 0, None,
                Request(model=model, model_deployment=model, prompt=f"{'word ' * 60}{number}"), None, 0, False,
            )
            for number in numbers
        ]  # fmt: skip
        return ScenarioState(AdapterSpec(), states)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        executor = RayExecutor.in_place_of(Executor(ExecutionSpec(None, Authentication(""), name, threads)))
        started = time.perf_counter()
        executor.folder = None
        executor.execute(make_state(range(1)))
        first = time.perf_counter() - started
        while sum(worker.starting is None for worker in executor.engine._workers) < actors:  # noqa: SLF001
            executor.execute(make_state(range(actors * threads)))
        import ray

        actors_there = [worker.handle for worker in executor.engine._workers]  # noqa: SLF001
        pids = ray.get([actor.__ray_call__.remote(lambda _: os.getpid()) for actor in actors_there])
        number = int(seconds * actors * threads / 0.05)
        state = make_state(range(number))
        executor.folder = folder
        before = [cpu_of(pid) for pid in pids]
        driver = time.process_time()
        started = time.perf_counter()
        done = executor.execute(state)
        wall = time.perf_counter() - started
        driver = time.process_time() - driver
        after = [cpu_of(pid) for pid in pids]
        assert all(one.result.completions[0].text == one.request.prompt[-20:] for one in done.request_states)
        rate, ideal = number / wall, actors * threads / 0.05
        print(
            f"| {actors} | {threads} | {number:,} | {first:.1f} | {rate:,.0f} | {rate / ideal:.0%} "
            f"| {1000 * driver / number:.2f} | {1000 * (sum(after) - sum(before)) / number:.2f} "
            f"| {peak_of(os.getpid()):.0f} | {statistics.mean(map(peak_of, pids)):.0f} |",
            flush=True,
        )
        executor.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10, help="of waiting for the model, at the ideal rate")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.actors[0], options.threads, options.seconds)
        return
    print("| actors | threads each | requests | first answer s | req/s | of ideal | driver ms | actors ms | driver MB "
          "| actor MB |\n|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for actors in options.actors:
        command = [sys.executable, "-m", "benchmarks.on_ray", "--one", "--actors", str(actors)]
        command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        print("\n".join(lines) or f"failed\n{done.stderr[-3000:]}", flush=True)


if __name__ == "__main__":
    main()
