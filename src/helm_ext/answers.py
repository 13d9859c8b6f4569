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
to it), and "New York City" begins with "New York". So each option gets a token, a number of four digits, which stands
for its text in the references and in the predictions: a choice is then right or wrong in each of HELM's metrics alike,
also in `f1_score`. (Those that count sequences of words, `rouge_2` and `bleu_4`, are 0 for one word, as they are for
any text of one word.) Options whose texts differ in white space around them only are one option, as they are for HELM.
Nothing read is "", which is wrong in every metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from helm.benchmark.adaptation.request_state import RequestState

from helm_ext import parsing
from helm_ext.evalset import Scoring, row_extra
from helm_ext.fast_scores import normalize_text

__all__ = ["Answer", "Question", "get_options", "read_answer"]


_ALL_CORRECT = "1000"
"""Stands for exactly the correct options, where all of them are asked for."""
_OTHERS = "1001"
"""Stands for any other choice of several options."""
_FIRST_OPTION = 2000
"""Stands for the first option; all tokens are of one length, so that none begins with another."""


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


def read_answer(
    text: str, state: RequestState, scoring: Scoring, pattern: str | None = None, *, multi_label: bool = False
) -> Answer:
    """Read one completion's text as the answer to the request state's row.

    `pattern` and `multi_label` are AdapterSpec's: `output_mapping_pattern`, which overrides the reading of labels, and
    whether all correct options are asked for.
    """
    text = parsing.clean(text, extract=scoring.extract, strip=scoring.strip, lower=scoring.lower)
    options = get_options(state)
    if options is None:
        return Answer(text)
    is_list = scoring.output_format == "list"
    labels = parsing.read_choice(
        text,
        options,
        pattern,
        multi_label=multi_label,
        is_list=is_list,
        is_exact=scoring.label_reading == "exact",
    )
    texts = tuple(["" if label is None else options[label] for label in labels])
    joined = ("; " if is_list else ", ").join(texts)
    return Answer(joined, tuple([label for label in labels if label is not None]), texts)


def get_options(state: RequestState) -> dict[str, str] | None:
    """Return label to option text, or None for rows whose completions are not read as labels."""
    return row_extra(state.instance).get("labels") or state.output_mapping or None


class Question:
    """The right answer of one row. The rules are at the top of this module."""

    def __init__(self, state: RequestState, scoring: Scoring, *, multi_label: bool = False) -> None:
        options = get_options(state)
        is_helms = scoring.label_reading == "exact"
        self.instance = state.instance
        self.is_list = scoring.output_format == "list"
        self.by_identity = options is not None and not is_helms
        """Options are compared as such, not by their texts."""
        self.takes_all = not is_helms and (multi_label or (self.by_identity and self.is_list))
        """All correct references are asked for rather than any."""
        self.texts = [reference.output.text for reference in self.instance.references if reference.is_correct]
        """The correct references."""
        self.distinct = list(dict.fromkeys(text.strip() for text in self.texts))
        self.tokens: dict[str, str] = {}
        if self.by_identity and options is not None:
            every = [reference.output.text for reference in self.instance.references]
            for text in dict.fromkeys([*every, *options.values()]):
                self.tokens.setdefault(text.strip(), str(_FIRST_OPTION + len(self.tokens)))

    @property
    def golds(self) -> list[str]:
        """The texts any of which is right."""
        if self.takes_all and self.texts:
            return [_ALL_CORRECT if self.by_identity else self._joined]
        return [self.tokens[text] for text in self.distinct] if self.by_identity else self.texts

    @property
    def gold_lists(self) -> list[list[str]]:
        """The lists any of which is right (`output_format: list`)."""
        if self.by_identity:
            return [[self.tokens[text] for text in self.distinct]]
        lists = [parsing.split_segments(text) for text in self.texts]
        return [[segment for segments in lists for segment in segments]] if self.takes_all else lists

    def to_prediction(self, answer: Answer) -> str:
        """Return the answer as a text to be compared with `golds`."""
        if not self.by_identity:
            return self._in_gold_order(answer.text) if self.takes_all and not self.is_list else answer.text
        if self.takes_all:
            return self._to_token(answer.options)
        return self.tokens[answer.options[0].strip()] if answer.labels else ""

    def to_list(self, answers: Sequence[Answer]) -> list[str]:
        """Return the answers to the row's completions as one list, to be compared with `gold_lists`."""
        if not self.by_identity:
            return parsing.list_prediction([answer.text for answer in answers])
        options = [option for answer in answers for option in answer.options]
        return [self.tokens[option.strip()] if option else "" for option in options]

    def to_list_prediction(self, answers: Sequence[Answer]) -> str:
        """Return the list as a text to be compared with `golds`."""
        if self.by_identity:
            return self._to_token([option for answer in answers for option in answer.options])
        return "; ".join(self.to_list(answers))

    def _to_token(self, options: Sequence[str]) -> str:
        if not any(options):
            return ""
        return _ALL_CORRECT if {option.strip() for option in options} == set(self.distinct) else _OTHERS

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
        order = [normalize_text(gold) for gold in self.distinct]
        if any("," in gold for gold in self.distinct) or sorted(map(normalize_text, pieces)) != sorted(order):
            return text
        return _DELIMITER.join(sorted(pieces, key=lambda piece: order.index(normalize_text(piece))))


_DELIMITER = ", "
"""Between several correct references; HELM's, in_context_learning_adapter.construct_output."""
