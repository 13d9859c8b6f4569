"""From one format to another, where nothing is lost; and what would be lost, in words, where something is.

    file ──Format.load──▶ EvalSet ──Format.write of another──▶ file

A *loss* is something that the target cannot hold and that changes prompts or scores. A *note* is something that moves:
to another file, or to arguments of the run. Each format writes its own files; here is what the writers share.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError
from helm_ext.evalset import EXTRA_KEY, row_extra

if TYPE_CHECKING:
    from helm.benchmark.scenarios.scenario import Instance


NOT_COPIED = "not_copied"
"""The setting of a source (`Source.settings`) that names the columns of a table of which nothing was taken along."""


@dataclass
class Findings:
    """What was noticed on the way: each text once, with the number of rows that it is about."""

    losses: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    def lose(self, text: str) -> None:
        """Note a loss, for one row or for the whole dataset."""
        self.losses[text] = self.losses.get(text, 0) + 1

    def note(self, text: str) -> None:
        """Note what has moved."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def describe(self) -> list[str]:
        """Return losses and notes in lines, each with the number of its rows."""
        found = [("lost", self.losses), ("note", self.notes)]
        return [f"{kind}: {_say(text, rows)}" for kind, texts in found for text, rows in texts.items()]

    def require_none(self, source: str) -> None:
        """Raise DatasetIntegrityError if anything would be lost."""
        if self.losses:
            lines = "\n".join(f"  - {_say(text, rows)}" for text, rows in self.losses.items())
            raise DatasetIntegrityError(
                f"{source}: converting it would lose:\n{lines}\n  hint: --lossy converts it all the same"
            )


def _say(text: str, rows: int) -> str:
    return f"{text} ({rows} rows)" if rows > 1 else text


@dataclass(frozen=True)
class Converted:
    """What was written."""

    path: Path
    rows: int
    findings: Findings


def rejoin(instances: Sequence[Instance]) -> list[Instance]:
    """Undo the sampling of a recorded file: a sampled row is a demonstration in live runs and scored in recorded ones.

    Written as one row again, it is sampled again, by the same seeded rule.
    """
    scored = {original_id(instance) for instance in instances if row_extra(instance).get("only") == "recorded"}
    joined = []
    for instance in instances:
        extra = {**row_extra(instance)}
        if "only" in extra and original_id(instance) in scored:
            if extra.pop("only") == "live":
                continue
            instance = dataclasses.replace(  # noqa: PLW2901 - the same row
                instance, extra_data={**(instance.extra_data or {}), EXTRA_KEY: extra}
            )
        joined.append(instance)
    return joined


def original_id(instance: Instance) -> Any:
    """Return the row's id as its file has it."""
    return row_extra(instance).get("id", instance.id)


def write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines, atomically. Raises OSError."""
    from helm_ext.files.writing import open_part

    with open_part(path) as part:
        for value in values:
            part.file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        part.replace()
