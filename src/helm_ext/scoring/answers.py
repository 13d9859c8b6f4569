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

Where a completion holds no answer (`extract` matches nothing in it, or no option can be read), it is *unmapped*: wrong,
also where the right answer is "", and counted.

Options are compared as such, not by their texts: HELM's quasi-exact match ignores punctuation and articles ("-5" is "5"
to it), and "New York City" begins with "New York". So a right choice becomes one token, a number of four digits, any
other choice another one: it is then right or wrong in each of HELM's metrics alike, also in `f1_score`. (Those that
count sequences of words, `rouge_2` and `bleu_4`, are 0 for one word, as they are for any text of one word.) In lists
each option has a token of its own. Options whose texts differ in white space around them only are one option, as they
are for HELM. Nothing read is "", which is wrong in every metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.annotation.annotator import Annotator
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Instance
from helm.common.request import Thinking

from helm_ext import parsing
from helm_ext.evalset import Scoring, row_extra
from helm_ext.scoring.bounded import limit_pattern
from helm_ext.scoring.normal_form import bare_form, normalize

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
    unmatched: bool = False
    """Whether `extract` matched nothing."""

    @property
    def label(self) -> str | None:
        """The first label that was read; None when none was."""
        return self.labels[0] if self.labels else None


def name_chosen(answers: Sequence[Answer]) -> tuple[str, str] | None:
    """Return the labels that completions were read as, and the options' texts; None where none was read."""
    labels = [label for answer in answers for label in answer.labels]
    options = [option for answer in answers for option in answer.options if option]
    return (", ".join(labels), ", ".join(options)) if labels else None


class AnswerReader:
    """Reads completions as answers, and references as what is right, the same way for all rows of a run.

    `pattern` and `multi_label` are AdapterSpec's: `output_mapping_pattern`, which overrides the reading of labels, and
    whether all correct options are asked for.
    """

    def __init__(self, scoring: Scoring, pattern: str | None = None, *, multi_label: bool = False) -> None:
        self.scoring = scoring
        self.pattern = pattern
        self.multi_label = multi_label
        self.is_list = scoring.output_format == "list"
        self.is_exact = scoring.label_reading == "exact"
        self._cleans = bool(scoring.extract is not None or scoring.strip or scoring.lower or scoring.cut_at)
        self._cleans_golds = bool(scoring.lower or scoring.cut_at or scoring.extract_references)
        self._next_question = tuple(scoring.next_question)
        self._takes_labels = not pattern and not self.is_list
        """A text that is nothing but a label is read as that label in any case."""
        self.settings = repr((pattern, multi_label, scoring))
        """Equal for readers that read every completion alike; compared once a row."""

    def read(self, text: str, options: Mapping[str, str] | None, *, is_cut_off: bool = False) -> Answer:
        """Return what a completion's text answers; `options` are those of its row, see `get_options`.

        `is_cut_off`: the model was stopped before it had finished, see `parsing.is_cut_off`.
        """
        recorded = text
        if options is not None and self._next_question:
            text = parsing.cut_at_next_question(text, self._next_question)
        if self._cleans:
            cleaned = self._clean(text, is_choice=options is not None)
            if cleaned is None:
                return Answer("", unmatched=True)
            text = cleaned
        if options is None:
            return Answer(text)
        if self._takes_labels:
            label = text.strip()
            if label in options:
                option = options[label]
                return Answer(option, (label,), (option,))
        if is_cut_off:  # what is cut or extracted from it had ended
            is_cut_off = self.scoring.extract is None and len(text) >= len(recorded.strip())
        separator = self.scoring.separator
        if self.is_list and self.scoring.extract_all is not None:
            with limit_pattern(self.scoring.extract_all, text):
                text = separator.join(parsing.find_segments(text, self.scoring.extract_all))
        with limit_pattern(self.pattern, text):
            labels = parsing.read_choice(
                text, options, self.pattern, multi_label=self.multi_label, is_list=self.is_list, is_exact=self.is_exact,
                separator=separator, is_cut_off=is_cut_off,
            )  # fmt: skip
        texts = tuple(["" if label is None else options[label] for label in labels])
        joined = ("; " if self.is_list else ", ").join(texts)
        return Answer(joined, tuple([label for label in labels if label is not None]), texts)

    def read_gold(self, text: str) -> str:
        """Return a reference of a row without options as predictions are compared with it."""
        if not self._cleans_golds:
            return text
        scoring = self.scoring
        text = parsing.cut_at_stops(text, scoring.cut_at)
        if scoring.extract_references and scoring.extract is not None:
            with limit_pattern(scoring.extract, text):
                extracted = parsing.extract(text, scoring.extract)
            text = text if extracted is None else extracted
        return text.lower() if scoring.lower and not self.is_list else text

    def split_gold(self, text: str) -> list[str]:
        """Return a reference of a row without options as a list."""
        pattern = self.scoring.extract_all if self.scoring.extract_references else None
        return self.finish_list(self._split(self.read_gold(text), pattern))

    def split(self, texts: Sequence[str]) -> list[str]:
        """Return the cleaned texts of all completions of a row without options as one list."""
        pattern = self.scoring.extract_all
        if pattern is None and len(texts) != 1:
            return self.finish_list([parsing.trim(text) for text in texts])
        return self.finish_list([segment for text in texts for segment in self._split(text, pattern)])

    def finish_list(self, segments: list[str]) -> list[str]:
        """Return a list as it is compared: lower-cased, without repetitions, where the file asks for that."""
        if self.scoring.lower:
            segments = [segment.lower() for segment in segments]
        return list(dict.fromkeys(segments)) if self.scoring.drop_duplicates else segments

    def _split(self, text: str, pattern: str | None) -> list[str]:
        if pattern is None:
            return parsing.split_segments(text, self.scoring.separator)
        with limit_pattern(pattern, text):
            return parsing.find_segments(text, pattern)

    def _clean(self, text: str, *, is_choice: bool) -> str | None:
        scoring = self.scoring
        stops = scoring.cut_at
        if is_choice:  # a label may follow a blank line, or reasoning of several lines
            stops = tuple(stop for stop in stops if stop.strip())
        lower = scoring.lower and (is_choice or not self.is_list)  # `extract_all` sees a list's text as it is
        text = parsing.cut_at_stops(text, stops)
        with limit_pattern(scoring.extract, text):
            return parsing.clean(text, pattern=scoring.extract, strip=scoring.strip, lower=lower)


