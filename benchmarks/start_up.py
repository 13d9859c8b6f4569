"""What helm-ext adds to the start of `helm-run`."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import measure
from benchmarks.systems import STOCK, Job

_IMPORT = """
import time
from helm.benchmark import run
started = time.process_time()
import helm_ext.plugin
print((time.process_time() - started) * 1000)
"""


def hide_plugin(folder: Path) -> Path:
    """Return a folder that, early on the path, keeps HELM from finding helm-ext, which stays installed.

    HELM loads the entry points of the group `helm`, and of two distributions of one name only the first on the path
    counts: this one has no entry points.
    """
    metadata = folder / "helm_ext-0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: helm-ext\nVersion: 0\n")
    return folder


def print_start_up(folder: Path, rows: int, repeat: int) -> None:
    """Print what the import costs, and CPU seconds of a stock HELM run with the plugin and without, taking turns."""
    command = [sys.executable, "-c", _IMPORT]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(repeat)]
    print(f"import helm_ext.plugin adds {min(times):.1f} ms to what helm-run has loaded (least of {repeat})")
    (folder / "nothing hidden").mkdir()
    first_on_path = {"with": folder / "nothing hidden", "without": hide_plugin(folder / "hidden")}
    cpu: dict[str, list[float]] = {name: [] for name in first_on_path}
    job = Job(STOCK, "W1", rows, folder)
    for _ in range(repeat):
        for name, path in first_on_path.items():
            output = folder / f"start-{name}-{len(cpu[name])}"
            output.mkdir()
            environment = STOCK.environment(job)
            environment["PYTHONPATH"] = f"{path}:{environment['PYTHONPATH']}"
            cost = measure(STOCK.command(job), output, environment, output.with_suffix(".log"))
            cpu[name].append(cost.cpu)
    for kind, choose in (("least", min), ("median", statistics.median)):
        with_plugin, without = choose(cpu["with"]), choose(cpu["without"])
        print(
            f"helm-run, stock, {rows} rows, {kind} of {repeat}: {with_plugin:.2f} CPU s with the plugin, "
            f"{without:.2f} without: {with_plugin / without:.3f}"
        )
