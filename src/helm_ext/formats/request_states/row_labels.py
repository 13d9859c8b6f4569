"""The labels of a row's options: from its answer mapping, the file's, or the prefix of references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from helm_ext.errors import DatasetIntegrityError, Path, Problems, show
from helm_ext.formats.request_states.header import Settings
from helm_ext.formats.request_states.labels import LabelError, default_labels, resolve_mapping
from helm_ext.formats.request_states.likelihoods import by_position
from helm_ext.formats.request_states.reading import Place
from helm_ext.formats.request_states.shapes import JOINT_METHODS, LABELLED_METHODS

LabelsFrom = Literal["prefix", "row", "file"]
"""What labels come from: reference_prefix, an answer mapping of the row, or one of the whole file."""

_MAPPING_KEYS = frozenset({"answer_mapping", "output_mapping"})


@dataclass(slots=True)
class _Mapping:
    """The answer mapping of a row, and where problems of it are reported."""

    labels: Mapping[str, str | int] | None
    where: Path
    comes_from: LabelsFrom


class LabelReader:
    """Finds the labels of one row after the other; what is wrong goes to the problems."""

    def __init__(self, settings: Settings, problems: Problems) -> None:
        self.settings = settings
        self.problems = problems
        self._made_labels: dict[int, dict[str, int]] = {}
        self._reads_labels = settings.method in LABELLED_METHODS
        self._always_asks_labels = settings.mapping is not None or settings.method in JOINT_METHODS
        self._is_prefix_reported = False
        self._characters: Sequence[str] | None = settings.given.get("reference_prefix_characters")

    def read(
        self,
        value: Mapping[str, Any],
        references: Sequence[Mapping[str, Any]],
        tags: Sequence[bool],
        place: Place,
        *,
        is_helm: bool,
        may_have_none: bool,
        has_likelihoods: bool,
    ) -> tuple[dict[str, int] | None, LabelsFrom]:
        """Return label to position in the references, and what the labels come from.

        None where completions are not read as labels. `tags`: which references are correct. `may_have_none`: the row
        needs no labels unless it brings a mapping along, or the file does. `has_likelihoods`: options are told apart by
        their places, so two of them may read the same.
        """
        if not self._reads_labels or (
            may_have_none and not self._always_asks_labels and _MAPPING_KEYS.isdisjoint(value["instance"])
        ):
            return None, "prefix"
        mapping = self._find_mapping(value, place)
        needs_labels = len(tags) > 1 and (not all(tags) or has_likelihoods or self.settings.method in JOINT_METHODS)
        if mapping.labels is None and (is_helm or not needs_labels):
            return None, mapping.comes_from
        options = [reference["output"]["text"] for reference in references]
        try:
            if mapping.labels is None:
                labels = self._make_labels(len(options))
            else:
                labels = resolve_mapping(mapping.labels, options, shared=mapping.comes_from == "file")
        except LabelError as error:
            self._report_labels(error, mapping, place)
            return None, mapping.comes_from
        if has_likelihoods and mapping.labels is not None:
            labels = by_position(labels, options)
        is_clear = has_likelihoods or _check_options(options, tags, place)
        if (
            mapping.labels is not None
            and is_clear
            and len(set(labels.values())) < len(options)
            and any(tags)
            and not any(tags[position] for position in labels.values())
        ):
            place.error(
                *mapping.where,
                message="no label names a correct option, so no answer could be right",
                hint="map one label to each option",
                code="mapping-without-correct",
                is_integrity=True,
            )
        return labels, mapping.comes_from

    def _find_mapping(self, value: Mapping[str, Any], place: Place) -> _Mapping:
        """Return the nearest answer mapping."""
        instance = value["instance"]
        holders: tuple[tuple[Mapping[str, Any], Path], ...] = ((value, ()), (instance, ("instance",)))
        for holder, base in holders:
            if _MAPPING_KEYS.isdisjoint(holder):
                continue
            ours, helms = holder.get("answer_mapping"), holder.get("output_mapping")
            if ours and helms and ours != helms:
                place.error(
                    *base, "answer_mapping",
                    message="contradicts output_mapping, which means the same",
                    hint="keep one of them",
                    code="contradiction",
                    is_integrity=True,
                )  # fmt: skip
            if ours or helms:
                return _Mapping(ours or helms, (*base, "answer_mapping" if ours else "output_mapping"), "row")
        shared = self.settings.mapping
        return _Mapping(shared, ("instance", "references"), "prefix" if shared is None else "file")

    def _report_labels(self, error: LabelError, mapping: _Mapping, place: Place) -> None:
        if mapping.labels is not None or self._characters is not None:
            place.error(*mapping.where, message=error.message, hint=error.hint, code=error.code, is_integrity=True)
        elif not self._is_prefix_reported:  # the prefix is wrong once, however many rows need it
            self._is_prefix_reported = True
            where = ("adapter_spec", "reference_prefix")
            self.problems.add(where, error.message, error.hint, code=error.code, kind=DatasetIntegrityError)

    def _make_labels(self, count: int) -> dict[str, int]:
        """Return the labels of `count` options without a mapping; rows of one length share one dict."""
        if count not in self._made_labels:
            made = self._characters
            if made is None:
                made = default_labels(self.settings.text("reference_prefix"), count)
            elif len(made) < count:
                raise LabelError(
                    f"the row has {count} options, and reference_prefix_characters has {len(made)} labels",
                    "give as many labels as the longest row has options",
                )
            self._made_labels[count] = {label: position for position, label in enumerate(made[:count])}
        return self._made_labels[count]


def _check_options(options: Sequence[str], tags: Sequence[bool], place: Place) -> bool:
    """Whether no wrong option reads like a right one."""
    read = list(map(str.strip, options))  # as completions are compared with them
    if len(set(read)) == len(read):
        return True
    for position, text in enumerate(read):
        if tags[read.index(text)] != tags[position]:
            place.error(
                "instance", "references", position, "output", "text",
                message=f"two options read {show(text)}, and only one of them is correct",
                hint="an answer could not be told right from wrong; change or remove one",
                code="same-options",
                is_integrity=True,
            )  # fmt: skip
            return False
    return True
