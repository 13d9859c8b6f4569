"""Commands without the seconds in which a process imports HELM, torch and their like.

One process imports them, and each command is a fork of it: a process with its own id, memory, folder, environment and
outputs, that runs the installed script as `python SCRIPT` would. helm_ext itself is imported by each anew. What is not
as in a process of its own: all share one seed of hashes, and what the imported packages read from the environment when
they are imported (offline, one thread of torch). Tests of what a start imports and of order start real ones.
"""

import atexit
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

IMPORTS = (
    # of HELM
    "calibration", "datasets", "sklearn.linear_model", "nltk.metrics.scores", "pandas", "aiohttp", "torch",
    "transformers", "transformers.models.auto.modeling_auto", "transformers.models.gpt2.modeling_gpt2",
    "helm.benchmark.run", "helm.benchmark.presentation.summarize", "helm.clients.huggingface_client",
    "helm.tokenizers.huggingface_tokenizer", "helm.benchmark.metrics.evaluate_reference_metrics",
    "helm.benchmark.metrics.basic_metrics", "helm.benchmark.annotation.annotator_factory",
    # of helm_ext
    "typer", "rich.console", "rich.table", "rich.progress", "rich.status", "pydantic.type_adapter", "msgspec", "orjson", "xxhash", "rapidfuzz",
    "scipy.optimize", "scipy.stats", "pyarrow.parquet", "jinja2", "filelock", "fsspec", "zstandard",
)  # fmt: skip
"""What runs import, whatever they do. Nothing of helm_ext: plugins are found in each process."""


class _Server:
    """The process that is forked; it ends with this one, whose end of its input closes."""

    def __init__(self) -> None:
        import tiny_model

        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=tiny_model.offline_environment(PYTHONUNBUFFERED="1", HF_DATASETS_OFFLINE="1"), bufsize=0,
        )  # fmt: skip
        self.ended: dict[int, int] = {}
        self.lock = threading.RLock()
        atexit.register(self.end)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    def begin(self, order: dict) -> int:
        with self.lock:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            while (pid := self._hear()) is None:
                pass
            self.ended.pop(pid, None)  # of an earlier process: ids come again
            return pid

    def exit_code(self, pid: int, seconds: float | None) -> int | None:
        """Return the exit code of one that has ended, None if it has not within so many seconds."""
        with self.lock:
            while pid not in self.ended:
                if not select.select([self.process.stdout], [], [], seconds)[0]:
                    return None
                self._hear()
            return self.ended[pid]

    def _hear(self) -> int | None:
        """Read a line: the id of what has begun, which is returned, or the id and the exit code of what has ended."""
        pid, *code = map(int, self.process.stdout.readline().split())
        if not code:
            return pid
        (self.ended[pid],) = code
        return None


_started: list[_Server] = []


class Running:
    """A command that has begun: as `subprocess.Popen`. Its outputs go behind what the files `outputs` hold."""

    def __init__(self, folder: Path, *arguments: str, env: Mapping[str, str], outputs: tuple[str | Path, ...]) -> None:
        if not _started:
            _started.append(_Server())
        self.returncode: int | None = None
        self.arguments = arguments
        for path in outputs:  # there from the beginning, for those who look
            open(path, "ab").close()
        self.pid = _started[0].begin(
            {"arguments": arguments, "cwd": str(folder), "env": dict(env), "outputs": [str(path) for path in outputs]}
        )

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _started[0].exit_code(self.pid, 0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait. Where it takes longer, it is killed: TimeoutExpired."""
        if self.returncode is None:
            self.returncode = _started[0].exit_code(self.pid, timeout)
        if self.returncode is None:
            self.kill()
            self.wait()
            raise subprocess.TimeoutExpired(self.arguments, timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve() -> None:
    """Fork once for each line of stdin; say the fork's id, and when it has ended that and its exit code."""
    import gc
    import importlib

    import yaml

    own_path = list(sys.path)
    for name in IMPORTS:
        importlib.import_module(name)
    assert "helm_ext" not in sys.modules
    if yaml.__with_libyaml__:
        yaml.SafeLoader = yaml.CSafeLoader  # HELM reads 24,000 lines of YAML at each start: a second of Python's
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for pid, code in _ended():
                print(pid, code, flush=True)
        if 0 in ready:
            if not (line := sys.stdin.buffer.readline()):
                return
            if not (pid := os.fork()):
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(woken)
                os.close(wake)
                _become(json.loads(line), own_path)
            print(pid, flush=True)


def _ended():
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _become(order: dict, own_path: list[str]) -> NoReturn:
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, path in enumerate(order["outputs"], 1):
        with open(path, "ab") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    script, *arguments = order["arguments"]
    folder = Path(sys.executable).parent
    sys.argv = [str(folder / script), *arguments]
    # As Python does at its start: the script's folder, then those of PYTHONPATH.
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [str(folder), *filter(None, added), *(path for path in own_path[1:] if path not in added)]
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
    except BaseException as error:
        sys.excepthook(*sys.exc_info())
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    # Python's own end, without taking apart all that was imported: each page of that would be copied first.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == -signal.SIGINT:  # as Python does, so that a shell knows
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


if __name__ == "__main__":
    _serve()
