"""The `scoring` key, the arguments that override it, and what is measured when neither says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import HelmExtError, Path, Problems, did_you_mean, show
from helm_ext.evalset import Scoring
from helm_ext.formats.request_states.header import check_regex
from helm_ext.scoring.reducers import FIRST, REDUCER_NAMES, find_reducer
from helm_ext.scoring.registry import find_unnamable, get_scores, load_tokenizer, main_stat
from helm_ext.scoring.score import list_judge_stats
from helm_ext.scoring.scores.likelihoods import SCORES as LIKELIHOOD_SCORES

if TYPE_CHECKING:
    from helm_ext.formats.request_states.header import Settings
    from helm_ext.formats.request_states.profile import Profile
    from helm_ext.formats.request_states.reading import Reader

_LIKELIHOOD_NAMES = tuple(score.name for score in LIKELIHOOD_SCORES)
_SHORT_ANSWERS = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score")


class FileKind:
    """What of a file decides how it is scored where it does not say so."""

    def __init__(
        self,
        method: str,
        output_format: Literal["string", "list"],
        settings: Settings,
        profile: Profile,
        reader: Reader,
    ) -> None:
        self.method, self.output_format, self.num_outputs = method, output_format, settings.num_outputs
        self.source = reader.source or settings.source
        self.is_measured = reader.is_measured and settings.is_measured
        # Rows that nothing can be scored of, with options or without, say nothing of what the others are.
        choices = profile.has("choice")[~profile.has("unscored")]
        self.all_choice = choices.size > 0 and bool(choices.all())
        self.is_helm, self.stops = profile.is_helm_output, profile.stops
        self.likelihoods = _find_likelihood_scores(profile)
        """Where rows were recorded by log-probabilities: the scores of these that are defined for all rows."""
        self.judge_stats = list_judge_stats(profile.judged)


def _find_likelihood_scores(profile: Profile) -> tuple[str, ...]:
    """Return the names of the scores that are defined for all rows with likelihoods; empty where there are none."""
    if not profile.find("likelihoods").count:
        return ()
    if profile.find("single").count:
        return ("acc",)
    missing = {
        "acc_mutual_info": profile.find("likelihoods").count - profile.find("alone").count,
        "brier_score": profile.find("several_right").count,
    }
    return tuple(score.name for score in LIKELIHOOD_SCORES if not missing.get(score.name))


def _default_metrics(kind: FileKind) -> tuple[tuple[str, ...], str]:
    """Return the metrics and the main metric for a kind of file.

    Short answers: equal in the normal form; HELM's own files keep HELM's metric. Options: the option chosen is right.
    """
    if not kind.is_measured:
        return (), ""
    if kind.likelihoods:
        return kind.likelihoods, "acc"
    if kind.method.startswith("multiple_choice_separate"):
        return ("exact_match",), "exact_match"
    if kind.output_format == "list":
        return ("exact_match", "set_exact_match", "list_f1"), "set_exact_match"
    if kind.all_choice or kind.method.startswith("multiple_choice"):
        return ("exact_match", "quasi_exact_match"), "exact_match"
    if kind.is_helm:
        return _SHORT_ANSWERS, "quasi_exact_match"
    return ("normalized_exact_match", *_SHORT_ANSWERS), "normalized_exact_match"


def make_scoring(given: Mapping[str, Any], overrides: Mapping[str, Any], kind: FileKind, report: Problems) -> Scoring:
    """Return how the file is scored. `overrides` (arguments, None where not given) win over `given` (the file).

    The main metric of another tool's file is its own headline (`Source.main`), unless the user names a metric: one that
    is measured here, or another of the source's scores. What is wrong goes to the report.
    """
    output_format = kind.output_format
    chosen = {key: value for said in (given, overrides) for key, value in said.items() if value is not None}

    def path(key: str) -> tuple[str, ...]:
        return (key,) if overrides.get(key) is not None else ("scoring", key)

    has_tokenizer = "score_tokenizer" in chosen
    metrics, main = _default_metrics(kind)
    if "metrics" in chosen and (chosen["metrics"] or kind.is_measured):
        metrics = tuple(dict.fromkeys(chosen["metrics"]))
        _check_metrics(metrics, kind, path("metrics"), report, has_tokenizer=has_tokenizer)
        if main not in metrics and metrics:
            main = metrics[0]
    named = chosen.get("main_metric")
    theirs = _find_named(named, metrics, kind)
    if theirs is not None:
        named = given.get("main_metric") if named == overrides.get("main_metric") else None
    elif overrides.get("metrics") is None and overrides.get("main_metric") is None:
        theirs = _find_headline(kind)
    if named is not None:
        main = named
        if main not in metrics and "metrics" not in chosen and _is_namable(main, kind):
            metrics = (*metrics, main)
            _check_metrics([main], kind, path("main_metric"), report, has_tokenizer=has_tokenizer)
        main = _find_main_stat(main, metrics, kind, path("main_metric"), report)
    else:
        main = main_stat(main, output_format)
    for name in metrics:
        score = get_scores(output_format).get(name)
        if score and score.prepare:
            _prepare(score.prepare, path("metrics"), report)
    if has_tokenizer:
        _prepare(partial(load_tokenizer, chosen["score_tokenizer"]), path("score_tokenizer"), report)
    for key in ("extract", "extract_all"):
        if key in chosen:
            check_regex(chosen[key], path(key), report)
    _check_completions(chosen, output_format, path, report)
    _check_lists(chosen, output_format, path, report)
    return Scoring(
        metrics=metrics,
        main_metric=main if theirs is None else theirs,
        own_metric=None if theirs is None else main,
        output_format=output_format,
        cut_at=() if kind.is_helm else kind.stops.decide(chosen.get("cut_at_stop")),
        label_reading="exact" if kind.is_helm else "forgiving",
        **{
            **{key: value for key, value in chosen.items() if key not in ("metrics", "main_metric", "cut_at_stop")},
            **({"thinking": "keep"} if kind.is_helm else {}),
        },
    )


def _check_metrics(
    metrics: Sequence[str], kind: FileKind, path: Path, report: Problems, *, has_tokenizer: bool
) -> None:
    """Report what cannot be measured."""
    if not metrics:
        report.add(path, "the list of metrics is empty", "leave the key out for the defaults", code="metrics")
    for name in metrics:
        if unnamable := _find_unnamable(name, kind, has_tokenizer=has_tokenizer):
            report.add(path, *unnamable, code="metrics")
        elif kind.likelihoods and name in _LIKELIHOOD_NAMES and name not in kind.likelihoods:
            hint = _UNDEFINED.get(name, "it compares the options of a row, and some rows have one alone")
            report.add(path, f"{name} is not defined for all rows", hint, code="metrics")


_UNDEFINED = {
    "acc_mutual_info": "each likelihood needs `alone`, its log-probability without the question",
    "brier_score": "it needs exactly one right option in each row",
}


def _check_completions(
    chosen: Mapping[str, Any], output_format: str, path: Callable[[str], Path], report: Problems
) -> None:
    """Report a reducer that is none, and one where all completions together are one list."""
    name = chosen.get("completions", FIRST)
    if name == FIRST:
        return
    if find_reducer(name) is None:
        hint = did_you_mean(name, REDUCER_NAMES) or f"one of {', '.join(REDUCER_NAMES)}; K is a number"
        message = f"{show(name)} is no way to score several completions"
        report.add(path("completions"), message, hint, code="completions")
    elif output_format == "list":
        report.add(path("completions"), "the completions of a row together are its list", code="completions")


def _check_lists(chosen: Mapping[str, Any], output_format: str, path: Callable[[str], Path], report: Problems) -> None:
    """Report what is said about lists where there are none, and tuples that no reference can be equal to."""
    if output_format != "list":
        for key in ("separator", "extract_all", "drop_duplicates"):
            if chosen.get(key):
                report.add(path(key), "predictions are no lists", '"output_format": "list" makes them', code="no-list")
        return
    if chosen.get("extract_all") and not chosen.get("extract_references"):
        try:
            parts = re.compile(chosen["extract_all"]).groups
        except re.error:
            return
        if parts > 1:
            message = f"each segment is a tuple of {parts}, and references are split at the separator alone"
            hint = "extract_references=true reads them by the same expression"
            report.add(path("extract_all"), message, hint, code="tuples")


def _is_namable(name: str, kind: FileKind) -> bool:
    if name in _LIKELIHOOD_NAMES:
        return name in kind.likelihoods
    return _find_unnamable(name, kind, has_tokenizer=True) is None


def _find_unnamable(name: str, kind: FileKind, *, has_tokenizer: bool) -> tuple[str, str] | None:
    return find_unnamable(name, kind.output_format, has_likelihoods=bool(kind.likelihoods), has_tokenizer=has_tokenizer)


def _find_named(name: str | None, metrics: Sequence[str], kind: FileKind) -> str | None:
    """Return the stat of a judge's or the source's score that is named; None for what is none, or ours.

    A name that both have is ours: the source's is its stat's, `inspect_exact_match`.
    """
    if name in kind.judge_stats:
        return name
    if name is None or kind.source is None or _is_namable(name, kind) or name in _list_stats(metrics, kind):
        return None
    return kind.source.find_stat(name)


def _find_headline(kind: FileKind) -> str | None:
    """Return the stat of the score that the source is headed by; None where it has none.

    What our own export calls a judge's score is made of the judgements that came along: it can be corrected again.
    """
    if kind.source is not None and kind.source.main in kind.judge_stats:
        return kind.source.main
    return kind.source.stat_name(kind.source.main) if kind.source is not None and kind.source.main else None


def _list_stats(metrics: Sequence[str], kind: FileKind) -> list[str]:
    """Return the stats of these metrics that can be the main one."""
    scores = get_scores(kind.output_format)
    measured = [scores[name] for name in metrics if name in scores]
    several = [score.name for score in measured if kind.num_outputs > 1 and score.kind in ("helm", "text")]
    return [
        *(stat.name for score in measured for stat in (*score.over_all, *score.stats) if stat.can_be_main),
        *(f"{name}@{kind.num_outputs}" for name in several),
    ]


def _find_main_stat(main: str, metrics: Sequence[str], kind: FileKind, path: Path, report: Problems) -> str:
    """Return the stat that `main_metric` means: a metric's name, one of its stats, or `NAME@k` for several outputs."""
    scores = get_scores(kind.output_format)
    if main in metrics and main in scores:
        return scores[main].main_stat
    produced = _list_stats(metrics, kind)
    if main not in produced:
        theirs = [kind.source.stat_name(name) for name in kind.source.scores] if kind.source is not None else []
        theirs += kind.judge_stats
        near = did_you_mean(main, [*produced, *theirs, *sorted(scores)])
        if main in scores:
            near = f"add it to metrics: {'+'.join([*metrics, main])};"
        hint = f"{near} " * bool(near) + f"measured: {', '.join([*produced, *theirs])}"
        report.add(path, f"{show(main)} is none of the metrics that are measured", hint, code="main-metric")
    return main


def _prepare(prepare: Callable[[], object], path: Path, report: Problems) -> None:
    try:
        prepare()
    except HelmExtError as error:
        message, _, hint = str(error).partition("\n  hint: ")
        report.add(path, message, hint, code="metrics")
