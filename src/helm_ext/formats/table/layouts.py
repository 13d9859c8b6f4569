"""Layouts that are known by their structure: of public datasets, and of what other tools write.

What a layout needs beyond the names of columns (`roles`) is said here: golds that stand inside a longer text, options
that depend on the row, what readers of a score must know. Each is recognised by its columns and its first row; a row
that then breaks it is an error with its line.

Columns are known in any case: what is said here of a row's cells goes by names in lower case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from helm_ext.errors import show
from helm_ext.formats.imported.gold import Kind
from helm_ext.formats.imported.row import RowError, as_list, as_object, parse_list
from helm_ext.formats.imported.tables import Cells, read_options, to_text


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a known table is laid out. That of an unknown one says nothing."""

    name: str = ""
    columns: Sequence[str] = ()
    """Those that a table must have, in lower case."""
    why: str = ""
    """By what it was recognised, in words; `{column}` is how the table spells it."""
    fits: Callable[[Cells], bool] | None = None
    """Whether the first row, with all columns, is laid out so."""
    of_first: Callable[[Cells], Mapping[str, Any]] | None = None
    """What else of the layout the first row says."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role to column."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Role that is no column to what of the cells it is, in words, as `why`."""
    adapt: Callable[[Cells], Mapping[str, Any]] | None = None
    """From the cells of a row to the values of these. Raises RowError."""
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


def fold(column: str) -> str:
    """Return the name of a column as layouts and candidates spell it."""
    return column.strip().casefold().replace(" ", "_")


def find_layout(columns: Sequence[str], sample: Cells) -> Layout:
    """Return the layout of a table with these columns and this first row."""
    named = {fold(column): column for column in columns}
    first = {name: sample.get(column) for name, column in named.items()}
    for layout in _LAYOUTS:
        if named.keys() >= {*layout.columns} and (layout.fits is None or layout.fits(first)):
            found = replace(layout, **layout.of_first(first)) if layout.of_first is not None else layout
            roles = {
                role: named.get(fold(column), column)
                for role, column in found.roles.items()
                if role == "gold" or "." in column or fold(column) in named
            }
            made = {role: words.format_map(named) for role, words in found.made.items()}
            adapt = None if found.adapt is None else partial(_adapt, found.adapt)
            return replace(found, why=found.why.format_map(named), roles=roles, made=made, adapt=adapt)
    return Layout()


def is_of_tool(keys: Collection[str]) -> bool:
    """Whether rows with these keys, in lower case, are those that a known tool writes."""
    return any(layout.tool and {*layout.columns}.issubset(keys) for layout in _LAYOUTS)


def _adapt(adapt: Callable[[Cells], Mapping[str, Any]], cells: Cells) -> Mapping[str, Any]:
    return adapt({fold(column): value for column, value in cells.items()})


_HELLASWAG = Layout(
    name="HellaSwag", columns=("ctx", "endings", "label"), why="the columns ctx, endings and label",
    roles={"question": "ctx", "options": "endings", "gold": "label"}, index_base=0,
    notes=(
        (
            "the question is the column `ctx`; lm-eval shows models `activity_label: ctx_a` and `ctx_b`, with what "
            "stands in [brackets] removed: recordings made with it answered another text"
        ),
    ),
    hidden_hint="HellaSwag's test split has no labels: use the validation split",
)  # fmt: skip


_AFTER_HASHES = re.compile(r"####\s*(\S[^\n]*?)\s*\Z")


def _adapt_gsm8k(cells: Cells) -> dict[str, Any]:
    text = cells.get("answer")
    match = _AFTER_HASHES.search(text) if isinstance(text, str) else None
    if match is None or not isinstance(text, str):
        raise RowError(f'expected an answer that ends in "#### RESULT", got {show(text)}')
    thought = re.sub(r"<<[^<>]*>>", "", text[: text.rindex("####")]).strip()
    return {"gold": match[1].replace(",", ""), "thought": thought}


_GSM8K = Layout(
    name="GSM8K", columns=("question", "answer"), why="answers that end in `#### RESULT`",
    fits=lambda row: isinstance(row["answer"], str) and _AFTER_HASHES.search(row["answer"]) is not None,
    roles={"question": "question"}, adapt=_adapt_gsm8k,
    made={"gold": "what follows #### in {answer}, without commas", "thought": "what stands before"},
    notes=("what counts is the last number of each answer, as in lm-eval's flexible-extract",),
    scoring={"extract": r"(-?\d[\d,]*(?:\.\d+)?)"},
    live={"max_tokens": 400, "stop_sequences": ["\n\n"]},
)  # fmt: skip


