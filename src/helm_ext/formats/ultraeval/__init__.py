"""UltraEval task sets (formats.md, section 2): data, transform script, optional config, lowered to an EvalSet.

    GEN   one request a row: the prompt; `processed_output` are the accepted answers
    PPL   one request an option: prompt + key of `target_scores`; the likeliest whole string wins

A transform script is the user's code: `load` runs it, with the user's rights.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.adapter_spec import (
    ADAPT_GENERATION,
    ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
    AdapterSpec,
)
from helm.benchmark.scenarios.scenario import CORRECT_TAG, TEST_SPLIT, Input, Instance, Output, Reference

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    Location,
    Problem,
    RunEntryError,
    TransformError,
    raise_for,
    show,
)
from helm_ext.evalset import EXTRA_KEY, EvalSet, RowExtra, Scoring
from helm_ext.formats.ultraeval import config as task_config
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.postprocess import comes_from_checkout, get_postprocess
from helm_ext.formats.ultraeval.prompt import Failure, Question, make_questions
from helm_ext.formats.ultraeval.rows import Rows, read_rows
from helm_ext.formats.ultraeval.script import Script, check_source, load_script
from helm_ext.formats.ultraeval.task import Task, resolve, tasks_of
from helm_ext.likelihood_rules import MAIN_STATS
from helm_ext.scores import get_scores
from helm_ext.scores.ultraeval import EXECUTING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check", "get_postprocess", "json_schema", "load", "tasks"]

FORMAT = "ultraeval"


def load(
    *,
    config: str | Path | None = None,
    task: str | None = None,
    data: str | Path | None = None,
    transform: str | Path | None = None,
    dataset: str | None = None,
    method: str | None = None,
    version: int | str | None = None,
    fewshot: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    demos: str | Path | None = None,
    postprocess: str | None = None,
    metric: Any = None,
    root: str | Path | None = None,
    dataset_name: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    allow_code: bool = False,
    name: str | None = None,
) -> EvalSet:
    """Read a task and run its transform script on every row that is asked for.

    Raises RunEntryError for arguments, DatasetError for files (TransformError: the script), with all problems at once.
    """
    found = resolve(
        config=config, task=task, data=data, transform=transform, dataset=dataset, method=method, version=version,
        fewshot=fewshot, demos=demos, postprocess=postprocess, metric=metric, root=root, dataset_name=dataset_name,
        max_tokens=max_tokens, temperature=temperature,
    )  # fmt: skip
    _require_allowed(found, allow_code=allow_code)
    seed = _whole("seed", seed, 0, least=None)
    shots = _whole("fewshot", found.fewshot, 0, least=0)
    cap = None if limit is None else _whole("limit", limit, 0, least=1)
    rows = read_rows(found.data)
    demonstrations = read_rows(found.demos) if found.demos is not None else None
    raise_for(_check_counts(rows, demonstrations, shots))
    checkout = open_checkout(found.root, found.script)
    script = load_script(found.script, checkout)
    if found.method == "gen":
        get_postprocess(found.postprocess, str(checkout.root) if checkout else None)
    questions: list[Question] = []
    failures: list[Failure] = []
    for made in make_questions(
        script, rows.rows, dataset_name=found.name, description=found.description, fewshot=shots, seed=seed, limit=cap,
        demos=None if demonstrations is None else demonstrations.rows,
    ):  # fmt: skip
        if isinstance(made, Question):
            questions.append(made)
        else:
            failures.append(made)
    problems = _failure_problems(failures, found.script, rows, demonstrations)
    if found.method == "ppl":
        problems += [
            p
            for q in questions
            for p in _check_options(rows.rows[q.index], Location(str(rows.path), rows.lines[q.index]))
        ]
    raise_for(problems)
    needs_row = any(score.row_function for score in get_scores().values() if score.name in found.metrics)
    from_checkout = found.method == "gen" and comes_from_checkout(found.postprocess, checkout)
    digest = _digest(
        [("data", rows.sha256), ("script", script.sha256)]
        + ([("demos", demonstrations.sha256)] if demonstrations else [])
        + [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in found.files]
        + ([("postprocess", checkout.digest())] if checkout and (from_checkout or script.uses_checkout) else [])
    )
    return EvalSet(
        name=name or found.name,
        format=FORMAT,
        digest=digest,
        instances=[_to_instance(question, rows, found, needs_row=needs_row) for question in questions],
        adapter_spec=_adapter_spec(found),
        scoring=Scoring(metrics=found.metrics if found.method == "gen" else (), main_metric=found.metrics[0]),
        display_name=found.name,
        description=_describe(found, shots),
        tags=_tags(found, script, rows, checkout.root if from_checkout and checkout else None),
        warnings=(*found.warnings, *_sampling_warnings(found)),
        counts={"rows": len(rows.rows), "train": 0, "eval": len(questions), "demonstrations": shots},
    )


def tasks(config: str | Path, *, method: str | None = None) -> list[str]:
    """Return the names of the tasks in a config file (those of one method), as `task=` takes them.

    Raises DatasetError.
    """
    wanted = {"gen": "generate", "ppl": "loglikelihood"}.get(method or "")
    return [name for name, task in tasks_of(Path(config)).items() if wanted in (None, task.generate.method)]


def check(*, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return every problem of a task and its counts, running the script on all rows unless `execute` is false.

    The arguments are those of `load`. Raises RunEntryError where they name no task.
    """
    resolvable = {key: value for key, value in arguments.items() if key not in ("seed", "limit", "allow_code", "name")}
    found = resolve(**resolvable)
    problems: list[Problem] = list(found.warnings)
    counts: dict[str, int] = {}
    try:
        _require_allowed(found, allow_code=bool(arguments.get("allow_code")))
    except RunEntryError as error:
        problems.append(Problem(str(error), Location(str(found.data)), "", "warning", "code-execution"))
    read: list[Rows | None] = []
    for path in (found.data, found.demos):
        try:
            read.append(read_rows(path) if path is not None else None)
        except DatasetError as error:
            problems.extend(error.problems or [Problem(str(error), Location(str(path)))])
            read.append(None)
    rows, demonstrations = read
    checkout = open_checkout(found.root, found.script)
    if rows is not None:
        counts = {"rows": len(rows.rows)}
        problems += _check_counts(rows, demonstrations, found.fewshot)
        if found.method == "ppl":
            places = zip(rows.rows, rows.lines, strict=True)
            problems += [p for row, line in places for p in _check_options(row, Location(str(rows.path), line))]
    if not execute:
        return problems + check_source(found.script, has_checkout=checkout is not None), counts
    try:
        script = load_script(found.script, checkout)
        if found.method == "gen":
            get_postprocess(found.postprocess, str(checkout.root) if checkout else None)
    except TransformError as error:
        return [*problems, *error.problems], counts
    except RunEntryError as error:
        return [*problems, Problem(str(error), Location(str(found.data)), code="postprocess")], counts
    failures = [
        made
        for is_demonstration, some in ((False, rows), (True, demonstrations))
        if some is not None
        for made in _transform_all(script, some, found, is_demonstration=is_demonstration)
    ]
    if rows is not None:
        problems += _failure_problems(failures, found.script, rows, demonstrations)
        counts["failed"] = len({failure.index for failure in failures if not failure.is_demonstration})
    return problems, counts


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of upstream's task configs."""
    return task_config.schema()


