"""What the rows of a file are like, added up: small however many rows there are, the same wherever a file is cut."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from helm_ext.errors import count
from helm_ext.evalset import EXTRA_KEY
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.labels import find_label
from helm_ext.formats.request_states.recorded import Status
from helm_ext.parsing import StopCensus

if TYPE_CHECKING:
    from helm_ext.evalset import Judged, RunScoring
    from helm_ext.formats.request_states.reading import Place
    from helm_ext.formats.request_states.rows import Row

MOST_KEPT = 1_000
"""Rows, texts and the like that are kept at most; what is beyond is counted."""
MOST_VALUES = 200
"""Of one key that `by=` names: each is a column of a report."""
_EVAL_SPLITS = ("valid", "test")
"""HELM's, without its import."""
_BETWEEN_SEGMENTS = ";,|\n；，、"

Fact = Literal[
    Status,
    "choice",
    "few_options",
    "options_in_text",
    "unlabelled",  # an option without a label
    "chat_only",
    "starts_doubled",  # its text begins with the input prefix already
    "ends_doubled",  # its text ends with the output prefix already
    "helm",
    "ours",  # of the output of a run of ours
    "likelihoods",  # recorded by log-probabilities of its options
    "alone",  # with log-probabilities without the question
    "several_right",  # with likelihoods, and several right options
    "single",  # with likelihoods, and one option alone
    "by_text",  # recorded by a text
    "incomplete",  # requests about some options, and not all that the method asks about
    "thought",
    "with_stop",  # a right answer holds a stop sequence
    "empty",  # a right answer is empty
    "several_golds",  # several right answers, and no labels
    "untagged",  # a single reference without tags
    "nonfinite",
    "unclustered",  # no value of the key that `cluster=` names
]
"""What may be true of a row. Statuses say what is recorded for it; of HELM's files, for all its states together."""


class First:
    """How often something was seen, and where first."""

    __slots__ = ("count", "place")

    def __init__(self) -> None:
        self.count = 0
        self.place: Place | None = None

    def add(self, place: Place) -> None:
        """Count a row."""
        if self.place is None:
            self.place = place
        self.count += 1

    def warn(
        self, *where: str | int, message: str, one: str = "row has", hint: str = "", code: str, is_error: bool = False
    ) -> None:
        """Report them where the first one is, if there is one: how many have what the message goes on with."""
        if self.place is not None:
            said = f"{count(self.count, one, one.removesuffix(' has') + 's have')} {message}"
            report = self.place.error if is_error else self.place.warn
            report(*where, message=said, hint=hint, code=code)

    def refuse(self, *where: str | int, message: str, hint: str, code: str) -> bool:
        """Report an error at the first one, if there is one; return whether there is."""
        if self.place is not None:
            self.place.error(*where, message=message, hint=hint, code=code, is_integrity=True)
        return self.place is not None

    def merge(self, other: First) -> None:
        """Add what another one has counted."""
        self.count += other.count
        places = [place for place in (self.place, other.place) if place is not None]
        self.place = min(places, key=lambda place: place.number, default=None)


class Tally:
    """Something that is known of some rows which follow one another."""

    def merge(self, other: Any) -> None:
        """Add what is known of the rows that follow. Numbers are added up, and where one value stands, the first does.

        So nothing may depend on where a file is cut: hashes are equal in every process, and counts have no order.
        """
        for name, mine in vars(self).items():
            setattr(self, name, _join(mine, getattr(other, name)))


def _join(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, Tally | First | StopCensus):
        mine.merge(theirs)
    elif isinstance(mine, Counter):
        mine.update(theirs)
    elif isinstance(mine, dict):
        for key, value in theirs.items():
            mine[key] = _join(mine[key], value) if key in mine else value
    elif isinstance(mine, set):
        mine |= theirs
    elif isinstance(mine, array | bytearray):
        mine.extend(theirs)
    elif isinstance(mine, list):
        mine.extend(theirs[: MOST_KEPT - len(mine)])
    elif isinstance(mine, int) and not isinstance(mine, bool):
        return mine + theirs
    else:
        return mine or theirs
    return mine


