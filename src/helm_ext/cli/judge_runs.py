"""What a judge is asked about the answers of a run, what its replies say, and the run with more judgements.

Each answer is a request state of a run that no HELM scenario makes: the same files, executors, caches and limits serve
it as any other run. Runs with judgements are written as runs that are scored again are.

Of rows whose own score could not be read (`--judge-unclear`), the judge says what an answer chooses, or whether it
refuses; which of that is right it is not told, and we decide. Only where `extract` found nothing in an answer without
options it compares with the reference, as `correct` does.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from helm_ext.analysis.json_arrays import RowKey, read_array, state_key
from helm_ext.analysis.labelling import answer_of, question_of, to_time
from helm_ext.analysis.predictions import Prediction
from helm_ext.analysis.runs import RunFiles
from helm_ext.analysis.siblings import read_sibling
from helm_ext.cli.common import echo, say, without_output, writing
from helm_ext.cli.score import print_scores, score_files
from helm_ext.cli.session import Settings, find_deployment, stand_in
from helm_ext.clients.client import notes_of
from helm_ext.errors import HelmExtError, RunEntryError, count
from helm_ext.evalset import EXTRA_KEY, row_extra
from helm_ext.files import canonical_json
from helm_ext.files.writing import open_part
from helm_ext.judging.judgement import Judgement, bind
from helm_ext.judging.rubrics import load_rubric
from helm_ext.parsing import is_cut_off
from helm_ext.scoring.reducers import FIRST
from helm_ext.scoring.score import ANSWER, CHOICE, REFUSAL, UNCLEAR, find_strict, judge_stat
from helm_ext.scoring.scores.refusal import find_expected

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.executor import Executor
    from helm.benchmark.run_spec import RunSpec

    from helm_ext.clients.request_files import Judging, Plan
    from helm_ext.judging.rubrics import Rubric
    from helm_ext.running.spending import Prices

GIVEN, SWAPPED = "given", "swapped"
_NO_OPTION = 0.0
"""The value of a reply that names no option."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one request asks a judge about."""

    state: RequestState
    """The request, as that of a run which no HELM scenario makes."""
    key: RowKey
    question: str
    """As a judgement is bound to it."""
    answer: str
    other: str | None
    order: str | None
    reads: Rubric
    """What reads the reply."""
    right: frozenset[float] | None
    """The verdicts that make an unclear row right; None where the verdict itself is the value."""


def plan_judging(plan: Plan) -> tuple[Plan, Iterator[tuple[RunSpec, list[RequestState]]]]:
    """Return what a judge is asked as `requests` plans a run entry. Raises HelmExtError."""
    assert plan.judging is not None
    deployment = find_deployment(plan.model, "--judge")
    sent_as = stand_in(deployment)
    run_spec, questions, _ = make_questions(plan.judging, plan.model, deployment)
    planned = iter([(run_spec, [one.state for one in questions])])
    return msgspec.structs.replace(plan, sent_as=plan.sent_as or sent_as), planned


def make_questions(judging: Judging, judge: str, deployment: str) -> tuple[RunSpec, list[Asked], str]:
    """Return what the judge is asked, and in words how many rows it is not asked about, "" for none.

    Raises HelmExtError for a broken run, and where no answer can be judged.
    """
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import ScenarioSpec

    rubric = judging.rubric
    run = RunFiles(Path(judging.run))
    spec = AdapterSpec(
        method="generation", model=judge, model_deployment=deployment, temperature=0.0, max_tokens=rubric.max_tokens,
        max_train_instances=0,
    )  # fmt: skip
    arguments = {"run": run.name, "criterion": rubric.criterion, "rubric_sha256": rubric.sha256}
    others: dict[RowKey, Prediction] = {}
    if judging.against is not None:
        other = RunFiles(Path(judging.against))
        arguments["against"] = other.name
        others = {row.key: row for row in other.predictions()}
    name = ",".join(f"{key}={value}" for key, value in arguments.items())
    run_spec = RunSpec(
        name=f"judge:{name},model={judge}", scenario_spec=ScenarioSpec("helm_ext.judging", arguments),
        adapter_spec=spec, metric_specs=[], groups=[],
    )  # fmt: skip
    asked: list[Asked] = []
    skipped = Counter[str]()
    for row in run.predictions():
        against = others.get(row.key) if rubric.is_pair else None
        told = _why_not(row, judging, against) or _find_question(row, rubric)
        if isinstance(told, str):
            skipped[told] += 1
        else:
            asked += _ask(spec, row, judging, against, *told)
    said = ", ".join(f"{number} {reason}" for reason, number in skipped.items())
    if not asked:
        raise HelmExtError(f"{judging.run}: no answer to judge: {said or 'no rows'}")
    return run_spec, asked, said


