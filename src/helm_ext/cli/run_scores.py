"""What `helm-ext score` says of a finished run: a table, one JSON object, warnings, and whether it is good enough."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.analysis.judged import count_lost
from helm_ext.analysis.run_scores import find_main_metric, find_split
from helm_ext.analysis.runs import RunFiles
from helm_ext.cli.common import describe_answers, shorten
from helm_ext.errors import RunEntryError, near_words
from helm_ext.judging.judgement import NOT_OK
from helm_ext.scoring.completeness import (
    HINT_WRONG_WITH_GOLD,
    NUM_CAPPED,
    WRONG_WITH_GOLD,
    describe_cap,
    describe_wrong_with_gold,
)
from helm_ext.scoring.score import (
    ANSWERS,
    BESIDE,
    CORRECTED,
    DIFFERS,
    ENDS,
    JUDGED,
    LABELS,
    THESE_ROWS,
    UNDESIGNED,
    UNSCORED,
    judge_stat,
    list_judge_stats,
)

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec
    from rich.table import Table

    from helm_ext.analysis.run_scores import WrongRow

_LEFT_OUT = ("not_run", "failed", "unscored", "too_long")
"""Why a row has no score: the stats `num_...` of `helm_ext.scoring.completeness`."""

_COUNTS = (
    "unmapped",
    WRONG_WITH_GOLD,
    "num_instances",
    "num_left_out",
    *(f"num_{reason}" for reason in _LEFT_OUT),
    NUM_CAPPED,
)

_SHOWN_WARNINGS = 10
"""Of one file; `helm-ext validate` shows all."""

ABOUT_DRAWING = frozenset({"not-differentiated", "few-rows"})
"""Codes of warnings about drawing demonstrations, which is over when there are completions."""

_SHOWN_SCORES = 6
"""Other scores of a source that a note names."""

_MAIN = re.compile(r"main(@.*)?")
"""Each run's main metric, or another stat of it: `main@ci_low`."""


