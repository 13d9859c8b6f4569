"""All lines of a samples file once: which belong to one question, and what holds for all of them.

A file has one line for each question and filter, all of the first filter first. So a question's scores are complete
only at the end of the file, and how targets are read is decided over all lines (`golds`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helm_ext import files
from helm_ext.errors import DatasetIntegrityError, count, show
from helm_ext.evalset import garbage
from helm_ext.formats.imported.gold import GoldKind, Kind
from helm_ext.formats.imported.gold_column import GoldColumn
from helm_ext.formats.lm_eval.choices import read_choice, require_compared
from helm_ext.formats.lm_eval.golds import Reading, TargetError, Targets, find_in
from helm_ext.formats.lm_eval.report import Report
from helm_ext.formats.lm_eval.requests import Asked, RequestError, read_asked
from helm_ext.formats.lm_eval.samples import is_invalid, metric_names, read_samples, to_score

__all__ = ["Entry", "Options", "Survey", "label_options", "survey"]

_CLOSE = 1e-9
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Options:
    """What the user said about a file."""

    filter: str | None = None
    """The filter whose answers are scored; None: the answers as they came."""
    gold: str | None = None
    gold_kind: Kind | None = None
    index_base: int | None = None


@dataclass(slots=True)
class Entry:
    """What is known of one question, from all its lines. There is one a question: what they share is one object."""

    line: int
    """The number of its first line."""
    key: int
    """Equal in all lines of one question: a hash."""
    names: tuple[str, ...] = ()
    values: tuple[float | None, ...] = ()
    filters: tuple[str, ...] = ()
    filtered: Any = None
    """What the chosen filter made of the answers."""

    @property
    def scores(self) -> dict[str, float | None]:
        """The harness's own scores, by `metric,filter`."""
        return dict(zip(self.names, self.values, strict=True))


