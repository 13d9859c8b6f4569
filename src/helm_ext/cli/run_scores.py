"""What a finished run says of its scores: as a table, and as one JSON object."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from helm_ext.analysis.judged import count_lost
from helm_ext.cli.session import shorten
from helm_ext.judging.judgement import NOT_OK
from helm_ext.scoring.caps import NUM_CAPPED, describe_cap
from helm_ext.scoring.stat_names import (
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

    from helm_ext.analysis.run_scores import WrongRow

_LEFT_OUT = ("not_run", "failed", "unscored", "too_long")
"""Why a row has no score: the stats `num_...` of `helm_ext.scoring.completeness`."""

_SHOWN_SCORES = 6
"""Other scores of a source that a note names."""

_COUNTS = ("unmapped", "num_instances", "num_left_out", *(f"num_{reason}" for reason in _LEFT_OUT), NUM_CAPPED)


def read_stats(run_spec: RunSpec, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the run's stats by name, `{name: {mean, count, ...}}`: those of the split that the leaderboard shows."""
    split = run_spec.scenario_spec.args.get("main_split", "test")
    return {stat["name"]["name"]: stat for stat in _plain_stats(folder) if stat["name"].get("split") == split}


def _plain_stats(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the stats of unperturbed rows, those of all sub-splits together."""
    for stat in json.loads((folder / "stats.json").read_bytes()):
        name = stat["name"]
        if stat.get("count") and "perturbation" not in name and "sub_split" not in name:
            yield stat


def find_judged(run_spec: RunSpec) -> Mapping[str, Any]:
    """Return `EvalSet.judged`: by criterion, who judged the answers."""
    return next((spec.args["judged"] for spec in run_spec.metric_specs if spec.args.get("judged")), {})


def _judge_stats(run_spec: RunSpec, stats: Iterable[str]) -> list[str]:
    """Return the scores of judges: corrected, raw, and the numbers of what is part of which."""
    found = []
    for score in list_judge_stats(find_judged(run_spec)):
        corrected = f"{score}{CORRECTED}"
        slices = sorted(name for name in stats if name.startswith(f"{corrected}@") and not name.endswith(BESIDE))
        beside = (LABELS, UNDESIGNED, *(f"_{what}" for what in (*NOT_OK, "unscored")))
        found += [corrected, *slices, score, *(f"{score}{ending}" for ending in beside)]
    return found + sorted(name for name in stats if name.endswith((JUDGED, f"{JUDGED}{UNSCORED}")))


def find_source(run_spec: RunSpec) -> Mapping[str, Any] | None:
    """Return `Source.to_args()` of a file that another tool wrote; None for any other file."""
    return next((spec.args["source"] for spec in run_spec.metric_specs if spec.args.get("source")), None)


def find_headline(run_spec: RunSpec, stats: Mapping[str, Any]) -> str:
    """Return the stat that heads a run: its main metric, of a judge's score that labels correct the corrected one."""
    main = str(run_spec.scenario_spec.args["main_metric"])
    return f"{main}{CORRECTED}" if f"{main}{CORRECTED}" in stats else main


def make_table(run_spec: RunSpec, folder: Path, *, show_all: bool) -> Table:
    """Return the table of a run: its main metric, the others that were asked for, the source's own, what was left
    out.
    """
    stats = read_stats(run_spec, folder)
    main = str(run_spec.scenario_spec.args["main_metric"])
    source = find_source(run_spec)
    scores = source["scores"].values() if source else ()
    theirs = [name for score in _means(scores) for name in _source_stats(score)]
    reported = {score["stat"] for score in scores if score.get("no_mean")}
    judged, every = _judge_stats(run_spec, stats), sorted(stats) if show_all else []
    shown = [*_asked(run_spec, stats), *judged, *theirs, *_COUNTS, *every]
    marks = {main: "main"}
    headline = find_headline(run_spec, stats)
    if headline != main:
        marks = {headline: "main", main: "raw"}
        shown.insert(0, headline)
    means = {name: stat["mean"] for name, stat in stats.items()}
    cap = describe_cap(means)
    title = f"{run_spec.adapter_spec.model} on {run_spec.groups[0]}" + (f" ({cap})" if cap else "")
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    is_repeated = _is_repeated(stats, main)
    table.add_column("95 %, rows like these" if is_repeated else "95 % interval")
    if is_repeated:
        table.add_column("95 %, these rows")
    judges = list_judge_stats(find_judged(run_spec))
    twice = {f"{score}{UNSCORED}" for score in judges if "unscored" not in count_lost(score, means)}
    for name in dict.fromkeys(shown):
        if name in stats and not name.endswith(BESIDE) and (show_all or name not in twice):
            interval = "as the file reports it" if name in reported else _show_interval(stats, name, ENDS)
            these = _show_interval(stats, name, THESE_ROWS) or ("not known" if name == main else "")
            value = show_value(stats[name]["mean"])
            table.add_row(
                f"{name} ({marks[name]})" if name in marks else name, value, interval, *[these][: int(is_repeated)]
            )
    return table


def _show_interval(stats: Mapping[str, Any], name: str, ends: tuple[str, str]) -> str:
    low, high = (stats.get(f"{name}{end}") for end in ends)
    return f"{low['mean']:.3g} to {high['mean']:.3g}" if low and high else ""


def _is_repeated(stats: Mapping[str, Any], main: str) -> bool:
    """Whether rows were answered several times, by completions or trials: there are two intervals then."""
    return f"{main}{ANSWERS}" in stats or f"{main}{THESE_ROWS[0]}" in stats


def show_value(value: float) -> str:
    """Return a mean with four digits; a whole number, a count of rows mostly, with all of them."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def make_wrong_list(rows: Sequence[WrongRow], total: int) -> str:
    """Return rows that were answered wrongly as text: question, answer, gold and reading of each."""
    lines = [
        f"wrong: {total}" + (f", the first {len(rows)}; --show wrong={total} shows all" if len(rows) < total else "")
    ]
    for row in rows:
        options = "".join(
            f" | {text if label == text else f'{label}: {text}'}" for label, text in (row.options or {}).items()
        )
        read = "nothing" if row.read is None else row.read
        lines += [
            f"{row.instance_id}  {row.score:.4g}",
            f"  question: {shorten(row.question + options)}",
            f"  gold: {shorten(' | '.join(row.gold))}",
            f"  answer: {'(none)' if row.answer is None else shorten(row.answer)}",
            *([] if row.read == row.answer else [f"  read as: {shorten(read)}"]),
        ]
    return "\n".join(lines)


@dataclass(frozen=True)
class FileFacts:
    """What is known of the file that a run was planned with, when its rows are gone."""

    name: str
    """Of the dataset."""
    warnings: tuple[str, ...]
    counts: Mapping[str, int]
    """What was counted while the file was read."""


def to_json(run_spec: RunSpec, folder: Path, file: FileFacts) -> dict[str, Any]:
    """Return what a run scored, for programs.

    `counts.read` rows were read, which is the sum of those scored and of those left out for each reason. `lines` is
    what they stood in, where the format says so. A score of the source is named as in its own report, `reported` is
    what that says, `differs` counts the rows that our own reading scores otherwise (null where none is comparable),
    `unscored` those that the source could not score; `no_mean` says why what is reported is no mean of rows, where it
    is none. `own_metric` is our reading, null where nothing is measured here. A mean that is infinite or NaN is null.
    Of rows that were answered several times, `low` and `high` are of rows like these, `these_rows` of exactly these;
    null where that is not known.
    """
    stats = read_stats(run_spec, folder)
    numbers: Counter[str] = Counter()
    unmapped: dict[str, float] = {}
    by_split: dict[str, int] = {}
    for stat in _plain_stats(folder):
        name, split = stat["name"]["name"], stat["name"].get("split")
        if split in ("test", "valid"):
            numbers[name] += round(stat["mean"])
            if name == "unmapped":
                unmapped[split] = stat["mean"]
            elif name == "num_instances":
                by_split[split] = round(stat["mean"])
    rows = {"scored": numbers["num_instances"], **{reason: numbers[f"num_{reason}"] for reason in _LEFT_OUT}}
    if not rows["too_long"]:
        del rows["too_long"]
    read = sum(rows.values())
    # Rows of all splits are counted, those of the main one are what the means are of.
    in_main = round(stats["num_instances"]["mean"]) if "num_instances" in stats else 0
    others = {name: number for name, number in file.counts.items() if name not in ("rows", "train", "eval", "recorded")}
    if unmapped:
        others["unmapped"] = sum(round(share * by_split.get(split, 0)) for split, share in unmapped.items())
    capped = {"capped": numbers[NUM_CAPPED]} if numbers[NUM_CAPPED] else {}
    source = find_source(run_spec)
    asked = [
        name for name in dict.fromkeys([*_asked(run_spec, stats), *_judge_stats(run_spec, stats)]) if name in stats
    ]
    theirs = source["scores"] if source else {}
    # The source scored what it scored, also rows that ours leave out.
    rows_of = {one["stat"]: stats[one["stat"]]["count"] for one in _means(theirs.values()) if one["stat"] in stats}
    for name in list_judge_stats(find_judged(run_spec)):  # a judge has no verdict on some rows
        if name in stats:
            rows_of |= dict.fromkeys((name, f"{name}{CORRECTED}"), stats[name]["count"])
    by_slice = any("=" in name.partition("@")[2] for name in asked)
    rows_of |= _count_slices(run_spec, folder, asked) if by_slice else {}
    return {
        "run": run_spec.name,
        "format": run_spec.name.partition(":")[0],
        "dataset": file.name,
        "model": run_spec.adapter_spec.model.removeprefix("recorded/"),
        "main_metric": find_headline(run_spec, stats),
        "own_metric": _find_own(run_spec) or None,
        "counts": {
            "lines": file.counts.get("lines", file.counts.get("rows", read)),
            **others,
            "read": read,
            **rows,
            **capped,
        },
        "metrics": {
            name: {
                "mean": _finite(stats[name]["mean"]),
                "count": rows_of.get(name, in_main),
                **{word: stats[end]["mean"] for word, end in _ends(name, ENDS) if end in stats},
                **({"these_rows": _these_rows(stats, name)} if _is_repeated(stats, name) else {}),
            }
            for name in asked
        },
        "source_scores": {name: _compared(stats, score) for name, score in theirs.items()},
        "folder": str(folder),
    }


def _count_slices(run_spec: RunSpec, folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Return by the name of a slice's score, `exact_match@subject=law`, how many rows of the main split are in it."""
    from helm_ext.analysis.runs import RunFiles

    split = run_spec.scenario_spec.args.get("main_split", "test")
    numbers: Counter[str] = Counter()
    for row in RunFiles(folder).predictions():
        if row.split == split and not row.trial and not row.perturbation and not row.left_out:
            numbers.update(f"{name}={value}" for name, value in row.groups.items())
    return {name: numbers[name.partition("@")[2]] for name in names if name.partition("@")[2] in numbers}


def _finite(value: float | None) -> float | None:
    """Return a number that JSON has: None for one that is infinite or NaN."""
    return value if value is not None and math.isfinite(value) else None


def _ends(name: str, ends: tuple[str, str]) -> list[tuple[str, str]]:
    return [(word, f"{name}{end}") for word, end in zip(("low", "high"), ends, strict=True)]


def _these_rows(stats: Mapping[str, Any], name: str) -> dict[str, float] | None:
    return {word: stats[end]["mean"] for word, end in _ends(name, THESE_ROWS) if end in stats} or None


def _compared(stats: Mapping[str, Mapping[str, Any]], score: Mapping[str, Any]) -> dict[str, Any]:
    mine, differs, unscored = (stats.get(name) for name in _source_stats(score))
    of_rows = not score.get("no_mean")
    return {
        "mean": _finite(mine["mean"]) if mine else None,
        "count": mine["count"] if mine and of_rows else 0,
        "differs": round(differs["sum"]) if differs else None,
        "unscored": round(unscored["mean"]) if unscored else 0,
        "reported": _finite(score["mean"]),
        **({} if of_rows else {"no_mean": score["no_mean"]}),
    }


def _source_stats(score: Mapping[str, Any]) -> tuple[str, str, str]:
    return score["stat"], f"{score['stat']}{DIFFERS}", f"{score['stat']}{UNSCORED}"


def _find_own(run_spec: RunSpec) -> str:
    """Return our stat that a source's scores are compared with, the main metric where that is ours; "" for none."""
    main = str(run_spec.scenario_spec.args["main_metric"])
    return next((spec.args["own_metric"] for spec in run_spec.metric_specs if "own_metric" in spec.args), main)


def _means(scores: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of a source's scores that are means of rows."""
    return [score for score in scores if not score.get("no_mean")]


def _asked(run_spec: RunSpec, stats: Mapping[str, Any]) -> list[str]:
    """Return the stats that were asked for, the main metric and its attributes first."""
    main = str(run_spec.scenario_spec.args["main_metric"])
    metrics = [name for spec in run_spec.metric_specs for name in spec.args.get("metrics", [])]
    by_attribute = sorted(name for name in stats if name.startswith(f"{main}@") and not name.endswith(BESIDE))
    asked = [stat for name in metrics for stat in name_stats(name)]
    return list(dict.fromkeys([main, *by_attribute, *asked]))


def name_stats(metric: str) -> list[str]:
    """Return the stats that a metric gives: some give several."""
    from helm_ext.scoring.registry import get_scores

    score = get_scores().get(metric)
    return [stat.name for stat in (*score.over_all, *score.stats)] if score else [metric]


def list_warnings(run_spec: RunSpec, folder: Path) -> list[str]:
    """Return what a reader of the scores must know."""
    stats = read_stats(run_spec, folder)
    main = run_spec.scenario_spec.args["main_metric"]
    warnings = [] if main in stats else [f"warning: no row has a value for the main metric {main}"]
    source = find_source(run_spec) or {"tool": "", "scores": {}}
    own = _find_own(run_spec)
    if source.get("main") == main:
        others = [score["stat"] for score in source["scores"].values() if score["stat"] != main]
        more = [f"{len(others) - _SHOWN_SCORES} more"] if len(others) > _SHOWN_SCORES else []
        shown = ", ".join([*others[:_SHOWN_SCORES], *more])
        warnings.append(f"note: the main metric is {main}, {source['main_reason']}; main_metric= also takes {shown}")
    for criterion in find_judged(run_spec):
        score = source["scores"].get(criterion)
        if score is not None and score["stat"] in stats:
            warnings.append(
                f"note: {judge_stat(criterion)} is the mean of the judgements themselves, raw; {score['stat']}, what "
                "the log says of them, may count one that cannot be read as wrong"
            )
    differing = []
    for name, score in source["scores"].items():
        stat, differs, unscored = _source_stats(score)
        if score.get("no_mean"):
            if stat == main:
                warnings.append(
                    f"note: the main metric {stat} is as the file reports it, for it is no mean of rows "
                    f"({score['no_mean']}): no interval, no slices, no comparison; main_metric=NAME chooses another"
                )
            continue
        if differs in stats and stats[differs]["sum"]:
            rows = f"{round(stats[differs]['sum'])} of {stats[differs]['count']} rows"
            differing.append(f"{name}, as the file has it, and {_ours(name, stat, source, own)} differ on {rows}")
        if unscored in stats:
            without = round(stats[unscored]["mean"])
            total = without + (stats[stat]["count"] if stat in stats else 0)
            warnings.append(
                f"warning: {source['tool']} could not score {without} of {total} rows by {name}, as where a judgement "
                "cannot be read: they are no part of its mean"
            )
    return [*warnings, *([f"note: {'; '.join(differing)}"] if differing else []), *_list_uncorrected(run_spec, folder)]


def _list_uncorrected(run_spec: RunSpec, folder: Path) -> list[str]:
    """Return which judges' scores no labels correct, and why: the verdicts' mean is another number than the score."""
    stats = read_stats(run_spec, folder)
    names = {judge_stat(criterion): criterion for criterion in find_judged(run_spec)}
    lacking = [criterion for name, criterion in names.items() if name in stats and f"{name}{CORRECTED}" not in stats]
    if not lacking:
        return []
    from helm_ext.analysis.judge_check import find_refusals
    from helm_ext.analysis.runs import RunFiles

    return [
        f"note: {judge_stat(criterion)} is the judge's own number, not corrected by people's labels: {reason}; "
        f"helm-ext judge sheet {folder} draws answers to label"
        for criterion, reason in find_refusals(RunFiles(folder), lacking).items()
    ]


def _ours(name: str, stat: str, source: Mapping[str, Any], own: str) -> str:
    """Return in words what a source's score is compared with: see `SourceMeasure`."""
    return own if source.get("main", stat) == stat else f"our own {name.partition(',')[0]}"
