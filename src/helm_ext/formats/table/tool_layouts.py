"""Layouts of the tables that other tools write. Golds, outputs and scores stand inside their cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helm_ext.errors import show
from helm_ext.formats.table.cells import CellError, parse_list, read_options
from helm_ext.formats.table.layouts import (
    GOLD,
    LAYOUTS,
    LIKELIHOODS,
    OPTIONS,
    OUTPUT,
    QUESTION,
    SCORES,
    Layout,
    Named,
    has,
)
from helm_ext.formats.table.table import Cells


def find_layout(columns: Sequence[str], sample: Cells) -> Layout | None:
    """Return the layout of a table with these columns and this first row; None for one that is not known."""
    named = {column.strip().casefold().replace(" ", "_"): column for column in columns}
    return next((found for find in (*_TOOL_LAYOUTS, *LAYOUTS) if (found := find(named, sample)) is not None), None)


def _lighteval(_: Named, sample: Cells) -> Layout | None:
    if not isinstance(sample.get("doc"), Mapping) or not isinstance(sample.get("model_response"), Mapping):
        return None
    return Layout(
        name="lighteval details", why="the columns doc and model_response", adapt=_adapt_lighteval, tool="lighteval",
        roles={"question": "doc.query", "options": OPTIONS, "gold": GOLD, "output": "model_response.text",
               "id": "doc.id", "likelihoods": LIKELIHOODS, "source_scores": "metric"},
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
        return {OPTIONS: None, GOLD: choices, LIKELIHOODS: None}
    found: dict[str, Any] = {OPTIONS: read_options(choices), GOLD: sorted({*right}), LIKELIHOODS: None}
    if logprobs:
        if len(logprobs) != len(choices):
            raise CellError(f"{len(logprobs)} log-probabilities for {len(choices)} choices")
        greedy = response.get("argmax_logits_eq_gold") or []
        alone = response.get("unconditioned_logprobs") or []
        found[LIKELIHOODS] = [
            {"text": text, "logprob": logprob,
             **({"greedy": bool(greedy[at])} if len(greedy) == len(choices) else {}),
             **({"alone": alone[at]} if len(alone) == len(choices) else {})}
            for at, (text, logprob) in enumerate(zip(choices, logprobs, strict=True))
        ]  # fmt: skip
    return found


def _opencompass(named: Named, _: Cells) -> Layout | None:
    if not has(named, "origin_prompt", "prediction"):
        return None
    roles = {"question": "origin_prompt", "output": "prediction", "gold": named.get("gold", "gold")}
    return Layout(
        name="OpenCompass predictions", why="the keys origin_prompt and prediction",
        roles={**roles, **({"id": "idx"} if "idx" in named else {})}, tool="opencompass",
        hidden_hint="OpenCompass does not write golds that are 0 or empty: without them nothing can be scored",
    )  # fmt: skip


def _deepeval(named: Named, _: Cells) -> Layout | None:
    if not has(named, "input", "actualoutput"):
        return None
    return Layout(
        name="deepeval test run", why="the keys input and actualOutput",
        roles={"question": named["input"], "output": named["actualoutput"],
               "gold": named.get("expectedoutput", "expectedOutput"), "source_scores": SCORES},
        adapt=_adapt_deepeval, tool="deepeval", allows_hidden=True,
        notes=("deepeval's own scores are mostly given by a model that judges",),
    )  # fmt: skip


def _adapt_deepeval(cells: Cells) -> dict[str, Any]:
    scores = {}
    for metric in cells.get("metricsData") or ():
        if isinstance(metric, Mapping) and isinstance(metric.get("name"), str):
            scores[metric["name"]] = metric.get("score")
    return {SCORES: scores}


def _promptfoo(named: Named, _: Cells) -> Layout | None:
    if not has(named, "promptidx", "testcase", "prompt"):
        return None
    return Layout(
        name="promptfoo results", why="the keys promptIdx, testCase and prompt", adapt=_adapt_promptfoo,
        tool="promptfoo", allows_hidden=True,
        roles={"question": QUESTION, "output": OUTPUT, "gold": GOLD, "source_scores": SCORES},
        shown={
            "question": "prompt.raw", "output": "response.output",
            "gold": "testCase.assert: what the answer must be equal to, or contain",
        },
        hidden_hint="no assertion says what the answer must be equal to, or contain: name the variable, gold=vars.NAME",
        notes=("golds are what promptfoo's assertions compare with; whether a row passed stands beside as `pass`",),
        model=_name_promptfoo_run, main="pass",
        several_models="score them one by one: jq -c '(.results.results? // .results)[] | "
        'select(.provider.id == "PROVIDER" and .promptIdx == 0)\' FILE > ONE.jsonl',
    )  # fmt: skip


def _name_promptfoo_run(cells: Cells) -> str:
    """Return the provider, and the prompt where it is not the first one."""
    provider = cells.get("provider")
    name = provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider
    index = cells.get("promptIdx") or 0
    return f"{name}-prompt-{index}" if index else str(name or "")


_COMPARED = {"equals", "iequals", "contains", "icontains", "contains-any", "icontains-any", "starts-with"}
"""Assertions of promptfoo whose value is what the answer must be, or hold."""

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def _adapt_promptfoo(cells: Cells) -> dict[str, Any]:
    prompt, response, test = cells.get("prompt"), cells.get("response"), cells.get("testCase")
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
    output = response.get("output") if isinstance(response, Mapping) else None
    if output is not None and not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False)
    assertions = test.get("assert") if isinstance(test, Mapping) else None
    variables = cells.get("vars") or (test.get("vars") if isinstance(test, Mapping) else None) or {}
    golds = [
        each.get("value") for each in assertions or () if isinstance(each, Mapping) and each.get("type") in _COMPARED
    ]
    scores = dict(cells.get("namedScores") or {})
    if not cells.get("error"):
        scores = {"score": cells.get("score"), "pass": cells.get("success"), **scores}
    return {
        QUESTION: _read_turns(raw), OUTPUT: output, SCORES: scores,
        GOLD: _fill_in(golds[0], variables) if golds else None,
    }  # fmt: skip


def _read_turns(prompt: Any) -> Any:
    """Return a prompt of promptfoo; where its text spells a conversation in JSON, the turns."""
    if not isinstance(prompt, str) or not prompt.lstrip().startswith("["):
        return prompt
    try:
        turns = json.loads(prompt)
    except ValueError:
        return prompt
    is_chat = bool(turns) and all(isinstance(turn, dict) and {"role", "content"} <= turn.keys() for turn in turns)
    return turns if is_chat else prompt


def _fill_in(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value that an answer is compared with; `{{name}}` alone is the variable of this name."""
    match = _VARIABLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return value if match is None else variables.get(match[1])


