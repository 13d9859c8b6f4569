"""What a format is: one object that says all that the rest of helm-ext asks of it.

Run entries, `validate`, `preview`, `score`, `schema`, `convert`, detection and the documentation loop over these
objects (`helm_ext.formats.registry`); none of them knows a format by name. docs/how-to/add_a_format.md shows one.

The module of a format's object is imported by every `helm-run`, so it imports what is heavy inside its methods.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from helm_ext.errors import DatasetError, Problem, RunEntryError, did_you_mean, to_problem

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

    from helm_ext.evalset import EvalSet
    from helm_ext.formats.conversion import Converted


LINES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
"""Endings of files with an object a line."""

ZIP = b"PK\x03\x04"
"""How a ZIP begins, also one that is cut off."""

LOOKED_AT = 65_536
"""Bytes at the start of a file, decompressed, that decide its format."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)(?:"(\s*:)?|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A string, which may be cut off at the end, with the colon after a key; or a bracket."""


class Claim(IntEnum):
    """How sure a format is that a file is one of its own."""

    NO = 0
    MAYBE = 1
    """Nothing speaks against it: any JSON. Counts where no other format is sure."""
    LIKELY = 2
    """Its shape is the format's, its keys say nothing: rows of JSON. Counts where no other format is sure."""
    SURE = 3


@dataclass(frozen=True)
class Seen:
    """What a format is shown of a file."""

    path: Path
    start: bytes = b""
    """The first bytes, decompressed; b"" for what is no file, or cannot be read."""
    is_folder: bool = False
    exists: bool = True
    is_zip: bool = False

    @property
    def suffix(self) -> str:
        """The ending of the file's name, in lower case."""
        return self.path.suffix.lower()

    @property
    def kinds(self) -> frozenset[str]:
        """What it is: "folder"; else the ending of its name, with "zip" by its first bytes, "json" by either."""
        if self.is_folder:
            return frozenset({"folder"})
        found = {
            "zip": self.is_zip or self.start.startswith(ZIP),
            "json": self.is_like_json() or self.suffix in (".json", *LINES),
        }
        return frozenset({self.suffix, *(kind for kind, is_so in found.items() if is_so)})

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the first JSON object, of those that stand in the first bytes. The rest may be no JSON."""
        return frozenset(_first_keys(self.start.decode("utf-8", "replace")))

    def is_lines(self) -> bool:
        """Whether JSON has one object a line: by the first line, and by the file's name where that does not say."""
        first, _, rest = self.start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
        is_called_lines = not LINES.isdisjoint(suffix.lower() for suffix in self.path.suffixes)
        try:
            is_object = isinstance(json.loads(first), dict)
        except (ValueError, RecursionError):  # wrong, or longer than what is looked at
            return is_called_lines and first.startswith(b"{") and first.rstrip() != b"{"
        return is_object and (is_called_lines or bool(rest.strip()))

    def is_like_json(self) -> bool:
        """Whether the first character begins a JSON object or array, or a comment before one."""
        return self.start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b"/")


def _first_keys(text: str) -> Iterator[str]:
    """Yield the keys of the first object. It may stand in an array; keys of objects inside it are left out."""
    depth = 0
    """Of what is open inside the object, itself included; 0 before it."""
    for match in _TOKEN.finditer(text):
        found = match.group()
        if found in "{[":
            depth += 1 if depth or found == "{" else 0
        elif found in "}]":
            depth -= 1 if depth else 0
            if not depth and found == "}":
                return
        elif depth == 1 and match.group(2):
            yield match.group(1)


def look(path: str | Path) -> Seen:
    """Return what formats are shown of a file. Raises nothing for what is missing or broken: their errors say more."""
    path = Path(path)
    if path.is_dir():
        return Seen(path, is_folder=True)
    if not path.is_file():
        return Seen(path, exists=path.exists())
    return Seen(path, _read_start(path), is_zip=zipfile.is_zipfile(path))