def _truthfulqa_choice(column: str) -> Layout:
    def adapt(cells: Cells) -> dict[str, Any]:
        targets = cells.get(column)
        targets = parse_list(targets) if isinstance(targets, str) else targets
        labels = as_object(targets).get("labels")
        if not isinstance(labels, list):
            raise RowError(f"expected choices and labels, got {show(targets)}")
        return {"gold": labels, "options": read_options(targets)}

    return Layout(
        name="TruthfulQA (multiple choice)", columns=("question", column), why=f"the column {{{column}}}",
        roles={"question": "question"}, adapt=adapt, gold_kind="flags",
        made={"options": f"{{{column}}}.choices", "gold": f"the 1s of {{{column}}}.labels"},
        live_notes=("the right option is the first of every row of the file: a live run shows them in another order",),
        shuffles=True,
    )  # fmt: skip


def _adapt_truthfulqa_text(cells: Cells) -> dict[str, Any]:
    accepted = cells.get("correct_answers")
    if isinstance(accepted, str):
        accepted = parse_list(accepted) if accepted.lstrip().startswith("[") else accepted.split(";")
    if not isinstance(accepted, list):
        raise RowError(f"expected a list of answers, got {show(accepted)}")
    texts = [to_text(text).strip() for text in [cells.get("best_answer") or "", *accepted]]
    return {"gold": list(dict.fromkeys(filter(None, texts)))}


_TRUTHFULQA_TEXT = Layout(
    name="TruthfulQA (text)", columns=("question", "best_answer", "correct_answers"),
    why="the columns best_answer and correct_answers",
    roles={"question": "question"}, adapt=_adapt_truthfulqa_text, made={"gold": "{best_answer} and {correct_answers}"},
    notes=("answers are compared with the correct ones as texts; the paper has a model judge them",),
)  # fmt: skip

_SQUAD = Layout(
    name="SQuAD", columns=("context", "question", "answers"),
    why="the columns context, question and answers with text and answer_start",
    fits=lambda row: isinstance(row["answers"], Mapping) or str(row["answers"]).startswith("{"),
    roles={"question": "question", "context": "context"},
    adapt=lambda cells: {"gold": _read_spans(cells.get("answers"))}, made={"gold": "{answers}.text"},
    notes=(
        'a question without an answer (version 2) has the gold "": an empty prediction is right',
        "normalized_exact_match and normalized_f1 count it so; HELM's exact_match and f1_score say 0",
    ),
)  # fmt: skip


def _read_spans(value: Any) -> list[str]:
    """Return the accepted texts; [""] for a question that cannot be answered from its context."""
    answers = parse_list(value) if isinstance(value, str) else value
    texts = as_object(answers).get("text") if "answer_start" in as_object(answers) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RowError(f"expected answers with text and answer_start, got {show(value)}")
    return list(dict.fromkeys(texts)) or [""]


_TRUTHS: Mapping[Any, bool] = {
    True: True, False: False, "true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
}  # fmt: skip


def _read_truth(value: Any) -> bool | None:
    """Return the gold of a row of BoolQ; None where it is hidden. Raises RowError."""
    if value is None or value in (-1, "-1", ""):
        return None
    key = value.strip().casefold() if isinstance(value, str) else value
    if not isinstance(key, str | int) or key not in _TRUTHS:
        raise RowError(f"expected true or false, got {show(value)}")
    return _TRUTHS[key]


def _boolq(column: str, other: str) -> Layout:
    """`other`: where both are there, neither is taken for it."""

    def fits(row: Cells) -> bool:
        with suppress(RowError):
            _read_truth(row[column])
            return other not in row
        return False

    return Layout(
        name="BoolQ", columns=("question", "passage", column), fits=fits,
        why=f"the columns question, passage and {{{column}}} with true or false",
        roles={"question": "question", "context": "passage"},
        adapt=lambda cells: {"gold": _read_truth(cells.get(column))}, made={"gold": f"{{{column}}}"},
        hidden_hint="BoolQ's test split has no answers: use the validation split",
    )  # fmt: skip


