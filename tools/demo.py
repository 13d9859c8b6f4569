"""A first look at helm-ext: real runs on the example files, the report, and the command that shows it in a browser.

    make demo

Everything is written to the folder `.demo`. No model is downloaded and no network is used.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".demo"
SUITE = "demo"
BIN = Path(sys.executable).parent
STREAMING = ["--runner-class-name", "helm_ext.runner.StreamingRunner"]

# Completions recorded earlier: no model runs. Any name may follow `recorded/`.
RECORDED = [
    "adapter_spec:dataset=short_answer_qa,model=recorded/first-model",
    "adapter_spec:dataset=multiple_choice,model=recorded/first-model",
    "adapter_spec:dataset=labels_stems,model=recorded/first-model",
    "adapter_spec:dataset=chain_of_thought,model=recorded/first-model",
    "adapter_spec:dataset=list_output,model=recorded/first-model",
]
# HELM's toy model answers with the last word of the prompt; it stands for any model that HELM can run.
LIVE = [
    "adapter_spec:dataset=yes_no_questions,model=simple/model1",
    "adapter_spec:dataset=multiple_choice,model=simple/model1",
]


def run(*command: str) -> None:
    """Run one command in the demo folder, log to a file, and stop with its last lines if it fails."""
    print("$", " ".join(command), flush=True)
    log = FOLDER / f"{Path(command[0]).name}.log"
    with log.open("a", encoding="utf-8") as output:
        done = subprocess.run([BIN / command[0], *command[1:]], cwd=FOLDER, stdout=output, stderr=output, check=False)
    if done.returncode:
        print("\n".join(log.read_text(encoding="utf-8").splitlines()[-15:]))
        raise SystemExit(f"{command[0]} failed; the whole log is {log}")


def leaderboard() -> Table:
    """Return helm-summarize's table of main metrics: a row a dataset, a column a model."""
    path = FOLDER / "benchmark_output" / "runs" / SUITE / "groups" / "all_scenarios.json"
    tables = json.loads(path.read_text(encoding="utf-8"))
    main = next(table for table in tables if table["title"] == "Main Metric")
    models = [row[0]["value"] for row in main["rows"]]
    shown = Table(title="Leaderboard", title_justify="left")
    shown.add_column("dataset - metric")
    for model in models:
        shown.add_column(model, justify="right")
    for index, cell in enumerate(main["header"]):
        if index == 0 or cell["value"] == "Mean win rate":
            continue
        values = [row[index].get("value") for row in main["rows"]]
        shown.add_row(cell["value"], *("-" if value is None else f"{value:.3f}" for value in values))
    return shown


def main() -> None:
    """Run, summarize, show."""
    FOLDER.mkdir(exist_ok=True)
    if not (FOLDER / "adapter_specs").exists():
        (FOLDER / "adapter_specs").symlink_to(ROOT / "adapter_specs")
    run("helm-run", "--suite", SUITE, "-m", "1000", "--disable-cache", *STREAMING, "--run-entries", *RECORDED, *LIVE)
    run("helm-summarize", "--suite", SUITE, "--auto-generate-schema")
    Console(width=110).print(leaderboard())
    print(f"See it in a browser:\n  cd {FOLDER.relative_to(ROOT)} && ../.venv/bin/helm-server --suite {SUITE}")
    print("then open http://localhost:8000")


if __name__ == "__main__":
    main()
