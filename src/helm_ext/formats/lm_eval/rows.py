"""Lines of a samples file, read again, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetIntegrityError, show
from helm_ext.evalset import Likelihood
from helm_ext.formats.imported.row import Answer, Row
from helm_ext.formats.lm_eval.choices import read_choice
from helm_ext.formats.lm_eval.exact_match import Cleaner
from helm_ext.formats.lm_eval.golds import READINGS, find_in, read_texts_of_target
from helm_ext.formats.lm_eval.requests import Asked, RequestError, read_asked, read_texts
from helm_ext.formats.lm_eval.samples import read_again
from helm_ext.formats.lm_eval.survey import Entry, Options, Survey, label_options

__all__ = ["RowMaker"]


class RowMaker:
    """Makes the rows of one file, which was surveyed."""

    def __init__(
        self,
        path: Path,
        found: Survey,
        options: Options,
        *,
        by: Sequence[str],
        cleaner: Cleaner | None,
        needs_gold: bool,
    ) -> None:
        """`by`: keys of `doc` that rows keep under their own names; `cleaner`: what golds and filtered answers go
        through; `needs_gold`: whether a row without a gold is left out of the score.
        """
        self.path = path
        self.found = found
        self.options = options
        self.by = by
        self.cleaner = cleaner
        self.needs_gold = needs_gold

    def rows(self) -> Iterator[Row]:
        """Yield one row a question, in the order of the file. Raises DatasetError."""
        for number, sample in read_again(self.path, self.found.digest):
            entry = self.found.entries.get(sample["doc_id"])
            if entry is None or entry.line != number:
                continue
            try:
                row = self._make(sample, number, entry)
            except RequestError as wrong:
                raise DatasetIntegrityError.at(self.path, str(wrong), wrong.hint, number, code="samples") from None
            yield row

    def _make(self, sample: Mapping[str, Any], number: int, entry: Entry) -> Row:
        asked = read_asked(sample)
        row = Row(
            line=number,
            id=sample["doc_id"],
            question=asked.question,
            source_scores=entry.scores,
            data=self._keep(sample["doc"]),
        )
        if asked.kind == "generate_until":
            self._add_texts(row, sample, entry)
        elif asked.kind == "loglikelihood_rolling":
            row.unscored = "it says how likely a text is: nothing that could be right or wrong"
        elif asked.kind == "loglikelihood":
            row.gold = asked.options
            row.likelihoods = [
                {"text": asked.options[0], "logprob": asked.logprobs[0], "greedy": asked.greedy[0]},
            ]
        else:
            self._add_options(row, sample, asked)
        if any(logprob != logprob for logprob in (*asked.logprobs, *asked.alone)):  # noqa: PLR0124 - NaN
            row.unscored = "a log-probability is NaN"
            row.likelihoods = ()
        return row

    def _keep(self, doc: Any) -> dict[str, Any]:
        kept = {"doc": doc}
        if self.by and isinstance(doc, dict):
            kept |= {name: doc[name] for name in self.by if name in doc}
        return kept

    def _add_texts(self, row: Row, sample: Mapping[str, Any], entry: Entry) -> None:
        if self.found.gold_kind is not None:
            golds: Sequence[str] | None = self._read_golds(sample, None)
        elif self.found.doc_to_choice is not None:
            golds = read_choice(sample, self.found.doc_to_choice)
        else:
            golds = read_texts_of_target(sample)
        if not golds and self.needs_gold:
            is_choice = golds is not None and self.found.doc_to_choice is not None
            row.unscored = (
                f"target {show(sample['target'])} is the position of no choice, and the harness took a last one"
                if is_choice
                else "the row has no target"
            )
        clean = self.cleaner
        row.gold = tuple(golds or ()) if clean is None else tuple(clean(gold) for gold in golds or ())
        if self.options.filter is None:
            row.answers = [Answer(text) for text in read_texts(sample["resps"][0])]
        elif self.options.filter in entry.filters:
            texts = read_texts(entry.filtered)
            row.answers = [Answer(text if clean is None else clean(text)) for text in texts]

    def _add_options(self, row: Row, sample: Mapping[str, Any], asked: Asked) -> None:
        cut = 0 if asked.has_contexts else len(self.found.delimiter)
        texts = [option[cut:] for option in asked.options]
        row.options = options = label_options(texts, sample["doc"], has_contexts=asked.has_contexts)
        if self.found.gold_kind is not None:
            row.gold = self._read_golds(sample, options)
        elif self.found.reading is not None:
            positions = READINGS[self.found.reading](sample, texts)
            if positions is None:
                raise RequestError("target names no option")
            labels = list(options)
            row.gold = [labels[position] for position in positions if 0 <= position < len(labels)]
            if not row.gold:
                row.none_right = f"target {show(sample['target'])} is the position of none"
        if not row.gold and self.needs_gold and not row.none_right:
            row.unscored = "the target names no option"
        row.likelihoods = [_to_likelihood(text, *found) for text, found in zip(texts, _columns(asked), strict=True)]

    def _read_golds(self, sample: Mapping[str, Any], options: Mapping[str, str] | None) -> Sequence[str]:
        assert self.found.gold_kind is not None
        key = (self.options.gold or "").removeprefix("doc.")
        return self.found.gold_kind.read(find_in(sample["doc"], key), options)


def _columns(asked: Asked) -> Iterator[tuple[float, bool, float | None]]:
    alone: Sequence[float | None] = asked.alone or [None] * len(asked.logprobs)
    return zip(asked.logprobs, asked.greedy, alone, strict=True)


def _to_likelihood(text: str, logprob: float, greedy: bool, alone: float | None) -> Likelihood:
    if alone is None:
        return {"text": text, "logprob": logprob, "greedy": greedy}
    return {"text": text, "logprob": logprob, "greedy": greedy, "alone": alone}