def _adapt_lighteval(cells: Cells) -> dict[str, Any]:
    """Return the golds of a row: options where not every choice is right, else accepted texts."""
    doc, response = as_object(cells.get("doc")), as_object(cells.get("model_response"))
    choices, index = doc.get("choices"), doc.get("gold_index")
    right = index if isinstance(index, list) else [index]
    if not isinstance(choices, list) or not choices:
        raise RowError(f"expected doc.choices, got {show(choices)}")
    if not all(isinstance(at, int) and 0 <= at < len(choices) for at in right):
        raise RowError(f"doc.gold_index is {show(index)}, and there are {len(choices)} choices")
    logprobs = [] if response.get("text") else as_list(response.get("logprobs"))
    if len({*right}) == len(choices) and not logprobs:
        return {"options": None, "gold": choices, "likelihoods": None}
    found: dict[str, Any] = {"options": read_options(choices), "gold": sorted({*right}), "likelihoods": None}
    if logprobs:
        if len(logprobs) != len(choices):
            raise RowError(f"{len(logprobs)} log-probabilities for {len(choices)} choices")
        greedy = as_list(response.get("argmax_logits_eq_gold"))
        alone = as_list(response.get("unconditioned_logprobs"))
        if wrong := [one for one in (*logprobs, *alone) if isinstance(one, bool) or not isinstance(one, int | float)]:
            raise RowError(f"expected numbers as log-probabilities, got {show(wrong[0])}")
        found["likelihoods"] = [
            {"text": text, "logprob": logprob,
             **({"greedy": bool(greedy[at])} if len(greedy) == len(choices) else {}),
             **({"alone": alone[at]} if len(alone) == len(choices) else {})}
            for at, (text, logprob) in enumerate(zip(found["options"].values(), logprobs, strict=True))
        ]  # fmt: skip
    return found


_LIGHTEVAL = Layout(
    name="lighteval details", columns=("doc", "model_response"), why="the columns doc and model_response",
    fits=lambda row: isinstance(row["doc"], Mapping) and isinstance(row["model_response"], Mapping),
    adapt=_adapt_lighteval, tool="lighteval",
    roles={"question": "doc.query", "output": "model_response.text", "id": "doc.id", "source_scores": "metric"},
    made={"options": "doc.choices, where not all of them are right", "gold": "doc.gold_index",
          "likelihoods": "model_response.logprobs"},
)  # fmt: skip


_OPENCOMPASS = Layout(
    name="OpenCompass predictions", columns=("origin_prompt", "prediction"), tool="opencompass",
    why="the keys origin_prompt and prediction",
    roles={"question": "origin_prompt", "output": "prediction", "gold": "gold", "id": "idx"},
    hidden_hint="OpenCompass does not write golds that are 0 or empty: without them nothing can be scored",
)  # fmt: skip


def _adapt_deepeval(cells: Cells) -> dict[str, Any]:
    scores = {}
    for metric in as_list(cells.get("metricsdata")):
        if isinstance(as_object(metric).get("name"), str):
            scores[metric["name"]] = metric.get("score")
    return {"source_scores": scores}


