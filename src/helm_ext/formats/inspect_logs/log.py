"""A log of either kind: its header (task, model, settings, status, scores over all samples), then the samples.

`.eval` is a ZIP with a member for each sample and epoch, `.json` one document. Of a member that stands twice the last
counts, as for inspect_ai (log/_recorders/eval.py). Since inspect_ai 0.3.206 members are compressed by Zstandard, ZIP
method 93, which Python's zipfile knows from 3.14 on: raw members are decompressed here.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, cast

import msgspec
import zstandard
from typing_extensions import Self

from helm_ext.errors import (
    DatasetError,
    DatasetIntegrityError,
    DatasetSchemaError,
    DatasetSyntaxError,
    Location,
    Problems,
    raise_for,
    show,
)
from helm_ext.evalset import Source
from helm_ext.files import parse_json
from helm_ext.files.archive import ZSTANDARD, Limits, open_archive
from helm_ext.files.content import MAX_DOCUMENT_BYTES, Hashing, format_size, open_raw
from helm_ext.files.json_text import ZIP_MAGIC
from helm_ext.formats.imported.json_log import JsonPieces, to_struct
from helm_ext.formats.imported.row import as_object
from helm_ext.formats.inspect_logs.samples import Extras, Logged, Sample, parse

JSONObject = dict[str, Any]

Status = Literal["started", "success", "cancelled", "error"]
FINISHED = "success"
_VERSIONS = (1, 2, 3)
_CHOICE = ("multiple_choice", "inspect_ai/multiple_choice")
_SELECTORS = (("reducer", "reducer"), ("scorer", "scorer"), ("score", "name"))
"""Fields of a declared headline, and what each selects a score by."""


class Scorer(msgspec.Struct):
    """A scorer of the task, and what it was told."""

    name: str = ""
    options: JSONObject | None = None


class _Config(msgspec.Struct):
    epochs: Any = None
    epochs_reducer: str | list[str] | None = None
    limit: Any = None


class _Dataset(msgspec.Struct):
    name: Any = None
    samples: Any = None


_Name = Annotated[str, msgspec.Meta(min_length=1)]


class _Spec(msgspec.Struct):
    task: _Name
    model: _Name
    task_version: Any = None
    task_args: Any = None
    created: Any = None
    dataset: _Dataset | None = None
    config: _Config | None = None
    packages: JSONObject | None = None
    scorers: list[Scorer] | None = None
    headline_metric: Any = None
    model_generate_config: JSONObject | None = None
    model_roles: JSONObject | None = None


class _Step(msgspec.Struct):
    solver: Any = None
    params: JSONObject | None = None


class _Plan(msgspec.Struct):
    steps: list[_Step] | None = None
    config: JSONObject | None = None


class _Results(msgspec.Struct):
    scores: list[JSONObject] | None = None
    scorer: JSONObject | None = None
    metrics: Any = None
    headline: Any = None
    completed_samples: Any = None


class _Log(msgspec.Struct):
    eval: _Spec
    version: Any = None
    status: Status = cast("Status", "")
    plan: _Plan | None = None
    results: _Results | None = None


HEADER_KEYS = frozenset(_Log.__struct_fields__)
"""The top-level keys of a log that are read; the samples aside."""


class Headline(NamedTuple):
    """One metric of one score."""

    score: int
    """Position in `results.scores`."""
    metric: str
    """Key of its `metrics`."""
    reason: str
    """Why this one, in words."""


class Header:
    """The header of a log."""

    def __init__(self, values: Mapping[str, Any], path: str) -> None:
        """Read the top-level values of a log.

        Raises DatasetSchemaError for what is no log of inspect_ai, or one of a version that is not known.
        """
        log = to_struct(values, _Log, "log of inspect_ai", path)
        if not {"plan", "status"} & values.keys():
            raise DatasetSchemaError.at(path, "there is neither `plan` nor `status`", code="schema")
        if log.version is not None and (isinstance(log.version, bool) or log.version not in _VERSIONS):
            message = f"logs of version {show(log.version)} are not known, only 1, 2 and 3"
            hint = "inspect log convert FILE --to json --output-dir FOLDER, with the inspect_ai that wrote it"
            raise DatasetSchemaError.at(Location(path, field="version"), message, hint, code="version")
        self.spec = log.eval
        self.task, self.model = self.spec.task, self.spec.model
        """The model as inspect_ai names it: `openai/gpt-4o`."""
        self.config = self.spec.config or _Config()
        self.plan = log.plan or _Plan()
        self.results = results = log.results or _Results()
        self.status = log.status or ("started" if log.results is None else FINISHED)
        self.is_finished = self.status == FINISHED
        self.scorers = self.spec.scorers or []
        self.version = (self.spec.packages or {}).get("inspect_ai")
        self.scores: Sequence[JSONObject] = results.scores or []
        """The scores over all samples. Logs of 2024 have one, in another place."""
        if results.scores is None and results.scorer:
            self.scores = [{**results.scorer, "metrics": results.metrics or results.scorer.get("metrics")}]
        self.steps = self.plan.steps or []
        self.choice_settings = next((step.params or {} for step in self.steps if step.solver in _CHOICE), None)
        """What the solver for multiple choice was told; None where the plan has no such solver."""
        names = {
            *(scorer.name for scorer in self.scorers),
            *(str(s.get("scorer") or s.get("name")) for s in self.scores),
        }
        self.reads_letters = self.choice_settings is not None or bool(names & {"choice", "inspect_ai/choice"})
        """Whether targets of multiple choice are letters, as the solver and the scorer for it have it."""

    @property
    def planned(self) -> int:
        """How many samples the dataset has, in all epochs; 0 where the log does not say."""
        samples, epochs = self.spec.dataset and self.spec.dataset.samples, self.config.epochs
        return samples * (epochs if isinstance(epochs, int) and epochs > 0 else 1) if isinstance(samples, int) else 0

    @property
    def reducers(self) -> list[str] | None:
        """How scores of epochs become one; None: by their mean, []: they do not."""
        given = self.config.epochs_reducer
        return [given] if isinstance(given, str) else given

    @property
    def headline(self) -> Headline | None:
        """The metric that the log is headed by; None where it reports none."""
        return find_headline(self.scores, self.results.headline, self.spec.headline_metric)

    def to_source(self, tool: str) -> Source:
        """Return where the rows come from, without what is known only when they were read."""
        spec, config = self.spec, self.config
        settings = {
            "task_version": spec.task_version,
            "task_args": spec.task_args,
            "dataset": spec.dataset and spec.dataset.name,
            "created": spec.created,
            "solvers": [step.solver for step in self.steps],
            "generate": {**(self.plan.config or {}), **(spec.model_generate_config or {})},
            "epochs": config.epochs,
            "epochs_reducer": config.epochs_reducer,
            "limit": config.limit,
            "status": self.status,
        }
        return Source(
            tool=tool,
            version=str(self.version or ""),
            model=self.model,
            task=self.task,
            settings={key: value for key, value in settings.items() if value not in (None, "", {}, [])},
        )


def find_headline(scores: Sequence[Mapping[str, Any]], headline: Any, declared: Any) -> Headline | None:
    """Return what a log is headed by, None where it reports nothing.

    The rule is inspect_ai's (`log/_headline.py`): `results.headline` (`headline`), which is written when a log is
    scored, else what the task declared, `eval.headline_metric` (`declared`). Each field that is set narrows the scores,
    in the order reducer, scorer, score; then the metric is the named one, of the first score that has it. A declaration
    that names nothing is abandoned whole. Without one, or where it was abandoned: the first metric of the first score.
    """
    if not scores:
        return None
    said = declared if headline is None else headline
    reason = "the task's headline_metric" if headline is None else "the log's headline"
    why = "the first metric of the log's first score"
    if isinstance(said, Mapping):
        places = [
            place
            for place, score in enumerate(scores)
            if all(said.get(field) in (None, score.get(selects)) for field, selects in _SELECTORS)
        ]
        metric = said.get("metric")
        if metric is None:
            places = places[:1]
        for place in places:
            there = as_object(scores[place].get("metrics"))
            if there and (metric is None or metric in [*there]):  # a list, as it may be anything
                return Headline(place, next(iter(there)) if metric is None else metric, reason)
        why += f", as {reason} names none that is there"
    first = next(iter(as_object(scores[0].get("metrics"))), None)
    return None if first is None else Headline(0, first, why)


_MAX_WINDOW = 1 << 27

_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+\.json", re.DOTALL)
_HEADER, _START = "header.json", "_journal/start.json"


def open_log(path: str | Path) -> EvalLog | JsonLog:
    """Open a log of either kind, by its first bytes: a context manager, to be read once. Raises DatasetError."""
    with open_raw(path) as file:
        is_zip = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    return EvalLog(path) if is_zip else JsonLog(path)


class EvalLog:
    """A `.eval` log: a ZIP that inspect_ai adds to while a run goes on. A context manager.

    Raises DatasetError for what is no ZIP, or one that must not be opened: the rules are those of bundles
    (docs/innodata.md), but that there may be any members, and names may stand twice.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._file: BinaryIO = open_raw(path)
        problems = Problems(self.path)
        try:
            opened = open_archive(self._file, self.path, None, Limits.from_environ(), problems)
            raise_for(problems.finish())
        except BaseException:
            self._file.close()
            raise
        assert opened is not None
        self._archive, members = opened
        self.members = dict(sorted(members.items(), key=lambda member: member[1].header_offset))
        """By name, in the order of their bytes."""
        names = [member.filename for member in self._archive.infolist() if member.filename.startswith("samples/")]
        self.repeated = len(names) - len(set(names))
        """Samples that stand there again, in a later version; they are not read."""
        self._zstandard = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises DatasetSyntaxError for one that is damaged, or larger than 1 GiB."""
        member = self.members[name]
        if member.file_size > MAX_DOCUMENT_BYTES:
            raise self._damaged(name, f"larger than {format_size(MAX_DOCUMENT_BYTES)}, the limit for one member")
        try:
            return self._archive.read(member) if member.compress_type != ZSTANDARD else self._read_zstandard(member)
        except (zipfile.BadZipFile, zlib.error, zstandard.ZstdError, EOFError, OSError, ValueError) as error:
            raise self._damaged(name, f"damaged: {error or 'it ends too early'}") from error

    def _read_zstandard(self, member: zipfile.ZipInfo) -> bytes:
        """Decompress what zipfile reads as if it were stored; at most one byte more than the directory says."""
        raw = copy(member)
        raw.compress_type, raw.file_size = zipfile.ZIP_STORED, member.compress_size
        raw.CRC = None  # type: ignore[assignment] # not compared: it is that of the content
        with (
            self._archive.open(raw) as file,
            self._zstandard.stream_reader(file, read_across_frames=True) as reader,
        ):
            data = reader.read(member.file_size + 1)
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("its size or checksum is not what the archive's directory says")
        return data

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        self._file.seek(0)
        hashing = Hashing(self._file)
        hashing.drain()
        return hashing.hash.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()
        self._file.close()

    def _damaged(self, name: str, message: str) -> DatasetError:
        hint = "copy or download the file again"
        return DatasetSyntaxError.at(self.path, f"member {name}: {message}", hint, code="damaged-member")

    @cached_property
    def header(self) -> Header:
        """What stands before the samples. Raises DatasetError."""
        name = next((one for one in (_HEADER, _START) if one in self.members), None)
        if name is None:
            message, hint = f"a ZIP without {_HEADER} and {_START}", "a log of inspect_ai has one of them"
            raise DatasetSchemaError.at(self.path, message, hint, code="schema")
        values = self._parse(name)
        if not isinstance(values, dict):
            raise DatasetSchemaError.at(self._place(name), "expected an object", code="schema")
        return Header({**values, "status": "started"} if name == _START else values, self.path)

    def samples(self) -> Iterator[Logged]:
        """Yield the samples. Raises DatasetError, DatasetIntegrityError for a member among them that is none."""
        names = [name for name in self.members if name.startswith("samples/") and not name.endswith("/")]
        for position, name in enumerate(names, start=1):
            if not _SAMPLE.fullmatch(name):
                hint = (
                    "samples are named samples/ID_epoch_NUMBER.json; of samples in chunks score the log they are from"
                )
                raise DatasetIntegrityError.at(
                    Location(self.path, field=name), "no sample", hint, code="unexpected-member"
                )
            data, place = self.read(name), self._place(name)
            yield Logged(parse(data, Sample, place), place, 1, position, partial(parse, data, Extras, place))

    def _place(self, name: str) -> str:
        return f"{self.path}: {name}"

    def _parse(self, name: str) -> Any:
        return parse_json(self.read(name), self._place(name), allow_nan=True)


class JsonLog:
    """A `.json` log. Its header is read first; samples that stand before it are read over."""

    repeated = 0

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        values: dict[str, Any] = {}
        with JsonPieces(path, "samples") as document:
            for key, data, line in document:
                if key == "samples" and {"status", "eval"} <= values.keys():
                    break  # inspect_ai writes the samples behind all else
                if key in values:
                    message, hint = f"the key {key} is given twice", "remove one of the two"
                    raise DatasetSyntaxError.at(self.path, message, hint, line, code="duplicate-key")
                if key in HEADER_KEYS:
                    values[key] = parse_json(data, self.path, line, allow_nan=True)
        self.header = Header(values, self.path)
        self._document = JsonPieces(path, "samples")

    def samples(self) -> Iterator[Logged]:
        """Yield the samples. Raises DatasetError."""
        for key, data, line in self._document:
            if key == "samples" and data != b"null":
                sample = parse(data, Sample, self.path, line)
                yield Logged(sample, self.path, line, line, partial(parse, data, Extras, self.path, line))

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes."""
        return self._document.digest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.__exit__()
