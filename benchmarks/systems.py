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
    """A way of evaluating a workload. `work` says what it does beside scoring, `note` what else differs."""

    name: str
    work: str
    note: str = ""

    def can_run(self, workload: str) -> bool:
        return workload not in workloads.RECORDED_ONLY

    @abstractmethod
    def command(self, job: Job) -> list[str]:
        """Return the command line that evaluates the job's rows."""

    @abstractmethod
    def environment(self, job: Job) -> dict[str, str]:
        """Return the environment variables that it needs beside those that are there."""

    @abstractmethod
    def accuracy(self, output: Path) -> float:
        """Return the share of exact matches that the system itself wrote down."""

    def stats_per_row(self, output: Path) -> float | None:  # noqa: ARG002 - HELM's systems look
        """Return how many statistics the system wrote for each row; None where it has no such thing."""
        return None


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

    def can_run(self, workload: str) -> bool:
        return self.recorded or super().can_run(workload)

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

    def stats_per_row(self, output: Path) -> float:
        [path] = output.glob("runs/bench/*/per_instance_stats.json")
        rows = json.loads(path.read_text())
        return sum(len(row["stats"]) for row in rows) / len(rows)


ASKED = "a client is asked: prompts built, tokens counted"
RECORDED = "the recorded file is read: no prompts built, no tokens counted"
OUR_RUNNER = "helm_ext.running.StreamingRunner"
STOCK = Helm("stock HELM", ASKED)
HELM_SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        STOCK,
        Helm("stock HELM, our runner", ASKED, runner=OUR_RUNNER),
        Helm("recorded", RECORDED, "HELM's runner, with the metrics of helm-ext", recorded=True),
        Helm("recorded, our runner", RECORDED, recorded=True, runner=OUR_RUNNER),
    )
}
