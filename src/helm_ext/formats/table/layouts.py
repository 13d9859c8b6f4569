"""Layouts that are known by their structure: of public datasets here, in `tool_layouts` of what other tools write.

What a layout needs beyond the names of columns (`roles`) is said here: golds that stand inside a longer text, options
that depend on the row, what readers of a score must know. Each is recognised by its columns and its first row; a row
that then breaks it is an error with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_ext.errors import show
from helm_ext.formats.imported.gold import Kind
from helm_ext.formats.table.cells import CellError, parse_list, read_options, to_text
from helm_ext.formats.table.table import Cells

GOLD, OPTIONS, THOUGHT, LIKELIHOODS, SCORES, QUESTION, OUTPUT = (
    "\0gold", "\0options", "\0thought", "\0likelihoods", "\0scores", "\0question", "\0output",
)  # fmt: skip
"""Keys of what a layout adapts: no column is called so."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a known table is laid out."""

    name: str
    why: str
    """By what it was recognised, in words."""
    roles: Mapping[str, str]
    """Role to column, or to a key of `adapt`."""
    adapt: Callable[[Cells], Mapping[str, Any]] | None = None
    """From the cells of a row to what a role needs beside them. Raises CellError."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Role to what of the cells it is, in words, where that is no column."""
    gold_kind: Kind | None = None
    index_base: int | None = None
    notes: Sequence[str] = ()
    """What a reader of the score must know."""
    live_notes: Sequence[str] = ()
    """The same, of live runs alone."""
    scoring: Mapping[str, Any] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)
    """Keys of `adapter_spec` for a live run."""
    shuffles: bool = False
    """Whether a live run must not show the options in the file's order, because the right one always comes first."""
    hidden_hint: str = ""
    """Why golds may be missing."""
    allows_hidden: bool = False
    """Whether rows without a gold are counted as not scored, instead of refused."""
    tool: str = ""
    """The tool that wrote the table."""
    model: Callable[[Cells], str] | None = None
    """Whose output a row holds. All rows of a table must agree: they are one run."""
    main: str = ""
    """The score of the tool that its own reports are headed by."""
    several_models: str = ""
    """What to do with a table of several."""


Named = Mapping[str, str]
"""Column in lower case to column."""


def has(named: Named, *columns: str) -> bool:
    """Whether a table has all of these columns, which are given in lower case."""
    return all(column in named for column in columns)


def _hellaswag(named: Named, _: Cells) -> Layout | None:
    if not has(named, "ctx", "endings", "label"):
        return None
    roles = {"question": named["ctx"], "options": named["endings"], "gold": named["label"]}
    shown = (
        "the question is the column `ctx`; lm-eval shows models `activity_label: ctx_a` and `ctx_b`, with what stands "
        "in [brackets] removed: recordings made with it answered another text"
    )
    return Layout(
        name="HellaSwag", why="the columns ctx, endings and label", roles=roles, notes=(shown,), index_base=0,
        hidden_hint="HellaSwag's test split has no labels: use the validation split",
    )  # fmt: skip


_AFTER_HASHES = re.compile(r"####\s*(\S[^\n]*?)\s*\Z")


def _gsm8k(named: Named, sample: Cells) -> Layout | None:
    if not has(named, "question", "answer"):
        return None
    column = named["answer"]
    value = sample.get(column)
    if not isinstance(value, str) or not _AFTER_HASHES.search(value):
        return None

    def adapt(cells: Cells) -> dict[str, Any]:
        text = cells.get(column)
        match = _AFTER_HASHES.search(text) if isinstance(text, str) else None
        if match is None or not isinstance(text, str):
            raise CellError(f'expected an answer that ends in "#### RESULT", got {show(text)}')
        thought = re.sub(r"<<[^<>]*>>", "", text[: text.rindex("####")]).strip()
        return {GOLD: match[1].replace(",", ""), THOUGHT: thought}

    return Layout(
        name="GSM8K", why="answers that end in `#### RESULT`",
        roles={"question": named["question"], "gold": GOLD, "thought": THOUGHT}, adapt=adapt,
        shown={"gold": f"what follows #### in {column}, without commas"},
        notes=("what counts is the last number of each answer, as in lm-eval's flexible-extract",),
        scoring={"extract": r"(-?\d[\d,]*(?:\.\d+)?)"},
        live={"max_tokens": 400, "stop_sequences": ["\n\n"]},
    )  # fmt: skip