@dataclass
class FileFacts:
    """What is known of the file that a run was planned with, when its rows are gone; nothing, where it is not."""

    name: str = ""
    """Of the dataset."""
    warnings: list[str] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was counted while the file was read."""


def find_facts(run_spec: RunSpec, unsaid: Container[str] = ()) -> FileFacts:
    """Return the facts of the file that a run was planned with, but for warnings of codes that are `unsaid`.

    Of HELM's own scenarios, and of a file that does not wait in memory for its run, nothing is known.
    """
    from helm.common.object_spec import create_object

    from helm_ext.formats import planned
    from helm_ext.formats.scenario import EvalSetScenario

    scenario = create_object(run_spec.scenario_spec)
    evalset = planned.look(scenario.key()) if isinstance(scenario, EvalSetScenario) else None
    if evalset is None:
        return FileFacts()
    said = [f"{one.severity}: {one}" for one in evalset.warnings if one.code not in unsaid]
    if (more := len(said) - _SHOWN_WARNINGS) > 0:
        said[_SHOWN_WARNINGS:] = [f"warning: ... and {more} more: helm-ext validate shows all"]
    return FileFacts(evalset.name, said, evalset.counts)


class ScoredRun:
    """A finished run of ours or of HELM's own, and the file that it was planned with."""

    def __init__(self, folder: Path, file: FileFacts | None = None) -> None:
        """Take the run. Raises RunEntryError where a run of HELM's own has no usual main metric."""
        self.files = RunFiles(folder)
        self.file = file or FileFacts()
        arguments = self.files.metric_arguments
        self.name = self.files.name
        self.split = find_split(self.files)
        """The one that the leaderboard shows; None for whatever there is."""
        self.main = find_main_metric(self.files)
        self.metrics: Sequence[str] = arguments.get("metrics", ())
        self.source: Mapping[str, Any] = arguments.get("source") or {"tool": ""}
        """`Source.to_args()` of a file that another tool wrote."""
        self.judges = list_judge_stats(self.files.judged)
        self.own = arguments.get("own_metric", self.main)
        """Our stat that a source's scores are compared with; None where nothing is measured here."""
        self.plain = [
            stat
            for stat in self.files.stats
            if stat.get("count") and not {"perturbation", "sub_split"} & stat["name"].keys()
        ]
        self.stats = {stat["name"]["name"]: stat for stat in self.plain if stat["name"].get("split") == self.split}
        corrected = f"{self.main}{CORRECTED}"
        self.headline = corrected if corrected in self.stats else self.main
        """The stat that heads the run: the main metric, of a judge's score that labels correct the corrected one."""
        self.is_repeated = self._is_repeated(self.main)
        """Whether rows were answered several times, by completions or trials: there are two intervals then."""

    def mean(self, name: str) -> float:
        """Return the mean of a stat."""
        return float(self.stats[name]["mean"])

    def _is_repeated(self, name: str) -> bool:
        return f"{name}{ANSWERS}" in self.stats or f"{name}{THESE_ROWS[0]}" in self.stats

    def make_table(self, *, show_all: bool = False) -> Table:
        """Return the table: the main metric, the others that were asked for, the source's own, what was left out."""
        from rich.table import Table

        theirs = [name for score in self._source_means() for name in _source_stats(score)]
        reported = {score["stat"] for score in self.files.source_scores.values() if score.get("no_mean")}
        shown = [*self._list_asked(), *theirs, *_COUNTS, *(sorted(self.stats) if show_all else ())]
        corrected = {score for score in self.judges if f"{score}{CORRECTED}" in self.stats}
        marks = {name: "raw" for name in shown if name.partition("@")[0] in corrected} | {self.headline: "main"}
        means = {name: stat["mean"] for name, stat in self.stats.items()}
        cap = describe_cap(means)
        title = f"{self.files.model} on {self.files.scenario_name}"
        table = Table(title=title + (f" ({cap})" if cap else ""), title_justify="left")
        table.add_column("metric")
        table.add_column("value", justify="right")
        table.add_column("95 %, rows like these" if self.is_repeated else "95 % interval")
        if self.is_repeated:
            table.add_column("95 %, these rows")
        twice = {f"{score}{UNSCORED}" for score in self.judges if "unscored" not in count_lost(score, means)}
        for name in dict.fromkeys(shown):
            if name not in self.stats or name.endswith(BESIDE) or (name in twice and not show_all):
                continue
            cells = [f"{name} ({marks[name]})" if name in marks else name, show_value(self.mean(name))]
            cells.append("as the file reports it" if name in reported else self._show_interval(name, ENDS))
            if self.is_repeated:
                cells.append(self._show_interval(name, THESE_ROWS) or ("not known" if name == self.main else ""))
            table.add_row(*cells)
        return table

    def _show_interval(self, name: str, ends: tuple[str, str]) -> str:
        return " to ".join(f"{end:.3g}" for end in self._ends(name, ends).values())

    def to_json(self) -> dict[str, Any]:
        """Return what the run scored, for programs.

        `counts` are of the rows that `metrics` are of, those of the main split: `scored`, and left out for each reason.
        `read` is their sum with `other_splits`, `lines` what they stood in, where the format says so. A score of the
        source is named as in its own report, `reported` is what that says, `differs` counts the rows that our own
        reading scores otherwise (null where none is comparable),
        `unscored` those that the source could not score; `no_mean` says why what is reported is no mean of rows, where
        it is none. `own_metric` is our reading, null where nothing is measured here. A mean that is infinite or NaN is
        null. Of rows that were answered several times, `low` and `high` are of rows like these, `these_rows` of exactly
        these; null where that is not known.
        """
        asked = [name for name in self._list_asked() if name in self.stats]
        rows_of = self._count_rows(asked)
        metrics: dict[str, dict[str, Any]] = {}
        for name in asked:
            metrics[name] = {"mean": _finite(self.mean(name)), "count": rows_of[name], **self._ends(name, ENDS)}
            if self._is_repeated(name):
                metrics[name]["these_rows"] = self._ends(name, THESE_ROWS) or None
        return {
            "run": self.name,
            "format": self.name.partition(":")[0],
            "dataset": self.file.name,
            "model": self.files.model,
            "main_metric": self.headline,
            "own_metric": self.own or None,
            "counts": self._count(),
            "metrics": metrics,
            "source_scores": {name: self._compare(score) for name, score in self.files.source_scores.items()},
            "folder": str(self.files.folder),
        }

    def _count(self) -> dict[str, int]:
        """Return the counts of rows, those of the main split but for `lines`, `other_splits` and what its file says."""
        names = ["num_instances", *(f"num_{reason}" for reason in _LEFT_OUT)]
        scored, *left_out = (self._round(name) for name in names)
        rows = {"scored": scored, **dict(zip(_LEFT_OUT, left_out, strict=True))}
        if not rows["too_long"]:
            del rows["too_long"]
        elsewhere = [stat for stat in self.plain if stat["name"].get("split") in {"test", "valid"} - {self.split}]
        if other := sum(round(stat["mean"]) for stat in elsewhere if stat["name"]["name"] in names):
            rows["other_splits"] = other
        read, counted = sum(rows.values()), self.file.counts
        others = {name: number for name, number in counted.items() if name not in ("rows", "train", "eval", "recorded")}
        if "unmapped" in self.stats:
            others["unmapped"] = round(self.mean("unmapped") * scored)
        more = {"wrong_with_gold": self._round(WRONG_WITH_GOLD), "capped": self._round(NUM_CAPPED)}
        known = {name: number for name, number in more.items() if number}
        return {"lines": counted.get("lines", counted.get("rows", read)), **others, "read": read, **rows, **known}

    def _round(self, name: str) -> int:
        return round(self.mean(name)) if name in self.stats else 0

    def _count_rows(self, names: Sequence[str]) -> dict[str, int]:
        """Return by stat how many rows of the main split it is a mean of."""
        whole = self._round("num_instances")
        found = dict.fromkeys(names, whole)
        # The source scored what it scored, also rows that ours leave out; a judge has no verdict on some rows.
        own = {score["stat"]: score["stat"] for score in self._source_means()}
        own |= {f"{name}{end}": name for name in self.judges for end in ("", CORRECTED)}
        found |= {name: self.stats[of]["count"] for name, of in own.items() if of in self.stats}
        slices = {name: name.partition("@")[2] for name in names if "=" in name.partition("@")[2]}
        if slices:
            sizes: Counter[str] = Counter()
            for row in self.files.predictions():
                if row.split == self.split and not row.trial and not row.perturbation and not row.left_out:
                    sizes.update(f"{name}={value}" for name, value in row.groups.items())
            found |= {name: sizes[slice_] for name, slice_ in slices.items() if slice_ in sizes}
        return found

    def _ends(self, name: str, ends: tuple[str, str]) -> dict[str, float]:
        pairs = zip(("low", "high"), ends, strict=True)
        return {word: self.mean(f"{name}{end}") for word, end in pairs if f"{name}{end}" in self.stats}

    def _compare(self, score: Mapping[str, Any]) -> dict[str, Any]:
        mine, differs, unscored = (self.stats.get(name) for name in _source_stats(score))
        no_mean = score.get("no_mean")
        return {
            "mean": _finite(mine["mean"]) if mine else None,
            "count": mine["count"] if mine and not no_mean else 0,
            "differs": round(differs["sum"]) if differs else None,
            "unscored": round(unscored["mean"]) if unscored else 0,
            "reported": _finite(score["mean"]),
            **({"no_mean": no_mean} if no_mean else {}),
        }

    def _source_means(self) -> list[Mapping[str, Any]]:
        """Return those of a source's scores that are means of rows."""
        return [score for score in self.files.source_scores.values() if not score.get("no_mean")]

    def _list_asked(self) -> list[str]:
        """Return the stats that were asked for, the main metric and its attributes first, then those of judges."""
        asked = [name for top in (self.headline, self.main) for name in (top, *self._slices_of(top))]
        asked += [stat for metric in self.metrics for stat in name_stats(metric)]
        for score in self.judges:  # corrected, raw, and the numbers of what is part of which
            corrected = f"{score}{CORRECTED}"
            beside = (LABELS, UNDESIGNED, *(f"_{what}" for what in (*NOT_OK, "unscored")))
            asked += [corrected, *self._slices_of(corrected), score, *(f"{score}{ending}" for ending in beside)]
        asked += sorted(name for name in self.stats if name.endswith((JUDGED, f"{JUDGED}{UNSCORED}")))
        return list(dict.fromkeys(asked))

    def _slices_of(self, name: str) -> list[str]:
        return sorted(stat for stat in self.stats if stat.startswith(f"{name}@") and not stat.endswith(BESIDE))

    def list_warnings(self) -> list[str]:
        """Return what a reader of the scores must know: of the file, of the scores, and of the runs beside it."""
        from helm_ext.analysis.siblings import list_beside

        said = [*self.file.warnings]
        if self.main not in self.stats:
            said.append(f"warning: no row has a value for the main metric {self.main}")
        wrapped = describe_wrong_with_gold({name: stat["mean"] for name, stat in self.stats.items()})
        if wrapped:
            said.append(f"warning: {self.files.model}: {wrapped}, by {self.main}: {HINT_WRONG_WITH_GOLD}")
        if odd := describe_answers(self.file.counts):
            said.append(f"note: answers that are scored as they are: {odd}")
        said += [*self._list_of_source(), *self._list_uncorrected()]
        return said + [f"warning: {one}" for one in list_beside(self.files.folder)]

    def _list_of_source(self) -> list[str]:
        source, theirs = self.source, self.files.source_scores
        said, differing = [], []
        if source.get("main") == self.main:
            others = [score["stat"] for score in theirs.values() if score["stat"] != self.main]
            more = [f"{len(others) - _SHOWN_SCORES} more"] if len(others) > _SHOWN_SCORES else []
            shown = ", ".join([*others[:_SHOWN_SCORES], *more])
            said.append(
                f"note: the main metric is {self.main}, {source['main_reason']}; main_metric= also takes {shown}"
            )
        for criterion in self.files.judged:
            score = theirs.get(criterion)
            if score is not None and score["stat"] in self.stats:
                said.append(
                    f"note: {judge_stat(criterion)} is the mean of the judgements themselves, raw; {score['stat']}, "
                    "what the log says of them, may count one that cannot be read as wrong"
                )
        for name, score in theirs.items():
            stat, differs, unscored = _source_stats(score)
            if score.get("no_mean"):
                if stat == self.main:
                    said.append(
                        f"note: the main metric {stat} is as the file reports it, for it is no mean of rows "
                        f"({score['no_mean']}): no interval, no slices, no comparison; main_metric=NAME chooses another"
                    )
                continue
            if differs in self.stats and self.stats[differs]["sum"]:
                rows = f"{round(self.stats[differs]['sum'])} of {self.stats[differs]['count']} rows"
                # See `SourceMeasure`: what the score is compared with
                ours = self.own if source.get("main", stat) == stat else f"our own {name.partition(',')[0]}"
                differing.append(f"{name}, as the file has it, and {ours} differ on {rows}")
            if unscored in self.stats:
                without = round(self.mean(unscored))
                total = without + (self.stats[stat]["count"] if stat in self.stats else 0)
                said.append(
                    f"warning: {without} of {total} rows have no {name} of {source['tool']}, as where a cell is empty "
                    "or a judgement cannot be read: they are left out of its mean, and num_left_out counts others"
                )
        return [*said, *([f"note: {'; '.join(differing)}"] if differing else [])]

    def _list_uncorrected(self) -> list[str]:
        """Return which judges' scores no labels correct, and why: the verdicts' mean is another number than theirs."""
        names = {criterion: judge_stat(criterion) for criterion in self.files.judged}
        raw = {name for name in names.values() if name in self.stats and f"{name}{CORRECTED}" not in self.stats}
        lacking = [criterion for criterion, name in names.items() if name in raw]
        if not lacking:
            return []
        from helm_ext.analysis.judge_check import find_refusals

        return [
            f"note: {names[criterion]} is the judge's own number, not corrected by people's labels: {reason}"
            for criterion, reason in find_refusals(self.files, lacking).items()
        ]

    def find_below(self, least: Mapping[str, float]) -> list[str]:
        """Return in words which metrics are below their least value, each line beginning with "below".

        A metric that no row has is below any, and so is one of which a lower value is better: a least value says
        nothing. A judge's own number that is not below is named too: nobody shall take it for a corrected one.
        """
        from helm_ext.analysis.run_scores import is_lower_better

        found = []
        for given, value in least.items():
            name = self.headline + given.removeprefix("main") if _MAIN.fullmatch(given) else given
            is_raw = name.partition("@")[0] in self.judges
            said = f"{self.name}: {name}" + (", the judge's own number, uncorrected," if is_raw else "")
            if name not in self.stats:
                asked = [one for one in self._list_asked() if one in self.stats]
                there = dict.fromkeys([*near_words(name, ["main", *self.stats]), *asked])
                said = f"below: {self.name}: no row has a value for {name}"
                found.append(f"{said}\n  hint: there are {', '.join(there)}")
            elif is_lower_better(self.files.run_spec, name):
                lower = f"a lower {name} is better, so --fail-under {given} says nothing of it"
                found.append(f"below: {self.name}: {lower}")
            elif not self.mean(name) >= value:
                found.append(f"below: {said} is {self.mean(name):.4g}, less than {value:g}")
            elif is_raw:
                found.append(f"note: {said} is {self.mean(name):.4g}, not below {value:g}")
        return found


