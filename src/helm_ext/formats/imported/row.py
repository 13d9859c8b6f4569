"""What an importer makes of somebody else's file: rows, and where they come from.

An importer (`table`, `lm_eval`, `inspect`, ...) only reads: `ImportedFormat.open` returns an `Opened` file, whose rows
are these. What a row means for HELM (references, splits, labels, recordings, scores) is said once for all of them: by
`imported.reader`, which hands them to the pipeline of `adapter_spec` files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeGuard

from helm_ext.evalset import Likelihood, Source, SourceScore

__all__ = ["Answer", "Likelihood", "Message", "Opened", "Row", "Source", "SourceScore", "is_finite_number"]


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number that a float can hold: not true, false, NaN or a larger whole number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


class Message(TypedDict):
    """One turn of a conversation, as HELM has it."""

    role: str
    content: str


@dataclass(slots=True)
class Answer:
    """One completion."""

    text: str
    finish_reason: str = ""
    """`stop`, `length`, or another word of the source; after `length` the answer counts as truncated (`cut`)."""
    thinking: str | None = None
    """Reasoning that the source keeps apart from the answer."""
    logprob: float | None = None
    """Sum over its tokens, in nats."""
    is_refusal: bool = False
    """Whether the source says that the model refused. It is an answer, and counted."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One question of somebody's file, what is right, and what came back."""

    line: int
    """Where it begins in its file; where lines mean nothing, its position from 1."""
    id: str | int | None
    question: str | Sequence[Message]
    """The text that was sent, or the conversation."""
    media: Sequence[str] = ()
    """What the question shows beside its text, in order: of each image or file what tells it from others, its URL or a
    digest of its bytes. A part of what is asked."""
    options: Mapping[str, str] | None = None
    """Label to text, in order; None for free text. Completions are read as one of the labels."""
    gold: Sequence[str] = ()
    """What is right: the labels of right options, else accepted texts. Empty: `unscored` or `none_right`."""
    split: Literal["train", "valid", "test"] = "test"
    answers: Sequence[Answer] | None = None
    """Several where one question was asked several times (epochs, repeats). None: not run."""
    likelihoods: Sequence[Likelihood] = ()
    """One for each option, in their order: the row was asked by log-probabilities. `answers` is None then."""
    failed: str = ""
    """Why there is no answer, where the source says so."""
    unscored: str = ""
    """Why an answer that is there cannot be scored: the row is excluded from every score, and counted."""
    none_right: str = ""
    """Why no option is right: any answer is wrong, as the source has it. The row is scored."""
    source_scores: Mapping[str, float | None] = field(default_factory=dict)
    """The source's own score of this row, by the name that its report has. None: it made none of this row."""
    judgements: Sequence[Mapping[str, Any]] = ()
    """What models and people said of the answers: `helm_ext.judging.judgement.Judgement` as JSON."""
    chain_of_thought: str = ""
    """The reasoning that leads to the right answer: shown where the row is a demonstration."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else of the row is kept, with the keys that `by=` names."""


@dataclass(kw_only=True)
class Opened:
    """One task of a file or folder, ready to be read once."""

    path: str
    """The file that messages name."""
    source: Source
    rows: Callable[[], Iterator[Row]]
    """Yields the rows, one by one. Raises DatasetError. Called once."""
    digest: Callable[[], str]
    """SHA-256 of all bytes that were read, 64 hex digits; called after the last row."""
    adapter_spec: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `adapter_spec` that differ from the defaults of `imported.reader`: nothing around the text, no
    demonstrations. Of what is asked alone, never of whom: it is part of the digest of the questions. Where all right
    options together are the answer, `multi_label`; where rows are conversations, `"method": "chat"`."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `scoring` where the importer knows better than the defaults. Arguments of the run entry win."""
    is_measured: bool = True
    """Whether answers are compared with what is right, beside the scores that the source gave. False where only the
    source can score its rows (`Source.main` is the main metric then): they need no gold, and nothing is measured unless
    the run entry names a metric of ours."""
    may_be_live: bool = False
    """Whether a file without any answer is a dataset to be run. Else it is refused."""
    display_name: str = ""
    description: str = ""
