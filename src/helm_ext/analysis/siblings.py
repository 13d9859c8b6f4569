"""Runs of one suite that a reader takes for one: those that tables average, and those that a newer one has replaced.

HELM averages, in one cell, all runs of a model and a group, and the group of a dataset of ours is named by its
questions. A corrected file that is scored again makes a run beside the old one. Nothing is deleted or hidden: it is
said, where people look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from helm_ext.errors import count

TIMES_FILE = "helm_ext.json"
"""Of a run's folder: when it was finished. Files are copied, and with them their times change."""

_DIGEST = re.compile(r",(?:digest|script_sha|data_sha)=[0-9a-f]+(?=,|$)")
"""What a run's name says of the bytes that it was made of."""
_RULE = re.compile(r",(?:missing|empty)=[^,]*|(?<=:)(?:missing|empty)=[^,]*,")
"""What it says of rows without an answer. Where one output of several has such rows, a hint names these arguments, and
all are scored again with them."""


class Cell(NamedTuple):
    """What HELM's tables tell runs of ours apart by."""

    group: str
    model: str
    deployment: str
    perturbed: str


@dataclass(frozen=True)
class Sibling:
    """What is known of one run among others."""

    name: str
    folder: Path
    cell: Cell
    identity: tuple[str, Any]
    """Dataset, arguments, model and cap: runs that agree in it were made of two versions of one file, or of one file
    with two rules for rows without an answer."""
    finished: str
    """When, in UTC; "" where the run does not say."""


def read_sibling(folder: Path) -> Sibling | None:
    """Return what a finished run's files say of it; None for a run that is none of ours, or cannot be read."""
    try:
        spec = json.loads((folder / "run_spec.json").read_bytes())
        if not spec["scenario_spec"]["class_name"].startswith("helm_ext."):
            return None
        adapter = spec["adapter_spec"]
        name = str(spec["name"])
        perturbed = json.dumps(spec.get("data_augmenter_spec"), sort_keys=True, default=str)
        cell = Cell(spec["groups"][0], adapter["model"], adapter["model_deployment"], perturbed)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    identity = (_RULE.sub("", _DIGEST.sub("", name)), adapter.get("max_eval_instances"))
    return Sibling(name, folder, cell, identity, read_time(folder))


def read_time(folder: Path) -> str:
    """Return when a run was finished, in UTC; "" where it does not say."""
    try:
        return str(json.loads((folder / TIMES_FILE).read_bytes())["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@dataclass(frozen=True)
class Siblings:
    """The runs of one suite, or of what is reported together."""

    averaged: Sequence[Sequence[Sibling]]
    """Runs of one cell, where there are several."""
    versions: Sequence[Sequence[Sibling]]
    """Runs of one `Sibling.identity`, the newest last where all say when they were made."""

    def find_stale(self) -> dict[Path, Sibling]:
        """Return the newest version by the folder of each run that it has replaced."""
        stale = {}
        for runs in self.versions:
            if all(run.finished for run in runs):
                stale.update({run.folder: runs[-1] for run in runs[:-1] if run.finished < runs[-1].finished})
        return stale

    def describe_versions(self) -> list[str]:
        """Return in words, with hints, which runs are stale."""
        stale = self.find_stale()
        said = [
            f"stale: {run.name} was finished {run.finished}, and {_what_is_new(run, newer)} since: {newer.name} was "
            f"finished {newer.finished}\n  hint: delete {run.folder}, or leave it out"
            for runs in self.versions
            for run in runs
            if (newer := stale.get(run.folder)) is not None
        ]
        return said + [
            f"{count(len(runs), 'run')} of versions of one file, and not all of them say when they were made: "
            f"{', '.join(run.name for run in runs)}\n  hint: delete those that are out of date"
            for runs in self.versions
            if not any(run.folder in stale for run in runs)
        ]

    def describe(self) -> list[str]:
        """Return in words, with hints, which runs are stale, and which are averaged."""
        stale, said = self.find_stale(), self.describe_versions()
        for runs in self.averaged:
            left = [run.name for run in runs if run.folder not in stale]
            hint = "give each recording a name of its own with --model, or a suite of its own"
            if len(left) < 2:
                hint = f"without what is stale, they show {left[0]} alone" if left else "delete what is stale"
            said.append(
                f"{runs[0].cell.model} on {runs[0].cell.group}: HELM's tables show one number for {len(runs)} runs, "
                f"their mean{f'; {len(runs) - len(left)} of them stale' if len(left) < len(runs) else ''}: "
                f"{', '.join(run.name for run in runs)}\n  hint: {hint}"
            )
        return said


def _what_is_new(run: Sibling, newer: Sibling) -> str:
    if _DIGEST.findall(run.name) != _DIGEST.findall(newer.name):
        return "the same file has changed"
    return "the same file was scored with another rule for rows without an answer"


def find_siblings(runs: Iterable[Sibling | None]) -> Siblings:
    """Return which of these runs belong together."""
    cells: dict[Cell, list[Sibling]] = {}
    versions: dict[tuple[Any, ...], list[Sibling]] = {}
    for run in filter(None, runs):
        cells.setdefault(run.cell, []).append(run)
        versions.setdefault((str(run.folder.parent), *run.identity), []).append(run)
    return Siblings(
        [found for found in cells.values() if len({run.name for run in found}) > 1],
        [sorted(found, key=lambda run: run.finished) for found in versions.values() if len(found) > 1],
    )


def list_beside(folder: Path) -> list[str]:
    """Return in words what the other runs of its suite mean for a finished run."""
    own = read_sibling(folder)
    if own is None:
        return []
    beside = [read_sibling(path.parent) for path in sorted(folder.parent.glob("*/run_spec.json"))]
    related = [run for run in beside if run and (run.cell == own.cell or run.identity == own.identity)]
    return find_siblings(related).describe()
