"""Which stats of a finished run are scores, and the run as comparisons and intervals see it: one score for each row.

A row is an instance without perturbations; the mean over trials is its score, so that trials count once. Rows that were
left out have none, and are counted. As on HELM's leaderboards, the rows are those of one split: `test` where a run has
rows of several.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from helm_ext.analysis.json_arrays import stat_key
from helm_ext.errors import DatasetIntegrityError, RunEntryError, count, did_you_mean
from helm_ext.scoring.reducers import FIRST
from helm_ext.scoring.registry import find_bounds, get_scores
from helm_ext.scoring.score import ANSWERS, BESIDE, CORRECTED, NOISE, StatInfo, list_judge_stats
from helm_ext.scoring.statistics import LEVEL, Interval, answers_interval, mean_interval, trials_interval

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.analysis.runs import RunFiles
    from helm_ext.scoring.corrected_scores import Seen

_USUAL = ("exact_match", "quasi_exact_match", "normalized_exact_match", "f1_score", "rouge_l")
"""What HELM's own scenarios are mostly judged by. The files of their runs name no main metric."""

_HALF = 0.5

_JUDGED = re.compile(r"judge_(?P<criterion>[^\[\]]+)(?:\[(?P<by>.*)\])?")
"""A jury's score, or one judge's."""

_DESCRIPTIVE = frozenset(
    """batch_size max_prob predicted_index prompt_truncated training_co2_cost training_energy_cost unmapped
    bits_per_byte logprob logprob_per_byte perplexity""".split()  # noqa: SIM905
)
_DESCRIPTIVE_PREFIXES = ("finish_reason_", "inference_", "num_")
"""Names of HELM's (helm/benchmark/metrics/basic_metrics.py, efficiency_metrics.py), and our `num_left_out`. Those of
the second line are of the completion's own likelihood, whether it is right or wrong."""


@dataclass(slots=True)
class ScoredRow:
    """One instance of a run."""

    score: float
    """Mean over the trials."""
    question: bytes
    """Digest of what was asked and what is right."""
    groups: Mapping[str, str]
    """Attribute to value."""
    cluster: str | None = None
    """What it belongs to, where that was asked for or the run says it."""
    answers: float = 1
    """Of how many completions the score of the first trial is made."""
    noise: float = math.nan
    """The variance of that score, were they drawn again; NaN where that is not known."""
    by_trial: tuple[float, ...] = ()
    """The score of each trial, where there are several."""
    seen: tuple[Seen, ...] = ()
    """What judges and people said of the answer in each trial, where the score is a judge's of the first answer:
    labels are of that one alone."""


