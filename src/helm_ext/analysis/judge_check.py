"""Whether a judge is any good, for whom, and how many more labels would say it better: of finished runs' judgements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from helm_ext.analysis.runs import RunFiles
from helm_ext.errors import DatasetIntegrityError, count, did_you_mean
from helm_ext.judging.judgement import judge_values, jury_value
from helm_ext.scoring.corrected_scores import JudgedRows, Seen, see
from helm_ext.scoring.statistics.agreement import Swapped, compare_orders
from helm_ext.scoring.statistics.corrected import Corrected, Refused, labels_needed
from helm_ext.scoring.statistics.intervals import LEVEL, Interval, normal_quantile

if TYPE_CHECKING:
    from helm_ext.judging.judgement import Judgement

JURY = "all judges together"

_MOST_DIGITS = 6
_GOOD, _FAIR = 0.8, 0.6
"""Gwet's AC1 above which a judge agrees well with people, and above which it agrees fairly (Landis and Koch 1977)."""


_Key = tuple[str, str, str]
"""Criterion, judge and digest of the rubric."""


class _Row(NamedTuple):
    model: str
    seen: Seen
    length: int
    cluster: str
    """Answers to one question, of several models, are one too."""
    orders: tuple[float | None, float | None]
    """The verdict where the row's own answer was shown first, and where second."""


@dataclass(frozen=True, kw_only=True)
class JudgeCheck:
    """One judge, by one version of a rubric, or all of them together."""

    criterion: str
    judge: str
    rubric: str
    """Digest; "" for a jury, and where it is not known."""
    whole: JudgedRows
    models: Mapping[str, JudgedRows]
    """The rows of each model, by its name."""
    length: Interval | None
    """By how much more the judge overrates the longer half of the answers; None where that cannot be told."""
    swapped: Swapped | None
    """None where no pair was judged in both orders."""
    is_pair: bool
    """Whether the answers of two runs were compared."""
    statuses: Counter[str]
    """How many judgements do not count."""

    @property
    def needed(self) -> dict[str, int] | None:
        """Labels more of each verdict for +- 0.03; None where hardly any number makes that, or nothing is corrected."""
        corrected = self.whole.corrected
        if isinstance(corrected, Refused) or not corrected.cells:
            return None
        needed = labels_needed(corrected)
        return None if needed is None else {str(cell): number for cell, number in needed.items()}


def check_judges(runs: Iterable[RunFiles], criterion: str | None = None) -> list[JudgeCheck]:
    """Return the checks of each criterion (of this one alone): of all judges together first, then of each.

    Raises DatasetIntegrityError where nothing was judged, or nothing by that criterion.
    """
    rows: dict[_Key, list[_Row]] = {}
    statuses: dict[_Key, Counter[str]] = {}
    for run in runs:
        for row in run.predictions():
            if row.perturbation or row.split == "train":
                continue
            for name in {one.criterion for one in row.said}:
                said = row.list_said(name)
                people = [one for one in said if one.kind == "human"]
                by_judge: dict[_Key, list[Judgement]] = {}
                for one in said:
                    for key in ((name, JURY, ""), (name, one.by, one.rubric_sha256 or "")):
                        if one.kind == "model":
                            by_judge.setdefault(key, [*people]).append(one)
                        if one.status != "ok":
                            statuses.setdefault(key, Counter())[one.status] += 1
                for key, judgements in by_judge.items():
                    seen = see(judgements)
                    if seen is not None and seen.verdict is not None:
                        length = len(row.answers[0]) if row.answers else 0
                        cluster = row.cluster or f"\0{row.instance_id}"
                        orders = (_judge_in(judgements, "given"), _judge_in(judgements, "swapped"))
                        rows.setdefault(key, []).append(_Row(run.model, seen, length, cluster, orders))
    known = sorted({name for name, _, _ in rows})
    if not known:
        raise DatasetIntegrityError(
            "no row has a verdict of a judge\n  hint: helm-ext judge out RUN --rubric correct --judge ORG/NAME"
        )
    if criterion is not None and criterion not in known:
        hint = did_you_mean(criterion, known) or f"judged: {', '.join(known)}"
        raise DatasetIntegrityError(f"--criterion {criterion}: nothing was judged by it\n  hint: {hint}")
    found = []
    for name in known if criterion is None else [criterion]:
        alone = sorted(key for key in rows if key[0] == name and key[1] != JURY)
        judges = [(name, JURY, ""), *alone] if len(alone) > 1 else alone
        found += [_check(key, rows[key], statuses.get(key, Counter())) for key in judges]
    return found


