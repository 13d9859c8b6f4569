"""The steps from a file to an EvalSet."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from helm_ext.errors import DatasetError, Problem, raise_for, show
from helm_ext.files import canonical_json
from helm_ext.formats.request_states import findings, models
from helm_ext.formats.request_states.adapter import Plan, choose_method, make_adapter_spec, request_decoding
from helm_ext.formats.request_states.questions import digest_question, digest_questions
from helm_ext.formats.request_states.reading import Reader, open_file
from helm_ext.formats.request_states.recorded import combine
from helm_ext.formats.request_states.report import INTEGRITY, Report
from helm_ext.formats.request_states.rows import CORRECT, First, Row, RowReader
from helm_ext.formats.request_states.sampling import draw_order
from helm_ext.formats.request_states.scoring import check_scoring, make_scoring
from helm_ext.formats.request_states.settings import Settings, read_settings
from helm_ext.formats.request_states.strays import Strays
from helm_ext.formats.request_states.survey import EVAL_SPLITS, Survey
from helm_ext.formats.request_states.wording import describe
from helm_ext.scoring.stops import StopCensus

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet, Scoring

__all__ = ["Lowering"]

_SUFFIXES = {".gz", ".zst", ".zstd", ".json", ".jsonl", ".json5"}
_OUTPUT_FORMATS = (None, "string", "list")


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
        self.counts: dict[str, int] = {}
        self._method_argument = method
        self._output_format_argument = output_format
        self._scoring_arguments = scoring
        self._name = name
        self._rows: list[Row] = []
        self._reader: Reader
        self._row_reader: RowReader
        self._header: Mapping[str, Any] = {}
        self._settings: Settings | None = None
        self._partial: Settings | None = None
        """What is right of a header that is wrong: enough to read rows and to find all that is wrong."""
        self._survey: Survey
        self._plan: Plan
        self._scoring: Scoring
        self._unmapped = First()
        self._stops: StopCensus
        """References of rows of an eval split that hold a stop sequence."""
        self._stops_train: StopCensus
        self._first_with_stop = First()
        self._first_train_with_stop = First()
        self._strays = Strays()
        self._questions = 0
        """Sum of the rows' digests: their order does not count."""
        self._demonstrations = 0
        self._can_run_live = True

    # Reading

    def read(self, *, keep_rows: bool) -> None:
        """Read every state. Raises DatasetError when nothing can be read at all."""
        if self._output_format_argument not in _OUTPUT_FORMATS:
            message = f'expected "string" or "list", got {show(self._output_format_argument)}'
            self.report.add(("output_format",), message, code="wrong-value")
            self._output_format_argument = None
        self._reader = open_file(self.path, self.report)
        self._read_header()
        settings = self._settings or self._partial or read_settings({}, Report(""), method=None, output_format=None)
        self._survey = survey = Survey(
            settings.context,
            input_prefix=settings.text("input_prefix"),
            output_prefix=settings.text("output_prefix"),
            eval_splits=settings.eval_splits,
        )
        self._row_reader = reader = RowReader(settings.context, self.report)
        stops = settings.given.get("stop_sequences") or ()
        self._stops, self._stops_train = StopCensus(stops), StopCensus(stops)
        is_unmapped = None if keep_rows else make_label_test(settings, self._scoring_keys())
        method = settings.method or ""
        asks_each_option = method.startswith("multiple_choice_separate")
        groups: dict[bytes, Row] = {}
        try:
            for raw in self._reader.states():
                index, _, state, _, _, has_known_keys = raw
                row = reader.read(raw, self._reader.prefix(index), self._reader.reparse)
                if row is None or (row.is_helm and not is_first_state(row, groups)):
                    continue
                survey.add(row)
                if not row.is_helm and not has_known_keys:
                    self._strays.look(state, row)
                if stops and row.labels is None:
                    self._look_for_stops(row)
                if not row.is_helm:
                    if asks_each_option:
                        survey.add_recorded(row, combine(row.found, method, len(row.references), 1))
                    else:
                        survey.add_status(row, row.found[0][0])
                    if is_unmapped is not None and is_unmapped(row):
                        self._unmapped.add(row)
                if keep_rows:
                    self._rows.append(row)
                    self._questions += digest_question(row)
        except DatasetError as error:  # what ends reading half-way: limits, truncated compression
            self.report.extend(error.problems)
        for row in groups.values():
            found = combine(row.found, method, len(row.references), settings.num_train_trials)
            survey.add_recorded(row, found)

    def _look_for_stops(self, row: Row) -> None:
        is_train = row.split == "train"
        census = self._stops_train if is_train else self._stops
        found = [census.add(text) for text in correct_texts(row)]
        if any(found):
            (self._first_train_with_stop if is_train else self._first_with_stop).add(row)

    def _read_header(self) -> None:
        header = self._reader.header
        if header is None:
            return
        try:
            self._header = models.validate(models.FILE, {**header, "request_states": []})
        except ValidationError as error:
            found = describe(error, header)
            for where, message, hint, code in found:
                self.report.add(where, message, hint, code=code)
            right = without_places(header, [where for where, *_ in found])
            self._partial = read_settings(
                right.get("adapter_spec") or {},
                self.report,
                method=self._method_argument,
                output_format=self._output_format_argument,
            )
            check_scoring(right.get("scoring") or {}, self._scoring_arguments, self._partial.output_format, self.report)
            return
        self._settings = read_settings(
            self._header["adapter_spec"],
            self.report,
            method=self._method_argument,
            output_format=self._output_format_argument,
        )

    def _scoring_keys(self) -> dict[str, Any]:
        given = {key: value for key, value in self._scoring_arguments.items() if value is not None}
        return {**(self._header.get("scoring") or {}), **given}

    # Planning

    def plan(self) -> None:
        """Decide what the file as a whole says; problems and warnings go to the report."""
        survey = self._survey
        self.counts = {"rows": survey.rows}
        if self._settings is None or not survey.rows:
            return
        survey.settle()
        self._plan = choose_method(self._settings, survey, self.report, is_argument=self._method_argument is not None)
        if self._plan.method == "chat":
            self._settings = replace(self._settings, max_train_instances=0)
        settings = self._settings
        with_stops = [self._first_with_stop]
        if not survey.is_differentiated:
            with_stops.append(self._first_train_with_stop)
            self._stops.merge(self._stops_train)
        self._scoring = make_scoring(
            self._header.get("scoring") or {},
            self._scoring_arguments,
            self.report,
            method=self._plan.method,
            output_format=settings.output_format,
            all_choice=survey.choice.count == survey.rows,
            is_helm=survey.is_helm_output,
            num_outputs=settings.num_outputs,
            stops=self._stops,
        )
        self._check_mapping(settings)
        self._plan_splits(settings)
        findings.warn(
            self.report,
            survey,
            settings,
            method=self._plan.method,
            demonstrations=self._demonstrations if self._can_run_live else 0,
            seed=self.seed,
        )
        findings.warn_rows(self.report, survey, self._row_reader, self._unmapped)
        findings.warn_strays(self.report, self._strays)
        findings.warn_stops(self.report, with_stops, self._scoring.cut_at)
        for name, first in (("renamed_ids", survey.unclear_ids), ("unmapped", self._unmapped)):
            if first.count:
                self.counts[name] = first.count

    def _check_mapping(self, settings: Settings) -> None:
        used = self._row_reader.mapping_labels_used
        for label, target in (settings.mapping or {}).items():
            if used and label not in used:
                self.report.add(
                    ("adapter_spec", "answer_mapping", label),
                    f"no row has an option number {target}",
                    "positions count from 0",
                    code="mapping-without-option",
                    kind=INTEGRITY,
                )

    def _plan_splits(self, settings: Settings) -> None:
        survey = self._survey
        is_recorded = survey.is_recorded
        if survey.is_differentiated:
            train = survey.splits["train"]
            evaluated = survey.selected
        else:
            self._demonstrations = settings.max_train_instances * settings.num_train_trials
            # Rows of other splits than those evaluated are drawn first.
            drawn = max(0, self._demonstrations - (survey.rows - survey.selected))
            if 0 < survey.selected <= drawn:
                self._can_run_live = False
                if not self.report.errors:  # rows that are wrong were not counted
                    findings.report_too_few(self.report, survey, self._demonstrations)
            train = self._demonstrations if self._can_run_live else 0
            evaluated = survey.selected if is_recorded or not self._can_run_live else max(0, survey.selected - drawn)
        if settings.eval_splits and not self.report.errors:
            findings.report_none_selected(self.report, survey, settings)
        findings.report_without_correct(self.report, survey, self._row_reader)
        cap = self._cap(settings)
        self.counts.update(train=train, eval=evaluated, recorded=survey.usable.count)
        if is_recorded:
            self.counts.update(not_run=survey.not_run.count, failed=survey.failed.count)
        elif cap is not None and evaluated > cap:
            self.counts.update(eval=cap, capped=evaluated - cap)

    def _cap(self, settings: Settings) -> int | None:
        """Return the file's max_eval_instances. In HELM's own output it has been applied already."""
        return None if self._survey.helm.count else settings.max_eval_instances

    # Results

    def problems(self) -> list[Problem]:
        """Return all that was found, errors first."""
        return self.report.finish(self._reader.locate)

    def build(self) -> EvalSet:
        """Return the EvalSet of a file without errors. Raises DatasetError if HELM does not know a perturbation."""
        from helm_ext.evalset import EvalSet
        from helm_ext.formats.request_states.build import Builder, assign_ids

        settings = self._settings
        assert settings is not None
        spec = make_adapter_spec(settings, self._plan, self._survey)
        decoding = request_decoding(settings, self._plan.method, self._survey)
        is_recorded = self._survey.is_recorded or self._survey.incomplete.count > 0
        builder = Builder(spec, self._plan.labels, decoding, self.report, is_recorded=is_recorded)
        assign_ids(self._rows)
        rows, self._rows = self._assign_splits(settings), []
        instances = []
        moves = any(row.only == "recorded" and row.split != "train" for row in rows)
        for index, row in enumerate(rows):
            instances.append(builder.build(row, index if moves else None))
            rows[index] = None  # type: ignore[call-overload] # the parsed row is not needed beside its instance
        problems = self.problems()
        raise_for(problems)
        sub_splits = tuple(sorted({i.sub_split for i in instances if i.sub_split and i.split != "train"}))
        return EvalSet(
            name=self._name or self._header.get("name") or file_stem(self.path),
            format="adapter_spec",
            digest=self._reader.digest,
            question_digest=digest_questions(self._header, self._questions),
            instances=instances,
            adapter_spec=spec,
            scoring=self._scoring,
            display_name=self._header.get("display_name") or "",
            description=self._header.get("description") or "",
            warnings=tuple(problem for problem in problems if problem.severity == "warning"),
            counts=self.counts,
            attributes={"sub_split": sub_splits} if sub_splits else {},
        )

    def _assign_splits(self, settings: Settings) -> list[Row]:
        """Give each row its final split and the kind of run it takes part in; return those that become instances.

        A recorded file may be run live too: rows drawn as demonstrations are scored in a recorded run, and a copy of
        each is a demonstration in a live one.
        """
        survey, rows = self._survey, self._rows
        cap = self._cap(settings)
        demonstrations = self._demonstrations if self._can_run_live else 0
        for row in rows:
            if row.split is None or (row.split == "train" and not survey.is_differentiated):
                row.split = "test"
        order = draw_order(rows, self.seed) if demonstrations or cap is not None else []
        eval_splits = settings.eval_splits or EVAL_SPLITS
        kept = ("train", *eval_splits)
        if settings.eval_splits:
            order.sort(key=lambda row: row.split in eval_splits)
        drawn = {row.index for row in order[:demonstrations]}
        beyond: set[int] = set()
        if cap is not None:
            evaluated = [row.index for row in order if row.split in eval_splits and row.index not in drawn]
            beyond = set(evaluated[cap:])
        if not survey.is_recorded:
            for row in rows:
                if row.index in drawn:
                    row.split = "train"
            return [row for row in rows if row.split in kept and row.index not in beyond]
        result = []
        for row in rows:
            if row.index in drawn:
                demonstration = copy.copy(row)
                demonstration.split, demonstration.only = "train", "live"
                demonstration.helm_id = f"{row.helm_id}-demo"
                result.append(demonstration)
            if row.split not in kept:
                continue
            if row.split != "train" and (row.index in drawn or row.index in beyond or not self._can_run_live):
                row.only = "recorded"
            result.append(row)
        return result


