"""The steps from a file to an EvalSet, each once and in this order:

bytes ──reading──▶ header, states ──header, rows──▶ rows ──checks, plan──▶ plan ──instances──▶ EvalSet
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from typing_extensions import Unpack

from helm_ext.errors import DatasetError, Problem, Problems, raise_for, show
from helm_ext.evalset import EvalSet, Places, ScoredRows, garbage
from helm_ext.files import canonical_json
from helm_ext.formats.json_schemas import to_json_schema
from helm_ext.formats.request_states.checks import Checks, File
from helm_ext.formats.request_states.header import Header, Options, read_header
from helm_ext.formats.request_states.header_models import CLOSED, FileModel
from helm_ext.formats.request_states.models import OPEN
from helm_ext.formats.request_states.plan import Plan, make_adapter_spec, make_plan, request_decoding
from helm_ext.formats.request_states.questions import digest_question, digest_questions
from helm_ext.formats.request_states.reading import Reader, open_file
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.rows import Row, RowReader
from helm_ext.formats.request_states.survey import Survey

if TYPE_CHECKING:
    from helm_ext.formats.request_states.columns import Columns
    from helm_ext.formats.request_states.rereading import Identity, Spans

__all__ = ["Arguments", "check", "check_from", "json_schema", "load", "load_from"]

Opener = Callable[[Problems], Reader]
"""Opens what is to be read, in the order in which problems are reported; also a second time. Raises DatasetError when
nothing of it can be read."""

_SUFFIXES = {".gz", ".zst", ".zstd", ".json", ".jsonl", ".json5"}
KEPT_ROWS = 5_000
"""Rows of a file that are kept from the first reading. A file of more is read a second time, some rows at a time: that
costs a sixth more for each row, and the memory of a run no longer grows with the rows."""
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

    `path` is what problems name. What has many rows is opened and read a second time, when somebody looks at the
    instances. Raises a DatasetError that carries all problems.
    """
    options = _to_options(arguments)
    with garbage.paused():
        content = _read(open_, path, options, kept=KEPT_ROWS)
        file = _plan(content, options)
        raise_for(content.finish())
        assert file is not None
        return _build(open_, content, file, options)


def check(path: str | Path, **arguments: Unpack[Arguments]) -> tuple[list[Problem], dict[str, int]]:
    """Return all problems of a file (errors first, then warnings) and what was counted.

    Memory does not grow with JSON Lines but for some bytes a row (ids and inputs are compared).
    """
    return check_from(lambda problems: open_file(path, problems), path, **arguments)


def check_from(open_: Opener, path: str | Path, **arguments: Unpack[Arguments]) -> tuple[list[Problem], dict[str, int]]:
    """Return the problems and counts of what `open_` opens, as `check` does."""
    options = _to_options(arguments)
    try:
        content = _read(open_, path, options, kept=None)
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
    columns: Columns | None = None
    """None where a file is only checked."""
    rows: list[Row] | None = None
    """None where there are too many to keep them."""
    spans: Spans | None = None
    identity: Identity | None = None
    """Of the file, before it was read."""
    questions: int = 0
    """Sum of the rows' digests: their order does not count."""

    def keep(self, row: Row, most: float, *, is_known: bool) -> None:
        """Keep what must be known of a row, and the row while there are no more than `most`."""
        assert self.columns is not None
        assert self.spans is not None
        self.columns.see(row)
        self.spans.add(self.reader.start, self.reader.size, is_known=is_known)
        self.questions += digest_question(row)
        if self.rows is not None:
            self.rows.append(row)
            if len(self.rows) > most:
                self.rows = None

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


def _read(open_: Opener, path: str | Path, options: Options, *, kept: float | None) -> _Content:
    """Read every state. `kept`: how many rows are kept in memory; None: the file is only checked.

    Raises DatasetError when nothing can be read at all.
    """
    problems = Problems(str(path))
    if options.output_format not in _OUTPUT_FORMATS:
        message = f'expected "string" or "list", got {show(options.output_format)}'
        problems.add(("output_format",), message, code="wrong-value")
        options = replace(options, output_format=None)
    identity = None
    if kept is not None:
        from helm_ext.formats.request_states.rereading import Identity

        identity = Identity.find(str(path))
    reader = open_(problems)
    header = read_header(reader.header, options, problems)
    settings = header.settings
    survey, checks = Survey(settings), Checks(header, reads_completions=kept is None)
    content = _Content(reader, header, survey, checks, problems)
    if kept is not None:
        from helm_ext.formats.request_states.columns import Columns
        from helm_ext.formats.request_states.rereading import Spans

        content.columns, content.rows, content.spans = Columns(settings, options.seed), [], Spans()
        content.identity = identity
        if not reader.is_streamed:
            kept = math.inf
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
            if content.columns is not None:
                if row.is_helm and content.rows is None:  # states of one row may stand anywhere: all are needed
                    return _read(open_, path, options, kept=math.inf)
                content.keep(row, math.inf if groups else kept or 0, is_known=state.is_known)
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


def _build(open_: Opener, content: _Content, file: File, options: Options) -> EvalSet:
    """Return the EvalSet of a file without errors: all that was found are warnings."""
    from helm_ext.evalset.columns import RECORDED
    from helm_ext.formats.request_states.columns import TRAIN
    from helm_ext.formats.request_states.instances import Builder
    from helm_ext.formats.request_states.rereading import Maker, Rereader, open_instances

    plan, survey, header = file.plan, file.survey, content.header.keys
    columns, kept = content.columns, content.rows
    assert columns is not None
    spec = make_adapter_spec(plan, survey)
    builder = Builder(
        spec, plan.labels, request_decoding(plan, survey), is_recorded=survey.is_recorded or survey.has_incomplete
    )
    again = Rereader(open=open_, path=content.reader.path, context=content.header.settings.context)
    fetch = again.read_rows if kept is None else lambda ordinals: [kept[ordinal] for ordinal in ordinals]
    chosen = columns.choose(plan, survey, fetch, is_labelled=builder.labelled)
    again.maker = Maker(builder=builder, splits=chosen.columns.splits, renamed=chosen.renamed, moves=chosen.moves)
    is_seekable = content.reader.is_seekable
    instances = open_instances(chosen, again, kept, content.spans if is_seekable else None, content.identity)
    content.rows = None
    live = int(((chosen.columns.split != TRAIN) & (chosen.columns.only != RECORDED)).sum())
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
        places=Places(content.reader.path, chosen.places, "" if content.reader.is_streamed else "request_states"),
        attributes=chosen.find_attributes(options.by),
        scored_rows=ScoredRows(live, survey.selected) if 0 < live < survey.selected else None,
    )


def _stem(path: str) -> str:
    """Return a file's name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name