@dataclass
class RunScores:
    """The scores of one run, by one metric."""

    run: RunFiles
    metric: str
    key: str | None = None
    """The key that names what a row belongs to; None: as the run itself was told (`cluster=`), if it was."""
    instead: str = ""
    """What is said of the main metric where no row has it."""
    total: float | None = None
    """The score, where it is one of all rows together: no row has it, and there is no interval."""
    is_of_source: bool = False
    """Whether `total` is what a source reports: of rows too that we make no score of."""
    rows: dict[str, ScoredRow] = field(default_factory=dict)
    """By instance id."""
    without: set[str] = field(default_factory=set)
    """Ids of rows without a score."""
    elsewhere: set[str] = field(default_factory=set)
    """Ids of rows of other splits."""
    is_stale: bool = False
    """Whether a newer version of its file was scored since (`siblings`)."""

    def __post_init__(self) -> None:
        """Take what people call the run; whoever shows several tells apart those of one name."""
        self.model = self.run.model
        self.title = _title(self.run)
        """The dataset, for people."""
        self.split = find_split(self.run)
        """The split that counts; None for whatever there is."""
        self.lower_is_better = is_lower_better(self.run.run_spec, self.metric)

    @property
    def dataset(self) -> str:
        """What runs of one dataset agree in: the digest of its questions, or what HELM makes the rows of."""
        given = self.run.scenario_arguments
        if self.run.is_ours and "digest" in given:
            return str(given.get("questions") or given["digest"])
        return stat_key(self.run.run_spec["scenario_spec"])

    @property
    def reducer(self) -> str:
        """How the scores of several completions of a row become its own (`scoring.reducers`)."""
        return str(self.run.metric_arguments.get("completions") or FIRST)

    @property
    def completions(self) -> str:
        """The reducer; "" for `first` and `mean`, which estimate the score of one completion: `pass_at_2` does not."""
        return "" if self.reducer in (FIRST, "mean") else self.reducer

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest score that a row can have."""
        return find_bounds(self.metric, self.run.metric_arguments)

    @property
    def span(self) -> float:
        """By how much two scores can differ."""
        lowest, highest = self.bounds
        return highest - lowest

    @property
    def left_out(self) -> int:
        """The number of rows without a score."""
        return len(self.without - self.rows.keys())

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the rows that are not among these."""
        notes = [f"{self.run.name}: {self.instead}"] if self.instead else []
        if self.elsewhere:
            rows = count(len(self.elsewhere), "row")
            notes.append(
                f"{self.run.name}: {rows} of other splits than {self.split} left out, as on HELM's leaderboards"
            )
        return notes

    def measure(self, rows: Iterable[tuple[str, ScoredRow]] | None = None, *, level: float = LEVEL) -> Interval:
        """Return the interval of the mean of these rows (id and row; default: all), within what the metric can be."""
        given = list(self.rows.items() if rows is None else rows)
        if self.total is not None:
            return Interval(self.total, math.nan, math.nan, len(given), "none", level=level)
        scores, clusters = [row.score for _, row in given], [row.cluster for _, row in given]
        return mean_interval(scores, clusters, level=level).within(self.bounds)

    def measure_corrected(
        self, rows: Iterable[tuple[str, ScoredRow]] | None = None, *, level: float = LEVEL
    ) -> Interval | None:
        """Return the interval of a judge's score as people's labels correct it; None where they do not."""
        given = list(self.rows.items() if rows is None else rows)
        if not all(row.seen for _, row in given):
            return None
        from helm_ext.scoring.corrected_scores import JudgedRows

        clusters = [row.cluster or f"\0{key}" for key, row in given for _ in row.seen]  # trials of a row: a cluster
        found = JudgedRows([one for _, row in given for one in row.seen], clusters, level=level).corrected
        return getattr(found, "interval", None)

    def measure_these(self) -> Interval | None:
        """Return the 95 % interval of what the model scores on exactly these rows; None where each was answered once.

        `method` is `none` where the answers do not tell: one row has one answer, or all answers of each row agree.
        """
        given = list(self.rows.values())
        if self.total is not None:
            return None
        trials = max(len(row.by_trial) for row in given)
        if trials:
            if any(len(row.by_trial) != trials for row in given):
                return trials_interval([math.fsum(row.score for row in given) / len(given)], len(given))
            by_trial = zip(*(row.by_trial for row in given), strict=True)
            return trials_interval([math.fsum(one) / len(given) for one in by_trial], len(given)).within(self.bounds)
        if all(row.answers == 1 for row in given):
            return None
        columns = ([row.score for row in given], [row.noise for row in given], [row.answers for row in given])
        return answers_interval(*columns).within(self.bounds)

    def slices(self) -> dict[tuple[str, str], list[tuple[str, ScoredRow]]]:
        """Return the rows, with their ids, of each attribute and value, sorted."""
        members: dict[tuple[str, str], list[tuple[str, ScoredRow]]] = {}
        for key, row in self.rows.items() if self.total is None else ():
            for group in row.groups.items():
                members.setdefault(group, []).append((key, row))
        return dict(sorted(members.items()))

    def see(self, row: Prediction) -> bool:
        """Take a row. Returns whether it counts: perturbed copies, demonstrations and other splits do not."""
        if row.perturbation or row.split == "train":
            return False
        if self.split is not None and row.split != self.split:
            self.elsewhere.add(row.instance_id)
            return False
        is_in_total = not row.left_out or (self.is_of_source and row.left_out == "unscored")
        score = row.score(self.metric) if self.total is None else math.nan if is_in_total else None
        if score is None:
            self.without.add(row.instance_id)
            return True
        known = self.rows.get(row.instance_id)
        if known is not None:
            known.by_trial = (*(known.by_trial or (known.score,)), score)
            known.score += (score - known.score) / len(known.by_trial)
            known.seen += self._see_judged(row)
            return True
        belongs = row.cluster if self.key is None else _find_cluster(row, self.key)
        answers, noise = row.score(f"{self.metric}{ANSWERS}") or 1, row.score(f"{self.metric}{NOISE}")
        self.rows[row.instance_id] = ScoredRow(
            score, _digest(row), row.groups, belongs, answers, math.nan if noise is None else noise,
            seen=self._see_judged(row),
        )  # fmt: skip
        return True

    def _see_judged(self, row: Prediction) -> tuple[Seen, ...]:
        named = _JUDGED.fullmatch(self.metric)
        if named is None or not row.judgements or self.reducer != FIRST:
            return ()
        from helm_ext.scoring.corrected_scores import see

        said, by = row.list_said(named["criterion"]), named["by"]
        found = see(one for one in said if by is None or one.kind == "human" or one.by == by)
        return () if found is None else (found,)

    def is_wrong(self, score: float) -> bool:
        """Whether reports call a row of this score wrong: it is on the bad side of a half."""
        return score > _HALF if self.lower_is_better else score < _HALF

    def finish(self) -> None:
        """Check what was seen. Raises DatasetIntegrityError where no row has a score, RunEntryError for the cluster."""
        if not self.rows:
            raise DatasetIntegrityError(f"{self.run.folder}: no row has a score by {self.metric}")
        if self.key is not None and all(row.cluster == name for name, row in self.rows.items()):
            raise RunEntryError(f"--cluster {self.key}: no row of {self.run.folder} has that key")


