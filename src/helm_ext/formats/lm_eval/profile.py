"""The profile of a samples file: which lines belong to one question, what holds for all of them; and its rows.

A file has one line for each question and filter, all of the first filter first. So a question's scores are complete
only at the end of the file, and how targets are read is decided over all lines (`golds`). Lines are kept until then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from helm_ext import files
from helm_ext.errors import DatasetIntegrityError, Problems, count, raise_for, show
from helm_ext.evalset import Likelihood
from helm_ext.files.store import RowStore
from helm_ext.formats.imported.gold import GoldColumn, GoldKind, Kind, to_options
from helm_ext.formats.imported.json_log import without_nan
from helm_ext.formats.imported.row import Answer, Row, RowError, is_nan
from helm_ext.formats.lm_eval.report import Report
from helm_ext.formats.lm_eval.samples import (
    READINGS,
    Asked,
    Reading,
    Targets,
    is_invalid,
    open_samples,
    read_asked,
    read_choice,
    read_texts,
    read_texts_of_target,
    require_compared,
    to_score,
)
from helm_ext.formats.request_states.loading import KEPT_ROWS
from helm_ext.formats.request_states.rows import find_value

_CLOSE = 1e-9
_SEQUENCES = (tuple(ascii_uppercase), tuple(ascii_lowercase), tuple(str(number) for number in range(1, 100)))
_BARE = re.compile(r"\(?([A-Za-z0-9]+)[).]?")


class Profile:
    """What holds for all lines of a file."""

    def __init__(
        self, path: Path, report: Report, gold: str | None, gold_kind: Kind | None, index_base: int | None
    ) -> None:
        """Read all lines; `gold` and the like are arguments of the run entry.

        Raises DatasetError for the first thing that cannot be right.
        """
        self.path = path
        self.report = report
        self.gold_key = gold.removeprefix("doc.") if gold else ""
        """The key of `doc` where golds stand; "" where `target` is the gold."""
        self.kind = ""
        self.has_contexts = False
        self.is_chat = False
        self.lines = self.duplicates = 0
        self.none_answers = 0
        """Answers that read "None"."""
        self.invalid: Counter[str] = Counter()
        """Lines on which a filter found nothing, by filter."""
        self.filters: dict[str, dict[int, int]] = {}
        """By filter, in the order of the file: of each question the place of its line in the store."""
        self.scores: dict[str, dict[int, float | None]] = {}
        """The harness's scores that are numbers, by `metric,filter` and question."""
        self.kept: list[str] = []
        """Its scores that are no numbers, or whose report is no mean."""
        self._reading: Reading | None = None
        """How targets of multiple-choice lines are read."""
        self._gold_kind: GoldKind | None = None
        """How the values of `gold=` are read."""
        self._doc_to_choice: Any = None
        """Of a task whose model writes texts: what `target` is a position of; None where it is a text."""
        self._store = RowStore(tuple[int, dict[str, Any]], KEPT_ROWS)
        self._numbers: dict[int | str, int] = {}
        """The number of each question, by `doc_id`."""
        self._keys: list[int] = []
        """By question: equal in all its lines, a hash."""
        self._first: list[int] = []
        """By question: the place of its first line in the store."""
        self._targets = Targets()
        said = {"gold_kind": gold_kind, "index_base": index_base} if gold else {}
        self._golds = GoldColumn(allow_hidden=True, path=str(path), name=f"doc.{gold}", **said)  # type: ignore[arg-type]
        self._with_delimiter = self._without_delimiter = self._empty = 0
        self._read()
        self._settle_golds(gold_kind)
        self.names = list(self.scores)
        """All of the harness's scores, in the order of the file."""
        self._settle_scores()

    def __len__(self) -> int:
        """Return how many questions there are."""
        return len(self._keys)

    def _read(self) -> None:
        problems = Problems(str(self.path))
        lines = open_samples(self.path, self.report.filters, problems)
        for number, sample, _ in lines:
            if problems.errors:
                break
            self.lines += 1
            try:
                if self._join(sample, number):
                    self._see(sample, number)
            except RowError as wrong:
                raise self._error(wrong, number) from None
        self._store.finish()
        raise_for(problems.finish())
        self.digest = lines.digest
        if not self._keys:
            raise self._error(RowError("there are no samples"))
        effective = self.report.effective
        if effective is not None and len(self) > effective:
            message = f"{len(self)} questions, and the results file says {effective}: not of one run"
            raise self._error(RowError(message, "results=none reads the samples alone"))

    def _join(self, sample: dict[str, Any], number: int) -> bool:
        """Add a line to its question; return whether it is the first of it."""
        missing = [metric for metric in sample["metrics"] if metric not in sample]
        if missing:
            raise RowError(f"metrics names {show(missing[0])}, and there is no such key")
        doc_id, chosen = sample["doc_id"], sample["filter"]
        resps = files.canonical_json(sample["resps"])
        key = hash((sample["doc_hash"], sample["prompt_hash"], sample["target_hash"], resps))
        question = self._numbers.setdefault(doc_id, len(self._keys))
        is_first = question == len(self._keys)
        if is_first:
            sample["doc"] = without_nan(sample["doc"])  # or Infinity is the gold "inf"
            self._keys.append(key)
            self._first.append(len(self._store))
        elif self._keys[question] != key:
            message = f"another answer to doc_id {show(doc_id)} than before: two runs were appended to one file"
            raise RowError(
                message, "lm-eval opens its files for append; split the file, or run it again into an empty folder"
            )
        scores = {f"{metric},{chosen}": to_score(sample[metric]) for metric in sample["metrics"]}
        filtered = self.filters.setdefault(chosen, {})
        if question in filtered:
            known = {name: self.scores.get(name, {}).get(question) for name in scores}
            if known != scores and not any(map(is_nan, scores.values())):
                raise RowError(f"doc_id {show(doc_id)} is scored twice by filter {show(chosen)}, differently")
            self.duplicates += 1
            return False
        filtered[question] = len(self._store)
        for name, score in scores.items():
            self.scores.setdefault(name, {})[question] = score
        made = sample["filtered_resps"]
        self.invalid[chosen] += bool(made) and is_invalid(made[0])
        self._store.add((number, sample if is_first else {"filtered_resps": made}))
        return is_first

    def _see(self, sample: dict[str, Any], number: int) -> None:
        """Take the first line of a question."""
        asked = read_asked(sample)
        report, declared = self.report, self.report.output_type
        if declared and asked.kind != declared and not (asked.kind == "loglikelihood" and len(asked.options) == 1):
            raise RowError(f"the line is of {asked.kind}, and the results file says {declared}")
        if not self.kind:
            self.kind, self.has_contexts = asked.kind, asked.has_contexts
        elif (self.kind, self.has_contexts) != (asked.kind, asked.has_contexts):
            raise RowError(f"the line is of {asked.kind}, and those before are of {self.kind}")
        self.is_chat |= isinstance(asked.question, list)
        if asked.kind == "generate_until":
            self.none_answers += sample["resps"][0] == ["None"]
            self._empty += not sample["target"].strip()
            if self.gold_key:
                self._golds.see(find_value(sample["doc"], self.gold_key), None, number)
            elif report.path is None:
                require_compared(sample)
            elif report.doc_to_choice is not None and not report.scores_itself:
                self._doc_to_choice = report.doc_to_choice
                read_choice(sample, self._doc_to_choice)
        elif asked.kind == "multiple_choice":
            texts = self._read_options(asked)
            self._with_delimiter += texts is not asked.options
            self._without_delimiter += texts is asked.options and not asked.has_contexts
            if self.gold_key:
                labels = _label_options(texts, sample["doc"], has_contexts=asked.has_contexts)
                self._golds.see(find_value(sample["doc"], self.gold_key), labels, number)
            elif not report.scores_itself:
                winner = max(range(len(asked.logprobs)), key=asked.logprobs.__getitem__)
                self._targets.see(sample, texts, winner, number)

    def _read_options(self, asked: Asked) -> Sequence[str]:
        """Return the options of a line as texts: without the task's delimiter, where all of them begin with it."""
        delimiter = self.report.delimiter
        if not delimiter or asked.has_contexts or not all(option.startswith(delimiter) for option in asked.options):
            return asked.options
        return [option[len(delimiter) :] for option in asked.options]

    def _settle_golds(self, gold_kind: Kind | None) -> None:
        """Decide how golds are read. Raises DatasetError where that cannot be told."""
        if self._with_delimiter and self._without_delimiter:
            rows = f"{self._with_delimiter} rows and not of {self._without_delimiter}"
            message = f"{show(self.report.delimiter)} stands before the options of {rows}"
            raise self._error(RowError(message, "is the results file that of another run? results=FILE names it"))
        if self.gold_key:
            self._gold_kind = self._golds.decide()
        elif self.kind == "multiple_choice" and not self.report.scores_itself:
            try:
                self._reading = gold_kind if gold_kind in ("index", "text") else self._targets.decide()
            except RowError as wrong:
                raise self._error(wrong) from None
        elif self.kind == "generate_until" and self._empty == len(self):
            message = "no gold: every target is empty, so nothing can be scored"
            raise self._error(RowError(message, "gold=doc.KEY names where the answers stand"))

    def _settle_scores(self) -> None:
        """Tell the harness's scores that are means of numbers from the others, and compare them with its report."""
        report = self.report
        for name, given in self.scores.items():
            numbers = [value for value in given.values() if value is not None]
            is_mean = report.is_mean(name.rpartition(",")[0])
            if not numbers or any(map(is_nan, numbers)) or is_mean is False:
                self.kept.append(name)
                continue
            mean, reported = sum(numbers) / len(numbers), report.aggregates.get(name)
            is_whole = report.effective is None or len(given) == report.effective
            if reported is None or not is_whole or abs(mean - reported) <= _CLOSE:
                continue
            if is_mean:
                message = (
                    f"the mean of {name} over the {count(len(numbers), 'row')} is {mean:.10g}, and the results file "
                    f"says {reported:.10g}: they are not of one run, or were edited"
                )
                raise self._error(RowError(message, "results=none reads the samples alone"))
            self.kept.append(name)  # made by a function of the task's: it is no mean
        for name in self.kept:
            del self.scores[name]

    def _error(self, wrong: RowError, line: int | None = None) -> DatasetIntegrityError:
        return DatasetIntegrityError.at(self.path, str(wrong), wrong.hint, wrong.line or line, code="samples")

    def rows(
        self,
        *,
        chosen: str | None,
        by: Sequence[str],
        clean: Callable[[str], str],
        needs_gold: bool,
    ) -> Iterator[Row]:
        """Yield one row a question, in the order of the file. Raises DatasetError.

        `chosen`: the filter whose answers are scored; None: the answers as they came. `by`: keys of `doc` that rows
        keep under their own names; `clean`: what golds and filtered answers go through; `needs_gold`: whether a row
        without a gold is excluded from the score.
        """
        filtered = self.filters.get(chosen or "", {})
        places = ((first, *([filtered[at]] if at in filtered else ())) for at, first in enumerate(self._first))
        lines = self._store.read(place for both in places for place in both)
        for at in range(len(self)):
            line, sample = next(lines)
            doc = sample["doc"]
            row = Row(
                line=line,
                id=sample["doc_id"],
                question="",
                source_scores={name: values[at] for name, values in self.scores.items() if at in values},
                data={"doc": doc, **{name: doc[name] for name in by if isinstance(doc, dict) and name in doc}},
            )
            made = next(lines)[1]["filtered_resps"] if at in filtered else None
            try:
                self._complete(row, sample, clean, needs_gold=needs_gold)
                if self.kind == "generate_until" and chosen is None:
                    row.answers = [Answer(text) for text in read_texts(sample["resps"][0])]
                elif self.kind == "generate_until" and made is not None:
                    row.answers = [Answer(clean(text)) for text in read_texts(made[0] if made else None)]
            except RowError as wrong:
                raise self._error(wrong, line) from None
            yield row

    def _complete(self, row: Row, sample: Mapping[str, Any], clean: Callable[[str], str], *, needs_gold: bool) -> None:
        """Add what was asked of a row, what is right, and its log-probabilities."""
        asked = read_asked(sample)
        row.question = asked.question
        if asked.kind == "generate_until":
            golds, unscored = self._read_golds(sample), "the row has no target"
            if golds == () and self._doc_to_choice is not None:
                target = show(sample["target"])
                unscored = f"target {target} is the position of no choice, and the harness took a last one"
            row.unscored = "" if golds or not needs_gold else unscored
            row.gold = tuple(map(clean, golds or ()))
        elif asked.kind == "loglikelihood_rolling":
            row.unscored = "it says how likely a text is: nothing that could be right or wrong"
        elif asked.kind == "loglikelihood":
            row.gold = asked.options
            row.likelihoods = [_to_likelihood(asked, 0, asked.options[0])]
        else:
            texts = self._read_options(asked)
            row.options = options = _label_options(texts, sample["doc"], has_contexts=asked.has_contexts)
            if self._gold_kind is not None:
                row.gold = self._gold_kind.read(find_value(sample["doc"], self.gold_key), options)
            elif self._reading is not None:
                positions = READINGS[self._reading](sample, texts)
                if positions is None:
                    raise RowError("target names no option")
                labels = list(options)
                row.gold = [labels[position] for position in positions if 0 <= position < len(labels)]
                if not row.gold:
                    row.none_right = f"target {show(sample['target'])} is the position of none"
            if not row.gold and needs_gold and not row.none_right:
                row.unscored = "the target names no option"
            row.likelihoods = [_to_likelihood(asked, at, text) for at, text in enumerate(texts)]
        if any(map(is_nan, (*asked.logprobs, *asked.alone))):
            row.unscored = "a log-probability is NaN"
            row.likelihoods = ()

    def _read_golds(self, sample: Mapping[str, Any]) -> Sequence[str] | None:
        """Return the accepted texts of a generated answer; None where the task has no target for the row."""
        if self._gold_kind is not None:
            return self._gold_kind.read(find_value(sample["doc"], self.gold_key))
        if self._doc_to_choice is not None:
            return read_choice(sample, self._doc_to_choice)
        return read_texts_of_target(sample)


