"""`processes.command` without the seconds in which a process imports HELM, torch and their like: for many small runs.

One process imports them, and each command is a fork of it: a process with its own id, memory, folder, environment and
outputs, that runs the installed script as `python SCRIPT` would. helm_ext itself is imported by each anew. What is not
as in a process of its own: all share one seed of hashes, and what the imported packages read from the environment when
they are imported (offline, one thread of torch). Tests of what a start imports, of kills and of order start real ones.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

import processes
import tiny_model
import yaml

IMPORTS = (
    "calibration", "datasets", "sklearn.linear_model", "nltk.metrics.scores", "pandas", "aiohttp", "torch",
    "transformers", "transformers.models.auto.modeling_auto", "transformers.models.gpt2.modeling_gpt2",
    "helm.benchmark.run", "helm.benchmark.presentation.summarize", "helm.clients.huggingface_client",
    "helm.tokenizers.huggingface_tokenizer", "helm.benchmark.metrics.evaluate_reference_metrics",
    "helm.benchmark.metrics.basic_metrics", "helm.benchmark.annotation.annotator_factory",
)  # fmt: skip
"""What runs import, whatever they do. Nothing of helm_ext: plugins are found in each process."""

SECONDS = 240


class _Warm:
    """The process that is forked; it ends with this one, whose end of its input closes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=tiny_model.offline_environment(**processes.OFFLINE), bufsize=0,
        )  # fmt: skip
        atexit.register(self.end)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)

    def begin(self, order: dict) -> int:
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        return int(self.process.stdout.readline())

    def has_ended(self, seconds: float = 0) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def run(self, order: dict) -> int:
        pid = self.begin(order)
        if not self.has_ended(SECONDS):
            os.kill(pid, signal.SIGKILL)
            self.process.stdout.readline()
            raise subprocess.TimeoutExpired(order["arguments"], SECONDS)
        return int(self.process.stdout.readline())


_started: list[_Warm] = []


def command(folder: Path, *arguments: str, check: bool = True, env: dict[str, str] | None = None):
    """As `processes.command`."""
    if not _started:
        _started.append(_Warm())
    if arguments[0] == "helm-summarize":
        arguments = (*arguments, "--num-threads", "1")  # as processes.command
    environment = {**os.environ, **processes.OFFLINE, **(env or {})}
    with tempfile.TemporaryDirectory() as outputs:
        files = [str(Path(outputs, name)) for name in ("stdout", "stderr")]
        order = {"arguments": list(map(str, arguments)), "cwd": str(folder), "env": environment, "outputs": files}
        code = _started[0].run(order)
        stdout, stderr = (Path(file).read_text(encoding="utf-8") for file in files)
    if check and code:
        raise AssertionError(f"{' '.join(order['arguments'])} exited {code}\n{stdout[-3000:]}\n{stderr[-6000:]}")
    return subprocess.CompletedProcess(order["arguments"], code, stdout, stderr)


class Running:
    """A command that has begun, for what is done to it meanwhile: as `subprocess.Popen`, but one at a time.

    `output`: where both outputs go, behind what is there.
    """

    def __init__(self, folder: Path, *arguments: str, env: dict[str, str], output: Path) -> None:
        if not _started:
            _started.append(_Warm())
        self.warm = _started[0]
        self.returncode: int | None = None
        self.pid = self.warm.begin(
            {"arguments": arguments, "cwd": str(folder), "env": env, "outputs": [str(output)] * 2, "mode": "ab"}
        )

    def poll(self) -> int | None:
        if self.returncode is None and self.warm.has_ended():
            self.wait()
        return self.returncode

    def wait(self, timeout: float = SECONDS) -> int:
        if self.returncode is None:
            if not self.warm.has_ended(timeout):
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self.returncode = int(self.warm.process.stdout.readline())
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


helm_run = functools.partial(processes.helm_run, start=command)
"""As `processes.helm_run`."""


def _serve() -> None:
    """Fork once for each line of stdin; answer with the fork's id, and with its exit code when it has ended."""
    import gc
    import importlib

    own_path = list(sys.path)
    for name in IMPORTS:
        importlib.import_module(name)
    assert "helm_ext" not in sys.modules
    if yaml.__with_libyaml__:
        yaml.SafeLoader = yaml.CSafeLoader  # HELM reads 24,000 lines of YAML at each start: a second of Python's
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(order, own_path)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _become(order: dict, own_path: list[str]) -> NoReturn:
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, path in enumerate(order["outputs"], 1):
        with open(path, order.get("mode", "wb")) as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    script, *arguments = order["arguments"]
    sys.argv = [str(processes.BIN / script), *arguments]
    # As Python does at its start: the script's folder, then those of PYTHONPATH.
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [str(processes.BIN), *filter(None, added), *(path for path in own_path[1:] if path not in added)]
    code = 0
    try:
        for entry in filter(None, added):  # Python's own start imports it
            if Path(entry, "sitecustomize.py").exists():
                runpy.run_path(str(Path(entry, "sitecustomize.py")))
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    # Python's own end, without taking apart all that was imported: each page of that would be copied first.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
