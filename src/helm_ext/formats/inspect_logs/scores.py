"""The scores that inspect_ai gave: of a sample in an epoch, of a sample over its epochs, of the log.

    sample.scores[SCORER].value ──to_number──▶ number of an epoch ──reducer──▶ of the row ──mean──▶ results.scores[]

Values, reducers and names are those of inspect_ai: scorer/_metric.py (`value_to_float`), scorer/_reducer/reducer.py,
_eval/task/results.py (`eval_results`).

What models said of a log's answers: scores of inspect_ai that a model gave, as judgements.

A score is one if its scorer is `model_graded_qa` or `model_graded_fact`, or if it holds the conversation with the
grader (`metadata.grading`; scorer/_model.py). Of a panel of graders the log has one reply at most, and the votes
(`metadata.panel`): one judgement of all of them. Not read as judgements: scores that somebody edited, values that are
no grades, and scores of `precomputed_scores`, of which the log says neither whether a person or a model gave them, nor
how their rows were chosen.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.evalset import SourceScore
from helm_ext.files import canonical_json
from helm_ext.formats.imported.row import as_list, as_object, is_finite_number, is_grade, is_nan, to_number
from helm_ext.formats.inspect_logs.log import Header
from helm_ext.formats.inspect_logs.samples import SampleScore, Texts
from helm_ext.scoring.reducers import find_noise, find_reducer, mode
from helm_ext.scoring.score import ANSWERS, NOISE

_MEANS = ("accuracy", "mean")
"""Metrics of inspect_ai that are the mean of the rows' numbers."""
_SPREADS = ("std", "stderr", "bootstrap_stderr", "var", "ci", "ci_wilson")
"""Metrics of it that say how far rows lie apart: neither less nor more is better."""
_NO_MEANS = (*_SPREADS, "perplexity_per_token", "perplexity_per_seq", "krippendorff_alpha")
"""Metrics of it that are no mean of rows, though the mean may be the same number."""
_NOT_READ = ("first", "majority")
"""Reducers that are not made again here."""
_NO_NUMBERS = "its values are no numbers"
_OWN_REDUCER = "the task's reducer of epochs has settings that the log does not hold"
"""Another mean is reported than that of the rows, by a reducer that a task may have told its own threshold
(`at_least(2, value=0.5)`) or numbers of words: a log has the reducer's name alone."""
_OTHER_MEAN = "the mean of the rows' scores is "
"""Begins why an accuracy or a mean is none, though the log holds all that it is made of."""
_CLOSE = 1e-9

Key = tuple[str, str | None]
"""A scorer, and of an object of scores the key."""


@dataclass(slots=True)
class _Score:
    """One score of rows: of a scorer or a part of it, by one reducer."""

    key: Key
    name: str
    reducer: str
    has_mean: bool = False
    """Whether the log has a plain mean of it: a word that is no number counts 0 then, as for inspect_ai."""
    is_numeric: bool = False
    """Whether it has values that are numbers, and no grades or truths: these lie between 0 and 1."""
    values: array[float] = field(default_factory=lambda: array("d"))
    """The rows' numbers."""
    has_words: bool = False
    """Whether a value that is no number counted 0."""
    left_out: str = ""
    """Why rows have no such score; "" where they have the log's numbers."""

    def reduce(self, scored: Sequence[Any]) -> float | None:
        """Return a row's number, of the values of its epochs. Raises TypeError where one is no number."""
        self.is_numeric |= not all(map(is_grade, scored))
        if not scored:
            return None
        if self.reducer == "mode":  # compares the values themselves: the most frequent of "I", "N", "I"
            return self.to_number(mode(scored))
        reduce = find_reducer(self.reducer)
        reduced = None if reduce is None else reduce([self.to_number(value) for value in scored])
        return reduced if reduced is not None and math.isfinite(reduced) else None

    def to_number(self, value: Any) -> float:
        """Return a value as a number. Raises TypeError for one that is none."""
        found = to_number(value)
        if found is None:
            if not self.has_mean or not isinstance(value, str | None):
                raise TypeError
            self.has_words = True
            return 0.0
        return found

    def why_no_mean(self, by: str, reported: float | None, *, is_group: bool, is_whole: bool) -> str:
        """Return why a metric, made `by` a function, is no mean of the rows' numbers; "" where it is.

        A metric that is not known is, if it comes to their mean and they are not all the same.
        """
        if self.left_out == _NO_NUMBERS:
            return _NO_NUMBERS
        if not self.values:
            return "" if reported is None and by in _MEANS and not is_group else "no row has a score of this kind"
        mean = math.fsum(self.values) / len(self.values)
        is_equal = reported is not None and abs(mean - reported) <= _CLOSE
        if by in _MEANS and not is_group:
            if is_equal or not is_whole:
                return ""
            is_known = self.reducer == "mode" or (self.reducer == "mean" and not self.has_words)
            return f"{_OTHER_MEAN}{mean:.6g}" if is_known else _OWN_REDUCER
        if is_equal and is_whole and by not in _NO_MEANS and min(self.values) < max(self.values):
            return ""
        return f"inspect_ai makes it of all rows at once, by {by}"


