"""What is said about a file as a whole: warnings, and the errors that need all rows."""

from __future__ import annotations

from collections.abc import Sequence

from helm_ext.errors import count, show
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.rows import First, Row, RowReader
from helm_ext.formats.request_states.settings import Settings
from helm_ext.formats.request_states.strays import Strays
from helm_ext.formats.request_states.survey import Survey
from helm_ext.formats.request_states.wording import Path, format_path

__all__ = [
    "report_none_selected",
    "report_too_few",
    "report_without_correct",
    "warn",
    "warn_rows",
    "warn_stops",
]

EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""

ALL = ("request_states",)


def report_too_few(report: Report, survey: Survey, demonstrations: int) -> None:
    """Report a file with too few rows to draw demonstrations and leave one to evaluate."""
    message = (
        f"{count(survey.rows, 'row is', 'rows are')} too few: {demonstrations} would be demonstrations, and at least "
        "one must be left to evaluate"
    )
    hint = "add rows, or lower adapter_spec.max_train_instances"
    if survey.is_recorded:
        report.warn(ALL, f"the file cannot be run live: {message}", hint, code="too-few-rows")
    else:
        report.add(ALL, message, hint, code="too-few-rows", kind=INTEGRITY)


def report_none_selected(report: Report, survey: Survey, settings: Settings) -> None:
    """Report eval_splits that no row is of; warn of rows that they leave out."""
    there = {split or "none given" for split in survey.splits}
    where = ("adapter_spec", "eval_splits")
    if not survey.selected:
        report.add(
            where,
            f"no row is of split {' or '.join(settings.eval_splits)}, so there is nothing to evaluate",
            f"splits of the rows: {', '.join(sorted(there))}",
            code="no-eval-rows",
            kind=INTEGRITY,
        )
        return
    train = survey.splits["train"] if survey.is_differentiated else 0
    others = survey.rows - train - survey.selected
    if others:
        message = f"{count(others, 'row is', 'rows are')} of other splits and not evaluated"
        report.warn(where, message, code="eval-splits")


def report_without_correct(report: Report, survey: Survey, reader: RowReader) -> None:
    """Report rows without a correct reference. In train rows of a differentiated file it is only odd."""
    shown = []
    for place in reader.without_correct:
        path, line, split, lacks = place
        if survey.is_differentiated and split == "train":
            shown.append(place)
            continue
        report.add(
            (*path, "instance", "references"),
            lacks.message,
            lacks.hint,
            code="no-correct-reference",
            line=line,
            kind=INTEGRITY,
        )
    if shown:
        path, line, _, lacks = shown[0]
        report.warn(
            (*path, "instance", "references"),
            f"{count(len(shown), 'train row has', 'train rows have')} no correct reference: the answer shown is n/a",
            lacks.hint,
            code="no-correct-reference",
            line=line,
        )


def warn(report: Report, survey: Survey, settings: Settings, *, method: str, demonstrations: int, seed: int) -> None:
    """Warn of what is odd about splits, sizes and prompts."""
    if survey.is_differentiated:
        _warn_differentiated(report, survey)
    elif not survey.helm.count:
        _warn_sampled(report, survey, settings, demonstrations, seed)
    if not survey.helm.count and method != "chat":
        _warn_frame(report, survey, settings, method)


def _warn_differentiated(report: Report, survey: Survey) -> None:
    if survey.splits[None]:
        message = f"{count(survey.splits[None], 'row has', 'rows have')} no split; evaluated, as others are train rows"
        report.warn(ALL, message, code="split-missing")
    if survey.overlap:
        report.warn(
            ALL,
            f"{count(survey.overlap, 'input is', 'inputs are')} both in the train split and in an evaluated one",
            "a model is shown the answer to rows that it is scored on",
            code="overlap",
        )
    row = survey.recorded_train.row
    if row is not None:
        report.warn(
            (*row.path, "request"),
            f"{count(survey.recorded_train.count, 'train row has', 'train rows have')} recorded completions, "
            "which are not scored",
            code="recorded-train",
            line=row.line,
        )


def _warn_sampled(report: Report, survey: Survey, settings: Settings, demonstrations: int, seed: int) -> None:
    given = ", ".join(sorted(split for split in survey.splits if split)) or "none"
    message = f"train and test are not differentiated (splits given: {given})"
    if demonstrations:
        message += f": {demonstrations} demonstrations are drawn with seed {seed}, the rest is evaluated"
        if survey.is_recorded:
            message += "; a recorded run evaluates all"
    report.warn(ALL, message, code="not-differentiated")
    if survey.rows < settings.max_train_instances * settings.num_train_trials + EXPECTED_EVAL_ROWS:
        report.warn(
            ALL,
            f"{count(survey.rows, 'row', 'rows')}, fewer than the {settings.max_train_instances} demonstrations + "
            f"{EXPECTED_EVAL_ROWS} test examples that the format asks for",
            code="few-rows",
        )
    if survey.thoughts.count and settings.max_train_instances:
        report.warn(
            ALL,
            "there are chains of thought, but train and test are not differentiated",
            'give the demonstrations "split": "train" and the others "split": "test"',
            code="chain-of-thought-split",
        )


