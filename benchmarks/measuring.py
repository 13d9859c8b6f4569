"""Running one process and saying what it took."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Cost:
    """What one process took, its children included. `peak_mb` is that of the largest of them."""

    cpu: float
    wall: float
    peak_mb: float
    written_mb: float


def measure(command: list[str], folder: Path, environment: dict[str, str], log: Path) -> Cost:
    """Run a command to its end. Raises RuntimeError, with the end of its log, when it fails."""
    before = size_mb(folder)
    started = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{log.read_text()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, size_mb(folder) - before)


def size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