def _transform_all(script: Script, rows: Rows, task: Task, *, is_demonstration: bool) -> list[Failure]:
    """Run the script once on each row, without demonstrations."""
    made = make_questions(script, rows.rows, dataset_name=task.name)
    return [Failure(m.index, is_demonstration, m.problem) for m in made if isinstance(m, Failure)]


def _require_allowed(task: Task, *, allow_code: bool) -> None:
    executing = EXECUTING.intersection(task.metrics)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


def _whole(key: str, value: Any, default: int, *, least: int | None) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise RunEntryError(f"{key}={value}: expected a whole number{bound}")
    return value


def _check_counts(rows: Rows, demonstrations: Rows | None, fewshot: int) -> list[Problem]:
    """Demonstrations are drawn from n + 1 rows, of which one may be the question; from another file n are enough."""
    source, needed = (rows, fewshot + 1) if demonstrations is None else (demonstrations, fewshot)
    if not fewshot or len(source.rows) >= needed:
        return []
    of = f"{fewshot} demonstrations and the question" if demonstrations is None else f"{fewshot} demonstrations"
    return [
        Problem(
            f"{of} need {needed} rows, the file has {len(source.rows)}",
            Location(str(source.path)),
            f"fewshot={max(0, len(source.rows) - needed + fewshot)} is possible; demos=FILE draws from another file",
            code="too-few-rows",
            kind=DatasetIntegrityError,
        )
    ]


