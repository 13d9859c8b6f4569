"""`helm-ext validate` and `preview`: every problem of a file at once, and the prompts that HELM will send."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from helm_ext.cli import options, session
from helm_ext.cli.common import (
    echo,
    parse_arguments,
    put_option,
    status,
    with_option,
    without_output,
)
from helm_ext.engines.progress import read_mode
from helm_ext.errors import (
    DatasetError,
    HelmExtError,
    Location,
    Problem,
    RunEntryError,
    count,
    say_hints_once,
    to_problem,
)
from helm_ext.formats import Format, detect, files_in, get_format

if TYPE_CHECKING:
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.run_spec import RunSpec

LINTED_ROWS = 5_000
"""Files of up to this many rows are linted without being asked: it takes a second or two."""
NOT_CHECKED = "not checked: whether prompts fit a model's context window, and whether the answers are true"


def validate(
    files: Annotated[
        list[Path], Argument(metavar="FILE...", help="Files of any format, folders, or names of datasets.")
    ],
    output: Annotated[
        str,
        options.choice(
            "text", "json", "github", name="--format", about="How problems are shown; github: as annotations."
        ),
    ] = "text",
    kind: options.AsFormat = None,
    arg: options.Arguments = None,
    no_exec: Annotated[bool, Option("--no-exec", help="Check scripts without running them.")] = False,
    lint: Annotated[
        bool | None,
        Option(
            "--lint/--no-lint",
            help="Look for contradictions, duplicates, leaks, uneven golds and answers in prompts. "
            f"[default: in files of up to {LINTED_ROWS:,} rows]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check dataset files: all problems at once, with line, field and a hint. Needs no model and no network.

    Exit code 0: no errors (there may be warnings). 1: errors. 2: wrong usage.
    """
    arguments = parse_arguments(arg)
    read_mode()
    if lint and no_exec:
        raise RunEntryError("--lint: what is asked is known once scripts have run\n  hint: leave --no-exec out")
    format_ = get_format(kind) if kind else None
    reports = [
        check_file(file, format_, arguments, no_exec=no_exec, lint=lint)
        for file in itertools.chain.from_iterable(map(files_in, files))
    ]
    if output == "json":
        echo(json.dumps([{**one, "problems": list(map(_to_json, one["problems"]))} for one in reports], indent=2))
    elif output == "github":
        for problem in itertools.chain.from_iterable(report["problems"] for report in reports):
            echo(_to_github(problem))
    else:
        for report in reports:
            _print_text(report)
        echo(NOT_CHECKED)
    if any(_has_errors(report["problems"]) for report in reports):
        raise Exit(1)


def check_file(
    file: Path, format_: Format | None, arguments: Mapping[str, Any], *, no_exec: bool = False, lint: bool | None = None
) -> dict[str, Any]:
    """Return `{file, format, problems, counts, linted}` of one file, and `inferred` where something was.

    `lint`: whether the rows are linted. None: in small files, and where that runs no code of the user's. Raises
    RunEntryError for unknown arguments.
    """
    file = session.find_file(file)
    problems: list[Problem] = []
    report = {"file": str(file), "format": "", "problems": problems, "counts": {}, "linted": False}
    try:
        format_ = format_ or detect(file)
    except DatasetError as error:
        problems += error.problems
        return report
    report["format"] = format_.name
    named = format_.name_file(file)
    session.require_unnamed(named, arguments)
    if not file.exists():
        try:
            format_.parse(named)
        except RunEntryError as error:  # it says which dataset has that file name
            problems.append(to_problem(error, str(file)))
            return report
    session.require_known(format_, arguments)
    named |= format_.parse_for_load(arguments)
    counts: Counter[str] = Counter()
    of_tasks: dict[str, dict[Problem, None]] = {}
    late: list[Problem] = []
    try:
        for task in format_.tasks(named):
            found, counted = format_.check(execute=not no_exec, **{**named, **task})
            own = of_tasks[", ".join(task.values())] = dict.fromkeys(found)
            counts.update(counted)
            report["counts"] = dict(counts)
            rows = counted.get("rows", 0) + counted.get("train", 0)
            if not no_exec and not _has_errors(found) and (rows <= LINTED_ROWS if lint is None else lint):
                report["linted"], odd = _lint(format_, {**named, **task}, str(file))
                own |= dict.fromkeys(odd if report["linted"] or lint else ())
        if not any(map(_has_errors, of_tasks.values())) and (inferred := format_.describe(named)):
            report["inferred"] = inferred
    except (HelmExtError, OSError) as error:
        late = [*getattr(error, "problems", ())] or [to_problem(error, str(file))]
    # What is said of one model's answers is not said of another's: the columns of outputs of a table are tasks.
    for problem in dict.fromkeys(itertools.chain.from_iterable(of_tasks.values())):
        tasks = [task for task, own in of_tasks.items() if problem in own]
        is_own = problem.location.path == str(file) and len(tasks) < len(of_tasks)
        problems.append(replace(problem, message=f"{' and '.join(tasks)}: {problem.message}") if is_own else problem)
    problems += late
    if lint and not report["linted"] and _has_errors(problems):
        problems.append(Problem.warning(file, "not linted while there are errors", code="not-linted"))
    if named.get("missing") == "skip":  # what these warnings propose
        problems[:] = [problem for problem in problems if problem.code not in ("not-run", "failed")]
    return report


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _lint(format_: Format, arguments: Mapping[str, Any], path: str) -> tuple[bool, list[Problem]]:
    """Return whether the rows could be linted, and what is odd about them, or why they could not."""
    from helm_ext.analysis.lint import lint

    arguments = {key: value for key, value in arguments.items() if key != "missing"}
    try:
        evalset = format_.load(**arguments)
        with status(f"linting {path}"):
            return True, lint(evalset, path, demonstrations=format_.load_demonstrations(**arguments))
    except HelmExtError as error:  # `check` found nothing wrong: it is about how rows would be scored
        problem = to_problem(error, path, "not-linted")
        return False, [replace(problem, severity="warning", message=f"not linted: {problem.message}")]


