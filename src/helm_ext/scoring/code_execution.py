"""Running code that a model wrote, for metrics such as UltraEval's `function_execution` (HumanEval, MBPP).

The program runs in a process of its own: isolated mode, an empty temporary folder, an empty environment, no input,
limits on memory, file size and processor time, and on the number of the user's processes (Linux, and not for root).
It runs under a supervisor: when it ends, or its time is over, everything that it started is ended too. On Linux that
holds also for processes that left its session, as the supervisor is who inherits them; elsewhere it holds for its
process group only.

This stops accidents, not attacks: there is no sandbox, the code runs with the user's rights, reads and writes what the
user may, reaches the network, and could stop its supervisor. It runs only where the user allowed it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS = 3.0
"""Upstream's limit for one answer."""

_GRACE_SECONDS = 10.0
"""How long the supervisor may take to end the program's processes."""

MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
"""Of linux/prctl.h."""

MORE_PROCESSES = 64
"""How many processes and threads the program may have at once, where the limit can be set."""

# The limits are set by the child itself, before it reads the program: `preexec_fn` is not safe in a threaded parent.
_LAUNCHER = f"""
import os, resource, signal, sys, time
word, program = sys.stdin.buffer.read().split(b"\\n", 1)

def processes():
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []

def parent_of(pid):
    try:
        with open(f"/proc/{{pid}}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0

def descendants():
    parents = {{pid: parent_of(pid) for pid in processes()}}
    found = {{os.getpid()}}
    while True:
        more = {{pid for pid, parent in parents.items() if parent in found}} - found
        if not more:
            return found - {{os.getpid()}}
        found |= more

def threads_of_user():
    count = 0
    for pid in processes():
        try:
            if os.stat(f"/proc/{{pid}}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{{pid}}/task"))
        except OSError:
            pass
    return count

def kill(send, pid):
    try:
        send(pid, signal.SIGKILL)
    except OSError:
        pass

def end():
    if child:
        kill(os.killpg, child)
    for _ in range(1000):
        for pid in descendants():
            kill(os.kill, pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)

def stop(*_):
    end()
    os._exit(1)

if sys.platform == "linux":
    import ctypes
    libc = ctypes.CDLL(None)
    libc.prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)
    libc.prctl({PR_SET_PDEATHSIG}, signal.SIGTERM, 0, 0, 0)

child = 0
signal.signal(signal.SIGTERM, stop)
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    end()
    os._exit(status != 0)

signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.setsid()
def limit(kind, wanted):
    soft, hard = resource.getrlimit(kind)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (wanted, wanted))
if sys.platform == "linux":
    limit(resource.RLIMIT_NPROC, threads_of_user() + {MORE_PROCESSES})
limit(resource.RLIMIT_AS, {MEMORY_BYTES})
limit(resource.RLIMIT_FSIZE, {FILE_BYTES})
limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_CPU, {int(TIMEOUT_SECONDS) + 1})
answer = os.dup(1)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
exec(compile(program, "<model>", "exec"), {{}})
os.write(answer, word)
"""


_MBPP_KEYS = {"text", "code", "task_id", "test_setup_code", "test_list", "challenge_test_list"}


def make_program(row: Mapping[str, Any], completion: str) -> str:
    """Return the program that checks `completion`, as upstream puts it together (metrics/function_execution.py).

    A row with all of upstream's keys for MBPP is one of MBPP; else one with `prompt`, `test` and `entry_point` is one
    of HumanEval; else `text` and `test_list` are enough for MBPP. Raises DatasetIntegrityError for other rows.
    """
    is_humaneval = {"prompt", "test", "entry_point"} <= row.keys()
    if is_humaneval and not row.keys() >= _MBPP_KEYS:
        return f"{row['prompt']}{completion}\n{row['test']}\ncheck({row['entry_point']})"
    if {"text", "test_list"} <= row.keys():
        tests = "\n".join(row["test_list"])
        return f'"""{row["text"]}\n{tests}"""\n{completion}\n{tests}'
    raise DatasetIntegrityError(
        "function_execution needs rows with `prompt`, `test` and `entry_point` (HumanEval) or with `text` and "
        f"`test_list` (MBPP); this one has {', '.join(sorted(row)) or 'no keys'}"
    )


def passes(program: str, timeout: float = TIMEOUT_SECONDS) -> bool:
    """Return whether `program` runs to its end within `timeout` seconds and the limits above.

    A program that leaves early (`sys.exit(0)`) has not passed: the end is told by a word that the program is not given.
    Its globals are empty, as upstream's: `__name__` is "builtins", so what stands under `if __name__ == "__main__":`
    does not run.
    """
    word = os.urandom(16).hex()
    with tempfile.TemporaryDirectory(prefix="helm_ext_") as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _LAUNCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(f"{word}\n{program}".encode("utf-8", "surrogatepass"), timeout=timeout)
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
    return process.returncode == 0 and output == word.encode()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the supervisor, which ends whatever the program started."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
