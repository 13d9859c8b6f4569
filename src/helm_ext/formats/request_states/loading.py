"""The steps from a file to an EvalSet, each once and in this order:

bytes ──reading──▶ header, states ──header, rows──▶ rows ──checks, plan──▶ plan ──instances──▶ EvalSet
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from typing_extensions import Unpack

from helm_ext.errors import DatasetError, Problem, Problems, raise_for, show
from helm_ext.evalset import EvalSet, Places, ScoredRows, garbage, row_extra
from helm_ext.files import canonical_json
from helm_ext.formats.json_schemas import to_json_schema
from helm_ext.formats.request_states.checks import Checks, File
from helm_ext.formats.request_states.header import Header, Options, read_header
from helm_ext.formats.request_states.header_models import CLOSED, FileModel
from helm_ext.formats.request_states.models import OPEN
from helm_ext.formats.request_states.plan import (
    Plan,
    assign_splits,
    make_adapter_spec,
    make_plan,
    request_decoding,
)
from helm_ext.formats.request_states.questions import digest_question, digest_questions
from helm_ext.formats.request_states.reading import Reader, open_file
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import Row, RowReader
from helm_ext.formats.request_states.survey import Survey

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance

__all__ = ["Arguments", "check", "check_from", "json_schema", "load", "load_from"]

Opener = Callable[[Problems], Reader]
"""Opens what is to be read, in the order in which problems are reported. Raises DatasetError when nothing of it can
be read."""

_SUFFIXES = {".gz", ".zst", ".zstd", ".json", ".jsonl", ".json5"}
_OUTPUT_FORMATS = (None, "string", "list")


class Arguments(TypedDict, total=False):
    """Arguments of `load` and `check`. They win over what the file says; None where the file decides."""

    method: str | None
    seed: int | None
    """Decides which rows become demonstrations and which a cap leaves (default 0)."""
    missing: Literal["error", "skip"] | None
    """Decided by the run: see `helm_ext.adaptation`."""
    output_format: Literal["string", "list"] | None
    max_train_instances: int | None
    name: str | None
    by: Sequence[str] | None
    cluster: str | None
    metrics: Sequence[str] | None
    main_metric: str | None
    completions: str | None
    extract: str | None
    strip: bool | None
    lower: bool | None
    separator: str | None
    extract_all: str | None
    extract_positions: bool | None
    extract_references: bool | None
    drop_duplicates: bool | None
    cut_at_stop: bool | None


def load(path: str | Path, **arguments: Unpack[Arguments]) -> EvalSet:
    """Read a file and return its EvalSet. Raises a DatasetError that carries all problems."""
    return load_from(lambda problems: open_file(path, problems), path, **arguments)


def load_from(open_: Opener, path: str | Path, **arguments: Unpack[Arguments]) -> EvalSet:
    """Read what `open_` opens: a file of another format, whose reader gives it the shape of ours.

    `path` is what problems name. Raises a DatasetError that carries all problems.
    """
    options = _to_options(arguments)
    with garbage.paused():
        content = _read(open_, path, options, keep_rows=True)
        file = _plan(content, options)
        raise_for(content.finish())
        assert file is not None
        return _build(content, file, options)


def check(path: str | Path, **arguments: Unpack[Arguments]) -> tuple[list[Problem], dict[str, int]]:
    """Return all problems of a file (errors first, then warnings) and what was counted.

    Memory does not grow with JSON Lines but for some bytes a row (ids and inputs are compared).
    """
    return check_from(lambda problems: open_file(path, problems), path, **arguments)


def check_from(open_: Opener, path: str | Path, **arguments: Unpack[Arguments]) -> tuple[list[Problem], dict[str, int]]:
    """Return the problems and counts of what `open_` opens, as `check` does."""
    options = _to_options(arguments)
    try:
        content = _read(open_, path, options, keep_rows=False)
    except DatasetError as error:
        return list(error.problems), {}
    file = _plan(content, options)
    return content.finish(), file.counts if file is not None else {"rows": content.survey.rows}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file, made from the models that read it."""
    return to_json_schema(FileModel, OPEN, CLOSED, title="adapter_spec + request_states")


def _to_options(arguments: Arguments) -> Options:
    """Return the options; all keys but those named here are keys of `scoring`."""
    scoring = {**arguments}
    named = {key: scoring.pop(key, None) for key in ("method", "output_format", "max_train_instances", "name")}
    seed, by, _ = scoring.pop("seed", None), scoring.pop("by", None), scoring.pop("missing", None)
    cluster = scoring.pop("cluster", None)
    return Options(**named, seed=seed or 0, by=tuple(by or ()), cluster=cluster, scoring=scoring)  # type: ignore[arg-type]