class Scores:
    """The scores of one log.

    `reducers`: `eval.config.epochs_reducer`. `results`: `results.scores`, of which each score is named after `name`:
    where two have one name, the second also has its scorer's, and that of a second reducer the reducer's.
    """

    def __init__(self, reducers: Sequence[str] | None, results: Sequence[Mapping[str, Any]]) -> None:
        self._reducers = list(reducers or ("mean",))
        self._reported_reducers: dict[str, list[str]] = {}
        """By scorer. A log that was scored again by another scorer has the reducers of that one in its config."""
        for entry in results:
            of_scorer = self._reported_reducers.setdefault(_name_scorer(entry), [])
            if isinstance(reducer := entry.get("reducer"), str) and reducer not in of_scorer:
                of_scorer.append(reducer)
        every = dict.fromkeys([*self._reducers, *(name for of in self._reported_reducers.values() for name in of)])
        self.unknown = [name for name in every if name in _NOT_READ or find_reducer(name) is None]
        """Reducers that are not known here: a task may bring its own."""
        self.is_over_epochs = reducers is not None and not reducers
        """Whether the log's own numbers are means over all samples of all epochs, not over rows."""
        self.reported: dict[str, SourceScore] = {}
        """By name, when all rows were read (`finish`): those that a row has, and what else the log reports."""
        self.contradictions: list[str] = []
        """Of a mean that the log reports, and that its rows have not, both numbers in words."""
        self.no_answer = 0
        """Scores "N"."""
        self._results = results
        self._keys: dict[str, list[str]] = {}
        """By scorer: of objects of scores, the keys that the log reports."""
        self._scores: dict[tuple[Key, int], _Score] = {}
        """By scorer and number of the reducer: scores that the log reports, or that a row has."""
        for entry in results:
            score = self._find_reported(entry)
            scorer, part = score.key
            if part is not None:
                self._keys.setdefault(scorer, []).append(part)
            metrics = as_object(entry.get("metrics"))
            means = [found for name in _MEANS if not (found := as_object(metrics.get(name))).get("params")]
            score.has_mean |= any(is_finite_number(found.get("value")) for found in means)

    def of_row(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
        """Return the scores of a row, by name, given the values of its epochs. None: it was not scored.

        Behind those of several epochs comes of how many they are made, and how noisy that is: its variance were they
        drawn again.
        """
        keys: dict[Key, list[Any]] = {}
        for values in epochs:
            for scorer, value in values.items():
                of_all = self._keys.get(scorer, [None]) if is_nan(value) else [None]
                for key, one in value.items() if isinstance(value, Mapping) else ((key, value) for key in of_all):
                    keys.setdefault((scorer, key), []).append(one)
        found: dict[str, float | None] = {}
        for key, given in keys.items():
            counts_none = (key, 0) in self._scores and self._scores[key, 0].has_mean
            scored = [value for value in given if not is_nan(value) and (value is not None or counts_none)]
            reducers = self._find_reducers(key[0])
            if not scored and not any((key, number) in self._scores for number in range(len(reducers))):
                continue  # what is an object of scores in other rows, or epochs, was not scored here
            self.no_answer += sum(value == "N" for value in scored)
            for number, reducer in enumerate(reducers):
                if reducer in self.unknown:
                    continue
                score = self._find(key, number)
                try:
                    value = score.reduce(scored)
                    noise = find_noise(reducer)(list(map(score.to_number, scored))) if len(scored) > 1 else None
                except TypeError:  # no number
                    score.left_out = _NO_NUMBERS
                    continue
                found[score.name] = value
                self.reported.setdefault(score.name, SourceScore())
                if value is None:
                    continue
                score.values.append(value)
                if len(scored) > 1:
                    found[f"{score.name}{ANSWERS}"] = len(scored)
                if noise is not None:
                    found[f"{score.name}{NOISE}"] = noise
        return found

    @property
    def left_out(self) -> dict[str, str]:
        """Names of scores that rows have not, to the reason."""
        return {score.name: score.left_out for score in self._scores.values() if score.left_out}

    def finish(self, rows: Sequence[dict[str, float | None]], *, is_whole: bool) -> list[dict[str, str]]:
        """Settle what the log reports of which score: of each of its scores, metric to name.

        The metric that is the mean of a score's rows has the score's own name. `rows`: the scores of all of them, of
        which those are taken away that are not the log's. `is_whole`: whether these are all rows that the log reports
        about.
        """
        names = [self._settle(entry, is_whole=is_whole) for entry in self._results]
        for name in self.left_out:
            self.reported.pop(name, None)
            for row in rows:
                for one in (name, f"{name}{ANSWERS}", f"{name}{NOISE}"):
                    row.pop(one, None)
        return names

    def _settle(self, entry: Mapping[str, Any], *, is_whole: bool) -> dict[str, str]:
        score = self._find_reported(entry)
        metrics, mine = as_object(entry.get("metrics")), self.reported.get(score.name)
        names: dict[str, str] = {}
        for metric, found in metrics.items():
            said = as_object(found)
            reported = float(said["value"]) if is_finite_number(said.get("value")) else None
            by = str(said.get("group") or said.get("name") or metric).rpartition("/")[2]
            why = score.why_no_mean(by, reported, is_group=bool(said.get("group")), is_whole=is_whole)
            if not why and mine is not None and mine.mean is None:
                names[metric], mine.mean = score.name, reported
                continue
            names[metric] = f"{score.name}/{metric}"
            if reported is not None and why.startswith(_OTHER_MEAN):
                self.contradictions.append(f"the {metric} of {score.name} is {reported:.6g} in the log, and {why}")
            lower = None if by in _SPREADS else "perplexity" in by
            score.left_out = _OWN_REDUCER if why == _OWN_REDUCER else score.left_out
            same = "it is the mean of the rows' scores once more"
            self.reported.setdefault(names[metric], SourceScore(reported, lower, why or same))
        if mine is not None:
            mine.bounds = None if score.is_numeric else (0.0, 1.0)
            mine.lower_is_better = any("perplexity" in metric for metric in metrics)
        return names

    def _find_reported(self, entry: Mapping[str, Any]) -> _Score:
        """Return the score that an element of `results.scores` is about."""
        name, scorer, reducer = str(entry.get("name")), _name_scorer(entry), entry.get("reducer")
        reducers = self._find_reducers(scorer)
        number = reducers.index(reducer) if reducer in reducers else 0
        return self._find((scorer, None if name == scorer else name), number)

    def _find_reducers(self, scorer: str) -> Sequence[str]:
        """Return the reducers of a scorer's scores: those that the log reports, else those of its config."""
        return self._reported_reducers.get(scorer) or self._reducers

    def _find(self, key: Key, number: int) -> _Score:
        """Return a score, a new one under a name of its own."""
        score = self._scores.get((key, number))
        if score is None:
            name, reducer = key[0] if key[1] is None else key[1], self._find_reducers(key[0])[number]
            name = f"{name},{reducer}" if number else name
            taken = {other.name for other in self._scores.values()}
            candidates = (name, f"{name},{key[0]}", f"{name},{key[0]},{len(taken)}")
            score = _Score(key, next(one for one in candidates if one not in taken), reducer)
            self._scores[key, number] = score
        return score


def _name_scorer(entry: Mapping[str, Any]) -> str:
    return str(entry.get("scorer") or entry.get("name"))


_GRADERS = ("model_graded_qa", "model_graded_fact")
_NOT_FOUND = "Grade not found in model output: "
"""Begins the explanation where the grader's reply has no grade. Before 0.3.245 or so the value is "I" then."""
_OF_MODEL = ("model", "model_role")


class JudgementReader:
    """Reads the judgements of one log."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._told = {scorer.name.rpartition("/")[2]: scorer.options or {} for scorer in header.scorers}
        """What scorers were told, by their names."""
        self.partial: set[str] = set()
        """Criteria with grades between wrong and right. Known when all samples were seen."""

    def read(self, name: str, score: SampleScore, texts: Texts) -> dict[str, Any] | None:
        """Return a score as a judgement without its scale; None for a score that no model gave."""
        metadata = score.metadata or {}
        grading = metadata.get("grading")
        if not (name in _GRADERS or isinstance(grading, list)) or score.history:
            return None
        asked, said = (_message(grading, place, texts) for place in (0, 1))
        explanation = texts.resolve(score.explanation or "")
        is_unread = explanation.startswith(_NOT_FOUND)
        value = None if is_unread or isinstance(score.value, list | Mapping) else to_number(score.value)
        is_none = is_unread or is_nan(score.value)
        if not is_none and (value is None or value not in (0.0, 0.5, 1.0)):
            return None
        options = self._told.get(name, {})
        if value == 0.5 or options.get("partial_credit"):
            self.partial.add(name)
        made: dict[str, Any] = {
            "by": self._find_grader(options, grading), "kind": "model", "criterion": name,
            "status": "unparsed" if is_none else "ok", "rubric_sha256": self._digest_rubric(name, options),
        }  # fmt: skip
        if not is_none:
            made["value"] = value
        reply = said if said is not None else explanation.removeprefix(_NOT_FOUND)
        if isinstance(metadata.get("panel"), Mapping):
            made["params"] = {"panel": metadata["panel"]}  # the reply that the log has is that of one of them
        elif reply:
            made["reply"] = reply
        if asked is not None:
            made["prompt_sha256"] = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
        return made

    def settle(self, judgement: Mapping[str, Any], completion: int) -> dict[str, Any]:
        """Return a judgement with its scale, when all samples were seen."""
        scale = [0, 0.5, 1] if judgement["criterion"] in self.partial else [0, 1]
        return {**judgement, "scale": scale, "completion": completion}

    def _find_grader(self, options: Mapping[str, Any], grading: Any) -> str:
        """Return who graded: as the scorer was told, as the reply says, or who had the role of a grader."""
        given = options.get("model")
        if given:
            return " + ".join(_name(one) for one in (given if isinstance(given, list) else [given]))
        replied = [as_object(one).get("model") for one in as_list(grading)[1:2]]
        if replied and isinstance(replied[0], str) and replied[0]:
            return replied[0]
        bound = (self._header.spec.model_roles or {}).get(options.get("model_role") or "grader")
        return _name(bound) if bound else "not recorded"

    def _digest_rubric(self, name: str, options: Mapping[str, Any]) -> str:
        """Return a digest of what the grader was told: of inspect_ai's own words its version stands for them."""
        told = {key: value for key, value in options.items() if key not in _OF_MODEL}
        version = None if "template" in told and "instructions" in told else self._header.version
        return hashlib.sha256(canonical_json([name, told, version])).hexdigest()


def _message(grading: Any, place: int, texts: Texts) -> str | None:
    """Return the text of a message of the conversation with the grader; None where the log has none."""
    (content,) = [as_object(one).get("content") for one in as_list(grading)[place : place + 1]] or (None,)
    if isinstance(content, list):
        parts = [as_object(part).get("text") for part in content]
        content = "".join(text for text in parts if isinstance(text, str))
    return texts.resolve(content) if isinstance(content, str) else None


def _name(model: Any) -> str:
    if isinstance(model, list):
        return " + ".join(map(_name, model))
    return str(model.get("model") if isinstance(model, Mapping) else model)
