"""Rules about which rows are demonstrations and which are evaluated."""

from __future__ import annotations

from array import array

from helm_ext.errors import DatasetIntegrityError, count
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.checks.rule import ALL_ROWS, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.ids import hash_content
from helm_ext.formats.request_states.reading import State
from helm_ext.formats.request_states.rows import Row

__all__ = ["MissingSplit", "Overlap", "RecordedTrain", "SelectedSplits", "TooFewRows", "Undifferentiated"]

EXPECTED_EVAL_ROWS = 100
"""The format asks for the demonstrations and 100 rows more where it leaves the choice to us."""


class TooFewRows(Rule):
    """A file with too few rows to draw demonstrations and leave one to evaluate."""

    def report(self, file: File) -> None:
        plan, problems = file.plan, file.problems
        if plan.can_run_live or problems.errors:  # rows that are wrong were not counted
            return
        message = (
            f"{count(file.survey.rows, 'row is', 'rows are')} too few: {plan.wanted} would be demonstrations, and at "
            "least one must be left to evaluate"
        )
        hint = "add rows, or lower adapter_spec.max_train_instances"
        if file.survey.is_recorded:
            problems.warn(ALL_ROWS, f"the file cannot be run live: {message}", hint, code="too-few-rows")
        else:
            message = f"no completions are recorded, so a model would be asked, and {message}"
            problems.add(ALL_ROWS, message, hint, code="too-few-rows", kind=DatasetIntegrityError)


class SelectedSplits(Rule):
    """eval_splits that no row is of, or that leave rows out."""

    def report(self, file: File) -> None:
        survey, splits, problems = file.survey, file.plan.settings.eval_splits, file.problems
        if not splits or problems.errors:
            return
        where = ("adapter_spec", "eval_splits")
        if not survey.selected:
            there = {split or "none given" for split in survey.splits}
            problems.add(
                where,
                f"no row is of split {' or '.join(splits)}, so there is nothing to evaluate",
                f"splits of the rows: {', '.join(sorted(there))}",
                code="no-eval-rows",
                kind=DatasetIntegrityError,
            )
            return
        train = survey.splits["train"] if survey.is_differentiated else 0
        others = survey.rows - train - survey.selected
        if others:
            message = f"{count(others, 'row is', 'rows are')} of other splits and not evaluated"
            problems.warn(where, message, code="eval-splits")


class MissingSplit(Rule):
    """Rows without a split beside train rows."""

    def report(self, file: File) -> None:
        number = file.survey.splits[None]
        if file.survey.is_differentiated and number:
            message = f"{count(number, 'row has', 'rows have')} no split; evaluated, as others are train rows"
            file.problems.warn(ALL_ROWS, message, code="split-missing")


class Overlap(Rule):
    """Inputs both in the train split and in an evaluated one."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.is_chat = header.settings.method == "chat"
        self.inputs = {False: array("q"), True: array("q")}
        """Hashes of what is sent: whether of train rows, to those."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        given = row.instance["input"]
        sent = given.get("text")
        if (not sent or self.is_chat) and given.get("messages"):
            sent = canonical_json(given["messages"])
        self.inputs[row.split == "train"].append(hash_content(sent or ""))

    def report(self, file: File) -> None:
        number = len(set(self.inputs[True]).intersection(self.inputs[False])) if file.survey.is_differentiated else 0
        if number:
            file.problems.warn(
                ALL_ROWS,
                f"{count(number, 'input is', 'inputs are')} both in the train split and in an evaluated one",
                "a model is shown the answer to rows that it is scored on",
                code="overlap",
            )


class RecordedTrain(Rule):
    """Recorded completions of rows that are demonstrations."""

    def report(self, file: File) -> None:
        found = file.survey.train_statuses["ok"]
        if file.survey.is_differentiated and found.row is not None:
            found.row.place.warn(
                "request",
                message=f"{count(found.count, 'train row has', 'train rows have')} recorded completions, which are not "
                "scored",
                code="recorded-train",
            )


class Undifferentiated(Rule):
    """A file that does not say which rows are demonstrations: they are drawn."""

    def report(self, file: File) -> None:
        survey, settings, problems = file.survey, file.plan.settings, file.problems
        is_theirs = file.is_imported and not file.plan.wanted
        if survey.is_differentiated or survey.helm.count or is_theirs:
            return
        given = ", ".join(sorted(split for split in survey.splits if split)) or "none"
        message = f"train and test are not differentiated (splits given: {given})"
        if file.plan.demonstrations:
            drawn = f"{file.plan.demonstrations} demonstrations are drawn with seed {file.seed}"
            message += f": {drawn}, the rest is evaluated"
            if survey.is_recorded:
                message += "; a recorded run evaluates all"
        problems.warn(ALL_ROWS, message, code="not-differentiated")
        if survey.rows < file.plan.wanted + EXPECTED_EVAL_ROWS:
            problems.warn(
                ALL_ROWS,
                f"{count(survey.rows, 'row', 'rows')}, fewer than the {settings.max_train_instances} demonstrations + "
                f"{EXPECTED_EVAL_ROWS} test examples that the format asks for",
                code="few-rows",
            )
        if survey.thoughts.count and settings.max_train_instances:
            problems.warn(
                ALL_ROWS,
                "there are chains of thought, but train and test are not differentiated",
                'give the demonstrations "split": "train" and the others "split": "test"',
                code="chain-of-thought-split",
            )
