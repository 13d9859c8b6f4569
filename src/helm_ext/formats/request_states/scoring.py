"""The `scoring` key, the arguments that override it, and what is measured when neither says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import HelmExtError, Path, did_you_mean, show
from helm_ext.evalset import Scoring
from helm_ext.formats.request_states.header import check_regex
from helm_ext.scoring.reducers import FIRST, REDUCER_NAMES, find_reducer
from helm_ext.scoring.registry import find_unnamable, get_scores, load_tokenizer
from helm_ext.scoring.score import list_judge_stats
from helm_ext.scoring.scores.likelihoods import SCORES as LIKELIHOOD_SCORES

if TYPE_CHECKING:
    from helm_ext.formats.request_states.header import Header
    from helm_ext.formats.request_states.profile import Profile
    from helm_ext.formats.request_states.reading import Reader

_SHORT_ANSWERS = ("exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "f1_score")
_UNDEFINED = {
    **dict.fromkeys(
        (score.name for score in LIKELIHOOD_SCORES), "it compares the options of a row, and some rows have one alone"
    ),
    "acc_mutual_info": "each likelihood needs `alone`, its log-probability without the question",
    "brier_score": "it needs exactly one right option in each row",
}
"""Scores of log-probabilities, and why they may not be defined for all rows."""


class ScoringMaker:
    """Decides how a file is scored: by what it says, and where it does not, by what kind of file it is."""

    def __init__(
        self, method: str, output_format: Literal["string", "list"], reader: Reader, header: Header, profile: Profile
    ) -> None:
        self._method, self._output_format, self._profile = method, output_format, profile
        self._overrides, self._num_outputs = header.options.scoring, header.num_outputs
        self._problems = reader.problems
        self._scores = get_scores(output_format)
        self._source = reader.source or header.source
        self._is_measured = reader.is_measured and header.is_measured
        self._likelihoods = _find_likelihood_scores(profile)
        """Where rows were recorded by log-probabilities: the scores of these that are defined for all rows."""
        self._judge_stats = list_judge_stats(profile.judged)

    def make(self, given: Mapping[str, Any]) -> Scoring:
        """Return how the file is scored. Arguments win over `given`, the keys of `scoring`.

        The main metric of another tool's file is its own headline (`Source.main`), unless the user names a metric: one
        that is measured here, or another of the source's scores. What is wrong goes to the problems.
        """
        overrides, is_helm = self._overrides, self._profile.is_helm_output
        chosen = {key: value for said in (given, overrides) for key, value in said.items() if value is not None}
        has_tokenizer = "score_tokenizer" in chosen
        metrics, main = self._default_metrics()
        if "metrics" in chosen and (chosen["metrics"] or self._is_measured):
            metrics = tuple(dict.fromkeys(chosen["metrics"]))
            if not metrics:
                self._report("metrics", "the list of metrics is empty", "leave the key out for the defaults")
            self._check_metrics(metrics, "metrics", has_tokenizer=has_tokenizer)
            if main not in metrics and metrics:
                main = metrics[0]
        named = chosen.get("main_metric")
        theirs = self._find_named(named, metrics)
        if theirs is not None:
            named = given.get("main_metric") if named == overrides.get("main_metric") else None
        elif overrides.get("metrics") is None and overrides.get("main_metric") is None:
            theirs = self._find_headline()
        if named is not None:
            if named not in metrics and "metrics" not in chosen and self._is_namable(named):
                metrics = (*metrics, named)
                self._check_metrics([named], "main_metric", has_tokenizer=has_tokenizer)
            main = self._find_main_stat(named, metrics)
        elif main in self._scores:
            main = self._scores[main].main_stat
        for name in metrics:
            if name in self._scores and (prepare := self._scores[name].prepare):
                self._prepare(prepare, "metrics")
        if has_tokenizer:
            self._prepare(partial(load_tokenizer, chosen["score_tokenizer"]), "score_tokenizer")
        self._check_texts(chosen)
        return Scoring(
            metrics=metrics,
            main_metric=main if theirs is None else theirs,
            own_metric=None if theirs is None else main,
            output_format=self._output_format,
            cut_at=() if is_helm else self._profile.stops.decide(chosen.get("cut_at_stop")),
            label_reading="exact" if is_helm else "forgiving",
            **{
                **{key: value for key, value in chosen.items() if key not in ("metrics", "main_metric", "cut_at_stop")},
                **({"thinking": "keep"} if is_helm else {}),
            },
        )

    def _path(self, key: str) -> Path:
        """Return where a key was given: as an argument, or in the file."""
        return (key,) if self._overrides.get(key) is not None else ("scoring", key)

    def _report(self, key: str, message: str, hint: str = "", code: str = "metrics") -> None:
        self._problems.add(self._path(key), message, hint, code=code)

    def _default_metrics(self) -> tuple[tuple[str, ...], str]:
        """Return the metrics and the main metric for a kind of file.

        Short answers: equal in the normal form; HELM's own files keep HELM's metric. Options: the option chosen is
        right.
        """
        if not self._is_measured:
            return (), ""
        if self._likelihoods:
            return self._likelihoods, "acc"
        if self._method.startswith("multiple_choice_separate"):
            return ("exact_match",), "exact_match"
        if self._output_format == "list":
            return ("exact_match", "set_exact_match", "list_f1"), "set_exact_match"
        # Rows that nothing can be scored of, with options or without, say nothing of what the others are.
        choices = self._profile.has("choice")[~self._profile.has("unscored")]
        if (choices.size and choices.all()) or self._method.startswith("multiple_choice"):
            return ("exact_match", "quasi_exact_match"), "exact_match"
        if self._profile.is_helm_output:
            return _SHORT_ANSWERS, "quasi_exact_match"
        return ("normalized_exact_match", *_SHORT_ANSWERS), "normalized_exact_match"

    def _check_metrics(self, metrics: Sequence[str], key: str, *, has_tokenizer: bool) -> None:
        """Report what cannot be measured."""
        for name in metrics:
            if unnamable := self._find_unnamable(name, has_tokenizer=has_tokenizer):
                self._report(key, *unnamable)
            elif self._likelihoods and name in _UNDEFINED and name not in self._likelihoods:
                self._report(key, f"{name} is not defined for all rows", _UNDEFINED[name])

    def _find_unnamable(self, name: str, *, has_tokenizer: bool = True) -> tuple[str, str] | None:
        has_likelihoods = bool(self._likelihoods)
        return find_unnamable(name, self._output_format, has_likelihoods=has_likelihoods, has_tokenizer=has_tokenizer)

    def _is_namable(self, name: str) -> bool:
        return name in self._likelihoods if name in _UNDEFINED else self._find_unnamable(name) is None

    def _check_texts(self, chosen: Mapping[str, Any]) -> None:
        """Report what is wrong with how answers are read: as several, as lists, by regular expressions."""
        for key in ("extract", "extract_all"):
            if key in chosen:
                check_regex(chosen[key], self._path(key), self._problems)
        name, is_list = chosen.get("completions", FIRST), self._output_format == "list"
        if name != FIRST and find_reducer(name) is None:
            hint = did_you_mean(name, REDUCER_NAMES) or f"one of {', '.join(REDUCER_NAMES)}; K is a number"
            self._report("completions", f"{show(name)} is no way to score several completions", hint, "completions")
        elif name != FIRST and is_list:
            self._report("completions", "the completions of a row together are its list", "", "completions")
        for key in () if is_list else ("separator", "extract_all", "drop_duplicates"):
            if chosen.get(key):
                self._report(key, "predictions are no lists", '"output_format": "list" makes them', "no-list")
        if is_list and chosen.get("extract_all") and not chosen.get("extract_references"):
            try:
                parts = re.compile(chosen["extract_all"]).groups
            except re.error:
                return
            if parts > 1:
                message = f"each segment is a tuple of {parts}, and references are split at the separator alone"
                hint = "extract_references=true reads them by the same expression"
                self._report("extract_all", message, hint, "tuples")

    def _find_named(self, name: str | None, metrics: Sequence[str]) -> str | None:
        """Return the stat of a judge's or the source's score that is named; None for what is none, or ours.

        A name that both have is ours: the source's is its stat's, `inspect_exact_match`.
        """
        if name in self._judge_stats:
            return name
        if name is None or self._source is None or self._is_namable(name) or name in self._list_stats(metrics):
            return None
        return self._source.find_stat(name)

    def _find_headline(self) -> str | None:
        """Return the stat of the score that the source is headed by; None where it has none.

        What our own export calls a judge's score is made of the judgements that came along: it can be corrected again.
        """
        if self._source is None or not self._source.main:
            return None
        main = self._source.main
        return main if main in self._judge_stats else self._source.stat_name(main)

    def _list_stats(self, metrics: Sequence[str]) -> list[str]:
        """Return the stats of these metrics that can be the main one."""
        measured = [self._scores[name] for name in metrics if name in self._scores]
        several = [score.name for score in measured if self._num_outputs > 1 and score.kind in ("helm", "text")]
        return [
            *(stat.name for score in measured for stat in (*score.over_all, *score.stats) if stat.can_be_main),
            *(f"{name}@{self._num_outputs}" for name in several),
        ]

    def _find_main_stat(self, main: str, metrics: Sequence[str]) -> str:
        """Return the stat that `main_metric` means: a metric's, one of its stats, or `NAME@k` for several outputs."""
        if main in metrics and main in self._scores:
            return self._scores[main].main_stat
        produced = self._list_stats(metrics)
        if main not in produced:
            theirs = [self._source.stat_name(name) for name in self._source.scores] if self._source is not None else []
            theirs += self._judge_stats
            near = did_you_mean(main, [*produced, *theirs, *sorted(self._scores)])
            if main in self._scores:
                near = f"add it to metrics: {'+'.join([*metrics, main])};"
            hint = f"{near} " * bool(near) + f"measured: {', '.join([*produced, *theirs])}"
            message = f"{show(main)} is none of the metrics that are measured"
            self._report("main_metric", message, hint, "main-metric")
        return main

    def _prepare(self, prepare: Callable[[], object], key: str) -> None:
        try:
            prepare()
        except HelmExtError as error:
            message, _, hint = str(error).partition("\n  hint: ")
            self._report(key, message, hint)


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
