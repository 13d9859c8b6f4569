"""What cannot be undercut, and what starting costs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from pathlib import Path

_IMPORT = """
import time
from helm.benchmark import run
started = time.process_time()
import helm_ext.plugin
print((time.process_time() - started) * 1000)
"""


def print_start_up(repetitions: int = 3) -> None:
    """Print what `import helm_ext.plugin` adds to a process that has loaded helm-run (best of a few)."""
    times = [
        float(subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout)
        for _ in range(repetitions)
    ]
    print(f"import helm_ext.plugin adds {min(times):.1f} ms to what helm-run has loaded")


def print_limits(path: Path) -> None:
    """Print the time for reading the file's JSON and for comparing two strings a row, in seconds per 1,000 rows."""
    lines = path.read_bytes().splitlines()[1:]
    for name, parse in (("json.loads", json.loads), ("orjson.loads", orjson.loads)):
        started = time.process_time()
        for line in lines:
            parse(line)
        print(f"{name:24}{'':50}{(time.process_time() - started) / len(lines) * 1000:14.4f}")
    pairs = [
        (row["request"]["result"]["completions"][0]["text"], row["instance"]["references"][0]["output"]["text"])
        for row in map(orjson.loads, lines)
    ]
    started = time.process_time()
    sum(prediction.strip() == gold.strip() for prediction, gold in pairs)
    print(f"{'exact match in Python':24}{'':50}{(time.process_time() - started) / len(lines) * 1000:14.4f}")