@dataclass
class Survey:
    """What holds for all lines."""

    digest: str = ""
    kind: str = ""
    entries: dict[int | str, Entry] = field(default_factory=dict)
    lines: int = 0
    duplicates: int = 0
    invalid: Counter[str] = field(default_factory=Counter)
    """Lines on which a filter found nothing, by filter."""
    none_answers: int = 0
    """Answers that read "None"."""
    delimiter: str = ""
    """What stands before each option."""
    has_contexts: bool = False
    is_chat: bool = False
    reading: Reading | None = None
    """How targets of multiple-choice lines are read."""
    gold_kind: GoldKind | None = None
    """How the values of `gold=` are read."""
    doc_to_choice: Any = None
    """Of a task whose model writes texts: what `target` is a position of; None where it is a text."""
    score_names: list[str] = field(default_factory=list)
    """The harness's scores that are numbers."""
    names: list[str] = field(default_factory=list)
    """All of the harness's scores, in the order of the file."""
    kept: list[str] = field(default_factory=list)
    """Its scores that are no numbers, or whose report is no mean."""
    means: dict[str, float] = field(default_factory=dict)
    """Mean over the questions, by name."""
    _shared: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def share(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the first of equal ones."""
        return self._shared.setdefault(names, names)

    @property
    def filters(self) -> list[str]:
        """The names of the filters, in the order of the file."""
        return list(dict.fromkeys(name for found in self.count_filters() for name in found))

    def count_filters(self) -> Counter[tuple[str, ...]]:
        """Return how many questions have lines of which filters, in the order of the file."""
        return Counter(entry.filters for entry in self.entries.values())


def survey(path: Path, report: Report, options: Options) -> Survey:
    """Read all lines. Raises DatasetError for the first thing that cannot be right."""
    with garbage.paused():
        return _survey(path, report, options)


def _survey(path: Path, report: Report, options: Options) -> Survey:
    found = Survey()
    columns = _Columns(path, report, options)
    for number, sample in read_samples(path, report.filters):
        if number == 0:
            found.digest = sample["digest"]
            break
        found.lines += 1
        try:
            if _join(found, sample, options, number, path):
                columns.see(found, sample, number)
        except RequestError as wrong:
            raise DatasetIntegrityError.at(path, str(wrong), wrong.hint, number, code="samples") from None
    if not found.entries:
        raise DatasetIntegrityError.at(path, "there are no samples", code="samples")
    if report.effective is not None and len(found.entries) > report.effective:
        message = f"{len(found.entries)} questions, and the results file says {report.effective}: not of one run"
        raise DatasetIntegrityError.at(path, message, "results=none reads the samples alone", code="samples")
    columns.finish(found)
    _settle_scores(found, report, path)
    return found


def _join(found: Survey, sample: dict[str, Any], options: Options, number: int, path: Path) -> bool:
    """Add a line to its question; return whether it is the first of it."""
    doc_id, chosen = sample["doc_id"], sample["filter"]
    resps = files.canonical_json(sample["resps"])
    key = hash((sample["doc_hash"], sample["prompt_hash"], sample["target_hash"], resps))
    scores = {name: to_score(sample[metric]) for metric, name in metric_names(sample)}
    entry = found.entries.get(doc_id)
    if entry is None:
        found.entries[doc_id] = entry = Entry(number, key)
    elif entry.key != key:
        raise DatasetIntegrityError.at(
            path,
            f"another answer to doc_id {show(doc_id)} than before: two runs were appended to one file",
            "lm-eval opens its files for append; split the file, or run it again into an empty folder",
            number,
            code="samples",
        )
    if chosen in entry.filters:
        known = entry.scores
        if {name: known.get(name) for name in scores} != scores and not any(map(_is_nan, scores.values())):
            raise DatasetIntegrityError.at(
                path,
                f"doc_id {show(doc_id)} is scored twice by filter {show(chosen)}, differently",
                line=number,
                code="samples",
            )
        found.duplicates += 1
        return False
    is_first = not entry.filters
    entry.filters = found.share((*entry.filters, chosen))
    scores = entry.scores | scores
    entry.names, entry.values = found.share(tuple(scores)), tuple(scores.values())
    filtered = sample["filtered_resps"][0] if sample["filtered_resps"] else None
    if is_invalid(filtered):
        found.invalid[chosen] += 1
    if chosen == options.filter:
        entry.filtered = filtered
    return is_first


class _Columns:
    """What is decided over all questions: kind, delimiter, how golds are read."""

    def __init__(self, path: Path, report: Report, options: Options) -> None:
        self.path = path
        self.report = report
        self.options = options
        self.targets = Targets()
        self.golds = (
            GoldColumn(
                gold_kind=options.gold_kind, index_base=options.index_base, allow_hidden=True, path=str(path),
                name=f"doc.{options.gold}",
            )
            if options.gold
            else None
        )  # fmt: skip
        self.with_delimiter = self.without_delimiter = 0
        self.empty = 0

    def see(self, found: Survey, sample: dict[str, Any], number: int) -> None:
        """Take the first line of a question."""
        asked = read_asked(sample)
        declared = self.report.output_type
        if declared and asked.kind != declared and not (asked.kind == "loglikelihood" and len(asked.options) == 1):
            raise RequestError(f"the line is of {asked.kind}, and the results file says {declared}")
        if not found.kind:
            found.kind, found.has_contexts = asked.kind, asked.has_contexts
        elif (found.kind, found.has_contexts) != (asked.kind, asked.has_contexts):
            raise RequestError(f"the line is of {asked.kind}, and those before are of {found.kind}")
        if isinstance(asked.question, list):
            found.is_chat = True
        if asked.kind == "generate_until":
            found.none_answers += sample["resps"][0] == ["None"]
            self.empty += not sample["target"].strip()
            if self.golds is not None:
                self.golds.see(find_in(sample["doc"], self._key()), None, number)
            elif self.report.doc_to_choice is None:
                require_compared(sample)
            elif not self.report.scores_itself:
                found.doc_to_choice = self.report.doc_to_choice
                read_choice(sample, found.doc_to_choice)
        elif asked.kind == "multiple_choice":
            texts = self._cut(asked)
            winner = max(range(len(asked.logprobs)), key=asked.logprobs.__getitem__)
            if self.golds is not None:
                labels = label_options(texts, sample["doc"], has_contexts=asked.has_contexts)
                self.golds.see(find_in(sample["doc"], self._key()), labels, number)
            elif not self.report.scores_itself:
                self.targets.see(sample, texts, winner, number)

    def _key(self) -> str:
        return (self.options.gold or "").removeprefix("doc.")

    def _cut(self, asked: Asked) -> list[str]:
        """Return the options' texts without what stands before them, and count where it does."""
        if asked.has_contexts:
            return list(asked.options)
        delimiter = self._delimiter
        if delimiter and all(option.startswith(delimiter) for option in asked.options):
            self.with_delimiter += 1
            return [option[len(delimiter) :] for option in asked.options]
        self.without_delimiter += 1
        return list(asked.options)

    @property
    def _delimiter(self) -> str:
        return " " if self.report.delimiter is None else self.report.delimiter

    def finish(self, found: Survey) -> None:
        """Decide. Raises DatasetError."""
        if self.with_delimiter and self.without_delimiter:
            raise DatasetIntegrityError.at(
                self.path,
                f"{show(self._delimiter)} stands before the options of {self.with_delimiter} rows and not of "
                f"{self.without_delimiter}",
                "is the results file that of another run? results=FILE names it",
                code="samples",
            )
        found.delimiter = self._delimiter if self.with_delimiter else ""
        if self.golds is not None:
            found.gold_kind = self.golds.decide()
        elif found.kind == "multiple_choice" and not self.report.scores_itself:
            try:
                found.reading = self._choose()
            except TargetError as wrong:
                raise DatasetIntegrityError.at(self.path, str(wrong), wrong.hint, wrong.line, code="samples") from None
        elif found.kind == "generate_until" and self.empty == len(found.entries):
            raise DatasetIntegrityError.at(
                self.path,
                "no gold: every target is empty, so nothing can be scored",
                "gold=doc.KEY names where the answers stand",
                code="samples",
            )

    def _choose(self) -> Reading:
        kind = self.options.gold_kind
        if kind in ("index", "text"):
            return kind
        return self.targets.decide()


def _settle_scores(found: Survey, report: Report, path: Path) -> None:
    """Tell the harness's scores that are means of numbers from the others, and compare the means with its report."""
    values: dict[str, list[float | None]] = {}
    for entry in found.entries.values():
        for name, value in entry.scores.items():
            values.setdefault(name, []).append(value)
    found.names = list(values)
    for name, given in values.items():
        numbers = [value for value in given if value is not None]
        metric = name.rpartition(",")[0]
        is_mean = report.is_mean(metric)
        if not numbers or any(map(_is_nan, numbers)) or is_mean is False:
            found.kept.append(name)
            continue
        mean = sum(numbers) / len(numbers)
        reported = report.aggregates.get(name)
        is_whole = report.effective is None or len(given) == report.effective
        differs = reported is not None and is_whole and abs(mean - reported) > _CLOSE
        if differs and is_mean is None:  # made by a function of the task's: it is no mean
            found.kept.append(name)
            continue
        if differs:
            raise DatasetIntegrityError.at(
                path,
                f"the mean of {name} over the {count(len(numbers), 'row')} is {mean:.10g}, and the results "
                f"file says {reported:.10g}: they are not of one run, or were edited",
                "results=none reads the samples alone",
                code="samples",
            )
        found.score_names.append(name)
        found.means[name] = mean
    dropped = set(found.kept)
    for entry in found.entries.values() if dropped else ():
        scores = {name: value for name, value in entry.scores.items() if name not in dropped}
        entry.names, entry.values = found.share(tuple(scores)), tuple(scores.values())


def label_options(texts: Sequence[str], doc: Any, *, has_contexts: bool = False) -> dict[str, str]:
    """Return label to text. Options that are labels themselves ("A", "B") have the texts of `doc.choices`."""
    stripped = [text.strip() for text in texts]
    if not has_contexts and _are_labels(stripped):
        choices = doc.get("choices") if isinstance(doc, dict) else None
        if isinstance(choices, dict):
            choices = choices.get("text")
        if isinstance(choices, list) and len(choices) == len(texts) and all(isinstance(one, str) for one in choices):
            return dict(zip(stripped, choices, strict=True))
        return dict(zip(stripped, texts, strict=True))
    labels = _LETTERS if len(texts) <= len(_LETTERS) else [str(number + 1) for number in range(len(texts))]
    return dict(zip(labels, texts, strict=False))


_SEQUENCES = (tuple(_LETTERS), tuple(_LETTERS.lower()), tuple(str(number) for number in range(1, 100)))
_BARE = re.compile(r"\(?([A-Za-z0-9]+)[).]?")


def _are_labels(texts: Sequence[str]) -> bool:
    """Whether options are the first of A, B, ... or 1, 2, ..., brackets and points aside."""
    if len(texts[0]) > 4:  # nearly all options are texts
        return False
    bare = [match[1] if (match := _BARE.fullmatch(text)) else "" for text in texts]
    return any(tuple(bare) == sequence[: len(bare)] for sequence in _SEQUENCES)


def _is_nan(value: float | None) -> bool:
    return value is not None and value != value  # noqa: PLR0124


def to_counts(found: Survey, chosen: str | None) -> Mapping[str, int]:
    """Return what is counted beside the rows: lines, and on how many rows a filter found nothing ("unmapped")."""
    filters = [chosen] if chosen else found.filters
    counts = {"lines": found.lines, "duplicates": found.duplicates}
    for name in filters:
        counts["unmapped" if len(filters) == 1 else f"unmapped by {name}"] = found.invalid[name]
    return {name: number for name, number in counts.items() if number or name == "lines"}
