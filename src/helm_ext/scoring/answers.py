"""What a row asks for, and what a completion answers: as texts that HELM's metrics can compare.

| the row                         | the right answer                     | what is compared                           |
|---------------------------------|--------------------------------------|--------------------------------------------|
| free text                       | any correct reference                | the texts                                  |
| free text, `multi_label`        | all correct references, ", " between | the texts; their order does not count      |
| options                         | any correct option                   | which option was chosen                    |
| options, `multi_label` or list  | all correct options                  | which options were chosen, in any order    |
| options, `label_reading: exact` | any correct option                   | the chosen option's text, as HELM does     |

With `output_format: list`, the list metrics compare the lists segment by segment; of free text with `multi_label` the
right list is that of all correct references, of options likewise, in their order.

Options are compared as such, not by their texts: HELM's quasi-exact match ignores punctuation and articles ("-5" is "5"
to it), and "New York City" begins with "New York". So a right choice becomes one token, a number of four digits, any
other choice another one: it is then right or wrong in each of HELM's metrics alike, also in `f1_score`. (Those that
count sequences of words, `rouge_2` and `bleu_4`, are 0 for one word, as they are for any text of one word.) In lists
each option has a token of its own. Options whose texts differ in white space around them only are one option, as they
are for HELM. Nothing read is "", which is wrong in every metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Instance

from helm_ext import parsing
from helm_ext.evalset import Scoring, row_extra
from helm_ext.fast.fast_scores import normalize_text

__all__ = ["Answer", "AnswerReader", "Question", "get_options"]


_RIGHT = "1000"
"""Stands for a right choice: a correct option, or exactly the correct options where all of them are asked for."""
_WRONG = "1001"
"""Stands for any other choice."""
_FIRST_OPTION = 2000
"""Stands for the first option, in lists; all tokens are of one length, so that none begins with another."""


class Answer(NamedTuple):
    """What a completion of one row means."""

    text: str
    """The option's text for a multiple-choice row (several are joined), else the extracted and cleaned text."""
    labels: tuple[str, ...] = ()
    """The labels that were read, for multiple-choice rows."""
    options: tuple[str, ...] = ()
    """The texts of the options that were read, for multiple-choice rows; for lists with "" for what was not read."""

    @property
    def label(self) -> str | None:
        """The first label that was read; None when none was."""
        return self.labels[0] if self.labels else None


class AnswerReader:
    """Reads completions as answers, the same way for all rows of a run.

    `pattern` and `multi_label` are AdapterSpec's: `output_mapping_pattern`, which overrides the reading of labels, and
    whether all correct options are asked for.
    """

    def __init__(self, scoring: Scoring, pattern: str | None = None, *, multi_label: bool = False) -> None:
        self.scoring = scoring
        self.pattern = pattern
        self.multi_label = multi_label
        self.is_list = scoring.output_format == "list"
        self.is_exact = scoring.label_reading == "exact"
        self._cleans = scoring.extract is not None or scoring.strip or scoring.lower
        self._takes_labels = not pattern and not self.is_list
        """A text that is nothing but a label is read as that label in any case."""

    def read(self, text: str, options: Mapping[str, str] | None) -> Answer:
        """Return what a completion's text answers; `options` are those of its row, see `get_options`."""
        scoring = self.scoring
        if self._cleans:
            text = parsing.clean(text, extract=scoring.extract, strip=scoring.strip, lower=scoring.lower)
        if options is None:
            return Answer(text)
        if self._takes_labels:
            label = text.strip()
            if label in options:
                option = options[label]
                return Answer(option, (label,), (option,))
        labels = parsing.read_choice(
            text, options, self.pattern, multi_label=self.multi_label, is_list=self.is_list, is_exact=self.is_exact
        )
        texts = tuple(["" if label is None else options[label] for label in labels])
        joined = ("; " if self.is_list else ", ").join(texts)
        return Answer(joined, tuple([label for label in labels if label is not None]), texts)


def get_options(state: RequestState) -> dict[str, str] | None:
    """Return label to option text, or None for rows whose completions are not read as labels."""
    return row_extra(state.instance).get("labels") or state.output_mapping or None


