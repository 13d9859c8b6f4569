"""What the report says, gathered from finished runs in one pass each: numbers of all rows, texts of a sample."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson

from helm_ext.analysis.comparing import PairResult, compare_runs, join_versions
from helm_ext.analysis.gates import Series, find_series
from helm_ext.analysis.judged import JudgedStats, list_judged
from helm_ext.analysis.run_scores import (
    RunScores,
    list_of_several_suites,
    measure_headline,
    name_by_suite,
    open_headline,
)
from helm_ext.analysis.siblings import find_siblings, read_sibling, read_time
from helm_ext.errors import DatasetError, RunEntryError
from helm_ext.scoring.completeness import WRONG_WITH_GOLD, describe_cap
from helm_ext.scoring.statistics import Interval

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.analysis.runs import RunFiles

_LEFT_OUT = ("not_run", "failed", "unscored", "too_long")
_OTHER_COUNTS = ("unmapped", "cut off", "prompt truncated")
_BINS = 10
_LONGEST = 2_000
"""Characters of a text in the sample."""
_CUT = frozenset({"length", "max_tokens"})
_ADAPTER_KEYS = ("method", "max_train_instances")
_SOURCE_KEYS = ("tool", "version", "model", "task", "settings")


@dataclass(slots=True)
class Bin:
    """Rows whose probability lies in one tenth of 0 to 1."""

    count: int = 0
    probability: float = 0.0
    """Sum over the rows."""
    score: float = 0.0
    """Sum over the rows."""


@dataclass(slots=True)
class RunFacts:
    """One run."""

    scores: RunScores
    interval: Interval = field(init=False)
    slices: dict[str, dict[str, tuple[Interval, Interval | None]]] = field(default_factory=dict)
    """Attribute to value to the metric's interval, and to that of a judge's score as people's labels correct it."""
    counts: Counter[str] = field(default_factory=Counter)
    """`wrong`, and rows left out, by reason; `unmapped`, `cut off`, `prompt truncated`, where a row says it."""
    bins: list[Bin] = field(default_factory=list)
    """Of rows whose completion has a probability; [] where none has."""
    these_rows: Interval | None = None
    """What the model scores on exactly these rows, where they were answered several times."""
    finished: str = ""
    """When, in UTC; "" where the run does not say."""
    baselines: dict[str, float] = field(default_factory=dict)
    """The score of answers that need no model: the first option always, the most frequent right label always."""
    sample: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the page shows of some rows, by instance id."""
    provenance: dict[str, str] = field(default_factory=dict)
    judged: list[JudgedStats] = field(default_factory=list)
    """What judges say of the answers."""
    gold_inside: int = 0
    """Rows of free text that score 0 by an exact match though the answer holds the gold."""
    cap: str = ""
    """`100 of 300 rows`, where a cap took rows away."""

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error over ten bins of equal width; None without probabilities."""
        total = sum(one.count for one in self.bins)
        return sum(abs(one.probability - one.score) for one in self.bins) / total if total else None

    def list_left_out(self) -> dict[str, int]:
        """Return how many rows have no score, by why."""
        return {name: self.counts[name] for name in _LEFT_OUT if self.counts[name]}


@dataclass(slots=True)
class DatasetFacts:
    """One dataset: the runs of all models, and how they compare."""

    title: str
    scores: RunScores
    """Of one of the runs: all have one metric."""
    headline: str
    """What the runs' `interval` is of: the metric, or a judge's score as people's labels correct it."""
    runs: list[RunFacts]
    pairs: list[PairResult] = field(default_factory=list)
    rows: int = 0
    series: list[Series] = field(default_factory=list)
    """Of models that have several runs."""

    def list_counts(self) -> list[str]:
        """Return what rows are counted by: whether answers name no option only where any row has options."""
        return [name for name in _OTHER_COUNTS if name != "unmapped" or any(name in run.counts for run in self.runs)]

    def list_slices(self) -> list[tuple[str, list[str]]]:
        """Return the attributes of the rows, and the values of each."""
        names = sorted({name for run in self.runs for name in run.slices})
        return [(name, sorted({value for run in self.runs for value in run.slices.get(name, ())})) for name in names]

    def find_gain(self, model: RunFacts, other: RunFacts) -> tuple[PairResult, Interval] | None:
        """Return the comparison of two models on all rows, and by how much `model` is better than the other."""
        for pair in self.pairs:
            if not pair.slice and {id(pair.a), id(pair.b)} == {id(model.scores), id(other.scores)}:
                return pair, pair.gain if pair.b is model.scores else -pair.gain
        return None


