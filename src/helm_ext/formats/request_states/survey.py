"""What the rows of a file are like, taken together: counts and first places, small however many rows there are."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

from helm_ext.evalset import EXTRA_KEY, Recorded
from helm_ext.files import canonical_json
from helm_ext.formats.request_states.labels import find_label
from helm_ext.formats.request_states.rows import Context, First, Row

__all__ = ["EVAL_SPLITS", "Survey", "options_in_text"]

EVAL_SPLITS = ("valid", "test")
"""HELM's, without its import."""

HASH_MASK = (1 << 60) - 1
"""A whole number of 60 bits takes 32 bytes, one of 64 bits 48; two are kept for each row."""


def options_in_text(row: Row, text: str) -> bool:
    """Whether every option stands in the text already, each after its label or on a line of its own."""
    lines: set[str] | None = None
    for label, position in (row.labels or {}).items():
        option = row.references[position]["output"]["text"].strip()
        if option not in text:
            return False
        start = text.find(option)
        while start != -1:
            before = text[max(0, start - len(label) - 4) : start]
            span = find_label(before, label)
            if (
                span is not None
                and before[span[0] : span[1]] == label
                and not any(c.isalnum() for c in before[span[1] :])
            ):
                break
            start = text.find(option, start + 1)
        else:
            lines = lines if lines is not None else {line.strip(" \t-*•·–") for line in text.splitlines()}
            if option not in lines:
                return False
    return bool(row.labels)