SHOWN_PROBLEMS = 20
"""So many problems of one kind are printed. Thousands of rows with the same mistake would hide the others."""


def _print_text(report: Mapping[str, Any]) -> None:
    shown: list[Problem] = []
    # What equal mistakes share: one code at one field, in whatever row
    alike: Counter[tuple[str, ...]] = Counter()
    found: Counter[str] = Counter()
    for problem in report["problems"]:
        found[problem.severity] += problem.number
        field = re.sub(r"\d+", "*", problem.location.field)
        kind = (problem.severity, problem.location.path, field, problem.code or problem.message)
        alike[kind] += 1
        if problem.number > 1 or alike[kind] <= SHOWN_PROBLEMS:
            shown.append(problem)
    lines = [*report.get("inferred", ()), *(f"{problem.severity}: {problem}" for problem in say_hints_once(shown))]
    for (severity, path, field, _), number in alike.items():
        if (more := number - SHOWN_PROBLEMS) > 0:
            lines.append(f"{severity}: {Location(path, None, field)}: {more} more like these; --format json lists them")
    counts, file = report["counts"], report["file"]
    rows = counts.get("rows", 0)
    said = [
        f"{number} {what.removesuffix('s') if number == 1 else what}".replace("_", " ")
        for what, number in counts.items()
        if what == "rows" or (number and not (what in ("eval", "read", "lines") and number == rows))
    ]
    numbers = f"{count(found['error'], 'error')}, {count(found['warning'], 'warning')}"
    lines.append(f"{file}: {report['format'] or 'no format'}: {'; '.join(filter(None, [numbers, ', '.join(said)]))}")
    if not report["linted"] and rows > LINTED_ROWS and not found["error"]:
        lines.append(f"{file}: its rows were not compared with one another; --lint looks for duplicates and leaks")
    for line in lines:
        echo(with_option(line))


def _to_json(problem: Problem) -> dict[str, Any]:
    path, line, field = (getattr(problem.location, name) for name in ("path", "line", "field"))
    return {"severity": problem.severity, "code": problem.code, "path": path, "line": line, "field": field,
            "message": problem.message, "hint": problem.hint}  # fmt: skip


def _to_github(problem: Problem) -> str:
    """Return a workflow command, escaped as GitHub asks: %, CR and LF everywhere, `:` and `,` in properties."""
    location = problem.location
    text = f"{location.field}: {problem.message}" if location.field else problem.message
    if problem.hint:
        text += f"\nhint: {put_option(problem.hint)}"
    properties = {"file": location.path, "line": location.line, "title": problem.code or None}
    shown = [f"{name}={_escape(str(value), '%:,')}" for name, value in properties.items() if value is not None]
    return f"::{problem.severity.replace('note', 'notice')} {','.join(shown)}::{_escape(text)}"


def _escape(text: str, signs: str = "%") -> str:
    return re.sub(f"[{signs}\r\n]", lambda found: f"%{ord(found[0]):02X}", text)


_SHOWN_OF_REQUESTS = (
    "temperature", "max_tokens", "num_completions", "stop_sequences", "top_p", "top_k_per_token",
    "frequency_penalty", "presence_penalty", "random",
)  # fmt: skip
PREVIEW_DEPLOYMENT = "helm-ext/preview"
"""Stands for a model whose window fits everything and that rewrites nothing."""


