"""Format 1, `adapter_spec:` entries: its arguments, its files, and how they are found by name.

`dataset=NAME` is searched in this order: the folder `adapter_specs` below the working directory, each folder in the
environment variable HELM_EXT_PATH (separated as in PATH), and the examples that come with the package. The first folder
that holds the name wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetNotFoundError, Problem, RunEntryError, did_you_mean
from helm_ext.formats.conversion import Converted
from helm_ext.formats.format import (
    FLAG,
    MISSING,
    SEVERAL,
    TEXT,
    THINKING,
    WHOLE_NUMBER,
    Argument,
    Claim,
    Format,
    Kind,
    Plan,
    Seen,
    one_of,
)
from helm_ext.formats.format import read_path as _read_path

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

    from helm_ext.evalset import EvalSet


def _separator(name: str, value: Any) -> str:
    r"""What HELM cannot carry in a run entry is written as in JSON and URLs: `\n`, `\t`, `%2C` for a comma.

    Raises RunEntryError for an empty one, at which no text can be split.
    """
    if value == "":
        raise RunEntryError(f"{name}=: expected a text that is not empty")
    return str(value).replace("\\n", "\n").replace("\\t", "\t").replace("%2C", ",")


def _dataset_path(name: str, value: Any) -> str:
    """Return a path; where there is no such file, but a dataset of that name, say so."""
    path = _read_path(name, value)
    if os.path.basename(path) == path and not os.path.exists(path):  # noqa: PTH110, PTH119
        file = list_datasets().get(dataset_name(Path(path)) or path)
        if file is not None:
            raise RunEntryError(f"{path}: no such file\n  hint: dataset={dataset_name(file)} reads {file}")
    return path


_ENDINGS = tuple(suffix + packed for suffix in (".json", ".jsonl", ".json5") for packed in ("", ".gz", ".zst"))
"""Of the names of datasets' files."""


def _search_folders() -> list[Path]:
    """Return the folders that exist, in the order in which they are searched."""
    here = Path(__file__).resolve().parents[2]
    # In a source checkout (an editable install) the examples are still in their own folder.
    examples = here / "examples" if (here / "examples").is_dir() else here.parents[1] / "adapter_specs"
    named = [Path(part) for part in os.environ.get("HELM_EXT_PATH", "").split(os.pathsep) if part]
    return [folder for folder in (Path("adapter_specs"), *named, examples) if folder.is_dir()]


def dataset_name(path: Path) -> str | None:
    """Return the name under which a file can be asked for, or None for a file of another kind."""
    return next((path.name.removesuffix(ending) for ending in _ENDINGS if path.name.endswith(ending)), None)


def default_name(arguments: Mapping[str, Any]) -> str:
    """Return the name of a dataset that has none of its own: the one asked for, or the file's without its endings."""
    if arguments.get("dataset") is not None:
        return str(arguments["dataset"])
    path = Path(arguments["path"])
    return dataset_name(path) or path.stem


def list_datasets() -> dict[str, Path]:
    """Return every dataset that can be asked for by name, and its file."""
    found: dict[str, Path] = {}
    for folder in _search_folders():
        for path in sorted(folder.iterdir()):
            name = dataset_name(path)
            if name is not None and path.is_file():
                found.setdefault(name, path)
    return found


def find_dataset(name: str) -> Path:
    """Return the file of the dataset `name`. Raises DatasetNotFoundError."""
    available = list_datasets()
    if name in available:
        return available[name]
    folders = ", ".join(map(str, _search_folders())) or "none of the folders exists"
    hint = did_you_mean(name, available) or (f"for a file, write path={name}" if Path(name).exists() else "")
    hint = hint or f"available: {', '.join(sorted(available)) or 'no datasets'}"
    raise DatasetNotFoundError(f"no dataset named {name!r} (searched: {folders})\n  hint: {hint}")