def get_options(state: RequestState) -> dict[str, str] | None:
    """Return label to option text, or None for rows whose completions are not read as labels."""
    return row_extra(state.instance).get("labels") or state.output_mapping or None


def move_thinking(state: RequestState) -> None:
    """Move what was thought out of the texts of a state's completions, in place, to where HELM keeps it.

    It is no part of an answer. Done once, before anything reads a completion, for recorded and for live ones; so the
    run's files show the same, and a file that is scored again is scored alike. Tokens and log-probabilities stay: they
    are those of the whole completion. `scoring.thinking: "keep"` leaves completions as they are.

    A row stays as it is if one of its references holds such a tag: there it is part of what is asked for.
    """
    if state.result is None or state.reference_index is not None:
        return
    completions = state.result.completions
    for place, completion in enumerate(completions):
        if "<" not in completion.text:  # nearly all
            continue
        found = parsing.split_thinking(completion.text)
        if found is not None and not any(
            parsing.names_thinking(reference.output.text) for reference in state.instance.references
        ):
            known = completion.thinking.text if completion.thinking is not None else None
            thought = "\n".join(filter(None, [known, found[0]]))
            completions[place] = replace(completion, text=found[1], thinking=Thinking(text=thought))


def find_thinking(scenario_state: ScenarioState) -> Iterator[Instance]:
    """Yield the instances with a completion that was thought about, each once."""
    seen = set()
    for state in scenario_state.request_states:
        if state.result is None or state.reference_index is not None:
            continue
        if any(completion.thinking is not None for completion in state.result.completions):
            key = state.instance.id, state.instance.perturbation
            if key not in seen:
                seen.add(key)
                yield state.instance


_KEPT = "_kept_answers"


Answers: TypeAlias = "Mapping[tuple[str, bool], Answer]"
"""A completion's text, and whether it was cut off, to what it answers."""


class _Kept(NamedTuple):
    """What was read of a request state, and what with."""

    reader: AnswerReader
    options: Mapping[str, str] | None
    answers: Answers


def keep_answers(
    state: RequestState, reader: AnswerReader, options: Mapping[str, str] | None, answers: Answers
) -> None:
    """Keep what completions were read as, for whoever reads them next: reading is what takes long.

    It is no field of the state: it is not written, and a state that is made of this one has none.
    """
    vars(state)[_KEPT] = _Kept(reader, options, answers)


def take_answers(state: RequestState, reader: AnswerReader, options: Mapping[str, str] | None) -> Answers:
    """Return what a reader that reads alike has kept of a state, and forget it; else nothing."""
    kept: _Kept | None = vars(state).pop(_KEPT, None)
    if kept is None or kept.options is not options or reader.settings != kept.reader.settings:
        return {}
    return kept.answers


