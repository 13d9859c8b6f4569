"""`helm-ext compare` and `helm-ext plan`: which of two models is better, and how many rows it takes to tell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from helm_ext.cli import options
from helm_ext.cli.common import echo, make_console, print_table, read_folders, say, shorten, status, without_output
from helm_ext.errors import RunEntryError, count

if TYPE_CHECKING:
    from helm_ext.analysis import FinishedRun
    from helm_ext.analysis.comparing import Flip, PairResult
    from helm_ext.analysis.gates import Point
    from helm_ext.analysis.run_scores import RunScores
    from helm_ext.analysis.siblings import Siblings

_CANNOT_TELL = 3
"""Exit code where the rows do not tell whether a model is worse, and --fail-if-unsure is given."""


def compare(
    runs: options.RunFolders,
    baseline: Annotated[str | None, Option(help="Compare the other models with this one alone.")] = None,
    metric: options.Metric = None,
    cluster: options.Cluster = None,
    rows: Annotated[int, Option(min=0, help="How many flipped rows to show of each pair of models.")] = 5,
    allow_different: Annotated[bool, Option("--allow-different", help="Skip rows with different questions.")] = False,
    by_suite: Annotated[bool, Option("--by-suite", help="Take a model in two suites for two: MODEL (SUITE).")] = False,
    slices: Annotated[
        list[str] | None, Option(metavar="ATTRIBUTE", help="Show slices by this attribute alone; repeatable.")
    ] = None,
    no_slices: Annotated[bool, Option("--no-slices", help="Show no slices.")] = False,
    fail_if_worse: Annotated[
        float | None,
        Option(
            metavar="MARGIN",
            min=0,
            help="Exit 1 if a model is worse than --baseline by more than this, for certain (95 %).",
        ),
    ] = None,
    fail_if_unsure: Annotated[
        bool, Option("--fail-if-unsure", help="With --fail-if-worse: exit 3 where rows do not tell.")
    ] = False,
    point_estimate: Annotated[
        bool, Option("--point-estimate", help="With --fail-if-worse: judge the mean difference alone, noise included.")
    ] = False,
    over: Annotated[
        str | None, options.choice("time", "suite", about="Follow one model: by time, or by suite.")
    ] = None,
    as_json: options.JsonLines = False,
) -> None:
    """Compare finished runs row by row, of any HELM scenario: differences, how sure they are, rows that flipped.

    Differences are b - a, with 95 % intervals. p is that of McNemar's exact test where rows are right or wrong, else of
    a sign-flip test; both know of clusters. `p (Holm)` is corrected for the number of comparisons: those of all rows of
    a dataset, or those of its slices. Exit codes of --fail-if-worse: 0 no model is worse for certain, 1 one is, 3 the
    rows do not tell (with --fail-if-unsure).
    """
    from helm_ext.analysis.comparing import compare_runs, read_flips
    from helm_ext.analysis.gates import find_not_judged, judge
    from helm_ext.analysis.run_scores import name_by_suite

    how = {"--fail-if-unsure": fail_if_unsure, "--point-estimate": point_estimate}
    if fail_if_worse is None and any(how.values()):
        given = next(option for option, value in how.items() if value)
        raise RunEntryError(f"{given}: by how much may a model be worse?\n  hint: --fail-if-worse 0.02 {given}")
    options.require_alone({"--point-estimate": point_estimate}, {"--fail-if-unsure": fail_if_unsure})
    options.require_alone({"--no-slices": no_slices}, {"--slices": slices})
    options.require_alone({"--over": over}, {"--baseline": baseline, "--by-suite": by_suite, "--slices": slices, **how})
    found = read_folders(runs)
    siblings = _find_siblings(found)
    if over is not None:
        _follow(found, over, metric, cluster, fail_if_worse, as_json=as_json)
        return
    with status("comparing"), without_output():
        is_asked = metric is not None or cluster is not None or fail_if_worse is not None
        scores, left_out = _read_all(found, siblings, metric, cluster, must=is_asked)
        if by_suite:
            name_by_suite(scores)
        models = list(dict.fromkeys(run.model for run in scores))
        if fail_if_worse is not None and baseline is None:  # of two models, the first that was named
            if len(models) > 2:
                raise RunEntryError(f"--fail-if-worse: worse than which model?\n  hint: --baseline {models[0]}")
            baseline = models[0]
        chosen = [] if no_slices else slices or None
        results, notes = compare_runs(scores, baseline=baseline, allow_different=allow_different, slices=chosen)
        results.sort(key=lambda one: one.is_stale)  # stable: slices stay behind their whole
        gates = [] if fail_if_worse is None else judge(results, fail_if_worse, by_mean=point_estimate)
        whole = [index for index, one in enumerate(results) if rows and not one.slice]
        flips = dict(zip(whole, read_flips([results[index] for index in whole], rows), strict=True))
    _say_left_out(scores)
    say([*left_out, *(note for run in scores for note in run.notes), *notes], "note: ")
    if as_json:
        for index, result in enumerate(results):
            judged = next(({"gate": gate.to_json()} for gate in gates if gate.result is result), {})
            flipped = [asdict(flip) for flip in flips.get(index, [])]
            # ASCII: no character in it ends a line
            echo(json.dumps({**result.to_json(), **judged, "flipped": flipped}))
    else:
        _print(results, flips, is_gate=bool(gates) and not point_estimate)
    say(gate.describe() for gate in gates)
    if gated := [gate.result for gate in gates if not gate.by_mean and gate.test.p_worse is not None]:
        # Why a gate and the tables may seem to differ
        is_exact = any(one.corrected is None and one.comparison.test == "mcnemar" for one in gated)
        tests = ", by Tango's score test; close to the limit McNemar's exact p may differ" if is_exact else ""
        question = "p and 95 % intervals above ask for a difference either way, a gate only whether a model is worse"
        say([f"note: {question}{tests}"])
    outcomes = {gate.outcome for gate in gates}
    for model, title in find_not_judged(scores, results, baseline) if gates and baseline is not None else ():
        echo(f"cannot tell whether {model} is worse than {baseline} on {title}: not compared", err=True)
        outcomes.add("cannot tell")
    if "fail" in outcomes:
        raise Exit(1)
    if fail_if_unsure and "cannot tell" in outcomes:
        raise Exit(_CANNOT_TELL)


def _find_siblings(found: Iterable[FinishedRun]) -> Siblings:
    """Return which runs belong together; versions of one are named first, for they may be all that there is to say."""
    from helm_ext.analysis.siblings import find_siblings, read_sibling

    siblings = find_siblings(read_sibling(run.folder) for run in found)
    say(siblings.describe_versions(), "note: ")  # which runs HELM's tables average is no matter here
    return siblings


def _read_all(
    found: Sequence[FinishedRun], siblings: Siblings, metric: str | None, cluster: str | None, *, must: bool
) -> tuple[list[RunScores], list[str]]:
    """Return the scores of runs, and why others are left out.

    Left out are perplexities, and runs that a newer one replaces; what is stale and stays asks something else than the
    newer one. Raises RunEntryError for runs without scores where all `must` have them, and where fewer than two have.
    """
    from helm_ext.analysis.run_scores import read_scores

    stale = {folder: newer.folder for folder, newer in siblings.find_stale().items()}
    scores, first, notes = [], None, list[str]()
    for run in found:
        try:
            scores.append(read_scores(run, metric, cluster))
        except RunEntryError as error:
            first = first or error
            notes.append(f"not compared: {str(error).splitlines()[0]}")
    if first is not None and (must or len(scores) < 2):
        raise first
    datasets = {one.run.folder: one.dataset for one in scores}
    left = []
    for one in scores:
        one.is_stale = one.run.folder in stale
        if one.is_stale and datasets.get(stale[one.run.folder]) == one.dataset:
            notes.append(f"{one.run.name}: not compared, the newer run is")
        else:
            left.append(one)
    return left, notes


def _follow(found: Sequence[FinishedRun], over: str, metric: str | None, cluster: str | None, margin: float | None,
            *, as_json: bool) -> None:  # fmt: skip
    """Print the series of each model: a table, and whether it got worse; or one JSON object a run.

    Exit 1 if a run is worse than the first by more than `margin` for certain.
    """
    from helm_ext.analysis.gates import find_series
    from helm_ext.analysis.run_scores import read_scores

    with status("comparing"), without_output():
        scores = [read_scores(run, metric, cluster) for run in found]
        series = find_series(scores, over, margin=margin or 0.0)
    _say_left_out(scores)
    console = make_console()
    headings = ("suite", "finished (UTC)", "mean", "95 % interval", "gain on the first", "p worse", "p (Holm)", "")
    for one in series:
        if as_json:
            for point in one.to_json():
                echo(json.dumps(point))
        else:
            console.print(f"\n{one.model} on {one.title}: {one.metric}", style="bold")
            lines = [_to_cells(point, one.metric) for point in one.points]
            print_table(headings, lines, left=("finished (UTC)", ""), console=console)
            console.print(one.describe())
    if margin is not None and any(one.first_worse for one in series):
        raise Exit(1)


def _to_cells(point: Point, metric: str) -> list[str]:
    from helm_ext.analysis.comparing import show_p
    from helm_ext.analysis.gates import show_minute

    interval, gate = point.interval, point.gate
    cells = [point.run.run.suite, show_minute(point.time), f"{interval.mean:.4g}", interval.show_ends(".3g")]
    if gate is None:
        return [*cells, "", "", "", ""]
    known = [show_p(p) if p is not None else "not known" for p in (gate.test.p_worse, gate.p_holm)]
    said = {"fail": "worse for certain", "pass": "not worse", "cannot tell": "cannot tell"}[gate.outcome]
    own = "" if gate.result.metric == metric else " corrected"  # beside means that are not
    return [*cells, f"{gate.test.gain:+.4g}{' raw' if gate.result.refusal else own}", *known, said]


def _say_left_out(scores: Iterable[RunScores]) -> None:
    without = [run for run in scores if run.left_out]
    say((f"{run.run.name}: {count(run.left_out, 'row has', 'rows have')} no score" for run in without), "note: ")


def _print(results: Sequence[PairResult], flips: dict[int, list[Flip]], *, is_gate: bool) -> None:
    console = make_console()
    last = None
    for index, one in enumerate(results):
        if one.slice:
            continue
        title = f"{one.a.title}: {one.metric}" + (" (lower is better)" if one.a.lower_is_better else "")
        title += " (stale: the file has changed since)" if one.is_stale else ""
        if title != last:
            console.print(f"\n{title}", style="bold")
            last = title
        slices = [other for other in results[index + 1 :] if other.slice and (other.a, other.b) == (one.a, one.b)]
        print_table(one.headings, [line for each in (one, *slices) for line in each.to_lines()], console=console)
        console.print(describe_result(one, is_gate=is_gate))
        shown, differ = flips.get(index, []), one.comparison.greater + one.comparison.less
        for flip in shown:
            texts = {"question": flip.question, "gold": " | ".join(flip.gold)}
            answers = [(one.a.model, flip.answer_a), (one.b.model, flip.answer_b)]
            console.print(f"\n{flip.instance_id}  a {flip.score_a:g}, b {flip.score_b:g}")
            for name, text in [*texts.items(), *answers]:
                console.print(f"  {name}: {shorten(text)}")
        if differ > len(shown):
            more = count(differ - len(shown), "more row that differs", "more rows that differ")
            console.print(f"… and {more}: --rows {differ}")


def describe_result(one: PairResult, *, is_gate: bool = False) -> str:
    """Return in words which model is better, and what the rows could have told.

    Where a gate says whether b is worse (`is_gate`), only that is said: p asks for a difference either way, and may
    leave open what the gate's test, which looks one way, has decided.
    """
    from helm_ext.analysis.comparing import show_p

    c, models = one.comparison, {"a": one.a.model, "b": one.b.model}
    better = f"{models[one.verdict]} is better" if one.verdict in models else "the rows do not tell which is better"
    if one.corrected:
        better += " by the judge's verdicts, corrected by people's labels"
    elif one.refusal is not None:
        better += f" by the judge's own verdicts, which are not corrected: {one.refusal}"
    if one.verdict == "undecided" and one.shown.p < 0.05 <= one.p_holm:
        of = f"the {one.family} comparisons of {'slices' if one.slice else 'all rows'} of this dataset"
        better += f" (p is {show_p(one.shown.p)} alone, {show_p(one.p_holm)} corrected for {of})"
    said = [*([] if is_gate else [better]), f"{count(c.greater + c.less, 'row differs', 'rows differ')}"]
    if one.corrected:
        said[-1] += " by the verdicts alone"
    said.append(one.describe_detectable())
    if c.difference.clusters is not None:
        said.append(f"{c.difference.clusters} clusters" + (", few" if "few" in c.difference.method else ""))
    said += filter(None, ["" if is_gate else one.describe_methods(), one.describe_unpaired()])
    return "; ".join(said)


def plan(
    difference: Annotated[float, Argument(metavar="DIFFERENCE", help="The difference between two models.")],
    more: Annotated[list[Path] | None, Argument(metavar="RUN", help="More runs of --from.")] = None,
    base_rate: Annotated[
        float | None,
        Option(min=0, max=1, help="Share of rows that the first model gets right; both err independently."),
    ] = None,
    discordant: Annotated[
        float | None, Option(min=0, max=1, help="Share of rows that exactly one model gets right.")
    ] = None,
    runs: Annotated[list[Path] | None, Option("--from", help="Instead: runs of two models; repeatable.")] = None,
    power: Annotated[float, Option(help="In how many of all comparisons the difference is to be told.")] = 0.8,
) -> None:
    """Say how many rows it takes to tell a difference between two models that answer the same rows.

    By McNemar's test where rows are right or wrong. With --from also for other scores, for rows in clusters, and for
    judges' scores that labels correct: by how much the interval of the difference must narrow.
    """
    from helm_ext.scoring.statistics import discordant_share, rows_needed

    runs = [*(runs or ()), *(more or ())]
    if sum([base_rate is not None, discordant is not None, bool(runs)]) != 1:
        raise RunEntryError("one of --base-rate, --discordant and --from is needed")
    try:
        if runs:
            rows, how = _plan_from(runs, difference, power)
        else:
            how = "as given" if base_rate is None else "of two models that err independently"
            share = discordant_share(base_rate, difference) if base_rate is not None else discordant or 0.0
            rows, how = rows_needed(difference, share, power=power), f"{_DISCORDANT}: {share:.1%}, {how}"
    except ValueError as error:
        raise RunEntryError(str(error)) from error
    told = f"tell a difference of {abs(difference):g} in {power:.0%} of comparisons, at 95 % confidence"
    echo(f"{rows:,} rows {told}\n{how}")


_DISCORDANT = "rows that exactly one model gets right"


def _plan_from(paths: Sequence[Path], difference: float, power: float) -> tuple[int, str]:
    """Return how many rows it takes, and what was measured. Raises RunEntryError; ValueError for impossible shares."""
    from helm_ext.analysis.comparing import compare_runs
    from helm_ext.scoring.statistics import rows_needed, rows_to_narrow

    found = read_folders(paths)
    siblings = _find_siblings(found)
    with without_output():
        scores, notes = _read_all(found, siblings, None, None, must=True)
        results, _ = compare_runs(scores)
    say(notes, "note: ")
    whole = [one for one in results if not one.slice]
    if len(whole) != 1:
        named = [f"{one.a.model} and {one.b.model} on {one.a.title}" for one in whole]
        more = f"; and {len(whole) - 10} more" if len(whole) > 10 else ""
        chosen = " ".join(shlex.quote(str(run.run.folder)) for run in (whole[0].a, whole[0].b))
        raise RunEntryError(
            f"--from: expected the runs of two models on one dataset, got {len(whole)} pairs: "
            f"{'; '.join(named[:10])}{more}\n"
            f"  hint: name two runs: helm-ext plan {difference:g} --from {chosen}"
        )
    [one] = whole
    measured = f"as measured on {one.rows} rows of {one.a.title}"
    if one.refusal is not None:
        measured += f", by the judge's own verdicts, which are not corrected: {one.refusal}"
    if one.comparison.test == "mcnemar" and not one.corrected:
        share = (one.comparison.greater + one.comparison.less) / one.rows
        return rows_needed(difference, share, power=power), f"{_DISCORDANT}: {share:.1%}, {measured}"
    low, high = one.shown.difference.ends
    if low is None or high is None:
        raise RunEntryError(f"--from: {one.describe_detectable()}")
    measured_as = one.comparison.difference  # however far beyond the scale
    if one.corrected:
        measured += f" with {one.corrected.labels} labels, of more rows as many in proportion"
        measured_as = one.corrected.difference
    rows = rows_to_narrow(difference, measured_as.half_width, one.rows, power=power)
    return rows, f"b - a by {one.metric}: {low:+.3g} to {high:+.3g} (95 %), {measured}"
