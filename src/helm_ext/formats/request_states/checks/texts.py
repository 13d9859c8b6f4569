"""Rules about what rows say: their inputs, references and labels."""

from __future__ import annotations

from collections import Counter

from helm_ext.errors import DatasetIntegrityError, Location, Problem, count, show
from helm_ext.formats.request_states.checks.rule import MOST_KEPT, File, Rule
from helm_ext.formats.request_states.header import Header
from helm_ext.formats.request_states.reading import Place, State
from helm_ext.formats.request_states.rows import Lack, Row
from helm_ext.formats.request_states.tally import First

__all__ = [
    "DoubledPrompt",
    "EmptyAnswers",
    "NoCorrectReference",
    "SeparateSegments",
    "StopsInReferences",
    "UntaggedReference",
    "UnusedMapping",
]


class UnusedMapping(Rule):
    """A label of the whole file's answer mapping that names an option in no row."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.used: set[str] = set()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.labels_from == "file" and row.labels is not None:
            self.used.update(row.labels)

    def report(self, file: File) -> None:
        for label, target in (file.plan.settings.mapping or {}).items():
            if self.used and label not in self.used:
                file.problems.add(
                    ("adapter_spec", "answer_mapping", label),
                    f"no row has an option number {target}",
                    "positions count from 0",
                    code="mapping-without-option",
                    kind=DatasetIntegrityError,
                )


class NoCorrectReference(Rule):
    """Rows without a correct reference. In train rows of a file that tells them apart it is only odd."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.train: list[tuple[Place, Lack]] = []
        self.others: list[tuple[Place, Lack]] = []
        self.rows = Counter[bool]()
        """How many there are: whether they are train rows, to their number."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.lack is not None:
            is_train = row.split == "train"
            self.rows[is_train] += 1
            found = self.train if is_train else self.others
            if len(found) < MOST_KEPT:
                found.append((row.place, row.lack))

    def report(self, file: File) -> None:
        is_odd = file.survey.is_differentiated
        wrong = self.others if is_odd else sorted([*self.train, *self.others], key=lambda found: found[0].number)
        for place, lack in wrong:
            place.error(
                "instance", "references",
                message=lack.message, hint=lack.hint, code="no-correct-reference", is_integrity=True,
            )  # fmt: skip
        more = (self.rows[False] if is_odd else self.rows.total()) - len(wrong)
        if more:
            where, code = Location(file.problems.path), "no-correct-reference"
            file.problems.extend([Problem("", where, code=code, kind=DatasetIntegrityError, number=more)])
        if is_odd and self.train:
            place, lack = self.train[0]
            place.warn(
                "instance", "references",
                message=f"{count(self.rows[True], 'train row has', 'train rows have')} no correct reference: the "
                "answer shown is n/a",
                hint=lack.hint,
                code="no-correct-reference",
            )  # fmt: skip


class UntaggedReference(Rule):
    """A single reference without tags, which is taken as correct."""

    sees_all_states = True

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.found = First()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.is_untagged:
            self.found.add(row)

    def report(self, file: File) -> None:  # noqa: ARG002
        if self.found.row is not None:
            rows = count(self.found.count, "row has", "rows have")
            self.found.row.place.warn(
                "instance", "references", 0, "tags",
                message=f"{rows} a single reference without tags, taken as correct",
                hint='add "tags": ["correct"]',
                code="untagged-reference",
            )  # fmt: skip


class EmptyAnswers(Rule):
    """Correct references without text. HELM's draw of demonstrations ends at an empty answer, and then fails.

    See `InContextLearningAdapter.sample_examples`. An empty answer is equal to an empty reply.
    """

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.train, self.others = First(), First()

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if "" in row.golds:
            (self.train if row.split == "train" else self.others).add(row)

    def report(self, file: File) -> None:
        survey, settings = file.survey, file.plan.settings
        draws = settings.max_train_instances > 0 and settings.given.get("sample_train") is not False
        first, may_be_drawn = self.train, self.train.count
        if not survey.is_differentiated:
            self.others.merge(self.train)
            first = self.others  # those are drawn last
            may_be_drawn = file.plan.demonstrations - (survey.rows - first.count)
        if draws and may_be_drawn > 0 and first.row is not None and not survey.helm.count:
            say = first.row.place.warn if survey.is_recorded else first.row.place.error
            rows = count(first.count, "demonstration has", "demonstrations have")
            say(
                "instance", "references",
                message=f"{rows} an empty answer, and HELM cannot draw demonstrations where there is one",
                hint='write the answer, or "sample_train": false, which takes the first rows as they are',
                code="empty-demonstration",
            )  # fmt: skip
        if self.others.row is not None:
            self.others.row.place.warn(
                "instance", "references",
                message=f"{count(self.others.count, 'row has', 'rows have')} an empty correct reference: only an empty "
                "reply is equal to it",
                code="empty-answer",
            )  # fmt: skip


class StopsInReferences(Rule):
    """Correct references that hold a stop sequence: no live model says what stands behind it."""

    def report(self, file: File) -> None:
        found, cut_at = file.survey.with_stop, file.plan.scoring.cut_at
        if found.row is not None:
            found.row.place.warn(
                "instance", "references",
                message=f"{count(found.count, 'row has', 'rows have')} a correct reference with a stop sequence in it, "
                "which a live model cannot go beyond",
                hint=f"references and predictions are cut at {', '.join(map(show, cut_at))}"
                if cut_at
                else "cut_at_stop=true cuts references and predictions there",
                code="stop-in-reference",
            )  # fmt: skip


class DoubledPrompt(Rule):
    """Texts that hold the prefixes already which the prompt puts around them."""

    def report(self, file: File) -> None:
        survey, plan = file.survey, file.plan
        if survey.helm.count or plan.method == "chat":
            return
        is_sent_as_it_is = plan.settings.max_train_instances == 0 and plan.method == "generation"
        for first, key, verb in (
            (survey.starts_doubled, "input_prefix", "begin with"),
            (survey.ends_doubled, "output_prefix", "end with"),
        ):
            if first.row is None or (is_sent_as_it_is and first.count == survey.rows):
                continue
            first.row.place.warn(
                "instance", "input", "text",
                message=f"{first.count} of {survey.rows} inputs {verb} the {key} already, so the prompt has it twice",
                hint=f'set adapter_spec.{key} to "", or take it out of the texts; if the texts hold worked examples, '
                "set max_train_instances to 0: then they are sent as they are",
                code="doubled-prompt",
            )  # fmt: skip


_BETWEEN_SEGMENTS = ";,|\n；，、"


class SeparateSegments(Rule):
    """Lists whose segments seem to be given as one correct reference each: then each alone is a right list."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.rows = First()
        self.holds_lists = False
        """Whether a reference seems to hold several segments."""

    def see(self, row: Row, state: State) -> None:  # noqa: ARG002
        if row.labels is None and len(row.golds) > 1:
            self.rows.add(row)
            self.holds_lists = self.holds_lists or any(char in gold for gold in row.golds for char in _BETWEEN_SEGMENTS)

    def report(self, file: File) -> None:
        scoring = file.plan.scoring
        if scoring.output_format != "list" or file.plan.settings.given.get("multi_label") or self.holds_lists:
            return
        if self.rows.row is not None:
            rows, separator = count(self.rows.count, "row has", "rows have"), show(scoring.separator)
            self.rows.row.place.warn(
                "instance", "references",
                message=f"{rows} several correct references, none with {separator}: each alone is a right list",
                hint=f"join the segments with {separator} in one reference, or set multi_label",
                code="separate-segments",
            )  # fmt: skip