def preview(
    file: Annotated[Path, Argument(metavar="FILE|NAME", help="A dataset file of any format, or a dataset's name.")],
    count: Annotated[int, Option("-n", min=1, help="How many rows.")] = 2,
    model: Annotated[
        str, Option(help="Fit to this model's context window and apply HELM's rewriting for it.")
    ] = PREVIEW_DEPLOYMENT,
    arg: options.Arguments = None,
    kind: options.AsFormat = None,
    local_path: options.LocalPath = options.PROD_ENV,
) -> None:
    """Show exactly what HELM will send for the first rows: prompt or messages, decoding parameters, expected answer.

    First, what was inferred from the file, and why. Of tables of answers and other tools' logs, where no --model is
    named, question and answer are shown: nothing is sent.
    """
    from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment, register_model_deployment

    with session.starting("starting HELM"):
        arguments = parse_arguments(arg)
        if model != PREVIEW_DEPLOYMENT or "model_deployment" in arguments:
            session.register_models(local_path)
        # The client is never made, preview stops before requests are sent; this one may be asked anything.
        client = ClientSpec("helm.clients.huggingface_client.HuggingFaceClient")
        register_model_deployment(ModelDeployment(name=PREVIEW_DEPLOYMENT, client_spec=client))
        format_ = session.choose_format(kind, file)
        is_named = session.find_file(file) != file
        own = {} if is_named else session.load_arguments(format_, file, arguments)
        said = format_.describe(own) if own else []
        arguments |= format_.tasks(own)[0] if own.get("output") else {}  # of several models: all were asked the same
        run_spec = session.make_run_spec(format_, file, {"model": model}, arguments)
        states = adapt(run_spec, count)
    for line in (*said, run_spec.name, f"method: {run_spec.adapter_spec.method}", *map(render, states)):
        echo(line)


def adapt(run_spec: RunSpec, count: int) -> list[RequestState]:
    """Return the request states of the first `count` rows, made by HELM's own adapter as `helm-run` makes them.

    Of a file of another tool's that holds answers, where no model is named, they are those that are scored: nobody asks
    anything, and what was sent is only known as far as it was recorded. Raises HelmExtError when the model's tokenizer
    cannot be loaded.
    """
    from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
    from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, create_scenario
    from helm.benchmark.window_services.tokenizer_service import TokenizerService

    from helm_ext.evalset import row_extra

    instances = create_scenario(run_spec.scenario_spec).get_instances("")
    train = [instance for instance in instances if instance.split == TRAIN_SPLIT]
    rows = [instance for instance in instances if instance.split != TRAIN_SPLIT]
    live = [row for row in rows if row_extra(row).get("only") != "recorded"]
    wanted = (live or rows)[:count]  # without any, the adapter says why there is nothing to ask
    deployment, context = run_spec.adapter_spec.model_deployment, None
    is_unnamed = deployment == PREVIEW_DEPLOYMENT and "source" in run_spec.metric_specs[0].args
    if is_unnamed and any("recorded" in row_extra(row) for row in rows):
        from helm_ext.adaptation.rows import RecordedStates

        return RecordedStates(run_spec.adapter_spec).rebuild(rows[:count])
    with tempfile.TemporaryDirectory() as folder:
        if deployment != PREVIEW_DEPLOYMENT:
            from helm.common.local_context import LocalContext  # HELM's clients come with it

            with without_output():
                context = LocalContext(folder)
        adapter = AdapterFactory.get_adapter(run_spec.adapter_spec, TokenizerService(context))
        # Tokenizers are loaded from many libraries, each with its own exceptions; HELM's adapters raise others.
        hint = "" if context is None else "leave out --model to see the prompt before it is fitted to a window"
        with session.blaming(f"{deployment}: HELM cannot make the prompts", HelmExtError, hint):
            return adapter.adapt(train + wanted, parallelism=1)


def render(state: RequestState) -> str:
    """Return one request state as text; the prompt stands between two lines of its own, to the byte.

    Of a recorded one, the question where the prompt is not known, and the answer instead of the request.
    """
    from helm_ext.evalset import row_extra

    request = state.request
    result, what = getattr(request, "result", None), "prompt"
    which = "" if state.reference_index is None else f", option {state.reference_index} ({state.request_mode})"
    lines = [f"──── row {state.instance.id} ({state.instance.split}{which})"]
    if request.messages:
        lines += [f"[{message['role']}] {message['content']}" for message in request.messages]
    elif result is not None and not request.prompt:
        lines.append(state.instance.input.text)
        what = "question"
    else:
        lines.append(request.prompt)
    lines.append(f"──── end of {what}")
    if state.prompt_truncated:
        lines.append("warning: the prompt was truncated to fit the window")
    if result is None:
        sampled = {name: getattr(request, name) for name in _SHOWN_OF_REQUESTS}
        lines.append("request: " + ", ".join(f"{key}={value!r}" for key, value in sampled.items() if value is not None))
        lines.append(f"demonstrations: {state.num_train_instances}")
    else:
        left_out = row_extra(state.instance).get("left_out")
        answers = [f"nothing ({left_out})"] if left_out else [repr(one.text) for one in result.completions]
        lines += [f"recorded: {answer}" for answer in answers]
    golds = [reference.output.text for reference in state.instance.references if reference.is_correct]
    labels = [label for label, text in (state.output_mapping or {}).items() if text in golds]
    expected = [labels, golds] if labels and labels != golds else [golds]
    lines.append("expected: " + " = ".join(" or ".join(map(repr, texts)) for texts in expected))
    return "\n".join(lines)