def parse_thresholds(given: Sequence[str]) -> dict[str, float]:
    """Return METRIC to the least value that is accepted, of `--fail-under METRIC=X`. Raises RunEntryError."""
    least: dict[str, float] = {}
    for one in given:
        name, _, value = one.rpartition("=")
        try:
            least[name] = float(value)
        except ValueError:
            name = ""
        if not name or math.isnan(least[name]):
            raise RunEntryError(f"--fail-under {one}: expected METRIC=NUMBER, for example main=0.8")
    return least


def show_value(value: float) -> str:
    """Return a mean with four digits; a whole number, a count of rows mostly, with all of them."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def make_wrong_list(rows: Iterable[WrongRow], total: int) -> str:
    """Return rows that were answered wrongly as text: question, answer, gold and reading of each."""
    rows = list(rows)
    more = f", the first {len(rows)}; --show wrong={total} shows all" if len(rows) < total else ""
    lines = [f"wrong: {total}{more}"]
    for row in rows:
        shown = (text if label == text else f"{label}: {text}" for label, text in (row.options or {}).items())
        options = "".join(f" | {one}" for one in shown)
        lines += [
            f"{row.instance_id}  {row.score:.4g}",
            f"  question: {shorten(row.question + options)}",
            f"  gold: {shorten(' | '.join(row.gold))}",
            f"  answer: {'(none)' if row.answer is None else shorten(row.answer)}",
        ]
        if row.read != row.answer:
            lines.append(f"  read as: {shorten('nothing' if row.read is None else row.read)}")
    return "\n".join(lines)


def name_stats(metric: str) -> list[str]:
    """Return the stats that a metric gives: some give several."""
    from helm_ext.scoring.registry import get_scores

    score = get_scores().get(metric)
    return [stat.name for stat in (*score.over_all, *score.stats)] if score else [metric]


def _source_stats(score: Mapping[str, Any]) -> tuple[str, str, str]:
    return score["stat"], f"{score['stat']}{DIFFERS}", f"{score['stat']}{UNSCORED}"


def _finite(value: float | None) -> float | None:
    """Return a number that JSON has: None for one that is infinite or NaN."""
    return value if value is not None and math.isfinite(value) else None
