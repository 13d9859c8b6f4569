"""Finished runs of one dataset compared row by row: which model is better, how sure that is, and which rows flipped.

Rows are paired by id, and must ask the same: the same question and the same right answers. Of several models, each pair
is one comparison. Those of all rows of one dataset are one family, those of its slices (attributes of the rows) are
another: each family is corrected for its number (Holm), because one of twenty comparisons of equal models comes out
below 5 % by chance, and because what is asked of all rows is no less sure where slices are looked at too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from helm_ext.analysis.run_scores import RunScores, ScoredRow, find_scores
from helm_ext.errors import DatasetIntegrityError, RunEntryError, count, did_you_mean
from helm_ext.evalset import FACTS_OF_ROWS
from helm_ext.scoring.score import CORRECTED
from helm_ext.scoring.statistics.intervals import LEVEL
from helm_ext.scoring.statistics.paired import Comparison, compare_rows, find_detectable, holm

if TYPE_CHECKING:
    from helm_ext.analysis.runs import RunFiles
    from helm_ext.scoring.statistics.corrected import Corrected
    from helm_ext.scoring.statistics.intervals import Interval

_FEWEST = 5
"""Rows of a slice below which nothing is said of it: it is counted instead."""

RowPair = tuple[str, ScoredRow, ScoredRow]
"""A row's id, and the row of either model."""


@dataclass(slots=True)
class Flip:
    """A row that the two models score differently."""

    instance_id: str
    score_a: float
    score_b: float
    question: str = ""
    gold: list[str] = field(default_factory=list)
    answer_a: str = ""
    answer_b: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """By how much b is better than a, and how sure that is: of the scores themselves, or as labels correct them."""

    difference: Interval
    """B - a."""
    p: float
    test: str
    detectable: float | None
    """The smallest difference that these rows, or their labels, would have told; None where none, or not known."""
    labels: int = 0
    """The number of rows whose labels correct the difference; 0 where none do."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for programs."""
        low, high = self.difference.ends
        return {"difference": self.difference.mean, "low": low, "high": high, "test": self.test, "p": self.p}

    def show(self) -> list[str]:
        """Return the difference and its interval for people."""
        mean = round(self.difference.mean, 12) + 0.0  # what is left of rounding is no difference
        return [f"{mean:+.4g}", self.difference.show_ends("+.3g")]