@dataclass
class _Content:
    """What was read of a file."""

    reader: Reader
    header: Header
    survey: Survey
    checks: Checks
    problems: Problems
    rows: list[Row] = field(default_factory=list)
    """Empty where they are not kept."""
    questions: int = 0
    """Sum of the rows' digests: their order does not count."""

    def see_recorded(self, row: Row, method: str, num_train_trials: int) -> None:
        """Count what is recorded for a row, when all its states are known."""
        if not row.is_helm and not method.startswith("multiple_choice_separate"):
            self.survey.see_status(row, row.found[0][0])
            return
        found = combine(row.found, method, row.options, num_train_trials)
        self.survey.see_status(row, found["status"])
        if "requests" in found:
            self.survey.has_incomplete = True
            self.checks.see_incomplete(row, found["requests"])

    def finish(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.problems.finish(self.reader.locate)


def _read(open_: Opener, path: str | Path, options: Options, *, keep_rows: bool) -> _Content:
    """Read every state. Raises DatasetError when nothing can be read at all."""
    problems = Problems(str(path))
    if options.output_format not in _OUTPUT_FORMATS:
        message = f'expected "string" or "list", got {show(options.output_format)}'
        problems.add(("output_format",), message, code="wrong-value")
        options = replace(options, output_format=None)
    reader = open_(problems)
    header = read_header(reader.header, options, problems)
    settings = header.settings
    survey, checks = Survey(settings), Checks(header, reads_completions=not keep_rows)
    content = _Content(reader, header, survey, checks, problems)
    rows = RowReader(settings.context, problems)
    method = settings.method or ""
    groups: dict[bytes, Row] = {}
    try:
        for state in reader.states():
            row = rows.read(state)
            if row is None:
                continue
            is_new = row.is_right and not (row.is_helm and _is_known(row, groups))
            checks.see(row, state, is_new=is_new)
            if not is_new:
                continue
            survey.see(row)
            if not row.is_helm:
                content.see_recorded(row, method, 1)
            if keep_rows:
                content.rows.append(row)
                content.questions += digest_question(row)
    except DatasetError as error:  # what ends reading half-way: limits, truncated compression
        problems.extend(error.problems)
    for row in groups.values():
        content.see_recorded(row, method, settings.num_train_trials)
    return content


def _is_known(row: Row, groups: dict[bytes, Row]) -> bool:
    """Whether there was a state of HELM's for the same instance; the first of them is given all recordings."""
    first = groups.setdefault(canonical_json(row.instance), row)
    if first is not row:
        first.found.extend(row.found)
    return first is not row


def _plan(content: _Content, options: Options) -> File | None:
    """Decide what the file as a whole says; None where its header is wrong or it has no rows."""
    survey, problems = content.survey, content.problems
    if not content.header.is_right or not survey.rows:
        return None
    survey.settle()
    plan = make_plan(content.header, options, survey, problems)
    counts = _count(plan, survey)
    file = File(plan, survey, problems, options.seed, counts, content.reader.is_imported)
    content.checks.report(file)
    return file


def _count(plan: Plan, survey: Survey) -> dict[str, int]:
    counts = {"rows": survey.rows}
    counts["train"] = survey.splits["train"] if survey.is_differentiated else plan.demonstrations
    counts["eval"] = plan.evaluated
    counts["recorded"] = survey.statuses["ok"].count
    if survey.is_recorded:
        counts.update(not_run=survey.statuses["not_run"].count, failed=survey.statuses["failed"].count)
        if survey.statuses["unscored"].count:
            counts["unscored"] = survey.statuses["unscored"].count
    elif plan.cap is not None and plan.evaluated > plan.cap:
        counts.update(eval=plan.cap, capped=plan.evaluated - plan.cap)
    else:  # an importer says why no row has an answer
        counts |= {what: survey.statuses[what].count for what in ("failed", "unscored") if survey.statuses[what].count}
    return counts


def _build(content: _Content, file: File, options: Options) -> EvalSet:
    """Return the EvalSet of a file without errors: all that was found are warnings."""
    from helm_ext.formats.request_states.instances import Builder, assign_ids

    plan, survey, header = file.plan, file.survey, content.header.keys
    spec = make_adapter_spec(plan, survey)
    builder = Builder(
        spec, plan.labels, request_decoding(plan, survey), is_recorded=survey.is_recorded or survey.has_incomplete
    )
    assign_ids(content.rows)
    rows, content.rows = assign_splits(content.rows, plan, survey, options.seed), []
    live = sum(row.split != "train" and row.only != "recorded" for row in rows)
    places = [row.place.number for row in rows]
    listed_in = "" if rows[0].place.line is not None else str(rows[0].place.path[0])
    instances = []
    moves = any(row.only == "recorded" and row.split != "train" for row in rows)
    for index, row in enumerate(rows):
        instances.append(builder.build(row, index if moves else None))
        rows[index] = None  # type: ignore[call-overload] # the parsed row is not needed beside its instance
    sub_splits = tuple(sorted({i.sub_split for i in instances if i.sub_split and i.split != "train"}))
    return EvalSet(
        name=options.name or header.get("name") or _stem(content.reader.path),
        format="adapter_spec",
        digest=content.reader.digest,
        question_digest=digest_questions(header, content.questions),
        instances=instances,
        adapter_spec=spec,
        scoring=plan.scoring,
        display_name=header.get("display_name") or "",
        description=header.get("description") or "",
        warnings=tuple(content.finish()),
        counts=file.counts,
        places=Places(content.reader.path, places, listed_in),
        attributes=({"sub_split": sub_splits} if sub_splits else {}) | _group(instances, options.by),
        scored_rows=ScoredRows(live, survey.selected) if 0 < live < survey.selected else None,
    )


def _group(instances: Sequence[Instance], by: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute among the rows that are evaluated."""
    evaluated = [instance for instance in instances if by and instance.split != "train"]
    rows = [row_extra(instance).get("attributes", {}) for instance in evaluated]
    return {name: tuple(sorted({row[name] for row in rows if name in row})) for name in by}


def _stem(path: str) -> str:
    """Return a file's name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name
