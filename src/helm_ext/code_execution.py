"""Running code that a model wrote, for metrics such as UltraEval's `function_execution` (HumanEval, MBPP).

The program runs in a process of its own: isolated mode, an empty temporary folder, an empty environment, no input,
limits on time, memory, processes and file size. This stops accidents, not attacks: there is no sandbox, and the code
runs with the user's rights. It runs only where the user allowed it.
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

__all__ = ["make_program", "passes"]

TIMEOUT_SECONDS = 3.0
"""Upstream's limit for one answer."""

MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20

# The limits are set by the child itself, before it reads the program: `preexec_fn` is not safe in a threaded parent.
_LAUNCHER = f"""
import os, resource, sys
def limit(kind, wanted):
    soft, hard = resource.getrlimit(kind)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (wanted, wanted))
limit(resource.RLIMIT_AS, {MEMORY_BYTES})
limit(resource.RLIMIT_FSIZE, {FILE_BYTES})
limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_CPU, {int(TIMEOUT_SECONDS) + 1})
word, program = sys.stdin.buffer.read().split(b"\\n", 1)
answer = os.dup(1)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
exec(compile(program, "<model>", "exec"), {{"__name__": "__main__"}})
os.write(answer, word)
"""


def make_program(row: Mapping[str, Any], completion: str) -> str:
    """Return the program that checks `completion`: HumanEval's rows have `prompt`, `test` and `entry_point`, MBPP's
    have `text` and `test_list`.

    Raises DatasetIntegrityError for rows of another kind.
    """
    if {"prompt", "test", "entry_point"} <= row.keys():
        return f"{row['prompt']}{completion}\n{row['test']}\ncheck({row['entry_point']})"
    if {"text", "test_list"} <= row.keys():
        return f"{completion}\n" + "\n".join(row["test_list"])
    raise DatasetIntegrityError(
        "function_execution needs rows with `prompt`, `test` and `entry_point` (HumanEval) or with `text` and "
        f"`test_list` (MBPP); this one has {', '.join(sorted(row)) or 'no keys'}"
    )


def passes(program: str, timeout: float = TIMEOUT_SECONDS) -> bool:
    """Return whether `program` runs to its end within `timeout` seconds and the limits above.

    A program that leaves early (`sys.exit(0)`) has not passed: the end is told by a word that the program is not given.
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
    """End the process and whatever it started: it leads a process group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
