"""The profile of a samples file: which lines belong to one question, what holds for all of them; and its rows.

A file has one line for each question and filter, all of the first filter first. So a question's scores are complete
only at the end of the file, and how targets are read is decided over all lines (`golds`). Lines are kept until then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
_FILTERED = "\0filtered"
"""The key of a row's data under which stands what its line's filter made, until the row is complete."""
_SEQUENCES = (tuple(ascii_uppercase), tuple(ascii_lowercase), tuple(str(number) for number in range(1, 100)))
_BARE = re.compile(r"\(?([A-Za-z0-9]+)[).]?")


class Profile:
    """What holds for all lines of a file."""

    def __init__(
        self,
        path: Path,
        report: Report,
        gold: str | None,
        gold_kind: Kind | None,
        index_base: int | None,
        by: Sequence[str] = (),
    ) -> None:
        """Read all lines; `gold` and the like are arguments of the run entry, `by` names keys of `doc` that rows keep.

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
        self._by = by
        self._rows = RowStore(Row, KEPT_ROWS)
        """What each line says. That of a question's first line is the row, with its `target` as it can be read."""
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
                self._join(sample, number)
            except RowError as wrong:
                raise self._error(wrong, number) from None
        self._rows.finish()
        raise_for(problems.finish())
        self.digest = lines.digest
        if not self._keys:
            raise self._error(RowError("there are no samples"))
        effective = self.report.effective
        if effective is not None and len(self) > effective:
            message = f"{len(self)} questions, and the results file says {effective}: not of one run"
            raise self._error(RowError(message, "results=none reads the samples alone"))

    def _join(self, sample: dict[str, Any], number: int) -> None:
        """Add a line to its question."""
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
            self._first.append(len(self._rows))
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
            return
        filtered[question] = len(self._rows)
        for name, score in scores.items():
            self.scores.setdefault(name, {})[question] = score
        made = sample["filtered_resps"]
        self.invalid[chosen] += bool(made) and is_invalid(made[0])
        row = Row(line=number, id=doc_id, question="", data={_FILTERED: made})
        if is_first:
            self._see(sample, row)
        self._rows.add(row)

    def _see(self, sample: dict[str, Any], row: Row) -> None:
        """Take the first line of a question: what was asked, what came back, and what may be right."""
        asked = read_asked(sample)
        report, declared = self.report, self.report.output_type
        if declared and asked.kind != declared and not (asked.kind == "loglikelihood" and len(asked.options) == 1):
            raise RowError(f"the line is of {asked.kind}, and the results file says {declared}")
        if not self.kind:
            self.kind, self.has_contexts = asked.kind, asked.has_contexts
        elif (self.kind, self.has_contexts) != (asked.kind, asked.has_contexts):
            raise RowError(f"the line is of {asked.kind}, and those before are of {self.kind}")
        self.is_chat |= isinstance(asked.question, list)
        row.question, doc = asked.question, sample["doc"]
        row.data = {
            "doc": doc,
            **{name: doc[name] for name in self._by if isinstance(doc, dict) and name in doc},
            **row.data,
        }
        if asked.kind == "generate_until":
            row.answers = list(map(Answer, read_texts(sample["resps"][0])))
            self.none_answers += sample["resps"][0] == ["None"]
            self._empty += not sample["target"].strip()
            if self.gold_key:
                self._golds.see(find_value(doc, self.gold_key), None, row.line)
            else:
                self._read_target(sample, row)
        elif asked.kind == "multiple_choice":
            texts = self._read_options(asked)
            self._with_delimiter += texts is not asked.options
            self._without_delimiter += texts is asked.options and not asked.has_contexts
            row.options = _label_options(texts, doc, has_contexts=asked.has_contexts)
            row.likelihoods = [_to_likelihood(asked, at, text) for at, text in enumerate(texts)]
            if self.gold_key:
                self._golds.see(find_value(doc, self.gold_key), row.options, row.line)
            elif not report.scores_itself:
                winner = max(range(len(asked.logprobs)), key=asked.logprobs.__getitem__)
                row.gold = self._targets.see(sample, texts, winner, row.line)
                row.none_right = f"target {show(sample['target'])} is the position of none"
        elif asked.kind == "loglikelihood":
            row.gold = asked.options
            row.likelihoods = [_to_likelihood(asked, 0, asked.options[0])]
        else:
            row.unscored = "it says how likely a text is: nothing that could be right or wrong"
        if any(map(is_nan, (*asked.logprobs, *asked.alone))):
            row.unscored, row.likelihoods = "a log-probability is NaN", ()

    def _read_target(self, sample: dict[str, Any], row: Row) -> None:
        """Read the accepted texts of a generated answer."""
        report = self.report
        is_choice = report.path is not None and report.doc_to_choice is not None and not report.scores_itself
        if report.path is None:
            require_compared(sample)
        golds = read_choice(sample, report.doc_to_choice) if is_choice else read_texts_of_target(sample)
        row.gold = golds or ()
        if golds == () and is_choice:
            target = show(sample["target"])
            row.unscored = f"target {target} is the position of no choice, and the harness took a last one"

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

    def rows(self, *, chosen: str | None, clean: Callable[[str], str], needs_gold: bool) -> Iterator[Row]:
        """Yield one row a question, in the order of the file. Raises DatasetError.

        `chosen`: the filter whose answers are scored; None: the answers as they came. `clean`: what golds and filtered
        answers go through; `needs_gold`: whether a row without a gold is excluded from the score.
        """
        filtered = self.filters.get(chosen or "", {})
        places = ((first, filtered.get(at, first)) for at, first in enumerate(self._first))
        lines = self._rows.read(place for both in places for place in both)
        for at in range(len(self)):
            row, made = next(lines), next(lines).data[_FILTERED]
            row.data = {name: value for name, value in row.data.items() if name != _FILTERED}
            row.source_scores = {name: values[at] for name, values in self.scores.items() if at in values}
            try:
                self._settle_gold(row, needs_gold=needs_gold)
                row.gold = tuple(map(clean, row.gold)) if self.kind == "generate_until" else row.gold
                if chosen is not None:
                    texts = read_texts(made[0] if made else None) if at in filtered else None
                    row.answers = None if texts is None else [Answer(clean(text)) for text in texts]
            except RowError as wrong:
                raise self._error(wrong, row.line) from None
            yield row

    def _settle_gold(self, row: Row, *, needs_gold: bool) -> None:
        """Say what is right of a row, all lines being seen."""
        none_right, row.none_right = row.none_right, ""
        if self._gold_kind is not None:
            row.gold = self._gold_kind.read(find_value(row.data["doc"], self.gold_key), row.options)
        elif self._reading is not None:
            positions = row.gold.get(self._reading)
            if positions is None:
                raise RowError("target names no option")
            labels = list(row.options or ())
            row.gold = [labels[position] for position in positions if 0 <= position < len(labels)]
            row.none_right = "" if row.gold else none_right
        is_text = self.kind == "generate_until"
        if is_text and not needs_gold:
            row.unscored = ""
        elif needs_gold and not (row.gold or row.unscored or row.none_right):
            row.unscored = "the row has no target" if is_text else "the target names no option"


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