def _to_likelihood(asked: Asked, at: int, text: str) -> Likelihood:
    made: Likelihood = {"text": text, "logprob": asked.logprobs[at], "greedy": asked.greedy[at]}
    if asked.alone:
        made["alone"] = asked.alone[at]
    return made


def _label_options(texts: Sequence[str], doc: Any, *, has_contexts: bool) -> dict[str, str]:
    """Return label to text. Options that are labels themselves ("A", "B") have the texts of `doc.choices`."""
    stripped = [text.strip() for text in texts]
    if not has_contexts and _are_labels(stripped):
        choices = doc.get("choices") if isinstance(doc, dict) else None
        if isinstance(choices, dict):
            choices = choices.get("text")
        if isinstance(choices, list) and len(choices) == len(texts) and all(isinstance(one, str) for one in choices):
            return dict(zip(stripped, choices, strict=True))
        return dict(zip(stripped, texts, strict=True))
    return to_options(texts, or_numbers=True)


def _are_labels(texts: Sequence[str]) -> bool:
    """Whether options are the first of A, B, ... or 1, 2, ..., brackets and points aside."""
    if len(texts[0]) > 4:  # nearly all options are texts
        return False
    bare = [match[1] if (match := _BARE.fullmatch(text)) else "" for text in texts]
    return any(tuple(bare) == sequence[: len(bare)] for sequence in _SEQUENCES)
