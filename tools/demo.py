"""A first look at helm-ext: real runs on the example files, the report, and the command that shows it in a browser.

    make demo

Everything is written to the folder `.demo`. No model is downloaded and no network is used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".demo"
SUITE = "demo"
BIN = Path(sys.executable).parent
STREAMING = ["--runner-class-name", "helm_ext.running.StreamingRunner"]

# Completions that two models gave earlier: nothing is asked now. Any name may follow `recorded/`.
FIRST, SECOND = "recorded/first-model", "recorded/second-model"
BY_BOTH = ("short_answer_qa", "multiple_choice", "labels_stems", "chain_of_thought", "list_output")
RUNS = [
    *(f"adapter_spec:dataset={name},model={FIRST}" for name in BY_BOTH),
    *(f"adapter_spec:path=examples/second_model/{name}.json,model={SECOND}" for name in BY_BOTH),
    # A chat dataset from the hub, with replies to it.
    f"innodata:dataset=front-desk,hub=hub,replies=examples/innodata/replies.jsonl,model={FIRST}",
    f"innodata:dataset=front-desk,hub=hub,replies=examples/innodata/replies_second.jsonl,model={SECOND}",
    # The outputs of two finished UltraEval runs.
    *(
        f"ultraeval:data=examples/ultraeval/logs/{model.removeprefix('recorded/')}/workshop_workshop_gen/instance.jsonl,"
        f"model={model}"
        for model in (FIRST, SECOND)
    ),
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


def publish_bundle() -> None:
    """Pack the example chat dataset and upload it, unless an earlier demo did."""
    source = "examples/innodata"
    run(
        "helm-ext", "hub", "pack", "--name", "front-desk", "--test", f"{source}/test.jsonl",
        "--train", f"{source}/train.jsonl", "--attr", "task=assistance", "--out", ".", "--replace",
    )  # fmt: skip
    if not (FOLDER / "hub").exists():
        run("helm-ext", "hub", "upload", "front-desk.zip", "--hub", "hub")


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
    columns = {cell["value"]: index for index, cell in enumerate(main["header"]) if index}
    columns.pop("Mean win rate", None)
    for title, index in sorted(columns.items()):
        values = [row[index].get("value") for row in main["rows"]]
        shown.add_row(title, *("-" if value is None else f"{value:.3f}" for value in values))
    return shown


def main() -> None:
    """Run, summarize, show."""
    FOLDER.mkdir(exist_ok=True)
    for name in ("adapter_specs", "examples"):
        if not (FOLDER / name).exists():
            (FOLDER / name).symlink_to(ROOT / name)
    publish_bundle()
    run(
        "helm-run",
        "--suite",
        SUITE,
        "-m",
        "1000000",
        "--disable-cache",
        *STREAMING,
        "--run-entries",
        *RUNS,
    )
    summarizer = ("--summarizer-class-name", "helm_ext.running.StreamingSummarizer")
    run("helm-summarize", "--suite", SUITE, "--auto-generate-schema", "--num-threads", "1", *summarizer)
    Console(width=110).print(leaderboard())
    server = os.path.relpath(BIN / "helm-server", FOLDER)
    print(f"See it in a browser:\n  cd {os.path.relpath(FOLDER)} && {server} --suite {SUITE}")
    print("then open http://localhost:8000")


if __name__ == "__main__":
    main()
