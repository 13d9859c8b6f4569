"""One task of a file or folder: what holds for all of its lines, what is chosen and scored, and its rows.

A file has one line for each question and filter, all of the first filter first. So a question's scores are complete
only at the end of the file, and how targets are read is decided over all lines (`Targets`). Lines are kept until then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from helm_ext import files
from helm_ext.errors import DatasetIntegrityError, Problems, count, raise_for, show
from helm_ext.evalset import Likelihood, Source, SourceScore, garbage
from helm_ext.files.store import RowStore
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.gold import GoldColumn, GoldKind, Kind, to_options
from helm_ext.formats.imported.json_log import without_nan
from helm_ext.formats.imported.row import Answer, Opened, Row, RowError, is_nan
from helm_ext.formats.lm_eval.report import Report, choose
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

_NONE = "none"
_CLOSE = 1e-9
_SHARES = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})
"""Metrics of the harness's that are 0 or 1 of a row, or between (repeats)."""
_SEQUENCES = (tuple(ascii_uppercase), tuple(ascii_lowercase), tuple(str(number) for number in range(1, 100)))
_BARE = re.compile(r"\(?([A-Za-z0-9]+)[).]?")


def open_report(
    path: str, task: str | None = None, time: str | None = None, results: str | None = None, **_: Any
) -> tuple[Path, str, Report]:
    """Return the file of samples that is meant, its task, and what the results file says of it.

    The arguments are those of the run entry. Raises DatasetError.
    """
    file = choose(Path(path), task, time)
    named = None if results == _NONE else Path(results) if results else file.results
    return file.path, file.task, Report(named, file.task)


def open_task(
    *,
    prediction: str | None = None,
    filter: str | None = None,  # noqa: A002 - the argument's name
    gold: str | None = None,
    gold_kind: Any = None,
    index_base: int | None = None,
    by: Sequence[str] = (),
    **where: Any,
) -> Opened:
    """Open the samples of one task; the arguments are those of the run entry. Raises DatasetError."""
    path, task, report = open_report(**where)

    def refuse(message: str, hint: str = "") -> DatasetIntegrityError:
        return DatasetIntegrityError.at(path, message, hint, code="samples")

    if prediction == "raw" and filter is not None:
        raise refuse("filter= chooses among filtered answers, and prediction=raw scores none of them")
    unread = {"index_base": index_base, "gold_kind": None if gold_kind in ("index", "text") else gold_kind}
    for name, said in unread.items():
        if not gold and said is not None:
            hint = "gold=doc.KEY names where they stand; of target, gold_kind=index or gold_kind=text says what it is"
            raise refuse(f"{name}={said} is about golds of doc, and none is named", hint)
    with garbage.paused():
        found = Task(path, report, gold, gold_kind, index_base, by)
    chosen = None
    if filter is not None or prediction == "filtered":
        if found.kind != "generate_until":
            hint = "leave prediction= and filter= out"
            raise refuse(f"a task of {found.kind} has no answers that were filtered", hint)
        chosen = choose_part(path, [*found.filters], filter, "filter")
    is_measured = bool(gold or chosen) or not (report.scores_itself or found.kind == "loglikelihood_rolling")
    source = Source(
        tool="lm_eval",
        version=report.tool_version,
        model=report.model,
        task=task,
        settings=report.settings,
        scores=_list_scores(found),
        counts=found.count(chosen),
        notes=list(_notes(found, chosen)),
    )
    if not gold and not report.is_unscored:
        source.main, source.main_reason = _choose_main(found, chosen, source)
    if not (is_measured or source.main):
        if found.kind == "loglikelihood_rolling":
            said = "loglikelihood_rolling measures how likely a text is: there is nothing that could be right or wrong"
            raise refuse(said, "results_*.json holds its perplexities: results=FILE names it")
        said = "the task's scores are made by code of its own (process_results), and none is a mean of its rows"
        raise refuse(said, "gold=doc.KEY names what is right, and we score")
    clean = report.make_cleaner() if chosen else str
    return Opened(
        path=str(path),
        source=source,
        rows=lambda: found.rows(chosen=chosen, clean=clean, needs_gold=is_measured),
        digest=sha256(f"{found.digest}{report.digest}".encode()).hexdigest() if report.digest else found.digest,
        adapter_spec={"method": "chat"} if found.is_chat else {},
        scoring=_choose_scoring(found),
        is_measured=is_measured,
    )


