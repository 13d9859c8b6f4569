"""What the rows of a file are like, added up: small however many rows there are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from helm_ext.evalset import EXTRA_KEY
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.labels import find_label
from helm_ext.formats.request_states.recorded import Status
from helm_ext.formats.request_states.tally import MOST_KEPT, First, Tally
from helm_ext.scoring.stops import StopCensus

if TYPE_CHECKING:
    from helm_ext.evalset import Judged, RunScoring
    from helm_ext.formats.request_states.reading import Place
    from helm_ext.formats.request_states.rows import Lack, Row

_EVAL_SPLITS = ("valid", "test")
"""HELM's, without its import."""

_BETWEEN_SEGMENTS = ";,|\n；，、"

_STATUSES: tuple[Status, ...] = ("ok", "not_run", "failed", "unscored", "too_long")


class Profile(Tally):
    """Adds up rows: what a plan is made of. Small however many rows there are."""

    def __init__(self, settings: Settings) -> None:
        self.eval_splits = tuple(settings.eval_splits or _EVAL_SPLITS)
        self._is_method_open = settings.method is None
        self._input_prefix = settings.text("input_prefix").strip()
        self._output_prefix = settings.text("output_prefix").strip()
        self.rows = 0
        self.splits: Counter[str | None] = Counter()
        self.choice = First()
        self.few_options = First()
        self.options_in_text = First()
        self.chat_only = First()
        self.starts_doubled = First()
        """Rows whose text begins with the input prefix already."""
        self.ends_doubled = First()
        """Rows whose text ends with the output prefix already."""
        self.helm = First()
        self.ours = First()
        """Rows of the output of a run of ours."""
        self.told: dict[bytes, Row] = {}
        """Ways in which the run of ours scored that wrote the file, and the first row that says so: one, or several."""
        self.earlier_left_out = False
        """Whether there is a row that a run of ours left out."""
        self.likelihoods = First()
        """Rows that were recorded by log-probabilities of their options."""
        self.alone = First()
        """Those of them with log-probabilities without the question."""
        self.several_right = First()
        """Those of them with several right options."""
        self.single = First()
        """Those of them with one option alone."""
        self.judges: dict[str, set[str]] = {}
        """By criterion, the models that judged rows."""
        self.scales: dict[str, dict[bytes, Row]] = {}
        """By criterion, the scales of its judgements, as JSON, and the first row of each."""
        self._thoughts, self._train_thoughts = First(), First()
        self.label_sets: dict[tuple[str, ...], Row] = {}
        self.unlabelled_option = First()
        self.statuses: dict[Status, First] = {status: First() for status in _STATUSES}
        """What is recorded for rows of an eval split."""
        stops = settings.given.get("stop_sequences") or ()
        self.stops, self._train_stops = StopCensus(stops), StopCensus(stops)
        """References of evaluated rows that hold a stop sequence."""
        self.with_stop, self._train_with_stop = First(), First()
        self._has_stops = bool(stops)
        self.incomplete = First()
        """Rows with requests about some options, and not all that the method asks about."""
        self.requests: tuple[int, int] | None = None
        """Of the first of them: how many are recorded with log-probabilities, and how many are needed."""
        self.by_text = First()
        """Evaluated rows that were recorded by a text."""
        self.used_labels: set[str] = set()
        """Labels of the file's own mapping that name an option of a row."""
        self.lacking: dict[bool, list[tuple[Place, Lack]]] = {False: [], True: []}
        """Rows without a correct reference, up to MOST_KEPT: whether of train rows, to those."""
        self.lacking_rows = Counter[bool]()
        self.untagged = First()
        """Rows with a single reference without tags."""
        self.nonfinite = First()
        self.nonfinite_numbers = 0
        self.empty = {False: First(), True: First()}
        """Rows with an empty right answer: whether of train rows, to those."""
        self.several_golds = First()
        """Rows without labels, and with several right answers."""
        self.holds_lists = False
        """Whether one of those seems to hold several segments."""
        self.unclustered = First()
        """Rows without a value of the key that `cluster=` names."""
        self.train_statuses: dict[Status, First] = {status: First() for status in _STATUSES}

    def see_state(self, row: Row) -> None:
        """Look at a row of which a problem may have been reported, or a further state of HELM's about one row."""
        if row.labels_from == "file" and row.labels is not None:
            self.used_labels.update(row.labels)
        if row.lack is not None:
            is_train = row.split == "train"
            self.lacking_rows[is_train] += 1
            if len(self.lacking[is_train]) < MOST_KEPT:
                self.lacking[is_train].append((row.place, row.lack))
        if row.is_untagged:
            self.untagged.add(row)
        if row.nonfinite:
            self.nonfinite.add(row)
            self.nonfinite_numbers += row.nonfinite

    def see(self, row: Row) -> None:
        """Count a row. The row is not kept, but for the first of each kind. Written for speed: this runs once a row."""
        self.rows += 1
        self.splits[row.split] += 1
        instance, golds, is_train = row.instance, row.golds, row.split == "train"
        if row.is_choice:
            self.choice.add(row)
        if len(row.references) < 2:
            self.few_options.add(row)
        text = instance["input"].get("text")
        if text is None:
            self.chat_only.add(row)
        else:
            if self._input_prefix and text.lstrip().startswith(self._input_prefix):
                self.starts_doubled.add(row)
            if self._output_prefix and text.rstrip().endswith(self._output_prefix):
                self.ends_doubled.add(row)
        if row.labels is not None:
            self._see_labels(row, text)
        elif self._has_stops:
            census = self._train_stops if is_train else self.stops
            if sum(map(census.add, golds)):
                (self._train_with_stop if is_train else self.with_stop).add(row)
        if "" in golds:
            self.empty[is_train].add(row)
        if len(golds) > 1 and row.labels is None:
            self.several_golds.add(row)
            self.holds_lists = self.holds_lists or any(char in gold for gold in golds for char in _BETWEEN_SEGMENTS)
        if row.cluster is None:
            self.unclustered.add(row)
        if row.likelihoods is not None:
            self.likelihoods.add(row)
            if row.likelihoods[0].get("alone") is not None:
                self.alone.add(row)
            if len(golds) > 1:
                self.several_right.add(row)
            if len(row.likelihoods) == 1:
                self.single.add(row)
        elif not is_train and row.found[0][1] is not None:
            self.by_text.add(row)
        for judgement in row.judgements or ():
            judges = self.judges.setdefault(judgement.criterion, set())
            if judgement.kind == "model":
                judges.add(judgement.by)
            scale = msgspec.json.encode(judgement.scale)
            self.scales.setdefault(judgement.criterion, {}).setdefault(scale, row)
        if row.is_helm:
            self.helm.add(row)
            if EXTRA_KEY in (instance.get("extra_data") or ()):
                self.ours.add(row)
                self.earlier_left_out |= row.earlier is not None and "left_out" in row.earlier
                if row.earlier is not None and "scoring" in row.earlier:
                    self.told.setdefault(_without_facts(row.earlier["scoring"]), row)
        if instance.get("chain_of_thought"):
            self._thoughts.add(row)
            if is_train:
                self._train_thoughts.add(row)

    def see_status(self, row: Row, status: Status, requests: tuple[int, int] | None = None) -> None:
        """Count what is recorded for a row (for HELM's files, for all its states together).

        `requests`: how many are recorded with log-probabilities, and how many are needed, where those are too few.
        """
        if requests is not None:
            self.requests = self.requests or requests
            self.incomplete.add(row)
        if row.split == "train":
            self.train_statuses[status].add(row)
        elif (row.split or "test") in self.eval_splits:
            self.statuses[status].add(row)

    def settle(self) -> None:
        """Finish counting: what train rows are is known only when all rows are."""
        if self.is_differentiated:
            return
        self.stops.merge(self._train_stops)
        self.with_stop.merge(self._train_with_stop)
        if "test" in self.eval_splits:
            for status, first in self.train_statuses.items():
                self.statuses[status].merge(first)

    def _see_labels(self, row: Row, text: str | None) -> None:
        assert row.labels is not None
        self.label_sets.setdefault(tuple(row.labels), row)
        if row.labels_from != "prefix" and len({*row.labels.values()}) < len(row.references):
            self.unlabelled_option.add(row)
        if text is not None and self._is_method_open and _has_options(text, row):
            self.options_in_text.add(row)

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
        return self._train_thoughts if self.is_differentiated else self._thoughts

    @property
    def is_recorded(self) -> bool:
        """Whether the file is a recorded one: at least one row has a usable result, or an answer without a score."""
        return self.statuses["ok"].count > 0 or self.statuses["unscored"].count > 0

    @property
    def is_helm_output(self) -> bool:
        """Whether the file is the output of a run of HELM without this package, to be scored as HELM does."""
        return self.helm.count == self.rows and not self.ours.count

    @property
    def is_differentiated(self) -> bool:
        """Whether demonstrations and rows to evaluate are told apart.

        Rows without a split are evaluated if others are train rows.
        """
        return self.splits["train"] > 0 and any(number for split, number in self.splits.items() if split != "train")

    @property
    def selected(self) -> int:
        """How many rows are of a split that is evaluated, those included that may be drawn as demonstrations."""
        train = 0 if self.is_differentiated else self.splits["train"]
        numbers = {"test": self.splits["test"] + self.splits[None] + train, "valid": self.splits["valid"]}
        return sum(numbers[split] for split in self.eval_splits)


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