def measure_headline(runs: Sequence[RunScores]) -> tuple[str, list[Interval]]:
    """Return the name and the intervals of what heads these runs of one metric.

    That is a judge's score as labels correct it, if they do in each of them, else the metric: a column holds one kind.
    """
    corrected = [run.measure_corrected() for run in runs]
    if None in corrected:
        return runs[0].metric, [run.measure() for run in runs]
    return f"{runs[0].metric}{CORRECTED}", [one for one in corrected if one is not None]


def list_of_several_suites(scores: Sequence[RunScores]) -> list[RunScores]:
    """Return the runs of models that have runs in several suites."""
    suites: dict[str, set[str]] = {}
    for run in scores:
        suites.setdefault(run.model, set()).add(run.run.suite)
    return [run for run in scores if len(suites[run.model]) > 1]


def name_by_suite(scores: Sequence[RunScores]) -> None:
    """Name the models that have runs in several suites by model and suite."""
    for run in list_of_several_suites(scores):
        run.model = f"{run.model} ({run.run.suite})"


def find_main_metric(run: RunFiles) -> str:
    """Return the stat that reports show of a run. Raises RunEntryError where a run of HELM's own has no usual one."""
    if run.is_ours:
        return str(run.scenario_arguments["main_metric"])
    names = find_scores(run.row_stats.names)
    usual = next((name for name in _USUAL if name in names), None)
    if usual is None:
        known = ", ".join(names) or "none"
        raise RunEntryError(f"{run.folder}: the run names no main metric\n  hint: --metric NAME; it has {known}")
    return usual


def open_scores(run: RunFiles, metric: str | None = None, cluster: str | None = None) -> RunScores:
    """Return a run's scores by its main metric, or another stat of its rows, before any row was read.

    `cluster`: the key that names what a row belongs to: an attribute, a key of the row's data (`a.b` for one inside
    another), or `sub_split`. Raises RunEntryError for a metric that no row has, DatasetError for files that are broken.
    """
    name, instead, own = metric or find_main_metric(run), "", str(run.metric_arguments.get("own_metric") or "")
    found = _find_no_mean(run, name) if metric is None else None
    if found is not None and own in run.row_stats.names:  # a perplexity, say, beside which we measure
        instead = (
            f"{name} is {found['mean']:.4g} as the file reports it ({found['no_mean']}); rows are compared by {own}"
        )
        name = own
    if name.endswith(CORRECTED) and name not in run.row_stats.names:  # as the run is headed; rows have verdicts
        name = name.removesuffix(CORRECTED)
    if name not in run.row_stats.names:
        if any(stat["name"]["name"] == name for stat in run.stats):
            raise RunEntryError(
                f"{run.folder}: {name} is a score of all rows together, no row has one\n"
                f"  hint: --metric NAME; it has {', '.join(find_scores(run.row_stats.names))}"
            )
        known = ", ".join(find_scores(run.row_stats.names)) or "none that is a score"
        hint = did_you_mean(name, run.row_stats.names) or f"it has {known}"
        raise RunEntryError(f"{run.folder}: no row has a stat {name!r}\n  hint: {hint}")
    return RunScores(run, name, cluster, instead)


