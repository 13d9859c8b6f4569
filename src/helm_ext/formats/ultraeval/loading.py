"""The steps from a task, or a finished run, to an EvalSet; and its check."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    Problem,
    RunEntryError,
    TransformError,
    raise_for,
    show,
    to_problem,
)
from helm_ext.evalset import EvalSet, Places
from helm_ext.formats.ultraeval.checkout import get_postprocess, open_checkout
from helm_ext.formats.ultraeval.config import read_config, read_options
from helm_ext.formats.ultraeval.questions import (
    Failure,
    Question,
    Rows,
    check_options,
    make_questions,
    read_rows,
    to_adapter_spec,
    to_instance,
)
from helm_ext.formats.ultraeval.run_log import check_log, find_log, load_log
from helm_ext.formats.ultraeval.scoring import TaskFacts, make_digest, require_allowed, require_metrics, require_scores
from helm_ext.formats.ultraeval.script import Script, TransformProblem, check_source, load_script
from helm_ext.formats.ultraeval.task import Task, by_name, resolve
from helm_ext.scoring.scores.ultraeval import EXECUTING

Read = TypeVar("Read")


def load(**arguments: Any) -> EvalSet:
    """Read a task and run its transform script on every row that is asked for. The arguments are those of `Options`.

    Raises RunEntryError for arguments, DatasetError for files (TransformError: the script), with all problems at once.
    """
    options = read_options(arguments)
    log = find_log(options)
    if log is not None:
        return load_log(log, options)
    found = resolve(options)
    require_allowed(found.metrics, allow_code=options.allow_code)
    rows = read_rows(found.data)
    demos = None if found.demos is None else read_rows(found.demos)
    raise_for(_check_counts(rows, demos, found.fewshot) + _check_rows(found, rows, options.limit))
    checkout = open_checkout(found.root, found.script)
    script = load_script(found.script, checkout)
    used = require_scores(found.method, found.metrics, found.postprocess, checkout)
    made = list(
        make_questions(script, found, rows.rows, seed=options.seed or 0, limit=options.limit,
                       demos=demos.rows if demos is not None else None)
    )  # fmt: skip
    raise_for(_failure_problems((each for each in made if isinstance(each, Failure)), found.script, rows, demos))
    questions = [each for each in made if isinstance(each, Question)]
    facts = TaskFacts(
        method=found.method,
        dataset=found.dataset,
        script=found.version or found.script.stem,
        script_sha=script.sha256,
        data_sha=rows.sha256,
        metrics=found.metrics,
        postprocess=found.postprocess if found.method == "gen" else "",
        root=str(checkout.root) if checkout and used else None,
    )
    if checkout and script.uses_checkout:
        used = {"postprocess": checkout.digest(), **used}
    kind = "generation" if found.method == "gen" else "perplexity of the options"
    digest = make_digest([
        *(("data", rows.sha256), ("script", script.sha256)),
        *([("demos", demos.sha256)] if demos else []),
        *((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in found.files),
        *used.items(),
    ])  # fmt: skip
    return EvalSet(
        name=options.name or found.name,
        format="ultraeval",
        digest=digest,
        instances=[to_instance(question, rows.rows[question.index], found) for question in questions],
        adapter_spec=to_adapter_spec(found.method, found.sampling),
        scoring=facts.to_scoring(options.thinking),
        display_name=found.name,
        description=f"UltraEval task {found.name}: {kind}, {found.script.name}, {found.fewshot}-shot.",
        tags=(found.method, found.dataset),
        details=facts,
        warnings=(*found.warnings, *_sampling_warnings(found)),
        counts={"rows": len(rows.rows), "train": 0, "eval": len(questions), "demonstrations": found.fewshot},
        places=Places(str(rows.path), [rows.lines[question.index] for question in questions]),
    )


def tasks(config: str | Path, *, method: str | None = None) -> list[str]:
    """Return the names of the tasks in a config file (those of one method), as `task=` takes them.

    Raises DatasetError.
    """
    return [name for name, task in by_name(read_config(Path(config))[0]).items() if method in (None, task.kind)]


def check(*, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return every problem of a task and its counts, running the script on all rows unless `execute` is false.

    The arguments are those of `load`, and `missing`. Raises RunEntryError where they are wrong or name no task.
    """
    arguments.pop("missing", None)  # decided by the run, see helm_ext.adaptation
    options = read_options(arguments)
    log = find_log(options)
    if log is not None:
        return check_log(log, options, execute=execute)
    found = resolve(options)
    problems: list[Problem] = list(found.warnings)
    counts: dict[str, int] = {}

    def attempt(step: Callable[[], Read], code: str = "") -> Read | None:
        """Return what a step returns, None where it fails, which is then a problem."""
        try:
            return step()
        except DatasetError as error:
            problems.extend(error.problems)
        except RunEntryError as error:
            problems.append(to_problem(error, str(found.data), code))
        return None

    try:
        require_allowed(found.metrics, allow_code=options.allow_code)
    except RunEntryError as error:
        problems.append(Problem.warning(found.data, str(error), code="code-execution"))
    rows = attempt(lambda: read_rows(found.data))
    demos = None if found.demos is None else attempt(partial(read_rows, found.demos))
    checkout = open_checkout(found.root, found.script)
    if rows is not None:
        counts = {"rows": len(rows.rows)}
        problems += _check_counts(rows, demos, found.fewshot) + _check_rows(found, rows, None)
    attempt(lambda: require_metrics(found.metrics.from_checkout.values(), checkout, execute=execute), "metric")
    if not execute:
        return problems + check_source(found.script, has_checkout=checkout is not None), counts
    script = attempt(lambda: load_script(found.script, checkout))
    if script is None:
        return problems, counts
    if found.method == "gen":
        root = str(checkout.root) if checkout else None
        # A model that answers nothing must not end the run.
        if attempt(lambda: get_postprocess(found.postprocess, root)(""), "postprocess") is None:
            return problems, counts
    failures = _transform_all(script, rows, found, of_demos=False) + _transform_all(script, demos, found, of_demos=True)
    if rows is not None:
        problems += _failure_problems(failures, found.script, rows, demos)
        counts["failed"] = len({failure.index for failure in failures if not failure.is_demonstration})
    return problems, counts