def _why_not(row: Prediction, judging: Judging, against: Prediction | None) -> str:
    """Return why nobody can judge a row; "" where one can."""
    if row.left_out or not row.completions:
        return "without an answer"
    if row.likelihoods or row.completions[0]["reference_index"] is not None or len(row.requests) > 1:
        return "answered by likelihoods, or in parts"
    if row.media:
        return "about images or files"
    if "reference" in judging.rubric.contents and not row.gold:
        return "without a reference"
    if judging.against is not None and (against is None or against.left_out or not against.completions):
        return "without an answer in the other run"
    if against is not None and question_of(against) != question_of(row):
        return "with another question in the other run"
    return ""


def _ask(
    spec: AdapterSpec, row: Prediction, judging: Judging, against: Prediction | None,
    question: str, reads: Rubric, right: frozenset[float] | None,
) -> Iterator[Asked]:  # fmt: skip
    from helm.benchmark.scenarios.scenario import Input, Instance
    from helm.common.request import Request

    from helm_ext.adaptation.rows import bare_state

    key = row.key
    contents = {"question": question, "reference": "\n".join(row.gold), "answer": answer_of(row)}
    answer, other = row.completions[0]["text"], None if against is None else against.completions[0]["text"]
    for order in (GIVEN, SWAPPED) if judging.swap else (GIVEN,):
        if against is not None:
            pair = (answer_of(row), answer_of(against))
            contents["answer_a"], contents["answer_b"] = pair if order == GIVEN else pair[::-1]
        prompt = judging.rubric.render(contents)
        parts = [key[0], *([f"t{key[2]}"] if key[2] else []), *([order] if order == SWAPPED else [])]
        parts += [_sha256(key[1])[:8]] if key[1] else []
        instance = Instance(Input(prompt), [], split="test", id="-".join(parts), extra_data={EXTRA_KEY: {}})
        request = Request(
            model=spec.model, model_deployment=spec.model_deployment, prompt=prompt, temperature=0.0,
            max_tokens=judging.rubric.max_tokens, num_completions=1, stop_sequences=[],
        )  # fmt: skip
        state, shown = bare_state(request, instance), None if against is None else order
        yield Asked(state, key, row.judged_question, answer, other, shown, reads, right)


def judge_run(
    judging: Judging,
    judge: str,
    make_executor: Callable[[RunSpec], Executor],
    prices: Prices | None,
    *,
    stands_in: bool,
) -> Judged:
    """Ask a judge, or read what it was asked and said; returns its judgements. Raises HelmExtError.

    `stands_in`: whether requests are those of a file, which our client's dialect is for.
    """
    from helm.benchmark.adaptation.scenario_state import ScenarioState

    deployment = find_deployment(judge, "--judge", is_asked=not stands_in)
    if stands_in:
        stand_in(deployment)
    run_spec, questions, said = make_questions(judging, judge, deployment)
    if said:
        echo(f"rows that are not judged: {said}")
    sent = ScenarioState(run_spec.adapter_spec, [one.state for one in questions])
    with without_output():  # HELM says where it looks for credentials
        executor = make_executor(run_spec)
    found: dict[RowKey, list[Judgement]] = {}
    rubric = judging.rubric
    common = Judgement(
        by=judge, kind="model", criterion=rubric.criterion, status="unparsed",
        scale=(0.0, 1.0) if rubric.criterion in UNCLEAR else rubric.to_scale(),
        rubric_sha256=rubric.sha256, params={"temperature": 0.0, "max_tokens": rubric.max_tokens},
    )  # fmt: skip
    for asked, state in zip(questions, executor.execute(sent).request_states, strict=True):
        left_out = row_extra(state.instance).get("left_out")
        made: dict[str, Any] = {"status": left_out} if left_out else _read(state, asked, prices)
        if asked.order == SWAPPED and made.get("value") is not None:
            made["value"] = rubric.scale[0] + rubric.scale[-1] - made["value"]
        prompt = _sha256(state.request.prompt)
        one = msgspec.structs.replace(common, order=asked.order, other=asked.other, prompt_sha256=prompt, **made)
        found.setdefault(asked.key, []).append(bind(one, asked.question, [asked.answer]))
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(state: RequestState, asked: Asked, prices: Prices | None) -> dict[str, Any]:
    """Return what a reply says, as keys of a judgement. The reply is kept whole."""
    assert state.result is not None
    [completion], notes = state.result.completions, notes_of(state.result)
    asked_at = state.result.request_datetime
    usage = notes.get("usage", {})
    tokens = {short: usage[name] for short, name in _USAGE.items() if name in usage}
    reason = completion.finish_reason
    value = asked.reads.read(completion.text, is_truncated=is_cut_off(reason))
    if value is not None and asked.right is not None:
        value = float(value in asked.right)
    if notes.get("refused") or (reason or {}).get("reason") == "content_filter":
        status, value = "refused", None
    else:
        status = "unparsed" if value is None else "ok"
    return {
        "status": status,
        "value": value,
        "reply": completion.text,
        "thinking": getattr(completion.thinking, "text", None),
        "tokens": tokens or None,
        "cost": prices.cost(tokens.get("in", 0), tokens.get("out", 0)) if tokens and prices else None,
        "model_version": notes.get("answered_by"),
        # Of a live judge alone: files of replies say when they were read, which is another digest each time.
        "at": None if asked_at is None else to_time(asked_at),
    }