@dataclass(slots=True)
class PairResult:
    """Model b against model a on one dataset, or on one slice of it."""

    a: RunScores
    b: RunScores
    slice: str
    """`attribute=value`; "" for all rows."""
    pairs: Sequence[RowPair]
    """The rows that both models have a score of."""
    unpaired: int
    """Rows that only one of them has a score of, or that ask something else: no part of the comparison."""
    comparison: Comparison
    corrected: Estimate | None = None
    """Where the scores are a judge's verdicts: what people's labels make of the difference."""
    refusal: str | None = None
    """Why a judge's verdicts are not corrected; None where they are, and for other scores."""
    p_holm: float = 1.0
    """Corrected for its family."""
    family: int = 1
    """Comparisons of the family: those of all rows of the dataset, or those of its slices."""

    @property
    def rows(self) -> int:
        """Rows that both models have a score of."""
        return len(self.pairs)

    @property
    def is_stale(self) -> bool:
        """Whether one of the runs was made of a file that has changed since."""
        return self.a.is_stale or self.b.is_stale

    @property
    def metric(self) -> str:
        """What the difference is of: the metric of both, or a judge's score as labels correct it."""
        return f"{self.a.metric}{CORRECTED}" if self.corrected else self.a.metric

    @property
    def own(self) -> Estimate:
        """What the scores themselves tell; the ends of the interval are within what scores can differ by."""
        c, span = self.comparison, self.a.span
        return Estimate(c.difference.within((-span, span)), c.p, c.test, _up_to(span, c.detectable))

    @property
    def shown(self) -> Estimate:
        """What decides: the corrected difference, where there is one."""
        return self.corrected or self.own

    @property
    def gain(self) -> Interval:
        """How much better b is than a: the difference, its sign turned where lower is better."""
        return -self.shown.difference if self.a.lower_is_better else self.shown.difference

    @property
    def verdict(self) -> str:
        """In one word which model is better at 95 %, corrected: `a`, `b` or `undecided`."""
        if self.p_holm >= 0.05 or self.gain.mean == 0:
            return "undecided"
        return "b" if self.gain.mean > 0 else "a"

    def describe_unpaired(self) -> str:
        """Return in words how many rows are no part of the comparison; "" where all are."""
        rows = count(self.unpaired, "row was", "rows were")
        why = "only one of the models has a score of them, or they were asked something else"
        return f"{rows} not compared: {why}" if self.unpaired else ""

    def describe_methods(self) -> str:
        """Return in words that p and the interval disagree about whether the models differ; "" where they agree."""
        low, high = self.own.difference.ends
        if self.corrected or low is None or high is None or (self.own.p < 0.05) == (low > 0 or high < 0):
            return ""
        is_exact, groups = self.comparison.test == "mcnemar", self.own.difference.clusters
        test = "McNemar's exact test" if is_exact else f"random signs of the {'clusters' if groups else 'rows'}"
        interval = "Tango's" if is_exact else "cluster-robust" if groups else "Student's t"
        return f"the interval ({interval}) and p ({test}) are two methods, which disagree here: p decides"

    def flips(self) -> list[Flip]:
        """Return the rows that differ, the largest differences first; their texts are read by `read_flips`."""
        found = [Flip(key, one.score, other.score) for key, one, other in self.pairs if one.score != other.score]
        return sorted(found, key=lambda flip: (-abs(flip.score_b - flip.score_a), flip.instance_id))

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, for programs.

        Where labels correct a judge's verdicts, `metric`, `difference`, `low`, `high`, `p` and `p_holm` are those of
        the corrected score; `raw` has the numbers of the verdicts themselves, some of which have no corrected one.
        """
        c, own, corrected = self.comparison, self.own, self.corrected
        rows = {"greater": c.greater, "less": c.less, "detectable": own.detectable}
        numbers, more = {"mean_a": c.mean_a, "mean_b": c.mean_b, **own.to_json(), **rows}, dict[str, Any]()
        if corrected is not None:
            mine = corrected.to_json()
            told = {name: mine[name] for name in ("difference", "low", "high")}
            more = {"raw": numbers, "corrected": {**told, "labels": corrected.labels, "p": corrected.p}}
            numbers = {**dict.fromkeys(numbers), **mine, "detectable": corrected.detectable}
        elif self.refusal is not None:
            more = {"corrected": {"refused": self.refusal}}
        return {
            "dataset": self.a.title,
            "metric": self.metric,
            "lower_is_better": self.a.lower_is_better,
            "slice": self.slice or None,
            "model_a": self.a.model,
            "model_b": self.b.model,
            "run_a": self.a.run.name,
            "run_b": self.b.run.name,
            "rows": self.rows,
            "unpaired": self.unpaired,
            **numbers,
            "clusters": c.difference.clusters,
            "p_holm": self.p_holm,
            "family": self.family,
            "verdict": self.verdict,
            **more,
            "stale": self.is_stale,
        }

    def describe_detectable(self) -> str:
        """Return in words how small a difference these rows could have shown."""
        if self.shown.detectable is not None:
            these = "rows and labels" if self.corrected else "rows"
            return f"with these {these}, a difference of {self.shown.detectable:.3g} is found in 8 of 10 comparisons"
        if np.isfinite(self.comparison.detectable):
            return "so few rows cannot show any difference reliably"
        groups = self.comparison.difference.clusters or self.rows
        why = "there is only one" if groups == 1 else "they all differ by the same"
        return f"how small a difference these rows can show cannot be estimated: {why}"

    @property
    def headings(self) -> tuple[str, ...]:
        """Those of the columns of `to_lines`. "up/down": rows in which b is better, and worse."""
        models = (f"a: {self.a.model}", f"b: {self.b.model}")
        return ("rows", *models, "b - a", "95 % interval", "up/down", "p", "p (Holm)")

    def to_lines(self) -> list[list[str]]:
        """Return what reports show, in the columns of `headings`.

        Of a judge's score the corrected difference comes first, where there is one, and the verdicts' own is called
        raw.
        """
        c, name, holm = self.comparison, f"{self.slice or 'all'} ({self.rows})", show_p(self.p_holm)
        own = [f"{c.mean_a:.4g}", f"{c.mean_b:.4g}", *self.own.show(), f"{c.greater}/{c.less}", show_p(c.p)]
        if (corrected := self.corrected) is None:
            return [[f"{name}, raw: not corrected" if self.refusal else name, *own, holm]]
        first = [f"{name}, corrected by {count(corrected.labels, 'label')}", "", "", *corrected.show(), ""]
        return [[*first, show_p(corrected.p), holm], ["  raw: the judge's own", *own, ""]]


def compare_runs(
    runs: Sequence[RunScores],
    *,
    baseline: str | None = None,
    allow_different: bool = False,
    slices: Collection[str] | None = None,
) -> tuple[list[PairResult], list[str]]:
    """Compare the models on each dataset that two or more of them have a run of, and on its slices.

    `baseline`: compare the others with this model alone. `slices`: the attributes that are looked at; None for all.
    Returns the results, and in words what was not compared. Raises RunEntryError where there is nothing to compare, for
    a baseline that no run is of and a slice that no row has; DatasetIntegrityError for two runs of one model and
    dataset, and for rows that ask different questions unless `allow_different`: then such rows are left out, and
    counted, also those of two versions of one dataset.
    """
    datasets: dict[str, list[RunScores]] = {}
    for run in runs:
        datasets.setdefault(run.dataset, []).append(run)
    _require_one_run_a_model(datasets)
    _require_slices(runs, slices or ())
    versions = join_versions(datasets, allow_different=allow_different)
    models = list(dict.fromkeys(run.model for run in runs))
    if baseline is not None and baseline not in models:
        hint = did_you_mean(baseline, models) or f"models: {', '.join(models)}"
        raise RunEntryError(f"--baseline {baseline}: no run is of that model\n  hint: {hint}")
    results: list[PairResult] = []
    notes: list[str] = []
    for found in datasets.values():
        of_dataset: list[PairResult] = []
        pairs = [(a, b) for a, b in combinations(found, 2) if baseline in (None, a.model, b.model)]
        if not pairs:
            why = "only one model was run on it" if len(found) == 1 else f"{baseline} was not run on it"
            notes.append(f"{found[0].title}: not compared, {why}")
        for a, b in pairs:
            one, other = (b, a) if b.model == baseline else (a, b)
            of_dataset += compare_pair(one, other, notes, allow_different=allow_different, chosen=slices)
        for family in ([one for one in of_dataset if not one.slice], [one for one in of_dataset if one.slice]):
            for result, p in zip(family, holm([one.shown.p for one in family]), strict=True):
                result.p_holm, result.family = p, len(family)
        results += of_dataset
    if not results and versions:
        raise DatasetIntegrityError("\n".join(versions))
    if not results:
        raise RunEntryError(
            "no two runs are of one dataset, so there is nothing to compare\n  hint: "
            + "; ".join(f"{run.model}: {run.title}" for run in runs[:10])
        )
    return results, [*notes, *versions]


def _require_slices(runs: Sequence[RunScores], chosen: Collection[str]) -> None:
    known = sorted({name for run in runs for row in run.rows.values() for name in row.groups}) if chosen else []
    for name in chosen:
        if name not in known:
            hint = did_you_mean(name, known) or (
                f"rows have {', '.join(known)}" if known else "rows have none: --arg by="
            )
            raise RunEntryError(f"--slices {name}: no row has that attribute\n  hint: {hint}")


def join_versions(datasets: dict[str, list[RunScores]], *, allow_different: bool = False) -> list[str]:
    """Join datasets that are versions of one, if they may differ; else return in words by how much they do.

    Versions: at least half of the rows of the smaller one ask the same under the same id, and no model answered both.
    """
    said = []
    for one, other in combinations(list(datasets), 2):
        if one not in datasets or other not in datasets:  # joined with another one
            continue
        if {run.model for run in datasets[one]} & {run.model for run in datasets[other]}:
            continue
        a, b = datasets[one][0], datasets[other][0]
        pairs, _, different = _pair_rows(a, b)
        alone = len((a.rows.keys() | a.without) ^ (b.rows.keys() | b.without))  # a row without a score was asked too
        if 2 * len(pairs) < min(len(a.rows), len(b.rows)):
            continue
        settings = () if alone or different else _find_settings(a, b)
        if allow_different or not (alone or different or settings):  # as shards that were merged, and one run of all
            datasets[one] += datasets.pop(other)
            continue
        rows = len(pairs) + len(different)
        asks = "asks a different question" if len(different) == 1 else "ask different questions"
        differ = [f"{len(different)} of {rows} rows {asks}, for example {different[0]}"] if different else []
        differ += [f"{count(alone, 'row is', 'rows are')} in only one of them"] if alone else []
        differ += [f"the runs differ in their {' and '.join(settings)}"] if settings else []
        which = "the other" if different or alone else "all"
        said.append(
            f"{a.title}: {a.model} and {b.model} have answered two versions of it: {', '.join(differ)}: "
            f"{a.run.folder} and {b.run.folder}\n"
            f"  hint: --allow-different compares {which} {count(len(pairs), 'row')}"
        )
    return said


_OF_A_RUN = frozenset({"model", "model_deployment", "max_eval_instances"})


def _find_settings(a: RunScores, b: RunScores) -> list[str]:
    """Return the names of what two runs of the same rows were asked, or are scored, differently by."""
    one, other = a.run.adapter_spec, b.run.adapter_spec
    names = [name for name in {**one, **other} if name not in _OF_A_RUN and one.get(name) != other.get(name)]
    names += ["split"] * (a.split != b.split)
    ways = [{key: value for key, value in of.run.metric_arguments.items() if key not in FACTS_OF_ROWS} for of in (a, b)]
    return names + ["way of scoring"] * (ways[0] != ways[1])


def _require_one_run_a_model(datasets: dict[str, list[RunScores]]) -> None:
    for found in datasets.values():
        seen: dict[str, RunScores] = {}
        for run in found:
            if (other := seen.setdefault(run.model, run)) is not run:
                hint = "name the runs that are meant, or delete the one that is out of date; --suite keeps runs apart"
                if other.run.suite != run.run.suite:
                    hint = "helm-ext compare --by-suite compares the two; else name the runs that are meant"
                raise DatasetIntegrityError(
                    f"two runs of {run.model} are of one dataset, {run.title}: {other.run.folder} and {run.run.folder}"
                    f"\n  hint: {hint}"
                )


def compare_pair(
    a: RunScores,
    b: RunScores,
    notes: list[str],
    *,
    allow_different: bool = False,
    chosen: Collection[str] | None = None,
) -> Iterator[PairResult]:
    """Yield how two runs of one dataset compare: on all rows first, then on each slice by the `chosen` attributes.

    Raises as `compare_runs`.
    """
    if a.metric != b.metric:
        ours, theirs = (find_scores(run.run.row_stats.names) for run in (a, b))
        shared = ", ".join(name for name in ours if name in theirs)
        hint = f"--metric NAME, of both: {shared}" if shared else "for columns of a table, scores=NAME=COLUMN of each"
        raise RunEntryError(f"{a.title}: {a.model} is scored by {a.metric}, {b.model} by {b.metric}\n  hint: {hint}")
    if a.completions != b.completions:
        how = " and ".join(run.completions or "the mean" for run in (a, b))
        raise RunEntryError(
            f"{a.title}: of several completions, {a.model} and {b.model} are scored by {how}\n"
            "  hint: score both with one --arg completions="
        )
    pairs, alone, different = _pair_rows(a, b)
    if different and not allow_different:
        raise DatasetIntegrityError(
            f"{a.title}: {a.model} and {b.model} were asked different questions in {count(len(different), 'row')}, "
            f"for example {different[0]}: {a.run.folder} and {b.run.folder}\n"
            f"  hint: --allow-different compares the other rows{_ask_for_ids(a, b)}"
        )
    if not pairs:
        raise DatasetIntegrityError(f"{a.title}: {a.model} and {b.model} have no row in common")
    yield _to_result(a, b, "", pairs, alone + len(different))
    slices: dict[str, list[RowPair]] = {}
    for pair in pairs:
        for name, value in pair[1].groups.items():
            if chosen is None or name in chosen:
                slices.setdefault(f"{name}={value}", []).append(pair)
    large = {name: members for name, members in sorted(slices.items()) if len(members) >= _FEWEST}
    for name, members in large.items():
        yield _to_result(a, b, name, members, 0)
    if small := len(slices) - len(large):
        few = f"{count(small, 'slice')} of fewer than {_FEWEST} rows left out"
        notes.append(f"{a.title}, {a.model} and {b.model}: {few}")


def _to_result(a: RunScores, b: RunScores, name: str, pairs: Sequence[RowPair], unpaired: int) -> PairResult:
    result = PairResult(a, b, name, pairs, unpaired, compare_rows(*to_scores(pairs)))
    if any(row.seen for _, *both in pairs for row in both):
        found = correct_pairs(pairs)
        if isinstance(found, str):
            result.refusal = found
        else:
            detectable = _up_to(a.span, find_detectable(found.interval))
            result.corrected = Estimate(found.interval, find_p_of(pairs), "corrected", detectable, found.labels)
    return result


def _up_to(span: float, detectable: float) -> float | None:
    return detectable if detectable <= span and detectable < np.inf else None


def find_p_of(pairs: Sequence[RowPair], bound: float = 0.0) -> float:
    """Return the p of a corrected difference of these rows, were `bound` the true one."""
    from helm_ext.scoring.statistics.corrected import find_p

    return find_p(lambda level: cast("Corrected", correct_pairs(pairs, level)), bound)


def read_flips(results: Sequence[PairResult], most: int) -> list[list[Flip]]:
    """Return of each result the `most` rows that differ most, with question, gold and both answers.

    However many results a run is part of, its files are read once.
    """
    found = [result.flips()[:most] for result in results]
    wanted: dict[RunFiles, dict[str, list[tuple[Flip, str]]]] = {}
    for result, flips in zip(results, found, strict=True):
        for flip in flips:
            for run, answer in ((result.a.run, "answer_a"), (result.b.run, "answer_b")):
                wanted.setdefault(run, {}).setdefault(flip.instance_id, []).append((flip, answer))
    for run, by_id in wanted.items():
        for row in run.predictions():  # the first trial of each
            for flip, answer in by_id.pop(row.instance_id, ()) if not row.perturbation else ():
                flip.question, flip.gold = row.question, row.gold
                setattr(flip, answer, row.answer or "")
            if not by_id:
                break
    return found


def _pair_rows(a: RunScores, b: RunScores) -> tuple[list[RowPair], int, list[str]]:
    """Return the rows of both, how many are of one alone, and the ids of those that ask different questions."""
    pairs, different = [], []
    for key, one in a.rows.items():
        other = b.rows.get(key)
        if other is None:
            continue
        if one.question == other.question:
            pairs.append((key, one, other))
        else:
            different.append(key)
    common = len(pairs) + len(different)
    return pairs, len(a.rows) + len(b.rows) - 2 * common, different


def _ask_for_ids(a: RunScores, b: RunScores) -> str:
    """Return what else may help where rows of one id ask different questions: both runs ask the same, in two orders."""
    if {row.question for row in a.rows.values()} != {row.question for row in b.rows.values()}:
        return ""
    return "; both ask the same under other ids, as rows without ids are numbered: id=COLUMN names ids of a table"


def correct_pairs(pairs: Sequence[RowPair], level: float = LEVEL) -> Corrected | str:
    """Return the difference of judges' verdicts, corrected by labels; or why it is not."""
    from helm_ext.scoring.corrected_scores import compare_judged
    from helm_ext.scoring.statistics.corrected import Refused

    if any(len(row.seen) != 1 for _, *both in pairs for row in both):
        return "not each row was judged once for each model"
    a, b = zip(*((one.seen[0], other.seen[0]) for _, one, other in pairs), strict=True)
    found = compare_judged(a, b, to_scores(pairs)[2], level=level)
    return found.reason if isinstance(found, Refused) else found


def to_scores(pairs: Sequence[RowPair]) -> tuple[list[float], list[float], list[str | None]]:
    clusters = [one.cluster or other.cluster for _, one, other in pairs]
    return [one.score for _, one, _ in pairs], [other.score for _, _, other in pairs], clusters


def show_p(p: float) -> str:
    """Return a p-value as all reports show it."""
    return "<0.0001" if p < 0.0001 else f"{p:.2g}" if p < 0.095 else f"{p:.2f}"