def open_headline(run: RunFiles, metric: str | None = None, cluster: str | None = None) -> RunScores:
    """Return what heads a run wherever its score is shown, before any row was read: the metric that is named, else the
    main one, be it a score of rows or one number of all of them together. Raises as `open_scores`.

    What needs scores of rows (comparisons, slices, which rows are wrong) is opened by `open_scores`.
    """
    return (open_total(run) if metric is None else None) or open_scores(run, metric, cluster)


def _find_no_mean(run: RunFiles, stat: str) -> dict[str, Any] | None:
    """Return a source's score that is no mean of rows; None where this stat is no such one."""
    return next((one for one in run.source_scores.values() if one["stat"] == stat and one.get("no_mean")), None)


def open_total(run: RunFiles) -> RunScores | None:
    """Return the score of a run whose main metric is one number of all rows together (a perplexity, `list_micro_f1`),
    before any row was read; None for any other run. The rows are those that are in it.
    """
    name, split = find_main_metric(run), find_split(run)
    total = run.read_means(split).get(name)
    if total is None or name.endswith(CORRECTED) or name in run.row_stats.names:
        return None
    why = (_find_no_mean(run, name) or {}).get("no_mean", "")
    said = f"{name} is a score of all rows together{f' ({why})' if why else ''}: no interval, slices or comparisons"
    if (own := run.metric_arguments.get("own_metric")) in run.row_stats.names:
        said += f"; --metric {own} has them"
    return RunScores(run, name, None, said, total, is_of_source=bool(why))


def find_split(run: RunFiles) -> str | None:
    """Return the split that leaderboards show: our scenarios name it, of HELM's own it is nearly always `test`."""
    if run.is_ours:
        return str(run.scenario_arguments.get("main_split", "test"))
    return "test" if any(name.get("split") == "test" for name in run.row_stats.kinds.values()) else None


def read_scores(run: RunFiles, metric: str | None = None, cluster: str | None = None) -> RunScores:
    """Read a run's scores; see `open_scores`. Raises RunEntryError for a cluster that no row has."""
    return read_rows(open_scores(run, metric, cluster))


def read_rows(found: RunScores) -> RunScores:
    """Read the rows of scores that were opened. Raises DatasetError, RunEntryError for a cluster that no row has."""
    for row in found.run.predictions():
        found.see(row)
    found.finish()
    return found


def _find_cluster(row: Prediction, key: str) -> str:
    """Return what a row belongs to; its own id where it has no such key: then it belongs to nothing else."""
    # Keys that a format does not know are kept by where they stood: {"instance": {...}, "state": {...}}.
    inner = [value for value in row.data.values() if isinstance(value, Mapping)]
    for holder in ({"sub_split": row.sub_split}, row.attributes, row.data, *inner):
        value: Any = holder
        for part in (key,) if key in holder else key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return f"{key}={value}"
    return row.instance_id


def _title(run: RunFiles) -> str:
    """Return the scenario's name; of HELM's own with its arguments, as in a run's name: `mmlu:subject=anatomy`."""
    arguments = run.scenario_arguments
    if run.is_ours or not arguments:
        return run.scenario_name
    return f"{run.scenario_name}:{','.join(f'{key}={value}' for key, value in arguments.items())}"


def _digest(row: Prediction) -> bytes:
    right = sorted((reference["text"], reference["correct"]) for reference in row.references)
    asked = [row.input, row.messages if not row.input else None, right, *row.media]
    return hashlib.blake2b(orjson.dumps(asked), digest_size=8).digest()


class WrongRow(NamedTuple):
    """One row that the main metric calls wrong, in its first trial."""

    instance_id: str
    score: float
    question: str
    options: dict[str, str] | None
    """Label to text, where completions are read as labels."""
    gold: list[str]
    answer: str | None
    """`Prediction.answer`."""
    read: str | None
    """What it was scored as; None where nothing was read in it."""


