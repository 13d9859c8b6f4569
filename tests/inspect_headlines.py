"""Logs of inspect_ai that are headed by scores of every kind, and what inspect_ai itself says that they are headed by.

    python tests/inspect_headlines.py make FOLDER    # the logs
    python tests/inspect_headlines.py read FILE...   # one JSON object a file, on one line of stdout

Run by a Python that has inspect_ai. The models are mockllm: they say what this script says.
"""

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric, read_eval_log, write_eval_log
from inspect_ai.log._headline import headline_metric
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import (
    SampleScore,
    Score,
    accuracy,
    choice,
    grouped,
    includes,
    match,
    mean,
    metric,
    model_graded_fact,
    model_graded_qa,
    scorer,
    std,
    stderr,
    value_to_float,
)
from inspect_ai.scorer._metrics.perplexity import perplexity_per_seq, perplexity_per_token
from inspect_ai.solver import generate, multiple_choice
from inspect_oracle import choice_samples, chosen, model, run, say, sized

TOWNS = ["Orsk", "Velm", "Quade", "Tarn", "Brun", "Port Ilo"]
SAID = ["Anda", "Anda.", "the Brell", "It is Anda", "Brell", "Anda, I think"]
GRADES = ["GRADE: C", "GRADE: I", "GRADE: C", "well said", "GRADE: C", "GRADE: P"]


def samples(target: str = "Anda") -> MemoryDataset:
    kinds = ("near", "far")
    made = [Sample(id=i, input=f"Which river runs through {town}?", target=target, metadata={"kind": kinds[i % 3 == 0]})
            for i, town in enumerate(TOWNS)]  # fmt: skip
    return MemoryDataset(made, name="rivers")


def answer(question: str, time: int) -> ModelOutput:
    return say(SAID[(next(i for i, town in enumerate(TOWNS) if town in question) + time - 1) % len(SAID)])


def grader(grades: list[str] = GRADES) -> Any:
    return model(lambda question, _time: say(grades[next(i for i, town in enumerate(TOWNS) if town in question)]))


@metric
def share_right() -> Any:
    def share(scores: list[SampleScore]) -> float:
        return sum(one.score.as_float() for one in scores) / len(scores)

    return share


@metric
def half_way() -> Any:
    def half(scores: list[SampleScore]) -> float:
        return sorted(one.score.as_float() for one in scores)[len(scores) // 2]

    return half


@metric(scores="unreduced")
def best_epoch() -> Any:
    def best(scores: list[SampleScore]) -> float:
        return max(value_to_float()(one.score.value) for one in scores)

    return best


@scorer(metrics=[std(), accuracy()])
def spread() -> Any:
    async def score(state: Any, target: Any) -> Score:
        return Score(value=float(target.text in state.output.completion))

    return score


@scorer(metrics=[perplexity_per_token(), perplexity_per_seq(), mean()])
def likely() -> Any:
    async def score(state: Any, _target: Any) -> Score:
        tokens = len(state.output.completion)
        metadata = {"num_tokens": tokens, "sum_log_probs": -0.25 * tokens - 1.5}
        return Score(value=0.25 + 1.5 / tokens, metadata=metadata)

    return score


def with_metrics(made: Any, metrics: list[Any]) -> dict[str, Any]:
    return {"scorer": made, "metrics": metrics}


def tasks() -> dict[str, dict[str, Any]]:
    """Return the arguments of each task, beside its samples."""
    both = {"scorer": [includes(), match()]}
    two = Epochs(3, ["mean", "max"])
    dicts = {"scorer": [match(), sized()]}
    return {
        "judged": {"scorer": model_graded_qa(model=grader())},
        "judged_partly": {"scorer": model_graded_fact(model=grader(), partial_credit=True)},
        "judged_alone": {"scorer": model_graded_qa(model=grader(), partial_credit=True), "dataset": samples("")},
        "judged_unread": {"scorer": model_graded_qa(model=grader(["no verdict"] * 6))},
        "judged_and_matched": {"scorer": [model_graded_qa(model=grader()), match()]},
        "matched": {"scorer": match()},
        "two": both,
        "two_declared": {**both, "headline_metric": HeadlineMetric(scorer="match")},
        "two_stderr": {**both, "headline_metric": "stderr"},
        "two_stale": {**both, "headline_metric": HeadlineMetric(scorer="gone", metric="stderr")},
        "two_stale_metric": {**both, "headline_metric": HeadlineMetric(scorer="match", metric="gone")},
        "objects": {"scorer": sized()},
        "objects_declared": {**dicts, "headline_metric": "sized.width"},
        "grouped": with_metrics(match(location="any"), [grouped(accuracy(), "kind"), stderr()]),
        "grouped_all": {**with_metrics(match(location="any"), [grouped(accuracy(), "kind"), stderr()]),
                        "headline_metric": HeadlineMetric(metric="all")},
        "grouped_by_groups": {**with_metrics(match(location="any"), [grouped(accuracy(), "kind", all="groups")]),
                              "headline_metric": HeadlineMetric(metric="all")},
        "epochs": {"scorer": includes(), "epochs": two},
        "epochs_declared": {"scorer": includes(), "epochs": two, "headline_metric": HeadlineMetric(reducer="max")},
        "epochs_apart": {"scorer": includes(), "epochs": Epochs(2, [])},
        "epochs_mixed": {**with_metrics(includes(), [best_epoch(), accuracy()]), "epochs": 2},
        "own_mean": with_metrics(includes(), [share_right(), half_way()]),
        "own_no_mean": with_metrics(includes(), [half_way(), share_right()]),
        "spread": {"scorer": spread()},
        "perplexity": {"scorer": likely()},
    }  # fmt: skip


def make(folder: Path) -> None:
    """Write the logs of all tasks, without the events of their samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in tasks().items():
        task = Task(**{"name": name, "dataset": samples(), "solver": [generate()], **arguments})
        save(run(name, task, model(answer), folder, {}))
    task = Task(name="chosen", dataset=MemoryDataset(choice_samples()), solver=[multiple_choice()], scorer=choice())
    save(run("chosen", task, model(chosen()), folder, {}))


def save(path: Path) -> None:
    log = read_eval_log(str(path))
    for sample in log.samples or []:
        sample.events, sample.store, sample.messages = [], {}, []
        for score in (sample.scores or {}).values():
            score.metadata = {k: v for k, v in (score.metadata or {}).items() if k != "grading"} or None
    write_eval_log(log, str(path))


def read(path: str) -> dict[str, Any]:
    """Return what inspect_ai says that a log is headed by."""
    found = headline_metric(read_eval_log(path))
    assert found is not None
    score = found.score
    said = {"score": score.name, "scorer": score.scorer, "reducer": score.reducer, "metric": found.name}
    return {**said, "value": found.metric.value, "scored": score.scored_samples, "unscored": score.unscored_samples}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        for file in sys.argv[2:]:
            print(json.dumps({"file": Path(file).name, **read(file)}))  # noqa: T201