def _truthfulqa_choice(named: Named, _: Cells) -> Layout | None:
    if not has(named, "question") or not ("mc1_targets" in named or "mc2_targets" in named):
        return None
    column = named.get("mc1_targets", named.get("mc2_targets", ""))

    def adapt(cells: Cells) -> dict[str, Any]:
        targets = cells.get(column)
        targets = parse_list(targets) if isinstance(targets, str) else targets
        labels = targets.get("labels") if isinstance(targets, Mapping) else None
        if not isinstance(labels, list):
            raise CellError(f"expected choices and labels, got {show(targets)}")
        return {GOLD: labels, OPTIONS: read_options(targets)}

    single = column.casefold().startswith("mc1")
    return Layout(
        name="TruthfulQA (multiple choice)", why=f"the column {column}", adapt=adapt, gold_kind="flags",
        roles={"question": named["question"], "options": OPTIONS, "gold": GOLD},
        shown={"options": f"{column}.choices", "gold": f"the 1s of {column}.labels"},
        notes=() if single else ("several options are right (mc2): any of them counts",),
        live_notes=("the right option is the first of every row of the file: a live run shows them in another order",),
        shuffles=True,
    )  # fmt: skip


def _truthfulqa_text(named: Named, _: Cells) -> Layout | None:
    if not has(named, "question", "best_answer", "correct_answers"):
        return None
    best, correct = named["best_answer"], named["correct_answers"]

    def adapt(cells: Cells) -> dict[str, Any]:
        accepted = cells.get(correct)
        if isinstance(accepted, str):
            accepted = parse_list(accepted) if accepted.lstrip().startswith("[") else accepted.split(";")
        if not isinstance(accepted, list):
            raise CellError(f"expected a list of answers, got {show(accepted)}")
        texts = [to_text(text).strip() for text in [cells.get(best) or "", *accepted]]
        return {GOLD: list(dict.fromkeys(filter(None, texts)))}

    return Layout(
        name="TruthfulQA (text)", why="the columns best_answer and correct_answers", adapt=adapt,
        roles={"question": named["question"], "gold": GOLD},
        shown={"gold": f"{best} and {correct}"},
        notes=("answers are compared with the correct ones as texts; the paper has a model judge them",),
    )  # fmt: skip


def _squad(named: Named, sample: Cells) -> Layout | None:
    if not has(named, "context", "question", "answers"):
        return None
    column = named["answers"]
    answers = sample.get(column)
    if not (isinstance(answers, str) and answers.startswith("{")) and not isinstance(answers, Mapping):
        return None
    return Layout(
        name="SQuAD", why="the columns context, question and answers with text and answer_start",
        roles={"question": named["question"], "context": named["context"], "gold": GOLD},
        adapt=lambda cells: {GOLD: _read_spans(cells.get(column))}, shown={"gold": f"{column}.text"},
        notes=(
            'a question without an answer (version 2) has the gold "": an empty prediction is right',
            "normalized_exact_match and normalized_f1 count it so; HELM's exact_match and f1_score say 0",
        ),
    )  # fmt: skip


def _read_spans(value: Any) -> list[str]:
    """Return the accepted texts; [""] for a question that cannot be answered from its context."""
    answers = parse_list(value) if isinstance(value, str) else value
    texts = answers.get("text") if isinstance(answers, Mapping) and "answer_start" in answers else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CellError(f"expected answers with text and answer_start, got {show(value)}")
    return list(dict.fromkeys(texts)) or [""]


_TRUTHS: Mapping[Any, bool] = {
    True: True, False: False, "true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
}  # fmt: skip


def _boolq(named: Named, sample: Cells) -> Layout | None:
    golds = [column for column in ("answer", "label") if column in named]
    if not has(named, "question", "passage") or len(golds) != 1:
        return None
    column = named[golds[0]]

    def read(value: Any) -> bool | None:
        if value is None or value in (-1, "-1", ""):
            return None
        key = value.strip().casefold() if isinstance(value, str) else value
        if not isinstance(key, str | int) or key not in _TRUTHS:
            raise CellError(f"expected true or false, got {show(value)}")
        return _TRUTHS[key]

    try:
        read(sample.get(column))
    except CellError:
        return None
    return Layout(
        name="BoolQ", why=f"the columns question, passage and {column} with true or false",
        roles={"question": named["question"], "context": named["passage"], "gold": GOLD},
        adapt=lambda cells: {GOLD: read(cells.get(column))}, shown={"gold": column},
        hidden_hint="BoolQ's test split has no answers: use the validation split",
    )  # fmt: skip


LAYOUTS: Sequence[Callable[[Named, Cells], Layout | None]] = (
    _hellaswag, _truthfulqa_choice, _truthfulqa_text, _squad, _boolq, _gsm8k,
)  # fmt: skip