def _read_start(path: Path) -> bytes:
    from helm_ext.files.content import Reader

    try:
        reader = Reader(path)
    except DatasetError:
        return b""
    start = b""
    try:
        while len(start) < LOOKED_AT and (chunk := reader.read_chunk()):
            start += chunk
    except DatasetError:
        pass
    finally:
        reader.close()
    return start[:LOOKED_AT]


# Arguments. From one declaration are made the reading of run entries and of `--arg KEY=VALUE`, the list in `--help`,
# the nearest known name for a wrong one, the digits in a dataset's group, and the tables in docs/. HELM hands values
# over as strings, and as numbers where they look like some (`helm.common.object_spec.parse_object_spec`).


@dataclass(frozen=True)
class Kind:
    """What type the values of an argument have."""

    title: str
    """As documentation and `--help` show it."""
    parse: Callable[[str, Any], Any]
    """From an argument's name and the value that HELM read to the typed value; raises RunEntryError."""


@dataclass(frozen=True)
class Argument:
    """One argument of a run entry."""

    name: str
    kind: Kind
    description: str
    """One line, without a full stop at the end. Markdown is fine."""
    default: str = ""
    """What holds where it is absent, as documentation shows it."""
    names_data: bool = False
    """Whether it says which data are read. The digest covers these, so another value alone makes no other column."""
    in_run_entry: bool = True
    """False: taken by `load` and `helm-ext convert` alone, because HELM has a run expander of that name."""


