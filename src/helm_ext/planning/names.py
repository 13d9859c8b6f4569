"""Names that HELM can write: what is too long in them is replaced by a digest.

HELM makes file names of a run's name, to which it adds the model's, and of all arguments of a scenario
(helm/benchmark/presentation/summarize.py, `get_scenario_name`); a file name has at most 255 bytes. Nothing is refused
for that: long values give way to a digest, and their full text stands in `run_spec.json`, as arguments of
`RunArguments`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm.benchmark.metrics.metric import MetricMetadata
from helm.benchmark.scenarios.scenario import get_scenario_cache_path

from helm_ext.errors import RunEntryError
from helm_ext.formats import planned
from helm_ext.formats.scenario import GROUP_LENGTH, EvalSetScenario
from helm_ext.scoring.folding import JoinedMetric

MAX_FILE_NAME = 255
"""Bytes in a file name, on every file system in use."""

ADDED_BY_HELM = 100
"""Bytes kept for what HELM adds to a run's name: `,model=...,model_deployment=...`, and other expanders'."""

SHORT = 32
"""Bytes of a value that was too long: a digest and its end, which tells more than its beginning (paths)."""

_DIGEST = 8


def fit_name(entry: str, arguments: Mapping[str, Any], end: str) -> str:
    """Return `entry:key=value,...` + `end`, shortened until HELM can write the name.

    The longest values are shortened first. Where that is not enough (very many arguments), the end is replaced.
    """
    room = MAX_FILE_NAME - ADDED_BY_HELM - len(f"{entry}:{end}".encode())
    texts = {key: to_text(value) for key, value in arguments.items()}
    for key in sorted(texts, key=lambda key: -len(_encode(texts[key]))):
        if len(_encode(_join(texts))) > room:
            texts[key] = shorten(texts[key])
    joined = _join(texts)
    if len(_encode(joined)) > room:
        joined = f"{cut(joined, room - _DIGEST - 1)}~{digest(_encode(joined))}"
    return f"{entry}:{joined}{end}"


def full_name(entry: str, arguments: Mapping[str, Any], end: str) -> str:
    """Return the name that `fit_name` would return if there were no limit."""
    return f"{entry}:{_join({key: to_text(value) for key, value in arguments.items()})}{end}"


def fit_arguments(scenario_class: type[EvalSetScenario], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a scenario: as they are, or a reference to them where they are too long.

    The reference comes with what reports show: the beginning of the dataset's name, and what makes another column.
    Raises RunEntryError for a main metric whose name leaves no room.
    """
    given = dict(arguments)
    scenario = scenario_class(**given)
    if _fits(scenario.name, given):
        return given
    short = {key: value for key, value in given.items() if key in scenario_class.always_there}
    display_name = given.pop("display_name", scenario.dataset_name())
    reference = planned.keep_arguments({key: value for key, value in given.items() if key not in short})
    short |= {"arguments": reference, "variant": shorten(scenario.variant, keep_end=False)}
    for length in range(GROUP_LENGTH, 0, -1):
        named = {**short, "name": cut(scenario.dataset_name(), length)}
        for made in ({**named, "display_name": display_name}, named):
            group = scenario_class(**made).name
            if not _fits(group, made):
                continue
            from helm.benchmark.runner import get_benchmark_output_path  # HELM's clients come with it

            if Path(output := get_benchmark_output_path()).is_dir():  # a run is planned, not merely shown
                planned.write_arguments(reference, get_scenario_cache_path(output, group))
            return made
    metric = given["main_metric"]
    raise RunEntryError(f"main_metric={metric}: too long a name: HELM makes file names of it, of {MAX_FILE_NAME} bytes")


class RunArguments(JoinedMetric):
    """Measures nothing: its arguments in `run_spec.json` are the full text of those that are shortened elsewhere."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__([])
        self.arguments = arguments

    def get_metadata(self) -> list[MetricMetadata]:
        """Describe no stat."""
        return []


def to_text(value: Any) -> str:
    """Return a value as it stands in a run's name, which is a folder's name and is shown in reports."""
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.replace(",", "%2C").replace("\n", " ")


def shorten(text: str, *, keep_end: bool = True) -> str:
    """Return a text of at most SHORT bytes: as it is, or a digest of it and its end (or its beginning)."""
    encoded = _encode(text)
    if len(encoded) <= SHORT:
        return text
    mark, room = f"~{digest(encoded)}~", SHORT - _DIGEST - 2
    return mark + encoded[-room:].decode(errors="ignore") if keep_end else cut(text, room) + mark


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, at most `length` bytes."""
    return _encode(text)[:length].decode(errors="ignore")


def digest(data: bytes) -> str:
    """Return the first digits of the SHA-256."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST]


def _encode(text: str) -> bytes:
    """Return the bytes of a text, also of one that no file holds: its length is all that counts."""
    return text.encode(errors="surrogatepass")


def _join(texts: Mapping[str, str]) -> str:
    return ",".join(f"{key}={text}" for key, text in texts.items())


def _fits(group: str, arguments: Mapping[str, Any]) -> bool:
    """Whether HELM can write its file names for these arguments of a scenario."""
    table = f"{group}_{group}_" + ",".join(f"{key}:{value}" for key, value in arguments.items()) + ".json"
    return len(_encode(table)) <= MAX_FILE_NAME