_USAGE = {"in": "prompt_tokens", "out": "completion_tokens"}
"""A judgement's names of tokens, and OpenAI's."""


# Rows that could not be read


def find_unclear(folder: Path) -> Rubric | None:
    """Return the rubric for a run's unclear rows; None, which is said, where all were read.

    Raises RunEntryError for a run whose unclear rows cannot be judged.
    """
    run = RunFiles(folder)
    arguments = run.metric_arguments
    metrics = arguments.get("metrics", [])
    if arguments.get("output_format") == "list" or run.adapter_spec.get("multi_label"):
        raise RunEntryError("--judge-unclear: rows with several right answers at once are not judged")
    if arguments.get("completions", FIRST) != FIRST:
        raise RunEntryError("--judge-unclear: rows that are scored by several completions are not judged")
    unclear, criterion = 0, REFUSAL if "refusal_match" in metrics else ANSWER
    for row in run.predictions():
        if row.options:
            criterion = CHOICE
        unclear += any(row.score(flag) for flag in {*UNCLEAR.values()})
    if find_strict(criterion, metrics, str(arguments.get("main_metric"))) is None:
        raise RunEntryError(
            f"{folder}: no score that rows can be unclear for\n  hint: exact_match or quasi_exact_match, of options or "
            "with extract=; or refusal_match"
        )
    if not unclear:
        echo("nothing is unclear: no judge is asked")
        return None
    echo(f"{count(unclear, 'row')} that could not be read: judged by {criterion}")
    if criterion == ANSWER:
        return msgspec.structs.replace(load_rubric("correct"), criterion=ANSWER)
    return load_rubric(criterion)


def _find_question(row: Prediction, rubric: Rubric) -> tuple[str, Rubric, frozenset[float] | None] | str:
    """Return the question as the judge sees it, what reads the reply, and of an unclear row the values of replies that
    are right; or why the row is not asked about.
    """
    if rubric.criterion not in UNCLEAR:
        return question_of(row), rubric, None
    if not row.score(UNCLEAR[rubric.criterion]):
        return "that could be read"
    if rubric.criterion == ANSWER:
        return question_of(row), rubric, frozenset({1.0})
    if rubric.criterion == REFUSAL:
        expected = find_expected(row.data, row.gold)
        if "unclear" in expected or not expected:
            return "whose expected text is unclear itself"
        return question_of(row), rubric, frozenset(float(one == "refused") for one in expected)
    options = row.options or {}
    right = frozenset(float(at) for at, text in enumerate(options.values(), 1) if text in row.gold)
    if not right:
        return "without a right option"
    shown = (label if label == text else f"{label}. {text}" for label, text in options.items())
    values = {word: value for word, value in (rubric.values or {}).items() if value == _NO_OPTION}
    values |= {label: float(at) for at, label in enumerate(options, 1)}
    return "\n".join([row.question, *shown]), msgspec.structs.replace(rubric, values=values), right


Judged = Mapping[RowKey, Sequence[Judgement]]
"""What was said of each row."""

_KEY = "judgements"
_FOLDER = "judged"
"""Of HELM's output folder: the files that judged runs are scored from. The name of their suite, where none is given."""
_LAST = "per_instance_stats.json"
"""The file of a run that is put in place last and taken away first: a killed one may hold the others alone."""


