"""The steps from a file to an EvalSet, and what is said on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from helm_ext.errors import Problem
from helm_ext.formats.request_states import models
from helm_ext.formats.request_states.adapter import Plan, Settings, choose_method, make_adapter_spec, read_settings
from helm_ext.formats.request_states.reading import Reader, open_file
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.rows import Row, RowReader
from helm_ext.formats.request_states.sampling import draw_order
from helm_ext.formats.request_states.scoring import make_scoring
from helm_ext.formats.request_states.survey import First, Survey
from helm_ext.formats.request_states.wording import describe
from helm_ext.sources import canonical_json

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet, Scoring

__all__ = ["Lowering"]

EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""

_SUFFIXES = {".gz", ".zst", ".zstd", ".json", ".jsonl", ".json5"}


class Lowering:
    """One file on its way. Call `read`, `plan`, then `problems`, and `build` if there are no errors."""

    def __init__(
        self,
        path: str | Path,
        *,
        scoring: Mapping[str, Any],
        method: str | None = None,
        seed: int = 0,
        output_format: Any = None,
        name: str | None = None,
    ) -> None:
        self.path = path
        self.seed = seed
        self.report = Report(str(path))
        self._given = {"method": method, "output_format": output_format}
        self._scoring_given = scoring
        self._name = name
        self.counts: dict[str, int] = {}
        self.rows: list[Row] = []
        self.reader: Reader
        self.header: Mapping[str, Any] = {}
        self.settings: Settings | None = None
        self.survey: Survey | None = None
        self.method: Plan | None = None
        self.scoring: Scoring | None = None
        self.unmapped = First()

    # Reading

    def read(self, *, keep_rows: bool) -> None:
        """Read every state. Raises DatasetError when nothing can be read at all."""
        self.reader = open_file(self.path, self.report)
        self._read_header()
        settings = self.settings or read_settings({}, Report(""), method=None, output_format=None)
        self.survey = Survey(
            settings.context, input_prefix=settings.text("input_prefix"), output_prefix=settings.text("output_prefix")
        )
        row_reader = RowReader(settings.context, self.report)
        groups: dict[bytes, Row] = {}
        read_label = None if keep_rows or self.settings is None else _make_label_test(settings, self._scoring_keys())
        for index, line, value in self.reader.states():
            row = row_reader.read(index, line, self.reader.prefix(index), value, self.reader.reparse)
            if row is None:
                continue
            if row.is_helm and not self._is_new(row, groups):
                continue
            self.survey.add(row)
            if not row.is_helm:
                self.survey.add_status(row, self._single_status(row))
                if read_label is not None and read_label(row):
                    self.unmapped.add(row)
                if keep_rows:
                    self.rows.append(row)
            elif keep_rows:
                self.rows.append(row)
        for row in groups.values():
            recorded = combine(
                row.found, settings.method or "generation", len(row.references), settings.num_train_trials
            )
            self.survey.add_status(row, recorded["status"])
        self._row_reader = row_reader

    def _single_status(self, row: Row) -> str:
        status, state = row.found[0]
        method = self.settings.method if self.settings else None
        if state is not None and method and method.startswith("multiple_choice_separate"):
            return combine(row.found, method, len(row.references), 1)["status"]
        return status

    @staticmethod
    def _is_new(row: Row, groups: dict[bytes, Row]) -> bool:
        """HELM writes several states for one instance: add this one's recording to the row that has it."""
        key = canonical_json(row.instance)
        known = groups.setdefault(key, row)
        if known is not row:
            known.found.extend(row.found)
        return known is row

    def _read_header(self) -> None:
        header = self.reader.header
        if header is None:
            return
        try:
            self.header = models.HEADER.validate_python(header)  # type: ignore[assignment]
        except ValidationError as error:
            for where, message, hint, code in describe(error, header):
                self.report.add(where, message, hint, code=code)
            return
        self.settings = read_settings(
            self.header["adapter_spec"],
            self.report,
            method=self._given["method"],
            output_format=self._given["output_format"],
        )

    def _scoring_keys(self) -> dict[str, Any]:
        chosen = dict(self.header.get("scoring") or {})
        chosen.update({key: value for key, value in self._scoring_given.items() if value is not None})
        return chosen

    # Planning

    def plan(self) -> None:
        """Decide what the file as a whole says; problems and warnings go to the report."""
        survey, settings = self.survey, self.settings
        assert survey is not None
        self.counts = {"rows": survey.rows}
        if settings is None or not survey.rows:
            return
        self.is_recorded = survey.usable.count > 0
        self.method = choose_method(settings, survey, self.report, is_argument=self._given["method"] is not None)
        if self.method.method == "chat" and settings.max_train_instances:
            from dataclasses import replace

            settings = self.settings = replace(settings, max_train_instances=0)
        self.scoring = make_scoring(
            self.header.get("scoring") or {},
            self._scoring_given,
            self.report,
            method=self.method.method,
            output_format=settings.output_format,
            all_choice=survey.choice.count == survey.rows,
            is_helm=survey.helm.count == survey.rows,
            num_outputs=settings.num_outputs,
        )
        self._check_mapping(settings)
        self._plan_splits(settings, survey)
        self._warn(settings, survey)

    def _check_mapping(self, settings: Settings) -> None:
        for label, target in (settings.mapping or {}).items():
            if (
                label not in self._row_reader.mapping_labels_used
                and isinstance(target, int)
                and self._row_reader.mapping_labels_used
            ):
                self.report.add(
                    ("adapter_spec", "answer_mapping", label), f"no row has an option number {target}", "positions count from 0",
                    code="mapping-without-option", kind=INTEGRITY,
                )  # fmt: skip

    def _plan_splits(self, settings: Settings, survey: Survey) -> None:
        self.demonstrations = 0
        self.can_run_live = True
        without_correct = self._row_reader.without_correct
        if survey.is_differentiated:
            evaluated = survey.rows - survey.splits["train"]
            self.counts["train"] = survey.splits["train"]
            trained_without = [place for place in without_correct if place[2] == "train"]
            without_correct = [place for place in without_correct if place[2] != "train"]
            if trained_without:
                path, line, _ = trained_without[0]
                self.report.warn(
                    (*path, "instance", "references"),
                    f"{len(trained_without)} train rows have no correct reference: as demonstrations their answer is n/a",
                    'tag one reference "correct"', code="no-correct-reference", line=line,
                )  # fmt: skip
        else:
            self.demonstrations = settings.max_train_instances * settings.num_train_trials
            evaluated = survey.rows if self.is_recorded else survey.rows - self.demonstrations
            if survey.rows <= self.demonstrations:
                self._report_too_few(survey)
                evaluated = survey.rows if self.is_recorded else 0
            self.counts["train"] = self.demonstrations if self.can_run_live else 0
        for path, line, _ in without_correct:
            self.report.add(
                (*path, "instance", "references"), "no reference is tagged correct", 'add "tags": ["correct"] to the right one',
                code="no-correct-reference", line=line, kind=INTEGRITY,
            )  # fmt: skip
        cap = settings.max_eval_instances if not survey.helm.count else None
        if cap is not None and evaluated > cap and not self.is_recorded:
            self.counts["capped"] = evaluated - cap
            evaluated = cap
        self.counts["eval"] = evaluated
        if evaluated < 1 and self.can_run_live:
            self.report.add(("request_states",), "there are no rows to evaluate", code="no-eval-rows", kind=INTEGRITY)
        self.counts["recorded"] = survey.usable.count
        if self.is_recorded:
            self.counts.update(not_run=survey.not_run.count, failed=survey.failed.count)

    def _report_too_few(self, survey: Survey) -> None:
        self.can_run_live = False
        message = f"{survey.rows} rows are too few: {self.demonstrations} are needed as demonstrations, and one more to evaluate"
        hint = "add rows, or lower adapter_spec.max_train_instances"
        if self.is_recorded:
            self.report.warn(("request_states",), f"cannot be run live: {message}", hint, code="too-few-rows")
        else:
            self.report.add(("request_states",), message, hint, code="too-few-rows", kind=INTEGRITY)

    # Warnings

    def _warn(self, settings: Settings, survey: Survey) -> None:
        assert self.method is not None
        self._warn_splits(settings, survey)
        self._warn_frame(settings, survey, self.method.method)
        untagged = self._row_reader.untagged
        if untagged:
            self._warn_row(
                untagged[0], ("references", 0, "tags"), f"{_count(self._row_reader.untagged_count, 'row has', 'rows have')} a single reference without "
                "tags; it is taken as correct", 'add "tags": ["correct"]', "untagged-reference",
            )  # fmt: skip
        if survey.unclear_ids.row is not None:
            self.counts["renamed_ids"] = survey.unclear_ids.count
            self._warn_row(
                survey.unclear_ids.row, ("id",), f"{_count(survey.unclear_ids.count, 'row has', 'rows have')} no id or one that is taken; "
                "made unique", "", "ids",
            )  # fmt: skip
        if self.is_recorded:
            for first, what in ((survey.not_run, "was not run"), (survey.failed, "failed")):
                if first.row is not None:
                    what = what if first.count == 1 else what.replace("was", "were")
                    row = first.row
                    self.report.warn(
                        (*row.path, "request"), f"{first.count} of {survey.rows} rows {what}: a recorded run refuses the file",
                        "missing=skip scores the rest", code="not-run" if "run" in what else "failed", line=row.line,
                    )  # fmt: skip
        if self.unmapped.row is not None:
            row = self.unmapped.row
            self.counts["unmapped"] = self.unmapped.count
            self.report.warn(
                (*row.path, "request", "result", "completions", 0, "text"),
                f"{self.unmapped.count} of {survey.usable.count} recorded completions name none of the options; they count as wrong",
                code="unmapped", line=row.line,
            )  # fmt: skip

    def _warn_row(self, row: Row, where: tuple[str | int, ...], message: str, hint: str, code: str) -> None:
        self.report.warn((*row.path, "instance", *where), message, hint, code=code, line=row.line)

    def _warn_splits(self, settings: Settings, survey: Survey) -> None:
        if survey.is_differentiated:
            if survey.splits[None]:
                self.report.warn(
                    ("request_states",),
                    f"{survey.splits[None]} of {survey.rows} rows have no split; they are evaluated",
                    code="split-missing",
                )
            if survey.overlap:
                self.report.warn(
                    ("request_states",), f"{_count(survey.overlap, 'input is', 'inputs are')} both in the train split and in an evaluated one",
                    "a model is shown the answer of rows that it is scored on", code="overlap",
                )  # fmt: skip
            return
        if survey.helm.count:
            return
        given = ", ".join(sorted({str(split) for split in survey.splits if split})) or "none"
        drawn = f"{self.demonstrations} demonstrations are drawn (seed {self.seed}) and the rest is evaluated"
        self.report.warn(
            ("request_states",),
            f"train and test are not differentiated (splits: {given}); {drawn}",
            code="not-differentiated",
        )
        if survey.rows < self.demonstrations + EXPECTED_EVAL_ROWS and self.can_run_live:
            self.report.warn(
                ("request_states",), f"{_count(survey.rows, 'row is', 'rows are')} fewer than {self.demonstrations} demonstrations + "
                f"{EXPECTED_EVAL_ROWS} test rows, which the format asks for", code="few-rows",
            )  # fmt: skip
        if survey.train_thoughts.count and settings.max_train_instances:
            self.report.warn(
                ("request_states",), "rows have a chain of thought, but train and test are not differentiated",
                'give the demonstrations "split": "train" and the others "split": "test"', code="chain-of-thought-split",
            )  # fmt: skip

    def _warn_frame(self, settings: Settings, survey: Survey, method: str) -> None:
        if survey.helm.count or method == "chat":
            return
        as_is = settings.max_train_instances == 0 and method == "generation"
        for first, key, verb in (
            (survey.starts_doubled, "input_prefix", "start with"),
            (survey.ends_doubled, "output_prefix", "end with"),
        ):
            if first.row is None or (as_is and first.count == survey.rows):
                continue
            row = first.row
            self.report.warn(
                (*row.path, "instance", "input", "text"),
                f"{first.count} of {survey.rows} inputs {verb} {key} already, so a prompt has it twice",
                f'set adapter_spec.{key} to "" or take it out of the texts; where the texts hold worked examples, also set '
                "max_train_instances to 0", code="doubled-prompt", line=row.line,
            )  # fmt: skip

    # Results

    def problems(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.report.finish(self.reader.locate)

    def build(self) -> EvalSet:
        """Return the EvalSet; only for a file without errors."""
        from helm_ext.evalset import EvalSet
        from helm_ext.formats.request_states.build import Builder, assign_ids

        settings, survey, plan, scoring = self.settings, self.survey, self.method, self.scoring
        assert settings is not None and survey is not None and plan is not None and scoring is not None  # noqa: PT018
        spec = make_adapter_spec(settings, plan, survey)
        builder = Builder(spec, plan.labels, settings.decoding, is_recorded=self.is_recorded)
        assign_ids(self.rows)
        instances = []
        for row in self._assign_splits(settings, survey):
            instances.append(builder.build(row))
        self.rows = []
        name = self._name or self.header.get("name") or file_stem(self.path)
        return EvalSet(
            name=name,
            format="adapter_spec",
            digest=self.reader.digest,
            instances=instances,
            adapter_spec=spec,
            scoring=scoring,
            display_name=self.header.get("display_name") or "",
            description=self.header.get("description") or "",
            warnings=tuple(problem for problem in self.problems() if problem.severity == "warning"),
            counts=self.counts,
        )

    def _assign_splits(self, settings: Settings, survey: Survey) -> list[Row]:
        """Return the rows that become instances, with their final split and the kind of run they take part in."""
        import copy

        rows = self.rows
        cap = settings.max_eval_instances if not survey.helm.count else None
        drawn: set[int] = set()
        order = None
        if not survey.is_differentiated:
            if self.demonstrations and self.can_run_live:
                order = draw_order(rows, self.seed)
                drawn = {row.index for row in order[: self.demonstrations]}
            for row in rows:
                if row.split in (None, "train"):
                    row.split = "test"
        else:
            for row in rows:
                row.split = row.split or "test"
        evaluated = [row for row in rows if row.split != "train" and row.index not in drawn]
        beyond: set[int] = set()
        if cap is not None and len(evaluated) > cap:
            order = order or draw_order(rows, self.seed)
            kept = {row.index for row in evaluated}
            beyond = {row.index for row in [row for row in order if row.index in kept][cap:]}
        result = []
        for row in rows:
            if not self.is_recorded:
                if row.index in drawn:
                    row.split = "train"
                elif row.index in beyond:
                    continue
            elif row.index in drawn:
                # Scored in a recorded run, a demonstration in a live one.
                demo = copy.copy(row)
                demo.split, demo.only, demo.helm_id = "train", "live", f"{row.helm_id}-demo"
                row.only = "recorded"
                result.append(demo)
            elif row.index in beyond or not self.can_run_live:
                row.only = "recorded" if row.split != "train" else None
            result.append(row)
        return result


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def file_stem(path: str | Path) -> str:
    """Return a file's name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES:
        name = Path(name).stem
    return name


def _make_label_test(settings: Settings, scoring: Mapping[str, Any]) -> Any:
    """Return a test whether a recorded completion of a row names none of its options, as the metric will read it."""
    if settings.method is not None and settings.method.startswith("multiple_choice_separate"):
        return None
    from helm_ext import parsing

    pattern = settings.given.get("output_mapping_pattern")

    def is_unmapped(row: Row) -> bool:
        if row.labels is None or row.found[0][1] is None:
            return False
        text = row.found[0][1]["result"]["completions"][0]["text"]
        try:
            text = parsing.clean(
                text, extract=scoring.get("extract"), strip=bool(scoring.get("strip")), lower=bool(scoring.get("lower"))
            )
            options = {label: row.references[position]["output"]["text"] for label, position in row.labels.items()}
            return parsing.map_answer(text, options, pattern) is None
        except ValueError:  # a regular expression that is none: reported elsewhere
            return False

    return is_unmapped
