"""What a system of the table is, and HELM's four."""

from __future__ import annotations

import json
import shutil
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from benchmarks import stock, workloads
from benchmarks.measuring import ROOT, Cost, measure


@dataclass(frozen=True)
class System(ABC):
    """A way of evaluating a workload. `note` says where its work differs from the others'."""

    name: str
    note: str = ""

    def can_run(self, workload: str) -> bool:
        return workload in workloads.METRICS

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Return the command line that evaluates the job's rows."""

    @abstractmethod
    def environment(self, job: Job) -> dict[str, str]:
        """Return the environment variables that it needs beside those that are there."""

    @abstractmethod
    def accuracy(self, output: Path) -> float:
        """Return the share of exact matches that the system itself wrote down."""


@dataclass(frozen=True)
class Job:
    """A system's run of a workload's rows."""

    system: System
    workload: str
    rows: int
    folder: Path

    @property
    def recorded_path(self) -> Path:
        return self.folder / f"{self.workload}-{self.rows}.jsonl"

    @property
    def plain_path(self) -> Path:
        return self.folder / f"{self.workload}-{self.rows}.plain.jsonl"

    @property
    def peers_folder(self) -> Path:
        return self.folder / f"{self.workload}-{self.rows}.peers"

    @property
    def output(self) -> Path:
        return self.folder / f"{self.system.name}-{self.workload}-{self.rows}"

    @property
    def scratch(self) -> Path:
        """Return a folder for what a system keeps in the user's home; new for every run, and not counted as output."""
        return self.output.with_suffix(".scratch")

    def run(self) -> Cost:
        for folder in (self.output, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        environment = self.system.environment(self)
        return measure(self.system.command(self), self.output, environment, self.output.with_suffix(".log"))


@dataclass(frozen=True)
class Helm(System):
    """HELM, run with this interpreter's `helm-run`."""

    recorded: bool = False
    """Whether completions are recorded in the file. Else a client of stock HELM has them."""
    runner: str = "helm.benchmark.runner.Runner"

    def command(self, job: Job) -> list[str]:
        entry = (
            f"adapter_spec:path={job.recorded_path},model=recorded/bench"
            if self.recorded
            else f"workload:workload={job.workload},model=bench/model"
        )
        return [
            str(Path(sys.executable).with_name("helm-run")),
            *([] if self.recorded else ["--plugins", "benchmarks.stock"]),
            *("--run-entries", entry, "--suite", "bench", "--max-eval-instances", str(job.rows)),
            *("--disable-cache", "--local-path", str(job.folder / "prod_env"), "--output-path", "."),
            *("--runner-class-name", self.runner, "--num-threads", "4"),
        ]

    def environment(self, job: Job) -> dict[str, str]:
        return {stock.ROWS_VARIABLE: str(job.plain_path), "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}

    def accuracy(self, output: Path) -> float:
        [path] = output.glob("runs/bench/*/stats.json")
        name = {"name": "exact_match", "split": "test"}
        [value] = [stat["mean"] for stat in json.loads(path.read_text()) if stat["name"] == name]
        return value


OUR_RUNNER = "helm_ext.running.StreamingRunner"
STOCK = Helm("stock HELM")
HELM_SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        STOCK,
        Helm("stock HELM, our runner", runner=OUR_RUNNER),
        Helm("recorded", recorded=True),
        Helm("recorded, our runner", recorded=True, runner=OUR_RUNNER),
    )
}
