"""The questions of a profile, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_ext.errors import DatasetIntegrityError, show
from helm_ext.evalset import Likelihood
from helm_ext.formats.imported.row import Answer, Row
from helm_ext.formats.lm_eval.exact_match import Cleaner
from helm_ext.formats.lm_eval.golds import READINGS, find_in, read_choice, read_texts_of_target
from helm_ext.formats.lm_eval.profile import Profile, Question, label_options
from helm_ext.formats.lm_eval.requests import Asked, RequestError, read_asked, read_texts


class RowMaker:
    """Makes the rows of one file."""

    def __init__(
        self, found: Profile, chosen: str | None, *, by: Sequence[str], cleaner: Cleaner | None, needs_gold: bool
    ) -> None:
        """`chosen`: the filter whose answers are scored; None: the answers as they came. `by`: keys of `doc` that rows
        keep under their own names; `cleaner`: what golds and filtered answers go through; `needs_gold`: whether a row
        without a gold is excluded from the score.
        """
        self.found = found
        self.chosen = chosen
        self.by = by
        self.cleaner = cleaner
        self.needs_gold = needs_gold

    def rows(self) -> Iterator[Row]:
        """Yield one row a question, in the order of the file. Raises DatasetError."""
        for question in self.found.questions(self.chosen):
            try:
                row = self._make(question)
            except RequestError as wrong:
                raise DatasetIntegrityError.at(
                    self.found.path, str(wrong), wrong.hint, question.line, code="samples"
                ) from None
            yield row

    def _make(self, question: Question) -> Row:
        sample = question.sample
        asked = read_asked(sample)
        row = Row(
            line=question.line,
            id=sample["doc_id"],
            question=asked.question,
            source_scores=question.scores,
            data=self._keep(sample["doc"]),
        )
        if asked.kind == "generate_until":
            self._add_texts(row, question)
        elif asked.kind == "loglikelihood_rolling":
            row.unscored = "it says how likely a text is: nothing that could be right or wrong"
        elif asked.kind == "loglikelihood":
            row.gold = asked.options
            row.likelihoods = [_to_likelihood(asked, 0, asked.options[0])]
        else:
            self._add_options(row, sample, asked)
        if any(logprob != logprob for logprob in (*asked.logprobs, *asked.alone)):  # noqa: PLR0124 - NaN
            row.unscored = "a log-probability is NaN"
            row.likelihoods = ()
        return row

    def _keep(self, doc: Any) -> dict[str, Any]:
        by = self.by if isinstance(doc, dict) else ()
        return {"doc": doc, **{name: doc[name] for name in by if name in doc}}

    def _add_texts(self, row: Row, question: Question) -> None:
        sample, clean = question.sample, self.cleaner or str
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
        row.gold = tuple(map(clean, golds or ()))
        if self.chosen is None:
            row.answers = [Answer(text) for text in read_texts(sample["resps"][0])]
        elif question.filtered is not None:
            filtered = question.filtered[0] if question.filtered else None
            row.answers = [Answer(clean(text)) for text in read_texts(filtered)]

    def _add_options(self, row: Row, sample: Mapping[str, Any], asked: Asked) -> None:
        texts = self.found.cut(asked.options, has_contexts=asked.has_contexts)
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
        row.likelihoods = [_to_likelihood(asked, at, text) for at, text in enumerate(texts)]

    def _read_golds(self, sample: Mapping[str, Any], options: Mapping[str, str] | None) -> Sequence[str]:
        assert self.found.gold_kind is not None
        return self.found.gold_kind.read(find_in(sample["doc"], self.found.gold_key), options)


def _to_likelihood(asked: Asked, at: int, text: str) -> Likelihood:
    made: Likelihood = {"text": text, "logprob": asked.logprobs[at], "greedy": asked.greedy[at]}
    if asked.alone:
        made["alone"] = asked.alone[at]
    return made