def _check_options(row: dict[str, Any], place: Location) -> list[Problem]:
    """PPL needs options with numbers: `target_scores` is a dict of at least one."""
    options = row.get("target_scores")
    place = Location(place.path, place.line, "target_scores")
    hint = "PPL compares the options of a row; free-form answers are scored with method=gen"
    if not isinstance(options, dict) or not options:
        said = "missing" if "target_scores" not in row else f"expected options with numbers, got {show(options)}"
        return [Problem(said, place, hint, code="no-options", kind=DatasetIntegrityError)]
    return [
        Problem(
            f"{show(option)}: expected a number, got {show(worth)}",
            place,
            code="not-a-number",
            kind=DatasetIntegrityError,
        )
        for option, worth in options.items()
        if not isinstance(worth, int | float) or math.isnan(worth)
    ]


def _failure_problems(
    failures: Iterable[Failure], script: Path, rows: Rows, demonstrations: Rows | None
) -> list[Problem]:
    """Return one problem a row, however often it was drawn as a demonstration."""
    problems: dict[tuple[bool, int, str], Problem] = {}
    for failure in failures:
        source = demonstrations if failure.is_demonstration and demonstrations is not None else rows
        problem = Problem(
            f"{source.path.name}, row {failure.index + 1}: {failure.problem.message}",
            Location(str(script), failure.problem.line),
            f"the row (line {source.lines[failure.index]}): {show(source.rows[failure.index])}",
            code=failure.problem.code,
            kind=TransformError,
        )
        problems.setdefault((failure.is_demonstration, failure.index, problem.code), problem)
    return [problem for _, problem in sorted(problems.items(), key=lambda item: item[0])]


def _to_instance(question: Question, rows: Rows, task: Task, *, needs_row: bool) -> Instance:
    row = rows.rows[question.index]
    extra = RowExtra(prompt=list(question.parts))
    if task.method == "ppl":
        options: dict[str, Any] = row["target_scores"]
        best = max(options.values())
        references = [
            Reference(Output(text=option), tags=[CORRECT_TAG] if worth == best and worth > 0 else [])
            for option, worth in options.items()
        ]
        extra["score"] = {option: float(worth) for option, worth in options.items()}
    else:
        references = [
            Reference(Output(text=text), tags=[CORRECT_TAG]) for text in question.transformed.processed_output
        ]
        if task.sampling.decoding:
            extra["decoding"] = task.sampling.decoding
        if needs_row:
            extra["data"] = row
    return Instance(
        input=Input(text=question.parts[-1]),
        references=references,
        split=TEST_SPLIT,
        id=f"id{question.index}",
        extra_data={EXTRA_KEY: extra},
    )


def _adapter_spec(task: Task) -> AdapterSpec:
    """Every prefix and suffix is empty: the prompt is made here (formats.md, section 2)."""
    sampling = task.sampling
    is_gen = task.method == "gen"
    return AdapterSpec(
        method=ADAPT_GENERATION if is_gen else ADAPT_MULTIPLE_CHOICE_SEPARATE_ORIGINAL,
        instructions="", input_prefix="", input_suffix="", reference_prefix="", reference_suffix="",
        output_prefix="", output_suffix="", instance_prefix="", max_train_instances=0,
        num_outputs=sampling.num_outputs if is_gen else 1,
        temperature=sampling.temperature if is_gen else 0.0,
        max_tokens=sampling.max_tokens if is_gen else 0,
        stop_sequences=list(sampling.stop) if is_gen else [],
    )  # fmt: skip


def _describe(task: Task, shots: int) -> str:
    kind = "generation" if task.method == "gen" else "perplexity of the options"
    return f"UltraEval task {task.name}: {kind}, {task.script.name}, {shots}-shot."


def _tags(task: Task, script: Script, rows: Rows, root: Path | None) -> tuple[str, ...]:
    tags = {
        "method": task.method,
        "dataset": task.dataset,
        "script": task.version or task.script.stem,
        "script_sha": script.sha256[:12],
        "data_sha": rows.sha256[:12],
    }
    if task.method == "ppl":
        tags["rule"] = next(rule for rule, stat in MAIN_STATS.items() if stat == task.metrics[0])
    elif task.postprocess:
        tags["postprocess"] = task.postprocess
        if root is not None:
            tags["root"] = str(root)
    return tuple(f"{key}={value}" for key, value in tags.items())


def _sampling_warnings(task: Task) -> list[Problem]:
    if task.method != "gen" or task.sampling.num_outputs == 1:
        return []
    message = f"{task.sampling.num_outputs} answers are sampled for each row; scores are those of the first"
    return [Problem(message, Location(str(task.data)), "", "warning", "several-samples")]


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{role}:{sha256}\n" for role, sha256 in parts)
    return hashlib.sha256(text.encode()).hexdigest()