def without_places(header: Mapping[str, Any], places: Sequence[tuple[str | int, ...]]) -> dict[str, Any]:
    """Return a copy of a header without the keys (and the parameters of decoding) that `places` are about."""
    right = copy.deepcopy(dict(header))
    for place in places:
        holder: Any = right
        parts = place[: 3 if place[:2] == ("adapter_spec", "decoding_parameters") else 2]
        for part in parts[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder.pop(parts[-1], None)
    return right


def correct_texts(row: Row) -> list[str]:
    """Return the texts of a row's correct references."""
    return [reference["output"]["text"] for reference in row.references if CORRECT in (reference.get("tags") or ())]


def is_first_state(row: Row, groups: dict[bytes, Row]) -> bool:
    """Whether this is the first of HELM's states for one instance; later ones add their recording to it."""
    known = groups.setdefault(canonical_json(row.instance), row)
    if known is not row:
        known.found.extend(row.found)
    return known is row


def file_stem(path: str | Path) -> str:
    """Return a file's name without the endings that say how it is written."""
    name = Path(path).name
    while Path(name).suffix.lower() in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name


def make_label_test(settings: Settings, scoring: Mapping[str, Any]) -> Callable[[Row], bool]:
    """Return a test whether a recorded completion of a row names none of its options, as the metric will read it."""
    from helm_ext import parsing

    pattern = settings.given.get("output_mapping_pattern")
    multi_label = bool(settings.given.get("multi_label"))
    is_list = settings.output_format == "list"

    def is_unmapped(row: Row) -> bool:
        state = row.found[0][1]
        if row.labels is None or state is None or row.split == "train":
            return False
        options = {label: row.references[position]["output"]["text"] for label, position in row.labels.items()}
        completions = state["result"]["completions"]
        try:
            for completion in completions if is_list else completions[:1]:
                text = parsing.clean(
                    completion["text"],
                    extract=scoring.get("extract"),
                    strip=bool(scoring.get("strip")),
                    lower=bool(scoring.get("lower")),
                )
                if text is not None and any(
                    parsing.read_choice(text, options, pattern, multi_label=multi_label, is_list=is_list)
                ):
                    return False
        except ValueError:  # a regular expression that is none; reported by `scoring`
            return False
        return True

    return is_unmapped