class Survey:
    """Adds up rows. The doubled-prefix counts are by the prefixes that the file sets."""

    def __init__(
        self, context: Context, *, input_prefix: str, output_prefix: str, eval_splits: Sequence[str] = ()
    ) -> None:
        self.context = context
        self._eval_splits = eval_splits or EVAL_SPLITS
        self._input_prefix = input_prefix.strip()
        self._output_prefix = output_prefix.strip()
        self.rows = 0
        self.splits: Counter[str | None] = Counter()
        self.choice = First()
        self.few_options = First()
        self.options_in_text = First()
        self.chat_only = First()
        self.helm = First()
        self.ours = First()
        """Rows of the output of a run of ours."""
        self.thoughts = First()
        """Rows with a chain of thought; after `settle`, those that may be demonstrations."""
        self._train_thoughts = First()
        self.starts_doubled = First()
        self.ends_doubled = First()
        self.usable = First()
        self.not_run = First()
        self.failed = First()
        self.incomplete = First()
        """Rows with requests about some options, and not all that the method asks about."""
        self.incomplete_requests = (0, 0)
        """Of the first of them: how many are recorded with log-probabilities, and how many are needed."""
        self._statuses = {"ok": self.usable, "not_run": self.not_run, "failed": self.failed}
        self.recorded_train = First()
        """Train rows of a differentiated file that have completions."""
        self._train_status = {"ok": First(), "not_run": First(), "failed": First()}
        self._last_labels: dict[str, int] | None = None
        self.label_sets: dict[tuple[str, ...], Row] = {}
        self.unlabelled_option = First()
        self._ids: set[Any] = set()
        self._id_order = array("q")
        self._id_places = array("q")
        """Of each new id, its hash and where it stands (line or index): in few bytes."""
        self.unclear_ids = First()
        """Rows whose id is missing, empty, or taken by an earlier row."""
        self.first_with_id = 0
        """Line, or index in a document, of the row whose id the first of them has; 0 or unused where it has none."""
        self._inputs: tuple[set[int], set[int]] = (set(), set())

    def add(self, row: Row) -> None:
        """Count a row. The row is not kept, but for the first of each kind. Written for speed: this runs once a row."""
        self.rows += 1
        split = row.split
        self.splits[split] += 1
        instance = row.instance
        given = instance["input"]
        text = given.get("text")
        if row.is_choice:
            self.choice.add(row)
        if len(row.references) < 2:
            self.few_options.add(row)
        sent: Any = text
        if (not text or self.context.method == "chat") and given.get("messages"):
            sent = canonical_json(given["messages"])
        self._inputs[split == "train"].add(hash(sent) & HASH_MASK)
        if text is None:
            self.chat_only.add(row)
        else:
            if self._input_prefix and text.lstrip().startswith(self._input_prefix):
                self.starts_doubled.add(row)
            if self._output_prefix and text.rstrip().endswith(self._output_prefix):
                self.ends_doubled.add(row)
        if row.labels is not None:
            self._add_labels(row, text)
        if row.is_helm:
            self.helm.add(row)
            if EXTRA_KEY in (instance.get("extra_data") or ()):
                self.ours.add(row)
        if instance.get("chain_of_thought"):
            self.thoughts.add(row)
            if split == "train":
                self._train_thoughts.add(row)
        self._add_id(row)

    def add_recorded(self, row: Row, found: Recorded) -> None:
        """Count what is recorded for a row that may have several requests."""
        if "requests" in found:
            if not self.incomplete.count:
                self.incomplete_requests = found["requests"]
            self.incomplete.add(row)
        self.add_status(row, found["status"])

    def add_status(self, row: Row, status: str) -> None:
        """Count what is recorded for a row (for HELM's files, for all its states together)."""
        if row.split == "train":
            self._train_status[status].add(row)
        elif (row.split or "test") in self._eval_splits:
            self._statuses[status].add(row)

    def settle(self) -> None:
        """Finish counting: what train rows are is known only when all rows are."""
        if self.is_differentiated:
            self.recorded_train = self._train_status["ok"]
            self.thoughts = self._train_thoughts
            return
        for status, first in self._train_status.items() if "test" in self._eval_splits else ():
            total = self._statuses[status]
            total.count += first.count
            total.row = total.row or first.row

    @property
    def is_recorded(self) -> bool:
        """Whether the file is a recorded one: at least one row has a usable result."""
        return self.usable.count > 0

    @property
    def evaluated_if_recorded(self) -> int:
        """How many rows a recorded run is about."""
        return self.usable.count + self.not_run.count + self.failed.count

    @property
    def is_helm_output(self) -> bool:
        """Whether the file is the output of a run of HELM without this package, to be scored as HELM does."""
        return self.helm.count == self.rows and not self.ours.count

    def _add_labels(self, row: Row, text: str | None) -> None:
        assert row.labels is not None
        if row.labels is not self._last_labels:  # rows without a mapping share one dict
            self._last_labels = row.labels
            self.label_sets.setdefault(tuple(row.labels), row)
            if len(set(row.labels.values())) < len(row.references):
                self.unlabelled_option.add(row)
        if text is not None and self.context.method is None and options_in_text(row, text):
            self.options_in_text.add(row)

    def _add_id(self, row: Row) -> None:
        given = row.instance.get("id")
        if given is None or given == "":
            self.unclear_ids.add(row)
            return
        perturbation = row.instance.get("perturbation")
        key: Any = str(given) if not perturbation else (str(given), canonical_json(perturbation))
        before = len(self._ids)
        hashed = hash(key) & HASH_MASK
        self._ids.add(hashed)
        if len(self._ids) == before:
            if not self.unclear_ids.count:
                self.first_with_id = self._id_places[self._id_order.index(hashed)]
            self.unclear_ids.add(row)
        elif not self.unclear_ids.count:  # only the first one is told where its twin is
            self._id_order.append(hashed)
            self._id_places.append(row.index if row.line is None else row.line)

    @property
    def overlap(self) -> int:
        """How many inputs are in the train and in an eval split."""
        return len(self._inputs[0] & self._inputs[1])

    @property
    def kinds(self) -> set[str]:
        """Which of `train` and `eval` occur among the splits that the file names."""
        return {"train" if split == "train" else "eval" for split in self.splits if split is not None}

    @property
    def selected(self) -> int:
        """How many rows are of a split that is evaluated, those included that may be drawn as demonstrations."""
        train = 0 if self.is_differentiated else self.splits["train"]
        names: Counter[str] = Counter({"test": self.splits["test"] + self.splits[None] + train})
        names["valid"] = self.splits["valid"]
        return sum(names[split] for split in self._eval_splits)

    @property
    def is_differentiated(self) -> bool:
        """Whether demonstrations and rows to evaluate are told apart.

        Rows without a split are evaluated if others are train rows.
        """
        return self.kinds == {"train", "eval"} or ("train" in self.kinds and self.splits[None] > 0)
