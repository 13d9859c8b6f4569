"""The steps from a task, or a finished run, to an EvalSet; and its check."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    Location,
    Problem,
    RunEntryError,
    TransformError,
    raise_for,
    show,
    to_problem,
)
from helm_ext.evalset import EvalSet, Places
from helm_ext.formats.ultraeval import config as task_config
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.checkout_metrics import digest_metrics, require_metrics
from helm_ext.formats.ultraeval.evalset_parts import (
    FORMAT,
    make_digest,
    make_scoring,
    needs_row,
    require_allowed,
)
from helm_ext.formats.ultraeval.facts import TaskFacts
from helm_ext.formats.ultraeval.finished_run import check_log, find_log, load_log
from helm_ext.formats.ultraeval.lowering import check_options, question_to_instance, to_adapter_spec
from helm_ext.formats.ultraeval.options import Options, read_options
from helm_ext.formats.ultraeval.postprocess import comes_from_checkout, get_postprocess
from helm_ext.formats.ultraeval.prompt import Failure, Question, make_questions
from helm_ext.formats.ultraeval.rows import Rows, read_rows
from helm_ext.formats.ultraeval.script import Script, TransformProblem, check_source, load_script
from helm_ext.formats.ultraeval.task import Task, resolve, tasks_of
from helm_ext.scoring.scores.ultraeval import EXECUTING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check", "get_postprocess", "json_schema", "load", "tasks"]


def load(**arguments: Any) -> EvalSet:
    """Read a task and run its transform script on every row that is asked for. The arguments are those of `Options`.

    Raises RunEntryError for arguments, DatasetError for files (TransformError: the script), with all problems at once.
    """
    options = read_options(arguments)
    log = _find_log(options)
    if log is not None:
        return load_log(log, options)
    found = resolve(options)
    require_allowed(found.metrics.names, allow_code=options.allow_code)
    shots, cap = found.fewshot, options.limit
    rows = read_rows(found.data)
    demonstrations = read_rows(found.demos) if found.demos is not None else None
    raise_for(_check_counts(rows, demonstrations, shots) + _check_rows(found, rows, cap))
    checkout = open_checkout(found.root, found.script)
    script = load_script(found.script, checkout)
    if found.method == "gen":
        get_postprocess(found.postprocess, str(checkout.root) if checkout else None)
    own_metrics = found.metrics.from_checkout
    require_metrics(own_metrics.values(), checkout, execute=True)
    questions: list[Question] = []
    failures: list[Failure] = []
    demos = demonstrations.rows if demonstrations is not None else None
    for made in make_questions(script, found, rows.rows, seed=options.seed or 0, limit=cap, demos=demos):
        if isinstance(made, Question):
            questions.append(made)
        else:
            failures.append(made)
    raise_for(_failure_problems(failures, found.script, rows, demonstrations))
    keeps_row = needs_row(found.metrics)
    from_checkout = found.method == "gen" and comes_from_checkout(found.postprocess, checkout)
    digest = make_digest(
        [("data", rows.sha256), ("script", script.sha256)]
        + ([("demos", demonstrations.sha256)] if demonstrations else [])
        + [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in found.files]
        + ([("postprocess", checkout.digest())] if checkout and (from_checkout or script.uses_checkout) else [])
        + ([("metrics", digest_metrics(checkout))] if checkout and own_metrics else [])
    )
    return EvalSet(
        name=options.name or found.name,
        format=FORMAT,
        digest=digest,
        instances=[
            question_to_instance(q, rows.rows[q.index], found.method, sampling=found.sampling, needs_row=keeps_row)
            for q in questions
        ],
        adapter_spec=to_adapter_spec(found.method, found.sampling),
        scoring=make_scoring(found.method, found.metrics.names, options.thinking),
        display_name=found.name,
        description=_describe(found, shots),
        tags=(found.method, found.dataset),
        details=TaskFacts(
            method=found.method,
            dataset=found.dataset,
            script=found.version or found.script.stem,
            script_sha=script.sha256,
            data_sha=rows.sha256,
            metrics=found.metrics,
            postprocess=found.postprocess if found.method == "gen" else "",
            root=str(checkout.root) if checkout and (from_checkout or own_metrics) else None,
        ),
        warnings=(*found.warnings, *_sampling_warnings(found)),
        counts={"rows": len(rows.rows), "train": 0, "eval": len(questions), "demonstrations": shots},
        places=Places(str(rows.path), [rows.lines[question.index] for question in questions]),
    )


def tasks(config: str | Path, *, method: str | None = None) -> list[str]:
    """Return the names of the tasks in a config file (those of one method), as `task=` takes them.

    Raises DatasetError.
    """
    wanted = {"gen": "generate", "ppl": "loglikelihood"}.get(method or "")
    return [name for name, task in tasks_of(Path(config)).items() if wanted in (None, task.generate.method)]


def check(*, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return every problem of a task and its counts, running the script on all rows unless `execute` is false.

    The arguments are those of `load`, and `missing`. Raises RunEntryError where they are wrong or name no task.
    """
    arguments.pop("missing", None)  # decided by the run, see helm_ext.adaptation
    options = read_options(arguments)
    log = _find_log(options)
    if log is not None:
        return check_log(log, options, execute=execute)
    found = resolve(options)
    problems: list[Problem] = list(found.warnings)
    counts: dict[str, int] = {}
    try:
        require_allowed(found.metrics.names, allow_code=options.allow_code)
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
        problems += _check_counts(rows, demonstrations, found.fewshot) + _check_rows(found, rows, None)
    try:
        require_metrics(found.metrics.from_checkout.values(), checkout, execute=execute)
    except TransformError as error:
        problems += error.problems
    except RunEntryError as error:
        problems.append(to_problem(error, str(found.data), "metric"))
    if not execute:
        return problems + check_source(found.script, has_checkout=checkout is not None), counts
    try:
        script = load_script(found.script, checkout)
        if found.method == "gen":
            post = get_postprocess(found.postprocess, str(checkout.root) if checkout else None)
            post("")  # a model that answers nothing must not end the run
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