def write_judged(folder: Path, judged: Judged, settings: Settings, main_metric: str | None) -> None:
    """Write a run with more judgements, and score it as `helm-ext score` does.

    A run of the suite that was made so of the same answers, before they had these judgements, goes. A judgement takes
    the place of an earlier one of the same answer and criterion by the same judge. The main metric is what was judged,
    if that is one criterion, of which models spoke, and not only of unclear rows. Raises HelmExtError, also where the
    file or the run that goes has judgements that the new one would lack.
    """
    run = RunFiles(folder)
    model, name = run.model, str(run.scenario_arguments.get("name") or run.scenario_name)
    # One file of a suite for the questions and the model, whatever was judged before: `siblings` knows its versions.
    stem = "-".join([name, model, _digest_questions(run), *([settings.suite] if settings.suite != _FOLDER else [])])
    target = settings.output_path / _FOLDER / (re.sub(r"[^\w.-]+", "_", stem) + ".json")
    runs = settings.output_path / "runs" / settings.suite
    _require_none_lost(runs, target, run, judged)
    seen, by_models = set(), set()
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_part(target) as part:
            head = {"name": name, "adapter_spec": run.adapter_spec}
            part.file.write(orjson.dumps(head)[:-1] + b',"request_states":[\n')
            for number, state in enumerate(run.iter_states()):
                key = state_key(state)
                said, new = _list_said(state), judged.get(key, ()) if key not in seen else ()
                if new:
                    again = {one.identity for one in new}
                    said = [*(one for one in said if one.identity not in again), *new]
                    extra = state["instance"]["extra_data"] = state["instance"].get("extra_data") or {}
                    extra.setdefault(EXTRA_KEY, {})[_KEY] = [one.to_json() for one in said]
                seen.add(key)
                by_models |= {one.criterion for one in said if one.kind == "model"}
                part.file.write((b",\n" if number else b"") + _encode(state))
            part.file.write(b"\n]}\n")
            part.replace()
    before = {path: _identify(path) for path in runs.glob("*:*")}
    criteria = {one.criterion for judgements in judged.values() for one in judgements}
    is_main = len(criteria) == 1 and criteria <= by_models - UNCLEAR.keys()  # what is unclear is a part of the rows
    if alone := criteria - by_models:
        echo(f"note: no model judged {', '.join(sorted(alone))}: labels are kept, and are part of no score", err=True)
    main = main_metric or (judge_stat(*criteria) if is_main else None)
    for scored in score_files([target], "adapter_spec", {} if main is None else {"main_metric": main}, model, settings):
        assert scored is not None  # what cannot be scored alone is raised
        made = scored.files.folder
        for path in [path for path, one in before.items() if one == _identify(made) and path != made]:
            (path / _LAST).unlink(missing_ok=True)
            shutil.rmtree(path)
        say(scored.list_warnings())
        print_scores(scored)


def _identify(folder: Path) -> tuple[str, Any] | None:
    """Return what runs of the same answers share, whichever of their metrics is the main one; None for no run."""
    run = read_sibling(folder)
    return None if run is None else (re.sub(r",main_metric=[^,]*", "", run.identity[0]), run.identity[1])


def _require_none_lost(runs: Path, target: Path, run: RunFiles, judged: Judged) -> None:
    """Raise RunEntryError where `target`, or a run scored from it, has judgements that the new one would lack."""
    told = set(_list_told(run.iter_states(), judged))
    there = {target: _read_written(target)} if target.exists() else {}
    for path in runs.glob("*:*"):
        is_whole = read_sibling(path) is not None and (path / _LAST).is_file()
        if is_whole and (other := RunFiles(path)).scenario_arguments.get("path") == str(target):
            there[path] = other.iter_states()
    for path, states in there.items():
        if lost := sorted({f"{who[0]} by {who[2]}" for _, who, _ in set(_list_told(states)) - told}):
            hint = "add to the run that has them: name it (judge in: with --run); or name another --suite"
            raise RunEntryError(f"{path} has judgements that {run.folder} lacks: {', '.join(lost)}\n  hint: {hint}")


def _read_written(target: Path) -> Iterator[dict[str, Any]]:
    try:
        yield from read_array(target, "request_states")
    except (ValueError, KeyError) as error:
        hint = "move it away, if its judgements are not needed"
        raise RunEntryError(f"{target} would be written anew, and cannot be read: {error}\n  hint: {hint}") from error


def _list_told(
    states: Iterable[dict[str, Any]], judged: Judged | None = None
) -> Iterator[tuple[RowKey, tuple[Any, ...], str]]:
    """Yield who said something of which row, and a person of which answers: nobody can be asked for a label again.

    `judged`: what is said beside.
    """
    for state in states:
        key, answers = state_key(state), [one["text"] for one in (state.get("result") or {}).get("completions") or ()]
        for one in [*_list_said(state), *(judged or {}).get(key, ())]:
            yield key, one.identity, _sha256("\0".join(answers)) if one.kind == "human" else ""


def _digest_questions(run: RunFiles) -> str:
    digest = hashlib.sha256()
    for state in run.iter_states():
        asked = state["instance"]["input"]
        digest.update(canonical_json([state_key(state), asked.get("text"), asked.get("messages")]))
    return digest.hexdigest()[:6]


def _encode(state: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(state)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(state).encode()


def _list_said(state: dict[str, Any]) -> list[Judgement]:
    """Return what was said of a request state's row so far."""
    extra = (state["instance"].get("extra_data") or {}).get(EXTRA_KEY) or {}
    return msgspec.convert(extra.get(_KEY) or [], list[Judgement])