def _choose_main(found: Task, chosen: str | None, source: Source) -> tuple[str, str]:
    """Return the harness's score that is the main metric, and why: the first of its metrics, by the first filter.

    "" where the harness scored nothing.
    """
    report = found.report
    first = chosen or next(iter(report.filters), "") or next(iter(found.filters), _NONE)
    name = f"{next(iter(report.metrics), '')},{first}"
    reason = "the first of the task's metric_list" + (" and filter_list" if len(report.filters) > 1 else "")
    if name not in source.scores:  # nothing says which is first, or it made several scores of other names
        there = [name for name in found.names if name in source.scores]
        name = next((one for one in there if one.endswith(f",{first}")), next(iter(there), ""))
        reason = "the first in the file"
    if chosen is not None:
        reason = f"the first by filter {chosen}"
    return name, reason if len(source.scores) > 1 else ""


def _choose_scoring(found: Task) -> dict[str, Any]:
    """Return the keys of `scoring` that differ from the defaults."""
    if found.kind == "loglikelihood":
        return {"metrics": ["acc"]}
    if found.has_contexts:  # the lengths of the options are not known
        return {"metrics": ["acc", "brier_score"]}
    return {"main_metric": "exact_match"} if found.kind == "generate_until" and found.report.is_exact else {}


def _list_scores(found: Task) -> dict[str, SourceScore]:
    """Return the harness's scores: those that rows have, and what else its report has."""
    report, scores = found.report, {}
    for name in dict.fromkeys([*found.names, *report.aggregates]):
        metric, reported = name.rpartition(",")[0], report.aggregates.get(name)
        is_mean = name in found.scores
        if is_mean or reported is not None:
            scores[name] = SourceScore(
                reported,
                lower_is_better=report.is_lower_better(metric),
                no_mean="" if is_mean else report.explain(metric),
                bounds=(0.0, 1.0) if metric in _SHARES else None,
            )
    return scores


def _notes(found: Task, chosen: str | None) -> Iterator[str]:
    """Yield what a reader of the score must know, in words."""
    rows, report = len(found), found.report
    original, effective = report.original, report.effective
    if report.path is None:
        yield "no results file: the model, the task's settings and the scores that lm-eval reports are not known"
    if effective is not None and rows < effective:
        yield f"{rows:,} of {effective:,} rows are in the file: its scores are not those that lm-eval reports"
    if original is not None and effective is not None and effective < original:
        yield f"a limit: {effective:,} of the task's {original:,} rows were asked"
    if report.is_unscored:
        yield (
            "lm-eval scored nothing (--predict_only), and does not say how the task would: answers are compared with "
            "target here"
        )
    if report.scores_itself:
        yield (
            "the task's scores are made by code of its own (process_results): they are all there is; metrics=NAME or "
            "gold=doc.KEY scores the answers here"
        )
    for name, number in found.invalid.items():
        if number:
            yield f"filter {name} found nothing ([invalid]) in {number} of {count(rows, 'row')}"
    if found.none_answers:
        yield f'{count(found.none_answers, "answer")} "None": lm-eval writes so what a model did not give'
    if not report.is_unscored and (unknown := [name for name in found.kept if name not in report.aggregates]):
        yield f"no means of rows, and not averaged: {', '.join(unknown)}"
    if incomplete := sorted(name for name, lines in found.filters.items() if len(lines) < rows):
        yield f"not all rows have a line of filter {', '.join(incomplete)}"
    filters = [name for name in found.filters if name != _NONE]
    if chosen is not None and (others := [name for name in filters if name != chosen]):
        yield f"answers by filter {chosen} are scored: lm-eval's scores by {', '.join(others)} are of other answers"
    if filters and chosen is None and not report.scores_itself:
        named = " or filter=".join(filters)
        if report.is_unscored:
            yield f"whole completions are scored: filter={named} scores what a filter extracts"
        else:
            yield f"our scores are of whole completions, lm-eval's of what filters extract: filter={named} scores that"