def _evalscope(named: Named, sample: Cells) -> Layout | None:
    if not has(named, "index", "target", "sample_score"):
        return None
    score = _read_review(sample)
    return Layout(
        main=str(score.get("main_score_name") or next(iter(score.get("value") or ()), "")),
        name="evalscope reviews", why="the keys index, target and sample_score", adapt=_adapt_evalscope,
        tool="evalscope", allows_hidden=True,
        roles={"question": QUESTION, "output": OUTPUT, "gold": "target", "id": "index", "source_scores": SCORES},
        shown={"question": "messages up to the answer", "output": "the answer that evalscope extracted, else all"},
    )  # fmt: skip


def _read_review(cells: Cells) -> Mapping[str, Any]:
    review = cells.get("sample_score")
    score = review.get("score") if isinstance(review, Mapping) else None
    return score if isinstance(score, Mapping) else {}


def _adapt_evalscope(cells: Cells) -> dict[str, Any]:
    score = _read_review(cells)
    if not score:
        raise CellError(f"expected sample_score.score, got {show(cells.get('sample_score'))}")
    extracted, whole = score.get("extracted_prediction"), score.get("prediction")
    asked = [turn for turn in cells.get("messages") or () if isinstance(turn, Mapping)]
    while asked and asked[-1].get("role") != "user":
        asked.pop()
    turns = [{"role": turn.get("role"), "content": _join_parts(turn.get("content"))} for turn in asked]
    question = turns[0]["content"] if len(turns) == 1 else turns or cells.get("input")
    value = score.get("value")
    return {
        QUESTION: question, OUTPUT: extracted if extracted is not None else whole,
        SCORES: value if isinstance(value, Mapping) else {},
    }  # fmt: skip