def find_wrong(run: RunFiles, most: int) -> tuple[list[WrongRow], int]:
    """Return the first `most` wrong rows of the run's main split, in file order, and how many there are.

    Wrong: a score below 0.5, above it where lower is better. Rows without a score are none of them. Raises
    RunEntryError for a run without a main metric, DatasetError for broken files.
    """
    scores = open_scores(run)
    found: list[WrongRow] = []
    total = 0
    for row in run.predictions():
        score = row.score(scores.metric)
        if row.trial or not scores.see(row) or score is None or not scores.is_wrong(score):
            continue
        total += 1
        if len(found) < most:
            said = (row.question, row.options, row.gold, row.answer, row.read.text)
            found.append(WrongRow(row.instance_id, score, *said))
    return found, total


def find_scores(names: Iterable[str]) -> list[str]:
    """Return those of a run's stats that are scores of its rows.

    Where a run has none but those that others are made of (`list_micro_f1` counts over all rows), these are returned.
    """
    known = _registered()
    found = [
        name
        for name in names
        if not (name in _DESCRIPTIVE or name.startswith(_DESCRIPTIVE_PREFIXES) or name.endswith(BESIDE))
    ]
    return [name for name in found if name not in known or known[name].can_be_main] or found


def describe_scores(run_spec: dict[str, Any], names: Iterable[str]) -> dict[str, StatInfo]:
    """Return what is known of each of these scores: from the run's metrics, our registry, HELM's own schemas.

    Of any other only its name: `lower_is_better` is None where nobody says it. Bounds are `find_bounds`' matter.
    """
    said, known, facts = _ask_metrics(run_spec["metric_specs"]), _registered(), {}
    for name in names:
        base, _, _ = name.partition("@")  # `exact_match@5`: the best of five
        own = known.get(base) or StatInfo(name, name, "", lower_is_better=_from_schemas().get(base))
        from_metric = said.get(name) or said.get(base) or {}
        given = {key: from_metric.get(key) for key in ("display_name", "description", "lower_is_better")}
        facts[name] = replace(own, **{key: value for key, value in given.items() if value not in (None, "")})
    return facts


def is_lower_better(run_spec: dict[str, Any], name: str) -> bool:
    """Whether a lower value of this score is better; False where nobody says.

    As `describe_scores` has it, but a run's metrics, which take seconds to import and may ask the network for data, are
    asked for other scores than ours and judges' alone.
    """
    base, metrics = name.partition("@")[0], run_spec["metric_specs"]
    judged: dict[str, Any] = next((m["args"]["judged"] for m in metrics if (m.get("args") or {}).get("judged")), {})
    if base.removesuffix(CORRECTED) in list_judge_stats(judged):
        return False
    own = _registered().get(base)
    if own is not None and own.lower_is_better is not None:
        return own.lower_is_better
    return bool(describe_scores(run_spec, [name])[name].lower_is_better)


def _ask_metrics(metric_specs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what the run's metrics say of their stats, as for `helm-summarize --auto-generate-schema`."""
    from helm.benchmark.metrics.metric import MetricSpec, create_metric

    said: dict[str, dict[str, Any]] = {}
    for spec in metric_specs:
        try:
            described = create_metric(MetricSpec(spec["class_name"], spec.get("args") or {})).get_metadata()
        except Exception:  # noqa: BLE001, S112 - most of HELM's metrics say nothing, and some cannot be made here
            continue
        said.update((metadata.name, vars(metadata)) for metadata in described)
    return said


@cache
def _from_schemas() -> dict[str, bool]:
    """Return whether lower is better, by the names of stats in the schemas that HELM ships."""
    from helm.benchmark.presentation.schema import get_default_schema_path, read_schema

    found: dict[str, bool] = {}
    for path in sorted(Path(get_default_schema_path()).parent.glob("schema_*.yaml")):
        for metric in read_schema(str(path)).metrics:
            if metric.lower_is_better is not None:
                found.setdefault(metric.name, bool(metric.lower_is_better))
    return found


@cache
def _registered() -> dict[str, StatInfo]:
    """Return what our registry of scores says of each stat."""
    scores = (score for kind in ("list", "string") for score in get_scores(kind).values())
    return {stat.name: stat for score in scores for stat in (*score.stats, *score.over_all)}