def _judge_in(judgements: Sequence[Judgement], order: str) -> float | None:
    """Return the verdict of the judge, or the jury, where answers were shown in one order; None where it has none."""
    found = [one for one in judgements if one.order == order]
    return jury_value([*judge_values(found).values()], is_binary=all(one.is_binary for one in found))


def find_refusals(run: RunFiles, criteria: Iterable[str]) -> dict[str, str]:
    """Return by criterion why the score of a run is not corrected, and the way out. Raises DatasetError."""
    checks = {criterion: check_judges([run], criterion)[0] for criterion in criteria}
    return {
        criterion: f"{found.reason}; {_say_way_out(one, str(run.folder))}"
        if isinstance(found := one.whole.corrected, Refused)
        else "rows have several answers, and labels are of the first"
        for criterion, one in checks.items()
    }


def _say_way_out(one: JudgeCheck, run: str) -> str:
    if one.is_pair:
        return (
            "label some pairs elsewhere (columns id and label; 1: the run's own answer is better), then "
            f"helm-ext judge labels FILE.csv {run} --design random"
        )
    return f"helm-ext judge sheet {run} draws answers to label"


def _check(key: _Key, rows: Sequence[_Row], statuses: Counter[str]) -> JudgeCheck:
    by_model: dict[str, list[_Row]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
    if len(by_model) > 1:  # of which labels were drawn each by itself
        rows = [row._replace(seen=_name_model(row.seen, row.model)) for row in rows]
    whole, pairs = _gather(rows), [row.orders for row in rows if None not in row.orders]
    return JudgeCheck(
        criterion=key[0], judge=key[1], rubric=key[2], whole=whole,
        models={model: _gather(of_model) for model, of_model in sorted(by_model.items())},
        length=whole.compare_lengths([row.length for row in rows]),
        swapped=compare_orders(*zip(*pairs, strict=True)) if pairs else None,
        is_pair=any(row.orders != (None, None) for row in rows), statuses=statuses,
    )  # fmt: skip


def _name_model(seen: Seen, model: str) -> Seen:
    return seen._replace(cell=f"{seen.cell} ({model})", side=seen.side and f"{seen.side} ({model})")


def _gather(rows: Sequence[_Row]) -> JudgedRows:
    return JudgedRows([row.seen for row in rows], [row.cluster for row in rows])


# What is said of it


def describe(one: JudgeCheck) -> list[str]:
    """Return in words whether the judge is good, for whom, and what is missing: the answer first."""
    score, said = one.whole, []
    found = score.corrected
    if isinstance(found, Refused):
        known = "Its score cannot be corrected" if score.agreement else "Nobody knows how good this judge is"
        said.append(f"{known}: {found.reason}.")
        sheet = "helm-ext judge sheet RUN -n 100 --design by_verdict; label it; helm-ext judge labels SHEET.csv"
        said.append(f"To find out: {_say_way_out(one, 'RUN') if one.is_pair else sheet}.")
        if score.undesigned:
            said[-1] += " If their rows were drawn at random: helm-ext judge labels FILE --design random."
    else:
        said.append(_describe_worth(one))
        labels, raw = count(score.labels, "label"), _percent(score.raw)
        said.append(f"It says {raw}; corrected by {labels}: {_percent(found.interval)}.")
    said += _describe_favour(one.models)
    alpha = f"{score.scale} alpha"
    if score.agreement is not None:
        named = (("kappa", score.agreement.kappa), ("AC1", score.agreement.ac1), (alpha, score.agreement.alpha))
        shown = ", ".join(f"{name} {_number(value)}" for name, value in named)
        base = f"; the judge passes {score.raw.mean:.0%} of all answers" if score.sides[0] else ""
        said.append(f"Agreement with people: on {score.agreement.observed:.1%} of the answers; {shown}{base}.")
    if score.raters is not None:
        said.append(f"Agreement of people with one another: {alpha} {_number(score.raters)}.")
    if one.length is not None:
        how = "kinder" if one.length.mean > 0 else "harsher"
        sure = "" if _holds_zero(one.length) else f": it is {how} to long ones"
        said.append(
            f"Overrating of the longer half of the answers, minus that of the rest: {_points(one.length)}{sure}."
        )
    if one.swapped is not None:
        said.append(
            f"With the answers in the other order it keeps its verdict in {_percent(one.swapped.consistency)} of the "
            f"pairs; {next(iter(one.models)) if len(one.models) == 1 else 'the first model'} wins "
            f"{_percent(one.swapped.win_rate)}."
        )
    if score.set_aside:
        said.append(f"Labels of {score.set_aside:,} rows were drawn in another way, earlier, and are set aside.")
    if one.statuses:
        numbers = (f"{number:,} {status}" for status, number in sorted(one.statuses.items()))
        said.append(f"Judgements not counted: {', '.join(numbers)}.")
    return [*said, *_describe_needed(one)]


def _describe_worth(one: JudgeCheck) -> str:
    agreement, bias = one.whole.agreement, one.whole.bias
    coefficient = None if agreement is None else agreement.ac1 if one.whole.sides[0] else agreement.alpha
    word = "Whether this judge agrees with people cannot be told from these labels"
    if coefficient is not None and math.isfinite(coefficient.low):
        low, high = coefficient.low, coefficient.high
        word = (
            "This judge agrees well with people" if low >= _GOOD
            else "This judge agrees poorly with people" if high < _FAIR
            else "This judge agrees fairly with people" if low >= _FAIR
            else "This judge may agree well with people, or poorly"
        )  # fmt: skip
    if isinstance(bias, Refused):
        return f"{word}."
    if _holds_zero(bias.interval):
        return f"{word}. No sign that it is kinder or harsher than they are: {_points(bias.interval)}."
    how = "too kind" if bias.interval.mean > 0 else "too harsh"
    return f"{word}. It is {how}: by {_points(bias.interval)}."


class _Favour(NamedTuple):
    """By how much more the judge overrates one model than another: the two that differ most."""

    most: str
    least: str
    apart: Interval
    pairs: int


def _find_favour(models: Mapping[str, JudgedRows]) -> _Favour | None:
    """Return whom the judge favours; None where fewer than two models' labels tell it. Limits by MOVER.

    Of several models these two were chosen for it, so the limits are those of all pairs at once (Bonferroni).
    """
    known = [(one.bias.interval, name) for name, one in models.items() if isinstance(one.bias, Corrected)]
    if len(known) < 2:
        return None
    least, most = min(known, key=lambda one: one[0].mean), max(known, key=lambda one: one[0].mean)
    pairs = math.comb(len(known), 2)
    wider = normal_quantile(1 - (1 - LEVEL) / pairs) / normal_quantile(LEVEL)
    return _Favour(most[1], least[1], most[0].minus(least[0], wider), pairs)


def _describe_favour(models: Mapping[str, JudgedRows]) -> list[str]:
    found = _find_favour(models)
    if found is None:
        return []
    apart, of_all = found.apart, f", corrected for {found.pairs} pairs" if found.pairs > 1 else ""
    size = f"{apart.mean:.3f} more than {found.least} (95 %{of_all}: {apart.low:+.3f} to {apart.high:+.3f})"
    if apart.low > 0:
        return [f"It favours {found.most}: it overrates it by {size}."]
    return [f"No sign that it favours a model: it overrates {found.most} by {size}."]


def _describe_needed(one: JudgeCheck) -> list[str]:
    score, needed = one.whole, one.needed
    if isinstance(score.corrected, Refused) or not score.corrected.cells:
        return []
    if needed is None:
        return [f"Even labels of all {count(score.raw.count, 'row')} would hardly make the interval ± 0.03."]
    total = sum(needed.values())
    if not total:
        return ["Its interval is ± 0.03 or shorter: no more labels are needed for that."]
    each = ", ".join(f"{number} with the verdict {cell}" for cell, number in needed.items() if number)
    return [f"About {count(total, 'more label')} would make the interval ± 0.03: {each}."]


def to_lines(one: JudgeCheck) -> tuple[list[str], list[list[str]]]:
    """Return the numbers as a table: headings, and a line for all models and for each of several."""
    headings = ["model", "rows", "labels", "judge says", "corrected", "overrated by", "passes right", "fails wrong"]
    lines = []
    for name, score in {"all": one.whole, **(one.models if len(one.models) > 1 else {})}.items():
        cells = (f"{score.raw.count:,}", f"{score.labels:,}", f"{score.raw.mean:.2f}")
        estimates = (
            found.interval.show(spec) if isinstance(found, Corrected) else "not known"
            for found, spec in ((score.corrected, ".2f"), (score.bias, "+.2f"))
        )  # fmt: skip
        sides = (side.show(".2f") if side else "" for side in score.sides)
        lines.append([name, *cells, *estimates, *sides])
    return headings, lines


def _percent(interval: Interval) -> str:
    are_shares = interval.low >= 0 and interval.high <= 1  # and no grades
    return interval.show(".1%" if are_shares else ".3g")


def _points(interval: Interval) -> str:
    return f"{interval.mean:+.3f} (95 %: {interval.low:+.3f} to {interval.high:+.3f})"


def _number(interval: Interval | None) -> str:
    if interval is None:
        return "not defined (all say the same)"
    digits = 2
    while interval.mean < 1 and round(interval.mean, digits) == 1 and digits < _MOST_DIGITS:  # not all say the same
        digits += 1
    return interval.show(f".{digits}f")


def _holds_zero(interval: Interval) -> bool:
    return interval.low <= 0 <= interval.high


def to_json(one: JudgeCheck) -> dict[str, Any]:
    """Return a check for programs; null is what is not known."""
    agreement, favours = one.whole.agreement, _find_favour(one.models)
    return {
        "criterion": one.criterion,
        "judge": one.judge,
        "rubric_sha256": one.rubric or None,
        **_model_json(one.whole),
        "models": [{"model": name, **_model_json(score)} for name, score in one.models.items()],
        "observed_agreement": None if agreement is None else agreement.observed,
        **{name: _to_json(agreement and getattr(agreement, name)) for name in ("kappa", "ac1", "alpha")},
        "favours": favours and {"most": favours.most, "least": favours.least, **favours.apart.to_json()},
        "alpha_scale": one.whole.scale,
        "raters_alpha": _to_json(one.whole.raters),
        "longer_half": _to_json(one.length),
        "consistency": _to_json(one.swapped and one.swapped.consistency),
        "win_rate": _to_json(one.swapped and one.swapped.win_rate),
        "labels_needed": one.needed,
        "not_counted": dict(one.statuses),
    }


def _model_json(score: JudgedRows) -> dict[str, Any]:
    return {
        "rows": score.raw.count,
        "labels": score.labels,
        "undesigned_labels": score.undesigned,
        "set_aside": score.set_aside,
        "raw": score.raw.to_json(),
        "corrected": _to_json(getattr(score.corrected, "interval", None)),
        "refused": getattr(score.corrected, "reason", None),
        "overrated": _to_json(getattr(score.bias, "interval", None)),
        "sensitivity": _to_json(score.sides[0]),
        "specificity": _to_json(score.sides[1]),
    }


def _to_json(interval: Interval | None) -> dict[str, float | None] | None:
    return None if interval is None else interval.to_json()