def _warn_frame(report: Report, survey: Survey, settings: Settings, method: str) -> None:
    is_as_it_is = settings.max_train_instances == 0 and method == "generation"
    for first, key, verb in (
        (survey.starts_doubled, "input_prefix", "begin with"),
        (survey.ends_doubled, "output_prefix", "end with"),
    ):
        if first.row is None or (is_as_it_is and first.count == survey.rows):
            continue
        report.warn(
            (*first.row.path, "instance", "input", "text"),
            f"{first.count} of {survey.rows} inputs {verb} the {key} already, so the prompt has it twice",
            f'set adapter_spec.{key} to "", or take it out of the texts; if the texts hold worked examples, set '
            "max_train_instances to 0: then they are sent as they are",
            code="doubled-prompt",
            line=first.row.line,
        )


def warn_rows(report: Report, survey: Survey, reader: RowReader, unmapped: First) -> None:
    """Warn of what single rows lack, once each, at the first of them."""

    def at(row: Row | None, where: tuple[str | int, ...], message: str, hint: str, code: str) -> None:
        if row is not None:
            report.warn((*row.path, *where), message, hint, code=code, line=row.line)

    at(
        reader.untagged.row,
        ("instance", "references", 0, "tags"),
        f"{count(reader.untagged.count, 'row has', 'rows have')} a single reference without tags, taken as correct",
        'add "tags": ["correct"]',
        "untagged-reference",
    )
    numbers = reader.nonfinite_numbers
    at(
        reader.nonfinite.row,
        (),
        f"{count(numbers, 'number')} in {count(reader.nonfinite.count, 'row')} "
        f"{'is' if numbers == 1 else 'are'} NaN or infinite; treated as not recorded",
        "write null",
        "not-finite",
    )
    _warn_ids(report, survey)
    if survey.is_recorded:
        for first, one, many, code in (
            (survey.not_run, "row was not run", "rows were not run", "not-run"),
            (survey.failed, "row failed", "rows failed", "failed"),
        ):
            at(
                first.row,
                ("request",) if first.row is not None and not first.row.is_helm else (),
                f"{count(first.count, one, many)} of {survey.evaluated_if_recorded}; a recorded run refuses the file",
                "missing=skip scores the rest and reports how many were left out",
                code,
            )
    at(
        survey.incomplete.row,
        ("request",),
        f"{count(survey.incomplete.count, 'row has', 'rows have')} completions that the method cannot be scored with: "
        "it needs one request per option, with log-probabilities; here "
        f"{survey.incomplete_requests[0]} of {survey.incomplete_requests[1]} are recorded",
        "completions that name an option are scored with method generation or multiple_choice_joint",
        "incomplete-recording",
    )
    at(
        unmapped.row,
        ("request",),
        f"{unmapped.count} of {survey.usable.count} recorded completions name none of the options; they count as wrong",
        "",
        "unmapped",
    )


def _warn_ids(report: Report, survey: Survey) -> None:
    row = survey.unclear_ids.row
    if row is None:
        return
    message = f"{count(survey.unclear_ids.count, 'row has no id of its', 'rows have no id of their')} own; made unique"
    given = row.instance.get("id")
    other: Path = ()
    if given is not None and given != "":
        message += f": {show(given)} is also the id of "
        if row.line is None:
            other = (*ALL, survey.first_with_id, "instance", "id")
            message += format_path(other[:2])
        else:
            message += f"line {survey.first_with_id}"
    report.warn((*row.path, "instance", "id"), message, code="ids", line=row.line, other=other)


def warn_strays(report: Report, strays: Strays) -> None:
    """Warn of keys that nothing reads and that look like one that is read."""
    for (place, key), (first, hint) in strays.found.items():
        assert first.row is not None
        report.warn(
            (*first.row.path, *place, key),
            f"{count(first.count, 'row has', 'rows have')} this key, which means nothing here",
            hint,
            code="stray-key",
            line=first.row.line,
        )


def warn_stops(report: Report, found: Sequence[First], cut_at: Sequence[str]) -> None:
    """Warn of correct references that hold a stop sequence: no live model says what stands behind it."""
    rows = [first.row for first in found if first.row is not None]
    if rows:
        row = min(rows, key=lambda row: row.index)
        number = sum(first.count for first in found)
        report.warn(
            (*row.path, "instance", "references"),
            f"{count(number, 'row has', 'rows have')} a correct reference with a stop sequence in it, which a live "
            "model cannot go beyond",
            f"references and predictions are cut at {', '.join(map(show, cut_at))}"
            if cut_at
            else "cut_at_stop=true cuts references and predictions there",
            code="stop-in-reference",
            line=row.line,
        )