class Profile(Tally):
    """Adds up rows: what a plan is made of. No row is kept, but for where the first of each kind stands."""

    def __init__(self, settings: Settings) -> None:
        self.eval_splits = tuple(settings.eval_splits or _EVAL_SPLITS)
        self._is_method_open = settings.method is None
        self._input_prefix = settings.text("input_prefix").strip()
        self._output_prefix = settings.text("output_prefix").strip()
        self.rows = 0
        self.splits: Counter[str | None] = Counter()
        self._facts: dict[tuple[Fact, str | None], First] = {}
        """By fact and split."""
        self.told: dict[bytes, tuple[RunScoring, Place]] = {}
        """Ways in which the run of ours scored that wrote the file, and the first row that says so: one, or several."""
        self.earlier_left_out = False
        """Whether there is a row that a run of ours left out."""
        self.judges: dict[str, set[str]] = {}
        """By criterion, the models that judged rows."""
        self.scales: dict[str, dict[bytes, tuple[Place, int]]] = {}
        """By criterion, the scales of its judgements, as JSON, and of each the first one: its row and position."""
        self.label_sets: dict[tuple[str, ...], Place] = {}
        stops = settings.given.get("stop_sequences") or ()
        self._stops = {is_train: StopCensus(stops) for is_train in (False, True)} if stops else {}
        self.missing_requests = ""
        """Of the first incomplete row: how many of its requests can be used."""
        self.used_labels: set[str] = set()
        """Labels of the file's own mapping that name an option of a row."""
        self.lacking: list[tuple[Place, str]] = []
        """Rows without a correct reference, and why, up to MOST_KEPT."""
        self.lacking_rows = 0
        self.values: dict[str, set[str]] = {name: set() for name in settings.by}
        """Of each key that `by=` names, the values that rows have."""
        self.ungrouped = {name: First() for name in settings.by}
        """Rows without one."""
        self.keys: dict[str, None] = {}
        """That rows have, which `by=` may have meant."""
        self.nonfinite_numbers = 0
        self.holds_lists = False
        """Whether one of several right answers seems to hold several segments."""

    def note(self, fact: Fact, row: Row) -> None:
        """Count a row of which this is true."""
        found = self._facts.get((fact, row.split))
        if found is None:
            found = self._facts[fact, row.split] = First()
        found.add(row.place)

    def find(self, fact: Fact, splits: Iterable[str | None] | None = None) -> First:
        """Return the rows of which this is true: of all splits, or of some."""
        found = First()
        for (name, split), rows in self._facts.items():
            if name == fact and (splits is None or split in splits):
                found.merge(rows)
        return found

    def find_status(self, status: Status) -> First:
        """Return the rows that are evaluated for which this is recorded."""
        return self.find(status, self._evaluated)

    def see_state(self, row: Row) -> None:
        """Look at a row of which a problem may have been reported, or a further state of HELM's about one row."""
        if row.labels_from == "file" and row.labels is not None:
            self.used_labels.update(row.labels)
        if row.lack:
            self.lacking_rows += 1
            if len(self.lacking) < MOST_KEPT:
                self.lacking.append((row.place, row.lack))
        if row.is_untagged:
            self.note("untagged", row)
        if row.nonfinite:
            self.note("nonfinite", row)
            self.nonfinite_numbers += row.nonfinite

    def see(self, row: Row) -> None:
        """Count a row. Written for speed: this runs once a row."""
        self.rows += 1
        self.splits[row.split] += 1
        instance, golds, note = row.instance, row.golds, self.note
        if row.is_choice:
            note("choice", row)
        if len(row.references) < 2:
            note("few_options", row)
        text = instance["input"].get("text")
        if text is None:
            note("chat_only", row)
        else:
            if self._input_prefix and text.lstrip().startswith(self._input_prefix):
                note("starts_doubled", row)
            if self._output_prefix and text.rstrip().endswith(self._output_prefix):
                note("ends_doubled", row)
        if row.labels is not None:
            self.label_sets.setdefault(tuple(row.labels), row.place)
            if row.labels_from != "prefix" and len({*row.labels.values()}) < len(row.references):
                note("unlabelled", row)
            if text is not None and self._is_method_open and _has_options(text, row):
                note("options_in_text", row)
        else:
            if self._stops and sum(map(self._stops[row.split == "train"].add, golds)):
                note("with_stop", row)
            if len(golds) > 1:
                note("several_golds", row)
                self.holds_lists = self.holds_lists or any(char in gold for gold in golds for char in _BETWEEN_SEGMENTS)
        if "" in golds:
            note("empty", row)
        if row.cluster is None:
            note("unclustered", row)
        if self.values and len(self.keys) < MOST_KEPT:
            self.keys |= dict.fromkeys(
                (*(instance.get("extra_data") or {}), *instance, *(row.unknown or {}).get("state", ()))
            )
        for name, values in self.values.items():
            value = (row.attributes or {}).get(name)
            if value is None:
                self.ungrouped[name].add(row.place)
            elif len(values) <= MOST_VALUES:
                values.add(value)
        if row.likelihoods is not None:
            note("likelihoods", row)
            if row.likelihoods[0].get("alone") is not None:
                note("alone", row)
            if len(golds) > 1:
                note("several_right", row)
            if len(row.likelihoods) == 1:
                note("single", row)
        elif row.found[0][1] is not None:
            note("by_text", row)
        for number, judgement in enumerate(row.judgements or ()):
            judges = self.judges.setdefault(judgement.criterion, set())
            if judgement.kind == "model":
                judges.add(judgement.by)
            scale = msgspec.json.encode(judgement.scale)
            self.scales.setdefault(judgement.criterion, {}).setdefault(scale, (row.place, number))
        if row.is_helm:
            note("helm", row)
            if EXTRA_KEY in (instance.get("extra_data") or ()):
                note("ours", row)
                if row.earlier is not None:
                    self.earlier_left_out |= "left_out" in row.earlier
                    if (told := row.earlier.get("scoring")) is not None:
                        self.told.setdefault(_without_facts(told), (told, row.place))
        if instance.get("chain_of_thought"):
            note("thought", row)

    def see_status(self, row: Row, status: Status, requests: tuple[int, int] | None = None) -> None:
        """Count what is recorded for a row (for HELM's files, for all its states together).

        `requests`: how many are recorded with log-probabilities, and how many are needed, where those are too few.
        """
        self.note(status, row)
        if requests is not None:
            self.note("incomplete", row)
            there, needed = requests
            self.missing_requests = self.missing_requests or f"{there} of {needed} are recorded"

    @property
    def stops(self) -> StopCensus:
        """The references of rows to score that hold stop sequences."""
        found = StopCensus(())
        for is_train, census in self._stops.items():
            if not is_train:
                found = census
            elif not self.is_differentiated:
                found.merge(census)
        return found

    @property
    def judged(self) -> dict[str, Judged]:
        """By criterion, who judged: criteria that no model judged by are none."""
        return {
            criterion: {"judges": sorted(judges), "scale": msgspec.json.decode(next(iter(self.scales[criterion])))}
            for criterion, judges in sorted(self.judges.items())
            if judges
        }

    @property
    def thoughts(self) -> First:
        """Rows with a chain of thought that may be demonstrations."""
        return self.find("thought", ("train",) if self.is_differentiated else None)

    @property
    def is_recorded(self) -> bool:
        """Whether the file is a recorded one: at least one row has a usable result, or an answer without a score."""
        return self.find_status("ok").count > 0 or self.find_status("unscored").count > 0

    @property
    def is_helm_output(self) -> bool:
        """Whether the file is the output of a run of HELM without this package, to be scored as HELM does."""
        return self.find("helm").count == self.rows and not self.find("ours").count

    @property
    def is_differentiated(self) -> bool:
        """Whether demonstrations and rows to evaluate are told apart.

        Rows without a split are evaluated if others are train rows.
        """
        return 0 < self.splits["train"] < self.rows

    @property
    def to_score(self) -> list[str | None]:
        """The splits of rows that are no demonstrations, evaluated or not."""
        return [split for split in self.splits if split != "train" or not self.is_differentiated]

    @property
    def _evaluated(self) -> list[str | None]:
        """The splits of rows that are evaluated: those without one are test rows."""
        return [split for split in self.to_score if _as_evaluated(split) in self.eval_splits]

    @property
    def selected(self) -> int:
        """How many rows are of a split that is evaluated, those included that may be drawn as demonstrations."""
        return sum(self.splits[split] for split in self._evaluated)


def _as_evaluated(split: str | None) -> str:
    return "test" if split in (None, "train") else split


def _without_facts(told: RunScoring) -> bytes:
    """Return how rows are scored, without what is of the rows of a run rather than of the way of scoring."""
    args = {key: value for key, value in told["args"].items() if key not in ("attributes", "judged", "source")}
    return canonical_json([told["class_name"], args, told["main_metric"]])


def _has_options(text: str, row: Row) -> bool:
    """Whether every option of a row stands in its text already, each after its label or on a line of its own."""
    lines: set[str] | None = None
    for label, position in (row.labels or {}).items():
        option = row.references[position]["output"]["text"].strip()
        if option not in text:
            return False
        if not _follows_label(option, label, text):
            lines = lines if lines is not None else {line.strip(" \t-*•·–") for line in text.splitlines()}
            if option not in lines:
                return False
    return bool(row.labels)


def _follows_label(option: str, label: str, text: str) -> bool:
    start = text.find(option)
    while start != -1:
        before = text[max(0, start - len(label) - 4) : start]
        span = find_label(before, label)
        if span and before[span[0] : span[1]] == label and not any(c.isalnum() for c in before[span[1] :]):
            return True
        start = text.find(option, start + 1)
    return False