class _AdapterSpec(Format):
    name = "adapter_spec"
    title = "adapter_spec + request_states"
    dataset_title = "adapter_spec file"
    expects = 'a JSON object {"adapter_spec": ..., "request_states": [...]}, or JSON Lines, also in gzip or zstd'
    sources = ("dataset", "path")
    kinds = frozenset({"json", ".json5", ".gz", ".zst"})
    usage = "adapter_spec:dataset=NAME,model=... or adapter_spec:path=FILE,model=..."
    scenario_class = "helm_ext.formats.request_states.scenario.AdapterSpecScenario"
    writes = (".jsonl", ".ndjson")
    written_as = "FILE.jsonl"
    arguments = (
        Argument(
            "dataset",
            TEXT,
            "a name: the file `NAME.json`, `.jsonl` or `.json5` (also `.gz`, `.zst`) in `./adapter_specs`, the folders "
            "of `HELM_EXT_PATH`, or the packaged examples",
            "one of `dataset` and `path` is needed",
            names_data=True,
        ),
        Argument("path", Kind("path", _dataset_path), "a file. A comma in it is written `%2C`", names_data=True),
        Argument("method", TEXT, 'see "Method"', "the file's"),
        Argument(
            "max_train_instances",
            WHOLE_NUMBER,
            "demonstrations in a prompt, and how many rows are drawn for them",
            "the file's",
            in_run_entry=False,
        ),
        Argument("seed", WHOLE_NUMBER, "decides which rows become demonstrations and which a cap leaves", "0"),
        MISSING,
        Argument("output_format", one_of("string", "list"), "one text, or a list of segments", "the file's"),
        Argument(
            "by",
            SEVERAL,
            "keys of the rows (of `extra_data`, the instance or the state; `a.b` for one inside another): the main "
            "metric is also reported for each of their values",
            "",
        ),
        Argument(
            "cluster",
            TEXT,
            "a key as for `by`: rows with one value of it are not independent (questions about one passage), and the "
            "interval of the main metric respects that",
            "",
        ),
        Argument("metrics", SEVERAL, "names of metrics: those under `scoring` in adapter_spec.md", "the file's"),
        Argument("main_metric", TEXT, "the one on the leaderboard", "the file's"),
        Argument(
            "completions",
            TEXT,
            "how several completions of a row are scored: `first`, or `mean`, `median`, `mode`, `max`, `at_least_K`, "
            "`pass_at_K`, `pass_k_K` of their scores",
            "the file's, or `first`",
        ),
        THINKING,
        Argument(
            "extract",
            TEXT,
            "a regular expression: the answer is the first group of its last match (in run entries without commas: "
            "HELM splits there)",
            "the file's",
        ),
        Argument("strip", FLAG, "white space around predictions is removed", "the file's"),
        Argument("lower", FLAG, "predictions and references are written in lower case", "the file's"),
        Argument(
            "separator",
            Kind("text", _separator),
            r"what stands between the segments of a list; `\n`, `\t`, and `%2C` for a comma",
            "the file's, or `;`",
        ),
        Argument("extract_all", TEXT, "a regular expression each match of which is a segment of a list", "the file's"),
        Argument("extract_references", FLAG, "`extract` and `extract_all` are applied to references too", "the file's"),
        Argument("drop_duplicates", FLAG, "a segment that is repeated in a list counts once", "the file's"),
        Argument(
            "score_tokenizer",
            TEXT,
            "the folder of a Hugging Face tokenizer, or its name in this machine's cache, for scores that count tokens",
            "the file's",
        ),
        Argument(
            "cut_at_stop",
            FLAG,
            "predictions and references are cut at the stop sequences",
            "where only white space follows them in references",
        ),
        Argument("name", TEXT, "the dataset's name", "the file's", names_data=True, in_run_entry=False),
    )

    def claims(self, seen: Seen) -> Claim:
        """Any JSON that no other format is sure of: what is wrong with it is best said here."""
        if "path" in seen.keys and "request_states" not in seen.keys:
            return Claim.NO  # a table's mapping file, which may have an adapter_spec
        if seen.keys & {"adapter_spec", "request_states"}:
            return Claim.SURE
        name = dataset_name(seen.path)
        if not seen.exists:  # where it is the file name of a dataset, what is wrong with that is said here
            is_dataset = str(seen.path) == seen.path.name and name in list_datasets()
            return Claim.MAYBE if is_dataset else Claim.NO
        return Claim.MAYBE if (seen.is_like_json() or name is not None) and not seen.is_zip else Claim.NO

    def find(self, name: str) -> Path | None:
        """Return the file of the dataset of this name, or None."""
        return list_datasets().get(name)

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, the dataset first, by the name of the file that was found."""
        options = dict(arguments)
        if "dataset" not in options:
            return {"path": options.pop("path"), **options}
        file = find_dataset(options.pop("dataset"))
        return {"dataset": dataset_name(file), **options}

    def name_model(self, arguments: Mapping[str, Any]) -> str:
        """Return the recorded model that all rows name, or the source that they were converted from."""
        from helm_ext.formats.request_states.reading import read_model

        return read_model(self._path(dict(arguments)))

    def load(self, **arguments: Any) -> EvalSet:
        """Read a file. Raises DatasetError, and DatasetNotFoundError for the name of none."""
        from helm_ext.formats import request_states

        return request_states.load(self._path(arguments), **arguments)

    def check(self, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:  # noqa: ARG002
        """Return all problems of a file and its counts; nothing is executed."""
        from helm_ext.formats import request_states

        return request_states.check(self._path(arguments), **arguments)

    def _path(self, arguments: dict[str, Any]) -> str:
        dataset, path = arguments.pop("dataset", None), arguments.pop("path", None)
        return str(find_dataset(dataset)) if path is None else path

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:
        """Add the file's own name, if it has one: files of several models may hold the completions of one dataset."""
        own = {} if evalset.name == default_name(arguments) else {"name": evalset.name}
        return Plan({**arguments, **own}, arguments)

    def metric_spec(self, evalset: EvalSet) -> MetricSpec:
        """Return the metric; of the output of a run of ours the one that it was scored by."""
        from helm_ext.formats.request_states.recorded import EarlierRun

        made = super().metric_spec(evalset)
        if not isinstance(evalset.details, EarlierRun):
            return made
        class_name, args = evalset.details.to_metric(evalset.scoring)
        told = {name: made.args[name] for name in ("attributes", "judged") if name in made.args}
        return replace(made, class_name=class_name, args={**args, **told})

    def losses(self, evalset: EvalSet) -> Sequence[str]:
        """Return how the run that wrote the file scored its rows, where a file cannot say so."""
        from helm_ext.formats.request_states.recorded import EarlierRun

        earlier = evalset.details
        if not isinstance(earlier, EarlierRun):
            return ()
        given = {name: earlier.args[name] for name in ("postprocess", "rule") if earlier.args.get(name)}
        lost = [f"the {name} {value} that the run was scored by" for name, value in given.items()]
        source = earlier.args.get("source")
        if source and source["scores"]:
            lost.append(f"the scores that the rows came with from {source['tool']}; convert of its own file keeps them")
        return [*lost, *(f"the metric {stat} that the run defined" for stat in earlier.args.get("definitions") or ())]

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a file."""
        from helm_ext.formats.request_states.checking import json_schema

        return json_schema({argument.name: argument.description for argument in self.arguments})

    def write(self, evalset: EvalSet, target: Path, **how: Any) -> Converted:
        """Write JSON Lines."""
        from helm_ext.formats.request_states.writing import to_json_lines

        return to_json_lines(evalset, target, **how)


FORMAT = _AdapterSpec()