class _Sample:
    """The rows with the least hashes, which are the same of every run of a dataset, in the order of the file."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: list[tuple[int, int, dict[str, Any]]] = []
        self._seen = count()

    def see(self, instance_id: str, make: Callable[[], dict[str, Any]]) -> None:
        """Make and keep the row if it is among the first `most` of the draw so far."""
        place = -int.from_bytes(hashlib.blake2b(instance_id.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        if len(self._kept) < self.most or (self._kept and place > self._kept[0][0]):
            heapq.heappush(self._kept, (place, next(self._seen), make()))
            if len(self._kept) > self.most:
                heapq.heappop(self._kept)

    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for _, _, row in sorted(self._kept, key=itemgetter(1))}


def gather(
    runs: Sequence[RunFiles], *, metric: str | None = None, cluster: str | None = None, most_rows: int = 500
) -> tuple[list[DatasetFacts], list[str]]:
    """Return the facts of each dataset and main metric, and in words what was left out of the report.

    `most_rows`: how many rows of each dataset are shown. Raises RunEntryError where no run has a score.
    """
    every: list[RunFacts] = []
    siblings = find_siblings(read_sibling(run.folder) for run in runs)
    stale = siblings.find_stale()
    notes = siblings.describe()
    for run in runs:
        try:
            facts = _read_run(run, metric, cluster, most_rows)
        except (DatasetError, RunEntryError) as error:
            notes.append(f"left out: {str(error).splitlines()[0]}")
            continue
        notes += facts.scores.notes
        if run.folder in stale:
            facts.scores.is_stale = True
            facts.scores.model += f" (stale: {read_time(run.folder)})"
        every.append(facts)
    if not every:
        raise RunEntryError("\n".join(["no run has a score to report", *notes]))
    datasets = [_to_dataset(of_one, notes) for of_one in _group(every)]
    datasets.sort(key=lambda dataset: (dataset.title.casefold(), dataset.scores.metric))
    _tell_apart(datasets)
    return datasets, notes


def _group(every: Sequence[RunFacts]) -> Iterable[list[RunFacts]]:
    """Return the runs of each dataset, metric and way of counting completions.

    Runs that `compare` takes for those of one dataset are so here too, as of one table with another `by=`.
    """
    datasets: dict[str, list[RunScores]] = {}
    for one in every:
        datasets.setdefault(one.scores.dataset, []).append(one.scores)
    join_versions(datasets)
    names = {id(one): name for name, found in datasets.items() for one in found}
    groups: dict[tuple[str, ...], list[RunFacts]] = {}
    for one in every:
        groups.setdefault((names[id(one.scores)], one.scores.metric, one.scores.completions), []).append(one)
    return groups.values()


def _tell_apart(datasets: Sequence[DatasetFacts]) -> None:
    """Name those of one title by their metrics too, and by numbers where that is not enough."""
    for is_last in (False, True):
        titles = Counter(dataset.title for dataset in datasets)
        for number, dataset in enumerate(datasets, 1):
            if titles[dataset.title] > 1:
                dataset.title += f" ({number})" if is_last else f", {dataset.scores.metric}"


def _to_dataset(runs: Sequence[RunFacts], notes: list[str]) -> DatasetFacts:
    first = runs[0].scores
    headline, intervals = measure_headline([run.scores for run in runs])
    for run, interval in zip(runs, intervals, strict=True):
        run.interval = interval
    best = -1 if first.lower_is_better else 1
    ordered = sorted(runs, key=lambda run: (-best * run.interval.mean, run.scores.model))
    caps = dict.fromkeys(run.cap for run in runs)
    title = min((run.scores.title for run in runs), key=len)  # where some name a way of running it, that of all
    title = f"{title} ({next(iter(caps))})" if len(caps) == 1 and any(caps) else title
    for run in runs if len(caps) > 1 else ():
        run.scores.model += f" ({run.cap})" if run.cap else ""
    rows = max(len(run.scores.rows) + run.scores.left_out for run in runs)
    dataset = DatasetFacts(title, first, headline, ordered, rows=rows)
    if len(runs) == 1:
        return dataset
    scores, are_total = [run.scores for run in runs], any(run.scores.total is not None for run in runs)
    try:
        several = [] if are_total else list_of_several_suites(scores)
        dataset.series = find_series(several) if several else []
    except (DatasetError, RunEntryError) as error:
        notes.append(f"no series over time: {str(error).splitlines()[0]}")
    name_by_suite(scores)
    try:
        pairs = ([], []) if are_total else compare_runs([run.scores for run in ordered], allow_different=True)
        dataset.pairs = pairs[0]
        notes += pairs[1]
    except (DatasetError, RunEntryError) as error:
        notes.append(f"not compared: {str(error).splitlines()[0]}")
    return dataset


def _find_title(scores: RunScores) -> str:
    """Return the dataset's title as on the leaderboard."""
    from helm.benchmark.scenarios.scenario import ScenarioSpec, create_scenario

    if not scores.run.is_ours:
        return scores.title
    spec = ScenarioSpec(scores.run.run_spec["scenario_spec"]["class_name"], scores.run.scenario_arguments)
    return create_scenario(spec).get_metadata().display_name or scores.title