class Question:
    """The right answer of one row. The rules are at the top of this module."""

    __slots__ = ("by_identity", "instance", "is_list", "options", "takes_all", "texts")

    def __init__(self, instance: Instance, options: Mapping[str, str] | None, reader: AnswerReader) -> None:
        self.instance = instance
        self.options = options
        self.is_list = reader.is_list
        self.by_identity = options is not None and not reader.is_exact
        """Options are compared as such, not by their texts."""
        self.takes_all = not reader.is_exact and (reader.multi_label or (self.by_identity and reader.is_list))
        """All correct references are asked for rather than any."""
        self.texts = [reference.output.text for reference in instance.references if CORRECT_TAG in reference.tags]
        """The correct references."""

    @property
    def distinct(self) -> list[str]:
        """The correct references that differ in more than white space around them."""
        return list(dict.fromkeys([text.strip() for text in self.texts]))

    @property
    def golds(self) -> Sequence[str]:
        """The texts any of which is right."""
        if not self.texts:
            return ()
        if self.by_identity:
            return (_RIGHT,)
        return (self._joined,) if self.takes_all else self.texts

    @property
    def gold_lists(self) -> list[list[str]]:
        """The lists any of which is right (`output_format: list`)."""
        if self.by_identity:
            tokens = self._tokens()
            return [[tokens[text] for text in self.distinct]]
        lists = [parsing.split_segments(text) for text in self.texts]
        return [[segment for segments in lists for segment in segments]] if self.takes_all else lists

    def to_prediction(self, answer: Answer) -> str:
        """Return the answer as a text to be compared with `golds`."""
        if not self.by_identity:
            return self._in_gold_order(answer.text) if self.takes_all and not self.is_list else answer.text
        if self.takes_all:
            return self._to_token(answer.options)
        if not answer.labels:
            return ""
        chosen = answer.options[0].strip()
        return _RIGHT if chosen in [text.strip() for text in self.texts] else _WRONG

    def to_list(self, answers: Sequence[Answer]) -> list[str]:
        """Return the answers to the row's completions as one list, to be compared with `gold_lists`."""
        if not self.by_identity:
            return parsing.list_prediction([answer.text for answer in answers])
        tokens = self._tokens()
        options = [option for answer in answers for option in answer.options]
        return [tokens[option.strip()] if option else "" for option in options]

    def to_list_prediction(self, answers: Sequence[Answer]) -> str:
        """Return the list as a text to be compared with `golds`."""
        if self.by_identity:
            return self._to_token([option for answer in answers for option in answer.options])
        return "; ".join(self.to_list(answers))

    def _to_token(self, options: Sequence[str]) -> str:
        if not any(options):
            return ""
        return _RIGHT if {option.strip() for option in options} == set(self.distinct) else _WRONG

    def _tokens(self) -> dict[str, str]:
        """Return a token for each option's text."""
        every = [reference.output.text for reference in self.instance.references]
        options = dict.fromkeys([text.strip() for text in (*every, *(self.options or {}).values())])
        return {text: str(_FIRST_OPTION + number) for number, text in enumerate(options)}

    @property
    def _joined(self) -> str:
        """All correct references as one text, as HELM writes them in demonstrations."""
        return "; ".join(self.gold_lists[0]) if self.is_list else _DELIMITER.join(self.distinct)

    def _in_gold_order(self, text: str) -> str:
        """Return a prediction that names the correct references in another order, in theirs; else as it is.

        Which of its pieces is which is told by HELM's normal form; their spelling stays. Where a reference holds a
        comma, pieces cannot be told, and the order must be that of the references.
        """
        pieces = [piece.strip() for piece in text.split(",")]
        golds = self.distinct
        order = [normalize_text(gold) for gold in golds]
        if any("," in gold for gold in golds) or sorted(map(normalize_text, pieces)) != sorted(order):
            return text
        return _DELIMITER.join(sorted(pieces, key=lambda piece: order.index(normalize_text(piece))))


_DELIMITER = ", "
"""Between several correct references; HELM's, in_context_learning_adapter.construct_output."""
