"""`helm-ext validate` and `preview`: every problem of a file at once, and the prompts that HELM will send."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Exit, Option

from helm_ext.cli import options, session
from helm_ext.cli.common import (
    echo,
    helm_output_to_stderr,
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
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.metric import MetricSpec
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.run_spec import RunSpec
    from helm.benchmark.scenarios.scenario import Instance

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


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


def _say_whose(of_tasks: Mapping[str, Mapping[Problem, None]], path: str) -> Iterator[Problem]:
    """Yield the problems of all tasks, each once; of a file that some tasks share, with the task, if it is not of all.

    The columns of outputs of a table are tasks: what is said of one model's answers is not said of another's.
    """
    for problem in dict.fromkeys(itertools.chain.from_iterable(of_tasks.values())):
        tasks = [task for task, found in of_tasks.items() if problem in found]
        is_own = problem.location.path == path and len(tasks) < len(of_tasks)
        yield replace(problem, message=f"{' and '.join(tasks)}: {problem.message}") if is_own else problem


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
                report["linted"], odd = lint_rows(format_, {**named, **task}, str(file))
                own |= dict.fromkeys(odd if report["linted"] or lint else ())
        if not any(map(_has_errors, of_tasks.values())) and (inferred := format_.describe(named)):
            report["inferred"] = inferred
    except DatasetError as error:
        late = [*error.problems] or [to_problem(error, str(file))]
    except (HelmExtError, OSError) as error:
        late = [to_problem(error, str(file))]
    problems += [*_say_whose(of_tasks, str(file)), *late]
    if lint and not report["linted"] and _has_errors(problems):
        message = "not linted while there are errors"
        problems.append(Problem.warning(file, message, code="not-linted"))
    if named.get("missing") == "skip":  # what these warnings propose
        problems[:] = [problem for problem in problems if problem.code not in ("not-run", "failed")]
    return report


def lint_rows(format_: Format, arguments: Mapping[str, Any], path: str) -> tuple[bool, list[Problem]]:
    """Return whether the rows could be linted, and what is odd about them, or why they could not."""
    from helm_ext.analysis.lint import lint

    arguments = {key: value for key, value in arguments.items() if key != "missing"}
    try:
        evalset = format_.load(**arguments)
        with status(f"linting {path}"):
            found = lint(evalset, path, demonstrations=format_.load_demonstrations(**arguments))
            spec, main = evalset.adapter_spec, str(evalset.scoring.main_metric)
            return True, found + find_wrapped(evalset.instances, spec, lambda: format_.metric_spec(evalset), main, path)
    except HelmExtError as error:  # `check` found nothing wrong: it is about how rows would be scored
        problem = to_problem(error, path, "not-linted")
        return False, [replace(problem, severity="warning", message=f"not linted: {problem.message}")]


def find_wrapped(
    instances: Sequence[Instance],
    adapter_spec: AdapterSpec,
    make_metric: Callable[[], MetricSpec],
    main: str,
    path: str,
) -> list[Problem]:
    """Return the note that `score` will warn of answers that hold the gold and score 0, where it will.

    The recorded rows of a small file are scored as there, by the run's own metric, and forgotten. `main`: the main
    metric.
    """
    from helm_ext.evalset import EXTRA_KEY, row_extra
    from helm_ext.evalset.rows import make_all
    from helm_ext.scoring.scores.texts import EXACT

    if main not in EXACT or adapter_spec.method.startswith("multiple_choice") or len(instances) > LINTED_ROWS:
        return []  # what stands in a sentence is read as its option
    instances = [*instances]
    make_all(instances)
    answered = [row for row in instances if row_extra(row).get("recorded", {}).get("status") == "ok"]
    if not any(map(_has_more_than_gold, answered)):  # a third of what `validate` takes need not be loaded
        return []
    from helm.benchmark.adaptation.scenario_state import ScenarioState
    from helm.benchmark.metrics.metric import create_metric

    from helm_ext import adaptation
    from helm_ext.adaptation.recorded import hand_back
    from helm_ext.adaptation.rows import rebuild_recorded
    from helm_ext.scoring.completeness import HINT_WRONG_WITH_GOLD, describe_wrong_with_gold

    adaptation.install()  # `validate` starts no HELM
    spec = replace(adapter_spec, model=RECORDED, model_deployment=RECORDED)
    metric = make_metric()
    metric = replace(metric, args={**metric.args, "metrics": [main]})  # of others, some run what models wrote
    # Recordings are taken off these copies.
    rows = [replace(row, extra_data={**(row.extra_data or {}), EXTRA_KEY: {**row_extra(row)}}) for row in answered]
    service = cast("MetricService", None)  # of what asks models; ours ask none
    try:
        states = rebuild_recorded(rows, spec)
        hand_back(states)
        stats = create_metric(metric).evaluate(ScenarioState(spec, states, []), service, "", 1).aggregated_stats
    except HelmExtError:  # `score` will say why they cannot be scored
        return []
    plain = [stat for stat in stats if stat.name.sub_split is None and stat.name.perturbation is None]
    said = {
        describe_wrong_with_gold({stat.name.name: stat.mean or 0 for stat in plain if stat.name.split == split})
        for split in ("test", "valid")
    }
    return [
        Problem(f"{one}, by {main}", Location(path), HINT_WRONG_WITH_GOLD, "note", "wrong-with-gold")
        for one in sorted(filter(None, said))
    ]


def _has_more_than_gold(row: Instance) -> bool:
    """Whether a recorded answer holds a right one and more: without such a row there is nothing to say."""
    from helm_ext.evalset import row_extra

    golds = [reference.output.text.strip().lower() for reference in row.references if reference.is_correct]
    texts = [
        completion["text"].strip().lower()
        for state in row_extra(row)["recorded"]["states"]
        for completion in state["result"]["completions"]
    ]
    return any(gold in text and gold != text for gold in golds for text in texts)


SHOWN_PROBLEMS = 20
"""So many problems of one kind are printed. Thousands of rows with the same mistake would hide the others."""


def _print_text(report: Mapping[str, Any]) -> None:
    shown: list[Problem] = []
    # What equal mistakes share: one code at one field, in whatever row
    alike: dict[tuple[str, ...], list[Problem]] = {}
    found, last = Counter[str](), []
    for problem in report["problems"]:
        found[problem.severity] += problem.number
        field = re.sub(r"\d+", "*", problem.location.field)
        kind = (problem.severity, problem.location.path, field, problem.code or problem.message)
        same = alike.setdefault(kind, [])
        same.append(problem)
        if problem.number > 1:
            last.append(problem)
        elif len(same) <= SHOWN_PROBLEMS:
            shown.append(problem)
    lines = [*report.get("inferred", ()), *(f"{problem.severity}: {problem}" for problem in say_hints_once(shown))]
    for (severity, path, field, _), same in alike.items():
        if (more := len(same) - SHOWN_PROBLEMS) > 0:
            lines.append(f"{severity}: {Location(path, None, field)}: {more} more like these; --format json lists them")
    lines += [f"{problem.severity}: {problem}" for problem in last]
    counts, file = report["counts"], report["file"]
    said = [count(found["error"], "error"), count(found["warning"], "warning")]
    names = {what: what.removesuffix("s") if number == 1 else what for what, number in counts.items()}
    said_of = [f"{counts[what]} {name.replace('_', ' ')}" for what, name in names.items() if _tells(what, counts)]
    told = ", ".join(said_of)
    lines.append(f"{file}: {report['format'] or 'no format'}: {', '.join(said)}" + (f"; {told}" if told else ""))
    if not report["linted"] and counts.get("rows", 0) > LINTED_ROWS and not found["error"]:
        lines.append(f"{file}: its rows were not compared with one another; --lint looks for duplicates and leaks")
    for line in lines:
        echo(with_option(line))


def _tells(what: str, counts: Mapping[str, int]) -> bool:
    """Whether a count says more than how many rows there are."""
    return what == "rows" or (
        counts[what] > 0 and (what not in ("eval", "read", "lines") or counts[what] != counts.get("rows"))
    )


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
RECORDED = "recorded/preview"
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

    with status("starting HELM"), helm_output_to_stderr():
        session.start_helm()
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
        first = format_.tasks(own)[0] if own.get("output") else {}  # of several models: all were asked the same
        arguments |= first
        run_spec = session.make_run_spec(format_, file, {"model": model}, arguments)
        states, wrapped = adapt(run_spec, count, str(file))
    of = f"{first['output']}: " if first else ""
    notes = [f"note      {of}{one.message}: {put_option(one.hint)}" for one in wrapped]
    for line in (*said, *notes, run_spec.name, f"method: {run_spec.adapter_spec.method}", *map(render, states)):
        echo(line)


def adapt(run_spec: RunSpec, count: int, path: str) -> tuple[list[RequestState], list[Problem]]:
    """Return the request states of the first `count` rows, made by HELM's own adapter as `helm-run` makes them.

    Of a file of another tool's that holds answers, where no model is named, they are those that are scored: nobody asks
    anything, and what was sent is only known as far as it was recorded. With them, of small files, what is said of the
    answers that are recorded (`find_wrapped`).

    Raises HelmExtError when the model's tokenizer cannot be loaded.
    """
    from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
    from helm.benchmark.scenarios.scenario import TRAIN_SPLIT, create_scenario
    from helm.benchmark.window_services.tokenizer_service import TokenizerService

    from helm_ext.evalset import row_extra

    instances = create_scenario(run_spec.scenario_spec).get_instances("")
    metric, main = run_spec.metric_specs[0], run_spec.scenario_spec.args["main_metric"]
    wrapped = find_wrapped(instances, run_spec.adapter_spec, lambda: metric, main, path)
    train = [instance for instance in instances if instance.split == TRAIN_SPLIT]
    rows = [instance for instance in instances if instance.split != TRAIN_SPLIT]
    live = [row for row in rows if row_extra(row).get("only") != "recorded"]
    wanted = (live or rows)[:count]  # without any, the adapter says why there is nothing to ask
    deployment, context = run_spec.adapter_spec.model_deployment, None
    is_unnamed = deployment == PREVIEW_DEPLOYMENT and "source" in metric.args
    if is_unnamed and any("recorded" in row_extra(row) for row in rows):
        from helm_ext.adaptation.rows import RecordedStates

        return RecordedStates(run_spec.adapter_spec).rebuild(rows[:count]), wrapped
    with tempfile.TemporaryDirectory() as folder:
        if deployment != PREVIEW_DEPLOYMENT:
            from helm.common.local_context import LocalContext  # HELM's clients come with it

            with without_output():
                context = LocalContext(folder)
        adapter = AdapterFactory.get_adapter(run_spec.adapter_spec, TokenizerService(context))
        try:
            return adapter.adapt(train + wanted, parallelism=1), wrapped
        except HelmExtError:
            raise
        except Exception as error:
            # Tokenizers are loaded from many libraries, each with its own exceptions; HELM's adapters raise others.
            said = f"{deployment}: HELM cannot make the prompts: {type(error).__name__}: {error}"
            hint = "\n  hint: leave out --model to see the prompt before it is fitted to a window"
            raise HelmExtError(said + (hint if context is not None else "")) from error


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