def parse_arguments(entry: str, known: Iterable[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given arguments with their types, in the order in which they were given.

    Raises RunEntryError for an unknown name (with the nearest known one) and for a value that is not of its type.
    """
    kinds = {argument.name: argument.kind for argument in known}
    for name in given:
        if name not in kinds:
            hint = did_you_mean(name, kinds) or f"known: {', '.join(kinds)}"
            raise RunEntryError(f"{entry}: unknown argument {name!r}\n  hint: {hint}")
    return {name: kinds[name].parse(name, value) for name, value in given.items()}


def as_helm_reads(value: str) -> str | int | float:
    """Convert a value as `helm.common.object_spec.parse_object_spec` does."""
    for convert in (int, float):
        try:
            return convert(value)
        except ValueError:
            continue
    return value


def read_path(_name: str, value: Any) -> str:
    """Return a path as it goes into names: relative where it lies below the working directory.

    HELM splits run entries at commas; a path with a comma is written with `%2C`.
    """
    path = str(value)
    if "%" in path and not os.path.exists(path):  # noqa: PTH110
        path = unquote(path)
    if os.path.isabs(path):  # noqa: PTH117
        relative = os.path.relpath(path)
        return path if relative.startswith(os.pardir) else relative
    return path


def one_of(*choices: str) -> Kind:
    """Return the kind whose values are these words."""

    def choose(name: str, value: Any) -> str:
        if value not in choices:
            hint = did_you_mean(str(value), choices) or f"one of {', '.join(choices)}"
            raise RunEntryError(f"{name}={value}: not a choice\n  hint: {hint}")
        return str(value)

    return Kind(" or ".join(f"`{choice}`" for choice in choices), choose)


def of_values(title: str, is_one: Callable[[Any], bool], expected: str = "") -> Kind:
    """Return the kind of values that are such; `expected` is how errors say it, where not as `title`."""

    def check(name: str, value: Any) -> Any:
        if not is_one(value):
            raise RunEntryError(f"{name}={value}: expected {expected or title}")
        return value

    return Kind(title, check)


def _read_flag(name: str, value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    word = str(value).lower()
    if word not in words:
        raise RunEntryError(f"{name}={value}: expected true or false")
    return words[word]


TEXT = Kind("text", lambda _, value: str(value))
AS_GIVEN = Kind("text or number", lambda _, value: value)
"""A name that HELM may have turned into a number: the format finds what it stands for."""
WHOLE_NUMBER = of_values("whole number", lambda value: type(value) is int, "a whole number")
NUMBER = of_values("number", lambda value: type(value) in (int, float), "a number")
FLAG = Kind("`true` or `false`", _read_flag)
SEVERAL = Kind("`a+b`", lambda _, value: [part.replace("%2B", "+") for part in str(value).split("+")])
"""HELM splits run entries at commas, so lists are written with `+`, and a plus within a part with `%2B`."""
PATH = Kind("path", read_path)

MISSING = Argument(
    "missing",
    one_of("error", "skip"),
    "rows without a usable recording, and those of a live run whose requests fail: `skip` leaves them out of the score "
    "and counts them",
    "`error`",
)
"""An argument of every format; importers have their own description of it, and skip by default (`imported/format.py`,
`EvalSetScenario.skips_missing`). The run decides (`helm_ext.adaptation`), so `load` never sees it."""

THINKING = Argument(
    "thinking",
    one_of("move", "keep"),
    "what a model thinks before it answers (`<think>`...): moved out of its completion before anything is scored, or "
    "kept as a part of the answer",
    "`move`",
)
"""An argument of every format whose completions are texts."""


@dataclass(frozen=True)
class Plan:
    """What of a run is for the format to say, once its dataset is read."""

    scenario_arguments: Mapping[str, Any]
    """Arguments of the scenario: with them, `Format.load` reads the same dataset again."""
    name_arguments: Mapping[str, Any]
    """What the run's name consists of, in this order."""
    groups: tuple[str, ...] = ()
    """Groups of HELM's reports, beyond the dataset's own, that the run is shown in."""


class Format(ABC):
    """One file format. A subclass sets the attributes and defines `claims` and `load`; the rest has defaults."""

    name: ClassVar[str]
    """Also the name of its run entry."""
    title: ClassVar[str]
    dataset_title: ClassVar[str]
    """One dataset of it, as a group's description in a report says it: "adapter_spec file"."""
    expects: ClassVar[str]
    """What a file of it looks like, for the error about a file of no format."""
    kinds: ClassVar[frozenset[str]] = frozenset()
    """Of `Seen.kinds`, those that a file of it may be of; none: any."""
    arguments: ClassVar[tuple[Argument, ...]]
    sources: ClassVar[tuple[str, ...]] = ("path",)
    """Arguments of which a run entry names exactly one: where the data are."""
    usage: ClassVar[str]
    """The shortest run entries, as hints show them."""
    scenario_class: ClassVar[str]
    """Class path of its `helm_ext.formats.scenario.EvalSetScenario`. Stands in run_spec.json: it is public."""
    several_tasks_in: ClassVar[str] = ""
    """The argument that may name a file of several tasks: its run entry becomes one run for each of them. No run spec
    function of HELM's may have a parameter of this name, because HELM takes it off the arguments of all run entries."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Endings of the files that `write` can make."""
    written_as: ClassVar[str] = ""
    """Such a file, as messages show it: `FILE.jsonl`."""

    # A file of the format

    @abstractmethod
    def claims(self, seen: Seen) -> Claim:
        """Say from a path and the first bytes whether a file is of this format. What is wrong with it, `check` says."""

    def name_file(self, path: str | Path) -> dict[str, str]:
        """Return the arguments that name this file, for the run entry, `load` and `check`."""
        return {"path": str(path)}

    def datasets_among(self, files: Sequence[Path]) -> Sequence[Path]:
        """Return which files of this format in a folder are datasets: not those that are read with another one."""
        return files

    def find(self, name: str) -> Path | None:  # noqa: ARG002 - most formats know no names
        """Return the file of the dataset of this name (`dataset=NAME`), or None."""
        return None

    # Arguments

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a run entry with their types. Raises RunEntryError."""
        return parse_arguments(self.name, [a for a in self.arguments if a.in_run_entry], given)

    def parse_for_load(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with their types, also those that HELM would take off a run entry. Raises RunEntryError."""
        return parse_arguments(self.name, self.arguments, given)

    def argument_names(self) -> list[str]:
        """Return the names of the arguments of the run entry."""
        return [argument.name for argument in self.arguments if argument.in_run_entry]

    def require_source(self, given: Mapping[str, Any]) -> None:
        """Raise RunEntryError unless exactly one of `sources` is given."""
        named = [name for name in self.sources if name in given]
        if len(named) != 1:
            problem = "none is given" if not named else f"{' and '.join(named)} are given"
            needed = f"exactly one of {', '.join(self.sources)}" if len(self.sources) > 1 else self.sources[0]
            raise RunEntryError(f"{self.name}: {needed} is needed, {problem}\n  hint: {self.usage}")

    def name_source(self, arguments: Mapping[str, Any]) -> str:
        """Return what the arguments of `load` or `check` say that is to be read, for messages to people."""
        return str(next((arguments[name] for name in self.sources if arguments.get(name)), self.name))

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with what they leave open settled: "the newest version" becomes its number.

        They are what a run is planned with, and what its scenario loads. Raises RunEntryError, HubError.
        """
        return dict(arguments)

    def tasks(self, arguments: Mapping[str, Any]) -> list[dict[str, str]]:  # noqa: ARG002 - most hold one
        """Return the arguments that choose each task of the file: [{}] where it holds one, or one is chosen already."""
        return [{}]

    def describe(self, arguments: Mapping[str, Any]) -> list[str]:  # noqa: ARG002 - most say what they are
        """Return what was inferred from a file, and why, in lines for people: [] where nothing is guessed.

        The arguments are those of the run entry. Raises HelmExtError for a file that cannot be read.
        """
        return []

    def name_model(self, arguments: Mapping[str, Any]) -> str:  # noqa: ARG002 - most files do not say
        """Return whose completions a task of a file holds, as the file spells it; "" where it does not say."""
        return ""

    # The dataset

    @abstractmethod
    def load(self, **arguments: Any) -> EvalSet:
        """Read a dataset. The arguments are those of the run entry, `missing` aside. Raises DatasetError."""

    def check(self, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:  # noqa: ARG002
        """Return all problems of a file and what was counted; raise nothing for bad data.

        The arguments are those of the run entry. Unless `execute`, no code of the user's is run.
        """
        arguments.pop("missing", None)
        try:
            evalset = self.load(**arguments)
        except DatasetError as error:
            path = str(next(iter(arguments.values()), self.name))
            return list(error.problems) or [to_problem(error, path)], {}
        return list(evalset.warnings), evalset.counts

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:  # noqa: ARG002
        """Return what of a run of this dataset is for the format to say; `arguments` are the resolved ones."""
        return Plan(arguments, arguments)

    def metric_spec(self, evalset: EvalSet) -> MetricSpec:
        """Return the metric of a run of this dataset."""
        from helm.benchmark.metrics.metric import MetricSpec

        args = evalset.scoring.to_args()
        if evalset.attributes:
            args["attributes"] = {name: list(values) for name, values in evalset.attributes.items()}
        if evalset.source is not None:
            args["source"] = evalset.source.to_args()
        if evalset.judged:
            args["judged"] = dict(evalset.judged)
        if evalset.recorded_decoding:
            args["recorded_decoding"] = dict(evalset.recorded_decoding)
        return MetricSpec("helm_ext.scoring.metrics.EvalSetMetric", args)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a file, for editors. Raises RunEntryError where files are no JSON."""
        raise RunEntryError(f"{self.name}: files of this format are no JSON, there is no JSON Schema")

    # Conversion

    def load_demonstrations(self, **arguments: Any) -> EvalSet | None:  # noqa: ARG002 - most have one split a file
        """Return the rows that `load` with these arguments leaves in the file and a conversion takes along."""
        return None

    def losses(self, evalset: EvalSet) -> Sequence[str]:  # noqa: ARG002
        """Return what of a dataset of this format no other format holds and scores depend on, in words."""
        return ()

    def write(
        self,
        evalset: EvalSet,
        target: Path,
        *,
        demonstrations: EvalSet | None = None,
        losses: Sequence[str] = (),
        lossy: bool = False,
    ) -> Converted:
        """Write a dataset of any format as a file of this one.

        `demonstrations` are rows that stand beside those of the dataset in its file (`load_demonstrations`), `losses`
        what no other format holds of it. Raises DatasetIntegrityError that lists what would be lost, unless `lossy`.
        """
        raise NotImplementedError(f"{self.name}.writes names {target.suffix}, and there is no `write`")