class Question:
    """The right answer of one row. The rules are at the top of this module."""

    __slots__ = ("by_identity", "golds", "instance", "is_list", "options", "reader", "takes_all", "texts")

    def __init__(self, instance: Instance, options: Mapping[str, str] | None, reader: AnswerReader) -> None:
        self.instance = instance
        self.options = options
        self.reader = reader
        self.is_list = reader.is_list
        self.by_identity = options is not None and not reader.is_exact
        """Options are compared as such, not by their texts."""
        self.takes_all = not reader.is_exact and (reader.multi_label or (self.by_identity and reader.is_list))
        """All correct references are asked for rather than any."""
        self.texts = [reference.output.text for reference in instance.references if CORRECT_TAG in reference.tags]
        """The correct references."""
        self.golds = self._find_golds()
        """The texts any of which is right."""

    @property
    def distinct(self) -> list[str]:
        """The correct references that differ in more than white space around them."""
        texts = self.texts if self.options is not None else [self.reader.read_gold(text) for text in self.texts]
        return list(dict.fromkeys([text.strip() for text in texts]))

    def _find_golds(self) -> Sequence[str]:
        if not self.texts:
            return ()
        if self.by_identity:
            return (_RIGHT,)
        if self.takes_all or self.is_list:
            return (self._joined,) if self.takes_all else ["; ".join(gold) for gold in self.gold_lists]
        return self.texts if self.options is not None else [self.reader.read_gold(text) for text in self.texts]

    @property
    def gold_lists(self) -> list[list[str]]:
        """The lists any of which is right (`output_format: list`)."""
        if self.by_identity:
            tokens = self._tokens()
            return [[tokens[text] for text in self.distinct]]
        lists = [self.reader.split_gold(text) for text in self.texts]
        return [self.reader.finish_list(list(chain(*lists)))] if self.takes_all else lists

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
            return self.reader.split([answer.text for answer in answers])
        tokens = self._tokens()
        options = [option for answer in answers for option in answer.options]
        return self.reader.finish_list([tokens[option.strip()] if option else "" for option in options])

    def to_list_of_any_form(self, answers: Sequence[Answer]) -> list[str]:
        """Return the answers as one list, whatever way a text writes it (`parsing.read_list`)."""
        reader = self.reader
        if self.by_identity or reader.scoring.extract_all is not None or len(answers) != 1:
            return self.to_list(answers)
        inside = "\n".join(chain(*self.gold_lists))
        return reader.finish_list(parsing.read_list(answers[0].text, reader.scoring.separator, inside))

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

        Which of its pieces is which is told by the normal form; their spelling stays. Where a reference holds a comma,
        pieces cannot be told, and the order must be that of the references.
        """
        pieces = [piece.strip() for piece in text.split(",")]
        golds = self.distinct
        order = [_to_form(gold) for gold in golds]
        if any("," in gold for gold in golds) or sorted(map(_to_form, pieces)) != sorted(order):
            return text
        return _DELIMITER.join(sorted(pieces, key=lambda piece: order.index(_to_form(piece))))


def _to_form(text: str) -> str:
    return normalize(text) or bare_form(text)


_DELIMITER = ", "
"""Between several correct references; HELM's, in_context_learning_adapter.construct_output."""


class AnswerAnnotator(Annotator):
    """Shows which option a completion was read as. The score is made from the same reading (`AnswerReader`).

    HELM's own "mapped output" on the predictions page knows only completions that are exactly a label.
    """

    name = "answer"

    def __init__(
        self,
        metrics: list[str],
        output_mapping_pattern: str | None = None,
        multi_label: bool = False,
        **scoring: Any,
    ) -> None:
        self.reader = AnswerReader(
            Scoring(metrics=tuple(metrics), **scoring), output_mapping_pattern, multi_label=multi_label
        )

    def annotate(self, request_state: RequestState) -> dict[str, str]:
        """Return the label and the option's text (all of them, where several are asked for), or that none was read."""
        if request_state.result is None or request_state.reference_index is not None:
            return {}
        if self.reader.scoring.thinking == "move":
            move_thinking(request_state)
        options = get_options(request_state)
        completions = request_state.result.completions
        if not self.reader.is_list:
            completions = completions[:1]
        texts_read = [(completion.text, parsing.is_cut_off(completion.finish_reason)) for completion in completions]
        answers = [self.reader.read(text, options, is_cut_off=cut) for text, cut in texts_read]
        keep_answers(request_state, self.reader, options, dict(zip(texts_read, answers, strict=True)))
        chosen = name_chosen(answers)
        return {"read_as": "unmapped"} if chosen is None else {"read_as": chosen[0], "option": chosen[1]}