class Task:
    """What holds for all lines of a file; its length is the number of questions."""

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
        self._path, self.report, self._by = path, report, by
        self._gold_key = gold.removeprefix("doc.") if gold else ""
        """The key of `doc` where golds stand; "" where `target` is the gold."""
        self.kind = ""
        self.has_contexts = self.is_chat = False
        self.lines = self.duplicates = 0
        self.none_answers = 0
        """Answers that read "None"."""
        self.invalid: Counter[str] = Counter()
        """Lines on which a filter found nothing, by filter."""
        self.filters: dict[str, dict[int, int]] = {}
        """By filter, in the order of the file: of each question the place of what it made of the answer."""
        self.scores: dict[str, dict[int, float | None]] = {}
        """The harness's scores that are numbers, by `metric,filter` and question."""
        self.kept: list[str] = []
        """Its scores that are no numbers, or whose report is no mean."""
        self._rows = RowStore(Row, KEPT_ROWS)
        """The row of each question, with its `target` as it can be read."""
        self._made = RowStore(list[Any], KEPT_ROWS)
        """Of each line, what its filter made of the answers."""
        self._numbers: dict[int | str, int] = {}
        """The number of each question, by `doc_id`."""
        self._keys: list[int] = []
        """By question: equal in all its lines, a hash."""
        self._targets = Targets()
        said = {"gold_kind": gold_kind, "index_base": index_base} if gold else {}
        self._golds = GoldColumn(allow_hidden=True, path=str(path), name=f"doc.{gold}", **said)  # type: ignore[arg-type]
        self._with_delimiter = self._without_delimiter = self._empty = 0
        self._read()
        self._gold: GoldKind | Reading | None = self._decide_gold(gold_kind)
        """How the values of `gold=` are read, or targets of multiple-choice lines; None for targets that are texts."""
        self.names = list(self.scores)
        """All of the harness's scores, in the order of the file."""
        self._compare_scores()

    def __len__(self) -> int:
        """Return how many questions there are."""
        return len(self._keys)

    def count(self, chosen: str | None) -> dict[str, int]:
        """Return what is counted of the file; `chosen`: the filter whose answers are scored."""
        counts = {"lines": self.lines} | ({"duplicates": self.duplicates} if self.duplicates else {})
        filters = [chosen] if chosen else [*self.filters]
        for name in filters:  # rows on which it found nothing
            if self.invalid[name]:
                counts["unmapped" if len(filters) == 1 else f"unmapped by {name}"] = self.invalid[name]
        return counts

    def _read(self) -> None:
        problems = Problems(str(self._path))
        lines = open_samples(self._path, self.report.filters, problems)
        for number, sample, _ in lines:
            if problems.errors:
                break
            self.lines += 1
            try:
                self._join(sample, number)
            except RowError as wrong:
                raise self._error(wrong, number) from None
        self._rows.finish()
        self._made.finish()
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
        doc_id, chosen, made = sample["doc_id"], sample["filter"], sample["filtered_resps"]
        resps = files.canonical_json(sample["resps"])
        key = hash((sample["doc_hash"], sample["prompt_hash"], sample["target_hash"], resps))
        question = self._numbers.setdefault(doc_id, len(self._keys))
        if question == len(self._keys):
            sample["doc"] = without_nan(sample["doc"])  # or Infinity is the gold "inf"
            self._keys.append(key)
            self._rows.add(self._to_row(sample, number))
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
        filtered[question] = len(self._made)
        self._made.add(made)
        self.invalid[chosen] += bool(made) and is_invalid(made[0])
        for name, score in scores.items():
            self.scores.setdefault(name, {})[question] = score

    def _to_row(self, sample: dict[str, Any], number: int) -> Row:
        """Return the first line of a question as a row: what was asked, what came back, and what may be right."""
        asked, doc, target = read_asked(sample), sample["doc"], show(sample["target"])
        report, declared = self.report, self.report.output_type
        if declared and asked.kind != declared and not (asked.kind == "loglikelihood" and len(asked.options) == 1):
            raise RowError(f"the line is of {asked.kind}, and the results file says {declared}")
        if not self.kind:
            self.kind, self.has_contexts = asked.kind, asked.has_contexts
        elif (self.kind, self.has_contexts) != (asked.kind, asked.has_contexts):
            raise RowError(f"the line is of {asked.kind}, and those before are of {self.kind}")
        self.is_chat |= isinstance(asked.question, list)
        named = {name: doc[name] for name in self._by if isinstance(doc, dict) and name in doc}
        row = Row(line=number, id=sample["doc_id"], question=asked.question, data={"doc": doc, **named})
        if asked.kind == "generate_until":
            row.answers = list(map(Answer, read_texts(sample["resps"][0])))
            self.none_answers += sample["resps"][0] == ["None"]
            self._empty += not sample["target"].strip()
            if not self._gold_key:
                self._read_target(sample, row)
        elif asked.kind == "multiple_choice":
            texts = self._read_options(asked)
            self._with_delimiter += texts is not asked.options
            self._without_delimiter += texts is asked.options and not asked.has_contexts
            row.options = _label_options(texts, doc, has_contexts=asked.has_contexts)
            row.likelihoods = [_to_likelihood(asked, at, text) for at, text in enumerate(texts)]
            if not (self._gold_key or report.scores_itself):
                winner = max(range(len(asked.logprobs)), key=asked.logprobs.__getitem__)
                row.gold = self._targets.see(sample, texts, winner, number)
                row.none_right = f"target {target} is the position of none"
        elif asked.kind == "loglikelihood":
            row.gold = asked.options
            row.likelihoods = [_to_likelihood(asked, 0, asked.options[0])]
        else:
            row.unscored = "it says how likely a text is: nothing that could be right or wrong"
        if self._gold_key and (row.answers or row.options):
            self._golds.see(find_value(doc, self._gold_key), row.options, number)
        if any(map(is_nan, (*asked.logprobs, *asked.alone))):
            row.unscored, row.likelihoods = "a log-probability is NaN", ()
        return row

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

    def _decide_gold(self, gold_kind: Kind | None) -> GoldKind | Reading | None:
        """Decide how golds are read. Raises DatasetError where that cannot be told."""
        if self._with_delimiter and self._without_delimiter:
            rows = f"{self._with_delimiter} rows and not of {self._without_delimiter}"
            message = f"{show(self.report.delimiter)} stands before the options of {rows}"
            raise self._error(RowError(message, "is the results file that of another run? results=FILE names it"))
        if self._gold_key:
            return self._golds.decide()
        if self.kind == "multiple_choice" and not self.report.scores_itself:
            try:
                return gold_kind if gold_kind in ("index", "text") else self._targets.decide()
            except RowError as wrong:
                raise self._error(wrong) from None
        if self.kind == "generate_until" and self._empty == len(self):
            message = "no gold: every target is empty, so nothing can be scored"
            raise self._error(RowError(message, "gold=doc.KEY names where the answers stand"))
        return None

    def _compare_scores(self) -> None:
        """Tell the harness's scores that are means of numbers from the others, and compare them with its report."""
        report = self.report
        for name, given in list(self.scores.items()):
            numbers = [value for value in given.values() if value is not None]
            is_mean = report.is_mean(name.rpartition(",")[0])
            if numbers and not any(map(is_nan, numbers)) and is_mean is not False:
                mean, reported = sum(numbers) / len(numbers), report.aggregates.get(name)
                is_whole = report.effective is None or len(given) == report.effective
                if reported is None or not is_whole or abs(mean - reported) <= _CLOSE:
                    continue
                if is_mean:
                    message = (
                        f"the mean of {name} over the {count(len(numbers), 'row')} is {mean:.10g}, and the results "
                        f"file says {reported:.10g}: they are not of one run, or were edited"
                    )
                    raise self._error(RowError(message, "results=none reads the samples alone"))
            self.kept.append(name)  # also what is made by a function of the task's
            del self.scores[name]

    def _error(self, wrong: RowError, line: int | None = None) -> DatasetIntegrityError:
        return DatasetIntegrityError.at(self._path, str(wrong), wrong.hint, wrong.line or line, code="samples")

    def rows(self, *, chosen: str | None, clean: Callable[[str], str], needs_gold: bool) -> Iterator[Row]:
        """Yield one row a question, in the order of the file. Raises DatasetError.

        `chosen`: the filter whose answers are scored; None: the answers as they came. `clean`: what golds and filtered
        answers go through; `needs_gold`: whether a row without a gold is excluded from the score.
        """
        filtered = self.filters.get(chosen or "", {})
        made = self._made.read(filtered[at] for at in range(len(self)) if at in filtered)
        for at, row in enumerate(self._rows.read(range(len(self)))):
            row.source_scores = {name: values[at] for name, values in self.scores.items() if at in values}
            try:
                self._settle_gold(row, needs_gold=needs_gold)
                if self.kind == "generate_until":
                    row.gold = tuple(map(clean, row.gold))
                if chosen is not None:
                    texts = read_texts((next(made) or [None])[0]) if at in filtered else None
                    row.answers = None if texts is None else [Answer(clean(text)) for text in texts]
            except RowError as wrong:
                raise self._error(wrong, row.line) from None
            yield row

    def _settle_gold(self, row: Row, *, needs_gold: bool) -> None:
        """Say what is right of a row, all lines being seen."""
        none_right, row.none_right = row.none_right, ""
        if isinstance(self._gold, GoldKind):
            row.gold = self._gold.read(find_value(row.data["doc"], self._gold_key), row.options)
        elif self._gold is not None:
            positions = row.gold.get(self._gold)
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
