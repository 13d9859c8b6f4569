"""A workload run by redlite: `python -m benchmarks.peer_runs.redlite_run FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from redlite import NamedModel, run
from redlite.dataset.json_dataset import JSONDataset
from redlite.metric import MatchMetric

from benchmarks.peer_runs.answers import Answers

folder = Path(sys.argv[1])
answers = Answers(folder / "answers.json")
run(
    # Not one of `redlite.model`: importing that needs openai.
    model=NamedModel("recorded", lambda messages: answers(messages[-1]["content"])),
    dataset=JSONDataset(path=str(folder / "prompts.jsonl"), name="workload", split="test"),
    metric=MatchMetric(strategy="exact"),
    name="bench",
)