def _find_log(options: Options) -> Path | None:
    """Return the file of `data=` where no script is given and it is the log of a finished run."""
    return find_log(options.data) if options.data is not None and options.transform is None else None


def _transform_all(script: Script, rows: Rows, task: Task, *, is_demonstration: bool) -> list[Failure]:
    """Run the script once on each row, without demonstrations, but told how many there are."""
    failures: list[Failure] = []
    rng = random.Random(0)  # noqa: S311 - sampling, not secrets
    with script.running():
        for index, row in enumerate(rows.rows):
            try:
                script.transform(row, task.fewshot, rng, task.name, seed=index)
            except TransformProblem as problem:
                failures.append(Failure(index, is_demonstration, problem))
    return failures


def _check_rows(task: Task, rows: Rows, limit: int | None) -> list[Problem]:
    """Return what keeps rows from PPL: known before any script runs."""
    if task.method != "ppl":
        return []
    lines = zip(rows.rows[:limit], rows.lines[:limit], strict=True)
    return [problem for row, line in lines for problem in check_options(row, str(rows.path), line)]


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


def _describe(task: Task, shots: int) -> str:
    kind = "generation" if task.method == "gen" else "perplexity of the options"
    return f"UltraEval task {task.name}: {kind}, {task.script.name}, {shots}-shot."


def _sampling_warnings(task: Task) -> list[Problem]:
    if task.method != "gen" or task.sampling.num_outputs == 1:
        return []
    message = f"{task.sampling.num_outputs} answers are sampled for each row; scores are those of the first"
    if task.metrics.from_checkout or not EXECUTING.isdisjoint(task.metrics.names):
        message += ", but for metrics that look at all (function_execution, those of the checkout)"
    return [Problem(message, Location(str(task.data)), "", "warning", "several-samples")]