def _transform_all(script: Script, rows: Rows | None, task: Task, *, of_demos: bool) -> list[Failure]:
    """Run the script once on each row, without demonstrations, but told how many there are."""
    failures: list[Failure] = []
    rng = random.Random(0)  # noqa: S311 - sampling, not secrets
    with script.running():
        for index, row in enumerate(rows.rows if rows is not None else ()):
            try:
                script.transform(row, task.fewshot, rng, task.name, seed=index)
            except TransformProblem as problem:
                failures.append(Failure(index, of_demos, problem))
    return failures


def _check_rows(task: Task, rows: Rows, limit: int | None) -> list[Problem]:
    """Return what keeps rows from PPL: known before any script runs."""
    if task.method != "ppl":
        return []
    lines = zip(rows.rows[:limit], rows.lines[:limit], strict=True)
    return [problem for row, line in lines for problem in check_options(row, str(rows.path), line)]


def _check_counts(rows: Rows, demos: Rows | None, fewshot: int) -> list[Problem]:
    """Demonstrations are drawn from n + 1 rows, of which one may be the question; from another file n are enough."""
    source, needed = (rows, fewshot + 1) if demos is None else (demos, fewshot)
    if not fewshot or len(source.rows) >= needed:
        return []
    of = f"{fewshot} demonstrations and the question" if demos is None else f"{fewshot} demonstrations"
    message = f"{of} need {needed} rows, the file has {len(source.rows)}"
    possible = max(0, len(source.rows) - needed + fewshot)
    hint = f"fewshot={possible} is possible; demos=FILE draws from another file"
    return [DatasetIntegrityError.problem_at(source.path, message, hint, code="too-few-rows")]


def _failure_problems(failures: Iterable[Failure], script: Path, rows: Rows, demos: Rows | None) -> list[Problem]:
    """Return one problem a row, however often it was drawn as a demonstration."""
    problems: dict[tuple[bool, int, str], Problem] = {}
    for failure in failures:
        source = demos if failure.is_demonstration and demos is not None else rows
        message = f"{source.path.name}, row {failure.index + 1}: {failure.problem.message}"
        hint = f"the row (line {source.lines[failure.index]}): {show(source.rows[failure.index])}"
        code = failure.problem.code
        problem = TransformError.problem_at(script, message, hint, failure.problem.line, code=code)
        problems.setdefault((failure.is_demonstration, failure.index, code), problem)
    return [problem for _, problem in sorted(problems.items(), key=lambda item: item[0])]


def _sampling_warnings(task: Task) -> list[Problem]:
    if task.method != "gen" or task.sampling.num_outputs == 1:
        return []
    message = f"{task.sampling.num_outputs} answers are sampled for each row; scores are those of the first"
    if task.metrics.from_checkout or not EXECUTING.isdisjoint(task.metrics.names):
        message += ", but for metrics that look at all (function_execution, those of the checkout)"
    return [Problem.warning(task.data, message, code="several-samples")]