_DEEPEVAL = Layout(
    name="deepeval test run", columns=("input", "actualoutput"), why="the keys input and actualOutput",
    roles={"question": "input", "output": "actualOutput", "gold": "expectedOutput"},
    made={"source_scores": "metricsData"}, adapt=_adapt_deepeval, tool="deepeval",
    allows_hidden=True, notes=("deepeval's own scores are mostly given by a model that judges",),
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
    prompt, response, test = cells.get("prompt"), as_object(cells.get("response")), as_object(cells.get("testcase"))
    raw = prompt.get("raw") if isinstance(prompt, Mapping) else prompt
    output = response.get("output")
    if output is not None and not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False)
    assertions = map(as_object, as_list(test.get("assert")))
    variables = as_object(cells.get("vars") or test.get("vars"))
    golds = [each.get("value") for each in assertions if str(each.get("type")) in _COMPARED]
    scores = dict(as_object(cells.get("namedscores")))
    if not cells.get("error"):
        scores = {"score": cells.get("score"), "pass": cells.get("success"), **scores}
    return {
        "question": _read_turns(raw), "output": output, "source_scores": scores,
        "gold": _fill_in(golds[0], variables) if golds else None,
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


_PROMPTFOO = Layout(
    name="promptfoo results", columns=("promptidx", "testcase", "prompt"),
    why="the keys promptIdx, testCase and prompt", adapt=_adapt_promptfoo, tool="promptfoo", allows_hidden=True,
    made={
        "question": "prompt.raw", "output": "response.output", "source_scores": "score, success, namedScores",
        "gold": "testCase.assert: what the answer must be equal to, or contain",
    },
    hidden_hint="no assertion says what the answer must be equal to, or contain: name the variable, gold=vars.NAME",
    notes=("golds are what promptfoo's assertions compare with; whether a row passed stands beside as `pass`",),
    model=_name_promptfoo_run, main="pass",
)  # fmt: skip


def _read_review(cells: Cells) -> Mapping[str, Any]:
    return as_object(as_object(cells.get("sample_score")).get("score"))


def _adapt_evalscope(cells: Cells) -> dict[str, Any]:
    score = _read_review(cells)
    if not score:
        raise RowError(f"expected sample_score.score, got {show(cells.get('sample_score'))}")
    extracted, whole = score.get("extracted_prediction"), score.get("prediction")
    asked = [turn for turn in as_list(cells.get("messages")) if isinstance(turn, Mapping)]
    while asked and asked[-1].get("role") != "user":
        asked.pop()
    turns = [{"role": turn.get("role"), "content": _join_parts(turn.get("content"))} for turn in asked]
    question = turns[0]["content"] if len(turns) == 1 else turns or cells.get("input")  # first versions: a text
    return {
        "question": question, "output": extracted if extracted is not None else whole,
        "source_scores": as_object(score.get("value")),
    }  # fmt: skip


def _join_parts(content: Any) -> Any:
    """Return the text of a turn whose content may be in parts."""
    if not isinstance(content, list):
        return content
    parts = [part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    if len(parts) != len(content):
        raise RowError("the question holds pictures, or other parts that are no text, which tables do not have")
    return "\n".join(parts)


def _name_main_score(row: Cells) -> dict[str, Any]:
    score = _read_review(row)
    return {"main": str(score.get("main_score_name") or next(iter(as_object(score.get("value"))), ""))}


_EVALSCOPE = Layout(
    name="evalscope reviews", columns=("index", "target", "sample_score"), tool="evalscope", allows_hidden=True,
    why="the keys index, target and sample_score", adapt=_adapt_evalscope,
    of_first=_name_main_score,
    roles={"gold": "target", "id": "index"},
    made={"question": "messages up to the answer", "output": "the answer that evalscope extracted, else all",
          "source_scores": "sample_score.score.value"},
)  # fmt: skip


_RAGAS = Layout(
    name="ragas samples", columns=("user_input", "response", "reference"), tool="ragas",
    why="the columns {user_input}, {response}, {reference}",
    roles={"question": "user_input", "output": "response", "gold": "reference"},
    notes=("answers are compared with the reference as texts; scores=COLUMN+COLUMN takes ragas' own along",),
)  # fmt: skip
"""Its samples since 0.2 (dataset_schema.py)."""


def _adapt_export(run: Any, cells: Cells) -> dict[str, Any]:
    if cells.get("run") != run:
        hint = "export each run to a file of its own: helm-ext export FOLDER"
        raise RowError(f"rows of several runs: {show(run)} and {show(cells.get('run'))}", hint)
    for column in ("trial", "perturbation"):
        if str(cells.get(column) or 0) not in ("0", "0.0"):
            hint = (
                "helm-ext score RUN/scenario_state.json scores the run again, with all of its trials and perturbations"
            )
            raise RowError(f"a question of {column} {show(cells[column])}: it would count as one of its own", hint)
    options, completions = _parsed(cells, "options"), _parsed(cells, "completions")
    answers = [each.get("text") for each in as_list(completions) if isinstance(each, Mapping)]
    return {
        "question": cells.get("input") or _parsed(cells, "messages"),
        "options": read_options(options) if options else None,
        "gold": _parsed(cells, "gold"),
        "output": None if cells.get("left_out") else answers or None,
    }


def _parsed(cells: Cells, column: str) -> Any:
    """Return what a cell holds, also where it is written as text: in CSV every cell is."""
    value = cells.get(column)
    return parse_list(value) if isinstance(value, str) and value else value or None


_OWN_EXPORT = Layout(
    name="helm-ext export", why="the columns run, instance_id, completions and left_out",
    columns=("run", "instance_id", "input", "messages", "gold", "options", "completions", "left_out"),
    of_first=lambda row: {"adapt": partial(_adapt_export, row["run"])},
    roles={"id": "instance_id"},
    made={"question": "input, else messages", "options": "options", "gold": "gold", "output": "completions"},
    notes=("how the run was scored (extract=, completions=, ...) is not in the file; its scenario_state.json says it",),
    gold_kind="text", model=lambda cells: str(cells.get("model") or ""),
)  # fmt: skip
"""`helm-ext export` of predictions (`analysis.export.tables`), in each of its kinds of file."""

_LAYOUTS = (
    _LIGHTEVAL, _OPENCOMPASS, _DEEPEVAL, _PROMPTFOO, _EVALSCOPE, _RAGAS, _OWN_EXPORT, _HELLASWAG,
    _truthfulqa_choice("mc1_targets"), _truthfulqa_choice("mc2_targets"), _TRUTHFULQA_TEXT, _SQUAD,
    _boolq("answer", "label"), _boolq("label", "answer"), _GSM8K,
)  # fmt: skip
"""The first that a table has the columns of, and whose first row fits, is its own."""