def _read_run(run: RunFiles, metric: str | None, cluster: str | None, most_rows: int) -> RunFacts:
    scores = open_headline(run, metric, cluster)
    scores.title = _find_title(scores)
    facts, sample = RunFacts(scores), _Sample(most_rows)
    bins = [Bin() for _ in range(_BINS)]
    gold_labels: Counter[str] = Counter()
    first_right = choices = 0
    for row in run.predictions():
        if not scores.see(row) or row.trial:
            continue
        score = None if scores.total is not None else row.score(scores.metric)
        flags = _count(row, score, facts)
        if not scores.lower_is_better:
            _add_to_bin(bins, row, score)
        if row.options:
            gold = {text.strip() for text in row.gold}
            labels = {label for label, text in row.options.items() if text.strip() in gold}
            choices += 1
            first_right += next(iter(row.options)) in labels
            gold_labels.update(labels)
        sample.see(row.instance_id, partial(_to_sample, row, score, flags))
    scores.finish()
    facts.these_rows, facts.sample = scores.measure_these(), sample.rows()
    for (name, value), rows in scores.slices().items():
        facts.slices.setdefault(name, {})[value] = scores.measure(rows), scores.measure_corrected(rows)
    measured = sum(one.count for one in bins)  # of all rows or of none: a few say nothing of the others
    facts.bins = bins if measured and measured == len(scores.rows) else []
    facts.provenance, facts.finished = _provenance(run), read_time(run.folder)
    means = run.read_means(scores.split)
    facts.cap, facts.gold_inside = describe_cap(means), round(means.get(WRONG_WITH_GOLD, 0))
    facts.judged = list_judged(run, scores.split)
    if choices and not scores.lower_is_better and all(row.score in (0.0, 1.0) for row in scores.rows.values()):
        facts.baselines["always the first option"] = first_right / choices
        facts.baselines["always the most frequent label"] = max(gold_labels.values(), default=0) / choices
    return facts


def _count(row: Prediction, score: float | None, facts: RunFacts) -> list[str]:
    """Count what a row is, and return it."""
    reasons = {completion["finish_reason"] for completion in row.completions}
    said: dict[str, Any] = {
        "unmapped": row.score("unmapped") if "unmapped" in row.stats else None,
        "cut off": bool(reasons & _CUT) if reasons - {None, "", "unknown"} else None,
        "prompt truncated": row.prompt_truncated,
    }
    if (row.left_out or score is None) and (facts.scores.total is None or row.instance_id in facts.scores.without):
        said = {row.left_out or "unscored": True, **said}
    elif score is not None and facts.scores.is_wrong(score):
        said = {"wrong": True, **said}
    facts.counts.update({name: bool(value) for name, value in said.items() if value is not None})
    return [name for name, value in said.items() if value]


def _add_to_bin(bins: list[Bin], row: Prediction, score: float | None) -> None:
    """Count a row by the probability of its completion, where that was measured and the score is right or wrong.

    Where each option was a request of its own, no completion is the answer.
    """
    logprob = row.completions[0]["logprob"] if row.completions else None
    if score not in (0.0, 1.0) or logprob is None or logprob > 0 or row.completions[0]["reference_index"] is not None:
        return
    one = bins[min(_BINS - 1, int(math.exp(logprob) * _BINS))]
    one.count += 1
    one.probability += math.exp(logprob)
    one.score += score


def _to_sample(row: Prediction, score: float | None, flags: list[str]) -> dict[str, Any]:
    """Return what the page shows of one row of one run: what is asked, and under `answer` what the model said."""
    options = {label: _short(text) for label, text in (row.options or {}).items()}
    answer = _short("\n---\n".join(str(completion["text"]) for completion in row.completions))
    chosen = (row.read.label or "") if options else ""
    said = {"text": answer, "read": row.read.text, "chosen": chosen, "score": score, "flags": flags}
    return {
        "id": row.instance_id, "question": _short(row.question), "gold": [*map(_short, row.gold)], "options": options,
        "answer": said,
    }  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _provenance(run: RunFiles) -> dict[str, str]:
    adapter = run.adapter_spec
    facts: dict[str, Any] = {
        "run": run.name,
        "suite": run.suite,
        "finished": read_time(run.folder) or "not recorded",
        "scenario": run.run_spec["scenario_spec"]["class_name"],
        **run.scenario_arguments,
        **{f"adapter: {key}": adapter[key] for key in _ADAPTER_KEYS if key in adapter},
        **{key: "not recorded" if value is None else value for key, value in run.decoding.items()},
    }
    source = run.metric_arguments.get("source") or {}
    facts |= {f"source: {key}": source[key] for key in _SOURCE_KEYS if source.get(key)}
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in facts.items()}
