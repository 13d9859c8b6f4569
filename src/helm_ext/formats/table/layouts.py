"""Layouts that are known by their structure: public datasets, and tables that other tools write.

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

__all__ = ["Layout", "find_layout"]


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


def find_layout(columns: Sequence[str], sample: Cells) -> Layout | None:
    """Return the layout of a table with these columns and this first row; None for one that is not known."""
    named = {column.strip().casefold().replace(" ", "_"): column for column in columns}
    return next((found for find in _LAYOUTS if (found := find(named, sample)) is not None), None)


Named = Mapping[str, str]
"""Column in lower case to column."""


def _has(named: Named, *columns: str) -> bool:
    return all(column in named for column in columns)


def _hellaswag(named: Named, _: Cells) -> Layout | None:
    if not _has(named, "ctx", "endings", "label"):
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
    if not _has(named, "question", "answer"):
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
        return {_GOLD: match[1].replace(",", ""), _THOUGHT: thought}

    return Layout(
        name="GSM8K", why="answers that end in `#### RESULT`",
        roles={"question": named["question"], "gold": _GOLD, "thought": _THOUGHT}, adapt=adapt,
        shown={"gold": f"what follows #### in {column}, without commas"},
        notes=("what counts is the last number of each answer, as in lm-eval's flexible-extract",),
        scoring={"extract": r"(-?\d[\d,]*(?:\.\d+)?)"},
        live={"max_tokens": 400, "stop_sequences": ["\n\n"]},
    )  # fmt: skip


def _truthfulqa_choice(named: Named, _: Cells) -> Layout | None:
    if not _has(named, "question") or not ("mc1_targets" in named or "mc2_targets" in named):
        return None
    column = named.get("mc1_targets", named.get("mc2_targets", ""))

    def adapt(cells: Cells) -> dict[str, Any]:
        targets = cells.get(column)
        targets = parse_list(targets) if isinstance(targets, str) else targets
        labels = targets.get("labels") if isinstance(targets, Mapping) else None
        if not isinstance(labels, list):
            raise CellError(f"expected choices and labels, got {show(targets)}")
        return {_GOLD: labels, _OPTIONS: read_options(targets)}

    single = column.casefold().startswith("mc1")
    return Layout(
        name="TruthfulQA (multiple choice)", why=f"the column {column}", adapt=adapt, gold_kind="flags",
        roles={"question": named["question"], "options": _OPTIONS, "gold": _GOLD},
        shown={"options": f"{column}.choices", "gold": f"the 1s of {column}.labels"},
        notes=() if single else ("several options are right (mc2): any of them counts",),
        live_notes=("the right option is the first of every row of the file: a live run shows them in another order",),
        shuffles=True,
    )  # fmt: skip


def _truthfulqa_text(named: Named, _: Cells) -> Layout | None:
    if not _has(named, "question", "best_answer", "correct_answers"):
        return None
    best, correct = named["best_answer"], named["correct_answers"]

    def adapt(cells: Cells) -> dict[str, Any]:
        accepted = cells.get(correct)
        if isinstance(accepted, str):
            accepted = parse_list(accepted) if accepted.lstrip().startswith("[") else accepted.split(";")
        if not isinstance(accepted, list):
            raise CellError(f"expected a list of answers, got {show(accepted)}")
        texts = [to_text(text).strip() for text in [cells.get(best) or "", *accepted]]
        return {_GOLD: list(dict.fromkeys(filter(None, texts)))}

    return Layout(
        name="TruthfulQA (text)", why="the columns best_answer and correct_answers", adapt=adapt,
        roles={"question": named["question"], "gold": _GOLD},
        shown={"gold": f"{best} and {correct}"},
        notes=("answers are compared with the correct ones as texts; the paper has a model judge them",),
    )  # fmt: skip


def _squad(named: Named, sample: Cells) -> Layout | None:
    if not _has(named, "context", "question", "answers"):
        return None
    column = named["answers"]
    answers = sample.get(column)
    if not (isinstance(answers, str) and answers.startswith("{")) and not isinstance(answers, Mapping):
        return None
    return Layout(
        name="SQuAD", why="the columns context, question and answers with text and answer_start",
        roles={"question": named["question"], "context": named["context"], "gold": _GOLD},
        adapt=lambda cells: {_GOLD: _read_spans(cells.get(column))}, shown={"gold": f"{column}.text"},
        notes=('a question without an answer (version 2) has the gold "": an empty prediction is right',),
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
    if not _has(named, "question", "passage") or len(golds) != 1:
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
        roles={"question": named["question"], "context": named["passage"], "gold": _GOLD},
        adapt=lambda cells: {_GOLD: read(cells.get(column))}, shown={"gold": column},
        hidden_hint="BoolQ's test split has no answers: use the validation split",
    )  # fmt: skip


def _lighteval(_: Named, sample: Cells) -> Layout | None:
    if not isinstance(sample.get("doc"), Mapping) or not isinstance(sample.get("model_response"), Mapping):
        return None
    return Layout(
        name="lighteval details", why="the columns doc and model_response", adapt=_adapt_lighteval, tool="lighteval",
        roles={"question": "doc.query", "options": _OPTIONS, "gold": _GOLD, "output": "model_response.text",
               "id": "doc.id", "likelihoods": _LIKELIHOODS, "source_scores": "metric"},
        shown={"options": "doc.choices, where not all of them are right", "gold": "doc.gold_index"},
    )  # fmt: skip


def _adapt_lighteval(cells: Cells) -> dict[str, Any]:
    """Return the golds of a row: options where not every choice is right, else accepted texts."""
    doc, response = cells["doc"], cells["model_response"]
    choices, index = doc.get("choices"), doc.get("gold_index")
    right = index if isinstance(index, list) else [index]
    if not isinstance(choices, list) or not choices:
        raise CellError(f"expected doc.choices, got {show(choices)}")
    if not all(isinstance(at, int) and 0 <= at < len(choices) for at in right):
        raise CellError(f"doc.gold_index is {show(index)}, and there are {len(choices)} choices")
    logprobs = response.get("logprobs") or []
    if response.get("text"):
        logprobs = []
    if len({*right}) == len(choices) and not logprobs:
        return {_OPTIONS: None, _GOLD: choices, _LIKELIHOODS: None}
    found: dict[str, Any] = {_OPTIONS: read_options(choices), _GOLD: sorted({*right}), _LIKELIHOODS: None}
    if logprobs:
        if len(logprobs) != len(choices):
            raise CellError(f"{len(logprobs)} log-probabilities for {len(choices)} choices")
        greedy = response.get("argmax_logits_eq_gold") or []
        alone = response.get("unconditioned_logprobs") or []
        found[_LIKELIHOODS] = [
            {"text": text, "logprob": logprob,
             **({"greedy": bool(greedy[at])} if len(greedy) == len(choices) else {}),
             **({"alone": alone[at]} if len(alone) == len(choices) else {})}
            for at, (text, logprob) in enumerate(zip(choices, logprobs, strict=True))
        ]  # fmt: skip
    return found


def _opencompass(named: Named, _: Cells) -> Layout | None:
    if not _has(named, "origin_prompt", "prediction"):
        return None
    roles = {"question": "origin_prompt", "output": "prediction", "gold": named.get("gold", "gold")}
    return Layout(
        name="OpenCompass predictions", why="the keys origin_prompt and prediction",
        roles={**roles, **({"id": "idx"} if "idx" in named else {})}, tool="opencompass",
        hidden_hint="OpenCompass does not write golds that are 0 or empty: without them nothing can be scored",
    )  # fmt: skip


def _deepeval(named: Named, _: Cells) -> Layout | None:
    if not _has(named, "input", "actualoutput"):
        return None
    return Layout(
        name="deepeval test run", why="the keys input and actualOutput",
        roles={"question": named["input"], "output": named["actualoutput"],
               "gold": named.get("expectedoutput", "expectedOutput"), "source_scores": _SCORES},
        adapt=_adapt_deepeval, tool="deepeval", allows_hidden=True,
        notes=("deepeval's own scores are mostly given by a model that judges",),
    )  # fmt: skip


def _adapt_deepeval(cells: Cells) -> dict[str, Any]:
    scores = {}
    for metric in cells.get("metricsData") or ():
        if isinstance(metric, Mapping) and isinstance(metric.get("name"), str):
            scores[metric["name"]] = metric.get("score")
    return {_SCORES: scores}


_GOLD, _OPTIONS, _THOUGHT, _LIKELIHOODS, _SCORES = "\0gold", "\0options", "\0thought", "\0likelihoods", "\0scores"
"""Keys of what a layout adapts: no column is called so."""

_LAYOUTS: Sequence[Callable[[Named, Cells], Layout | None]] = (
    _lighteval, _opencompass, _deepeval, _hellaswag, _truthfulqa_choice, _truthfulqa_text, _squad, _boolq, _gsm8k,
)  # fmt: skip
