"""UltraEval task sets (formats.md, section 2): data, transform script, optional config, lowered to an EvalSet.

    GEN   one request a row: the prompt; `processed_output` are the accepted answers
    PPL   one request an option: prompt + key of `target_scores`; the likeliest whole string wins

A transform script is the user's code: `load` runs it, with the user's rights.
"""

from __future__ import annotations

import hashlib
import inspect
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
    did_you_mean,
    raise_for,
    show,
)
from helm_ext.evalset import EvalSet, Scoring, row_extra
from helm_ext.formats.ultraeval import config as task_config
from helm_ext.formats.ultraeval import run_log
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.lowering import check_options, question_to_instance, to_adapter_spec
from helm_ext.formats.ultraeval.metric_names import parse_metric_argument, read_metrics
from helm_ext.formats.ultraeval.postprocess import comes_from_checkout, get_postprocess
from helm_ext.formats.ultraeval.prompt import Failure, Question, make_questions
from helm_ext.formats.ultraeval.rows import Rows, read_rows
from helm_ext.formats.ultraeval.sampling import Sampling
from helm_ext.formats.ultraeval.script import Script, TransformProblem, check_source, load_script
from helm_ext.formats.ultraeval.task import Method, Task, resolve, tasks_of
from helm_ext.likelihood_rules import MAIN_STATS
from helm_ext.scores import get_scores
from helm_ext.scores.ultraeval import EXECUTING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    numbers = _read_numbers(fewshot=fewshot, seed=seed, limit=limit)
    log = _read_log(data) if data is not None and transform is None else None
    if log is not None:
        return _load_run_log(
            log, method=method, metric=metric, postprocess=postprocess, root=root, limit=limit, name=name,
            dataset_name=dataset_name, allow_code=allow_code,
        )  # fmt: skip
    found = resolve(
        config=config, task=task, data=data, transform=transform, dataset=dataset, method=method, version=version,
        fewshot=fewshot, demos=demos, postprocess=postprocess, metric=metric, root=root, dataset_name=dataset_name,
        max_tokens=max_tokens, temperature=temperature,
    )  # fmt: skip
    _require_allowed(found.metrics, allow_code=allow_code)
    shots, cap = found.fewshot, numbers["limit"]
    rows = read_rows(found.data)
    demonstrations = read_rows(found.demos) if found.demos is not None else None
    raise_for(_check_counts(rows, demonstrations, shots) + _check_rows(found, rows, cap))
    checkout = open_checkout(found.root, found.script)
    script = load_script(found.script, checkout)
    if found.method == "gen":
        get_postprocess(found.postprocess, str(checkout.root) if checkout else None)
    questions: list[Question] = []
    failures: list[Failure] = []
    for made in make_questions(
        script, rows.rows, dataset_name=found.name, description=found.description, fewshot=shots,
        seed=numbers["seed"] or 0, limit=cap,
        demos=None if demonstrations is None else demonstrations.rows,
    ):  # fmt: skip
        if isinstance(made, Question):
            questions.append(made)
        else:
            failures.append(made)
    raise_for(_failure_problems(failures, found.script, rows, demonstrations))
    needs_row = _needs_row(found.metrics)
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
        instances=[
            question_to_instance(q, rows.rows[q.index], found.method, sampling=found.sampling, needs_row=needs_row)
            for q in questions
        ],
        adapter_spec=to_adapter_spec(found.method, found.sampling),
        scoring=_scoring(found.method, found.metrics),
        display_name=found.name,
        description=_describe(found, shots),
        tags=_tags(
            found.method,
            found.dataset,
            (found.version or found.script.stem, script.sha256[:12]),
            rows,
            found.metrics,
            found.postprocess,
            checkout.root if from_checkout and checkout else None,
        ),
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

    The arguments are those of `load`, and `missing`. Raises RunEntryError where they are wrong or name no task.
    """
    arguments.pop("missing", None)  # decided by the run, see helm_ext.adaptation
    known = list(inspect.signature(load).parameters)
    for key in arguments:
        if key not in known:
            hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
            raise RunEntryError(f"ultraeval: unknown argument {key!r}\n  hint: {hint}")
    _read_numbers(**{key: arguments.get(key) for key in ("fewshot", "seed", "limit")})
    if arguments.get("data") is not None and arguments.get("transform") is None:
        log = _read_log(arguments["data"])
        if log is not None:
            return _check_log(log, arguments, execute=execute)
    resolvable = {key: value for key, value in arguments.items() if key not in ("seed", "limit", "allow_code", "name")}
    found = resolve(**resolvable)
    problems: list[Problem] = list(found.warnings)
    counts: dict[str, int] = {}
    try:
        _require_allowed(found.metrics, allow_code=bool(arguments.get("allow_code")))
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


def _read_log(data: str | Path) -> Rows | None:
    """Return the rows of a file if they are the outputs of a finished UltraEval run."""
    path = Path(str(data))
    rows = read_rows(path) if path.is_file() else None
    return rows if rows is not None and run_log.is_run_log(rows.rows[0]) else None


def _check_log(rows: Rows, arguments: dict[str, Any], *, execute: bool) -> tuple[list[Problem], dict[str, int]]:
    taken = ("method", "metric", "postprocess", "root", "limit", "name", "dataset_name", "allow_code")
    options: dict[str, Any] = dict.fromkeys(taken) | {key: value for key, value in arguments.items() if key in taken}
    options["allow_code"] = True  # no metric is computed here
    try:
        evalset = _load_run_log(rows, execute=execute, **options)
    except DatasetError as error:
        return list(error.problems), {"rows": len(rows.rows)}
    counts = evalset.counts
    problems = list(evalset.warnings)
    if counts["not_run"]:
        message = f"{counts['not_run']} of {counts['eval']} rows were not run; a recorded run refuses the file"
        hint = "missing=skip scores the rest and reports how many were left out" if counts["recorded"] else ""
        problems.append(Problem(message, Location(str(rows.path)), hint, "warning", "not-run"))
    return problems, counts


def _load_run_log(
    rows: Rows, *, method: str | None, metric: Any, postprocess: str | None, root: str | Path | None, limit: int | None,
    name: str | None, dataset_name: str | None, allow_code: bool, execute: bool = True,
) -> EvalSet:  # fmt: skip
    """Return a finished UltraEval run with its outputs as recordings; import no postprocessing unless `execute`."""
    kind = run_log.method_of(rows)
    if method not in (None, kind):
        raise RunEntryError(f"method={method}: {rows.path} holds the outputs of a {kind} run")
    said = run_log.read_run_log_config(rows.path)
    post = str(postprocess) if postprocess is not None else said.postprocess
    metrics, warnings = (
        parse_metric_argument(metric, kind, post)
        if metric is not None
        else read_metrics(said.metrics, kind, post, rows.path.name)
    )
    _require_allowed(metrics, allow_code=allow_code)
    checkout = open_checkout(Path(root) if root else None, rows.path)
    if kind == "gen" and execute:
        get_postprocess(post, str(checkout.root) if checkout else None)
    from_checkout = kind == "gen" and execute and comes_from_checkout(post, checkout)
    used = [("postprocess", checkout.digest())] if checkout and from_checkout else []
    instances = run_log.to_recorded_instances(rows, kind, needs_row=_needs_row(metrics))[:limit]
    recorded = sum(row_extra(instance)["recorded"]["status"] == "ok" for instance in instances)
    title = str(dataset_name) if dataset_name is not None else run_log.name_of(rows.path, kind)
    script = (rows.path.stem, "none")
    return EvalSet(
        name=name or title,
        format=FORMAT,
        digest=_digest([("log", rows.sha256), *used]),
        question_digest=_digest(
            [("questions", run_log.digest_questions(rows)), ("scored", f"{metrics} {post}"), *used]
        ),
        instances=instances,
        adapter_spec=to_adapter_spec(kind, Sampling()),
        scoring=_scoring(kind, metrics),
        display_name=title,
        description=f"Outputs of a finished UltraEval run of {title}.",
        tags=_tags(
            kind,
            title.split("_")[0],
            script,
            rows,
            metrics,
            post,
            checkout.root if checkout and from_checkout else None,
        ),
        warnings=tuple(warnings),
        counts={
            "rows": len(rows.rows),
            "train": 0,
            "eval": len(instances),
            "recorded": recorded,
            "not_run": len(instances) - recorded,
        },
    )


def _needs_row(metrics: Sequence[str]) -> bool:
    return any(score.row_function for score in get_scores().values() if score.name in metrics)


def _scoring(method: Method, metrics: tuple[str, ...]) -> Scoring:
    return Scoring(metrics=metrics if method == "gen" else (), main_metric=metrics[0])


def _require_allowed(metrics: Sequence[str], *, allow_code: bool) -> None:
    executing = EXECUTING.intersection(metrics)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


_LEAST = {"fewshot": 0, "limit": 1, "seed": None}


def _read_numbers(**values: Any) -> dict[str, int | None]:
    """Return the numbers among the arguments; None where one is not given. Raises RunEntryError."""
    for key, value in values.items():
        least = _LEAST[key]
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
            bound = "" if least is None else f" of at least {least}"
            raise RunEntryError(f"{key}={value}: expected a whole number{bound}")
    return values


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


def _tags(
    method: Method, dataset: str, script: tuple[str, str], rows: Rows, metrics: Sequence[str], postprocess: str,
    root: Path | None,
) -> tuple[str, ...]:  # fmt: skip
    tags = {
        "method": method,
        "dataset": dataset,
        "script": script[0],
        "script_sha": script[1],
        "data_sha": rows.sha256[:12],
    }
    if method == "ppl":
        tags["rule"] = next(rule for rule, stat in MAIN_STATS.items() if stat == metrics[0])
    elif postprocess:
        tags["postprocess"] = postprocess
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
