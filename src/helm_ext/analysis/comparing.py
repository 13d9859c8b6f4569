"""Finished runs of one dataset compared row by row: which model is better, how sure that is, and which rows flipped.

Rows are paired by id, and must ask the same: the same question and the same right answers. Of several models, each pair
is one comparison. Those of all rows of one dataset are one family, those of its slices (attributes of the rows) are
another: each family is corrected for its number (Holm), because one of twenty comparisons of equal models comes out
below 5 % by chance, and because what is asked of all rows is no less sure where slices are looked at too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, cast

from helm_ext.analysis.pairs import Flip, PairResult, RowPair, correct_pairs, pair_rows, to_scores
from helm_ext.analysis.run_scores import RunScores
from helm_ext.errors import DatasetIntegrityError, RunEntryError, count, did_you_mean
from helm_ext.scoring.statistics.paired import compare_rows, holm

if TYPE_CHECKING:
    from helm_ext.analysis.predictions import Prediction
    from helm_ext.scoring.statistics.corrected import Corrected

_FEWEST = 5
"""Rows of a slice below which nothing is said of it: it is counted instead."""


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
    versions = _join_versions(datasets, allow_different=allow_different)
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
            notes.append(f"{found[0].title}: not compared, {count(len(found), 'model')} and nothing to compare with")
        for a, b in pairs:
            one, other = (b, a) if b.model == baseline else (a, b)
            of_dataset += _compare_pair(one, other, notes, allow_different=allow_different, chosen=slices)
        for family in ([one for one in of_dataset if not one.slice], [one for one in of_dataset if one.slice]):
            for result, p in zip(family, holm([one.p for one in family]), strict=True):
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


def _join_versions(datasets: dict[str, list[RunScores]], *, allow_different: bool) -> list[str]:
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
        pairs, alone, different = pair_rows(a, b)
        if 2 * len(pairs) < min(len(a.rows), len(b.rows)):
            continue
        if allow_different:
            datasets[one] += datasets.pop(other)
            continue
        rows = len(pairs) + len(different)
        asks = "asks a different question" if len(different) == 1 else "ask different questions"
        differ = [f"{len(different)} of {rows} rows {asks}, for example {different[0]}"] if different else []
        differ += [f"{count(alone, 'row is', 'rows are')} of one of them alone"] if alone else []
        said.append(
            f"{a.title}: {a.model} and {b.model} have answered two versions of it: {', '.join(differ)}: "
            f"{a.run.folder} and {b.run.folder}\n  hint: --allow-different compares the other {len(pairs)}"
        )
    return said


def _require_one_run_a_model(datasets: dict[str, list[RunScores]]) -> None:
    for found in datasets.values():
        seen: dict[str, RunScores] = {}
        for run in found:
            if run.model in seen:
                other = seen[run.model].run
                hint = "name the runs that are meant, or delete the one that is out of date; --suite keeps runs apart"
                if other.suite != run.run.suite:
                    hint = "helm-ext compare --by-suite compares the two; else name the runs that are meant"
                raise DatasetIntegrityError(
                    f"two runs of {run.model} are of one dataset, {run.title}: {other.folder} and {run.run.folder}"
                    f"\n  hint: {hint}"
                )
            seen[run.model] = run


def _compare_pair(
    a: RunScores, b: RunScores, notes: list[str], *, allow_different: bool, chosen: Collection[str] | None
) -> Iterator[PairResult]:
    if a.metric != b.metric:
        raise RunEntryError(
            f"{a.title}: {a.model} is scored by {a.metric}, {b.model} by {b.metric}\n  hint: --metric NAME, of both"
        )
    if a.completions != b.completions:
        how = " and ".join(run.completions or "the mean" for run in (a, b))
        raise RunEntryError(
            f"{a.title}: {a.model} and {b.model} are scored by {a.metric}, of several completions {how}\n"
            "  hint: score both with one --arg completions="
        )
    pairs, alone, different = pair_rows(a, b)
    if different and not allow_different:
        raise DatasetIntegrityError(
            f"{a.title}: {count(len(different), 'row asks', 'rows ask')} {a.model} and {b.model} different questions, "
            f"for example {different[0]}: {a.run.folder} and {b.run.folder}\n"
            "  hint: --allow-different compares the other rows"
        )
    if not pairs:
        raise DatasetIntegrityError(f"{a.title}: {a.model} and {b.model} have no row in common")
    unpaired = alone + len(different)
    yield _to_result(a, b, "", pairs, unpaired)
    slices: dict[str, list[RowPair]] = {}
    for pair in pairs:
        for name, value in pair[1].groups.items():
            if chosen is None or name in chosen:
                slices.setdefault(f"{name}={value}", []).append(pair)
    small = 0
    for name, members in sorted(slices.items()):
        if len(members) < _FEWEST:
            small += 1
        else:
            yield _to_result(a, b, name, members, 0)
    if small:
        few = f"{count(small, 'slice')} of fewer than {_FEWEST} rows"
        notes.append(f"{a.title}, {a.model} and {b.model}: nothing is said of {few}")


def _to_result(a: RunScores, b: RunScores, name: str, pairs: Sequence[RowPair], unpaired: int) -> PairResult:
    result = PairResult(a, b, name, len(pairs), unpaired, compare_rows(*to_scores(pairs)))
    if any(row.seen is not None for _, *both in pairs for row in both):
        from helm_ext.scoring.statistics.corrected import Corrected, find_p

        result.corrected = correct_pairs(pairs)
        if isinstance(result.corrected, Corrected):
            result.p_corrected = find_p(lambda level: cast("Corrected", correct_pairs(pairs, level)))
    return result


def read_flips(results: Sequence[PairResult], most: int) -> list[list[Flip]]:
    """Return of each result the `most` rows that differ most, with question, gold and both answers.

    However many results a run is part of, its files are read once.
    """
    found = [result.flips()[:most] for result in results]
    wanted: dict[int, tuple[RunScores, dict[str, list[tuple[Flip, bool]]]]] = {}
    for result, flips in zip(results, found, strict=True):
        for run, is_a in ((result.a, True), (result.b, False)):
            of_run = wanted.setdefault(id(run), (run, {}))[1]
            for flip in flips:
                of_run.setdefault(flip.instance_id, []).append((flip, is_a))
    for run, by_id in wanted.values():
        for row in _rows_of(run, by_id):
            for flip, is_a in by_id[row.instance_id]:
                if is_a:
                    flip.question, flip.gold, flip.answer_a = row.question, row.gold, _answer(row)
                else:
                    flip.answer_b = _answer(row)
    return found


def _rows_of(scores: RunScores, ids: Iterable[str]) -> Iterator[Prediction]:
    """Yield the first trial of each of these rows."""
    waiting = set(ids)
    rows = scores.run.predictions() if waiting else ()
    for row in rows:
        if row.instance_id in waiting and not row.perturbation:
            waiting.discard(row.instance_id)
            yield row
            if not waiting:
                return


def _answer(row: Prediction) -> str:
    return str(row.completions[0]["text"]) if row.completions else (row.read.text or "")
