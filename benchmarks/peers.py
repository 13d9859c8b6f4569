"""Other harnesses, each in a virtual environment of its own, on the same prompts with the same answers.

Every model answers at once, from a table of what was recorded; it fails on a prompt that is not in it, so a system that
builds its prompts itself is known to build the same ones. All of them compute exact match only. Nothing is fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import workloads
from benchmarks.measuring import ROOT
from benchmarks.peer_runs.answers import key
from benchmarks.systems import Job, System

WORK = "other harnesses: exact match alone"
DEFAULT_VENVS = Path(".bench/venvs")
PACKAGES = {"lm-eval": "lm-eval==0.4.13", "inspect-ai": "inspect-ai==0.3.285", "redlite": "redlite==0.4.3"}
"""What is installed for each. None of them needs torch for a model that is not a network."""


class UnavailableError(Exception):
    """A peer that cannot be installed or does not run, and why."""


def install(package: str, venvs: Path) -> Path:
    """Return the interpreter of a package's environment, which is made first if it is missing or of another version."""
    folder = venvs.absolute() / package
    python = folder / "bin" / "python"
    installed = folder / "installed.txt"
    if installed.exists() and installed.read_text() == PACKAGES[package]:
        return python
    print(f"installing {PACKAGES[package]} in {venvs / package}", flush=True)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGES[package]],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"not installed: {last_line(done.stderr or done.stdout)}")
    installed.write_text(PACKAGES[package])
    return python


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def write_workload(folder: Path, workload: str, rows: list[workloads.Row]) -> None:
    """Write a workload in the peers' forms.

    `demonstrations.jsonl` and `rows.jsonl` have one question a line, `prompts.jsonl` whole prompts as conversations,
    `head.txt` what stands before each question, `answers.json` what the model says.
    """
    folder.mkdir()
    demonstrations, evaluated = rows[: workloads.DEMONSTRATIONS], rows[workloads.DEMONSTRATIONS :]
    head = workloads.render_head(workload, demonstrations)
    (folder / "head.txt").write_text(head)
    for name, some in (("demonstrations", demonstrations), ("rows", evaluated)):
        with (folder / f"{name}.jsonl").open("w") as file:
            for row in some:
                question = workloads.render(workload, row, with_answer=False)
                target = workloads.target(workload, row)
                fields = {"id": row.number, "question": question, "target": target, "right": row.right}
                file.write(json.dumps(fields) + "\n")
    answers = {}
    with (folder / "prompts.jsonl").open("w") as file:
        for row in evaluated:
            prompt = head + workloads.render(workload, row, with_answer=False)
            answers[key(prompt)] = row.answer
            messages = [{"role": "user", "content": prompt}]
            item = {"id": str(row.number), "messages": messages, "expected": workloads.target(workload, row)}
            file.write(json.dumps(item) + "\n")
    (folder / "answers.json").write_text(json.dumps(answers))
    # A YAML file may be written as JSON.
    for name, task in lm_eval_tasks(workload, folder).items():
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **task}))


def lm_eval_tasks(workload: str, folder: Path) -> dict[str, dict]:
    """Return the task of a workload where the answer is generated, and the one where it is the likeliest option."""
    adapter = workloads.ADAPTER[workload]
    common = {
        "dataset_path": "json",
        "dataset_kwargs": {
            "data_files": {"train": str(folder / "demonstrations.jsonl"), "test": str(folder / "rows.jsonl")}
        },
        "test_split": "test",
        "fewshot_split": "train",
        "fewshot_config": {"sampler": "first_n"},
        "num_fewshot": workloads.DEMONSTRATIONS,
        "description": f"{adapter['instructions']}\n",
        "doc_to_text": "{{question}}",
    }
    generate = {
        **common,
        "output_type": "generate_until",
        "doc_to_target": "{{target}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": adapter["max_tokens"]},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    likeliest = {
        **common,
        "output_type": "multiple_choice",
        "doc_to_target": "right",
        "doc_to_choice": list(workloads.LETTERS),
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    }
    return {"generate": generate, "likeliest": likeliest}


@dataclass(frozen=True)
class Peer(System):
    """A system that is not HELM. `python` in its environment runs a module of `benchmarks.peer_runs`."""

    package: str = ""
    venvs: Path = DEFAULT_VENVS

    @property
    def python(self) -> Path:
        return self.venvs.absolute() / self.package / "bin" / "python"

    def environment(self, job: Job) -> dict[str, str]:
        return {
            "PYTHONPATH": str(ROOT),
            "HOME": str(job.scratch),
            "HF_HOME": str(job.scratch),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "TQDM_DISABLE": "1",
        }


@dataclass(frozen=True)
class LmEval(Peer):
    package: str = "lm-eval"
    task: str = "generate"

    def can_run(self, workload: str) -> bool:
        return super().can_run(workload) and (self.task == "generate" or workload == "W1")

    def command(self, job: Job) -> list[str]:
        return [
            *(str(self.python), "-m", "benchmarks.peer_runs.lm_eval_run", "run", "--model", "recorded"),
            *("--model_args", f"answers={job.peers_folder / 'answers.json'}"),
            *("--include_path", str(job.peers_folder), "--tasks", self.task),
            *("--output_path", str(job.output), "--log_samples"),
        ]

    def accuracy(self, output: Path) -> float:
        [path] = output.rglob("results_*.json")
        results = json.loads(path.read_text())["results"][self.task]
        return results["exact_match,none" if self.task == "generate" else "acc,none"]


@dataclass(frozen=True)
class Inspect(Peer):
    package: str = "inspect-ai"

    def command(self, job: Job) -> list[str]:
        return [
            *(str(self.python), "-m", "benchmarks.peer_runs.inspect_run"),
            *(str(job.peers_folder), str(job.output)),
        ]

    def accuracy(self, output: Path) -> float:
        # Its logs are compressed with what Python's zipfile does not know.
        return float((output / "accuracy.txt").read_text())


@dataclass(frozen=True)
class Redlite(Peer):
    package: str = "redlite"

    def command(self, job: Job) -> list[str]:
        return [str(self.python), "-m", "benchmarks.peer_runs.redlite_run", str(job.peers_folder)]

    def environment(self, job: Job) -> dict[str, str]:
        return {**super().environment(job), "REDLITE_DATA_DIR": str(job.output)}

    def accuracy(self, output: Path) -> float:
        [path] = output.rglob("meta.json")
        return json.loads(path.read_text())["score_summary"]["mean"]


def make_peers(venvs: Path = DEFAULT_VENVS) -> dict[str, Peer]:
    peers = (
        LmEval("lm-eval", WORK, "generates the answer", venvs=venvs),
        LmEval(
            "lm-eval, log-likelihood",
            WORK,
            "four requests a row: the recorded letter is the likeliest one; computes acc",
            venvs=venvs,
            task="likeliest",
        ),
        Inspect("inspect-ai", WORK, "mockllm with the recorded answers", venvs=venvs),
        Redlite(
            "redlite",
            WORK,
            "has no demonstrations: reads whole prompts from its file",
            venvs=venvs,
        ),
    )
    return {peer.name: peer for peer in peers}