def _join_parts(content: Any) -> Any:
    """Return the text of a turn whose content may be in parts."""
    if not isinstance(content, list):
        return content
    parts = [part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    if len(parts) != len(content):
        raise CellError("the question holds pictures, or other parts that are no text, which tables do not have")
    return "\n".join(parts)


def _opencompass_details(named: Named, _: Cells) -> Layout | None:
    if not has(named, "prompt", "origin_prediction", "predictions", "references"):
        return None
    return Layout(
        name="OpenCompass results", why="details with prompt, predictions and references", tool="opencompass",
        roles={"question": "prompt", "output": "predictions", "gold": "references", "id": "idx",
               **({"source_scores": SCORES} if "correct" in named else {})},
        adapt=lambda cells: {SCORES: {"correct": cells.get("correct")}}, main="correct",
        notes=("what is scored is the answer that OpenCompass extracted; output=origin_prediction is all of it",),
    )  # fmt: skip


def _ragas(named: Named, _: Cells) -> Layout | None:
    """Its samples since 0.2 (dataset_schema.py), and before: there `answer` is the model's."""
    if has(named, "user_input", "response", "reference"):
        roles = {"question": named["user_input"], "output": named["response"], "gold": named["reference"]}
    elif has(named, "question", "answer", "contexts") and ("ground_truth" in named or "ground_truths" in named):
        gold = named.get("ground_truth", named.get("ground_truths", ""))
        roles = {"question": named["question"], "output": named["answer"], "gold": gold}
    else:
        return None
    return Layout(
        name="ragas samples", why=f"the columns {', '.join(roles.values())}", roles=roles, tool="ragas",
        notes=("answers are compared with the reference as texts; scores=COLUMN+COLUMN takes ragas' own along",),
    )  # fmt: skip


def _own_export(named: Named, sample: Cells) -> Layout | None:
    """`helm-ext export` of predictions (`analysis.export.columns`), in each of its kinds of file."""
    if not has(named, "run", "instance_id", "input", "messages", "gold", "options", "completions", "left_out"):
        return None
    run = sample.get("run")

    def adapt(cells: Cells) -> dict[str, Any]:
        if cells.get("run") != run:
            hint = "export each run to a file of its own: helm-ext export FOLDER"
            raise CellError(f"rows of several runs: {show(run)} and {show(cells.get('run'))}", hint)
        options, completions = _parsed(cells, "options"), _parsed(cells, "completions")
        answers = [each.get("text") for each in completions or () if isinstance(each, Mapping)]
        return {
            QUESTION: cells.get("input") or _parsed(cells, "messages"),
            OPTIONS: read_options(options) if options else None,
            GOLD: _parsed(cells, "gold"),
            OUTPUT: None if cells.get("left_out") else answers or None,
        }

    return Layout(
        name="helm-ext export", why="the columns run, instance_id, completions and left_out", adapt=adapt,
        roles={"question": QUESTION, "options": OPTIONS, "gold": GOLD, "output": OUTPUT, "id": "instance_id"},
        shown={"question": "input, else messages", "options": "options", "gold": "gold", "output": "completions"},
        gold_kind="text", model=lambda cells: str(cells.get("model") or ""),
    )  # fmt: skip


def _parsed(cells: Cells, column: str) -> Any:
    """Return what a cell holds, also where it is written as text: in CSV every cell is."""
    value = cells.get(column)
    return parse_list(value) if isinstance(value, str) and value else value or None


_TOOL_LAYOUTS: Sequence[Callable[[Named, Cells], Layout | None]] = (
    _lighteval, _opencompass, _opencompass_details, _deepeval, _promptfoo, _evalscope, _ragas, _own_export,
)  # fmt: skip
