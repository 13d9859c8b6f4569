"""Which files of a run of lm-eval belong together; and its results: how a task was asked, what the harness reports.

Samples stand in `<model>/samples_<task>_<time>.jsonl` beside `results_<time>.json`. Versions before 0.4.3 write
`<arguments of the model>_<task>.jsonl` beside `results.json` (v0.4.2 lm_eval/__main__.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_ext import files
from helm_ext.errors import (
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    RunEntryError,
    did_you_mean,
    show,
)
from helm_ext.formats.imported.format import choose_part
from helm_ext.formats.imported.row import as_list, as_object, is_finite_number
from helm_ext.scoring.bounded import limit_pattern

SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<time>[^_]+)\.jsonl(?:\.gz|\.zst)?")
"""The task lies between the first and the last `_` (lm_eval/utils.py, get_file_task_name)."""
RESULTS = re.compile(r"results(?:_(?P<time>[^_]+))?\.json")
_SHOWN = 10
_LOG_SAMPLES = "lm-eval writes them with --log_samples"


@dataclass(frozen=True)
class SampleFile:
    """One file of samples."""

    path: Path
    task: str
    time: str
    """When the harness wrote it, as its name says; "" for one of an older version, or that was renamed."""
    results: Path | None
    """The results file that was written with it."""


def has_samples(folder: Path) -> bool:
    """Whether a folder, or one right below it, holds samples."""
    try:
        return bool(_by_folder(folder))
    except OSError:
        return False


def find_samples(path: Path) -> list[SampleFile]:
    """Return the samples that a path names: a file, those beside a results file, those of a folder.

    The folder is that of one model, or one above it. Raises DatasetError.
    """
    if path.is_dir():
        found = _by_folder(path)
        if path in found or len(found) == 1:
            return found.get(path) or next(iter(found.values()))
        names = ", ".join([folder.name for folder in found][:_SHOWN])
        message = f"samples of {len(found)} models" if found else "no samples_*.jsonl in this folder"
        hint = f"name one of its folders: {names}" if found else _LOG_SAMPLES
        raise DatasetIntegrityError.at(path, message, hint, code="samples")
    if not path.is_file() and not RESULTS.fullmatch(path.name):
        raise DatasetNotFoundError.at(path, "no such file", code="samples")
    beside = _in(path.parent)
    if results := RESULTS.fullmatch(path.name):
        if same := [one for one in beside if one.time == (results["time"] or "")]:
            return same
        raise DatasetIntegrityError.at(path, "no samples of this time stand beside it", _LOG_SAMPLES, code="samples")
    return [one for one in beside if one.path == path] or [SampleFile(path, path.name.split(".")[0], "", None)]


def _by_folder(path: Path) -> dict[Path, list[SampleFile]]:
    """Return the samples in a folder and in those right below it, by these."""
    folders = [path, *(below for below in sorted(path.iterdir()) if below.is_dir())]
    return {folder: found for folder in folders if (found := _in(folder))}


def _in(folder: Path) -> list[SampleFile]:
    """Return the samples of a folder, by their names; of older versions, whose names end with a task of the results."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    found = []
    for path in files:
        if match := SAMPLES.fullmatch(path.name):
            results = folder / f"results_{match['time']}.json"
            found.append(SampleFile(path, match["task"], match["time"], results if results in files else None))
    if found:
        return found
    results = folder / "results.json"
    try:
        tasks = sorted(as_object(json.loads(results.read_bytes())["configs"]), key=len, reverse=True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    named = ((path, next((task for task in tasks if path.stem.endswith(f"_{task}")), None)) for path in files)
    return [SampleFile(path, task, "", results) for path, task in named if task and path.suffix == ".jsonl"]


def choose(path: Path, task: str | None, time: str | None) -> SampleFile:
    """Return the file of samples that is meant. Raises DatasetError that names them where several could be."""
    found = find_samples(path)
    task = choose_part(path, sorted({one.task for one in found}), task, "task")
    time = choose_part(path, sorted({one.time for one in found if one.task == task}), time, "time")
    same = [one for one in found if (one.task, one.time) == (task, time)]
    if len(same) > 1:
        names = ", ".join(one.path.name for one in same)
        raise DatasetIntegrityError.at(path, f"the same samples twice: {names}", "path= names one", code="samples")
    return same[0]


JSONObject = dict[str, Any]

_NO_MEANS = frozenset(
    {
        "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "f1", "mcc", "bleu", "chrf",
        "chrf++", "ter", "brier_score", "acc_all", "bypass", "likelihood",
    }
)  # fmt: skip
"""Metrics whose report is no mean of the rows' values unless the task says so (lm_eval/api/metrics.py)."""
_MEANS = ("mean", "nanmean")
_WITH_DELIMITER = ("0.4.2", "0.4.3", "0.4.4", "0.4.5")
"""Versions that keep the delimiter where a chat template is applied (v0.4.5 lm_eval/api/task.py)."""
_LOWER = frozenset({"perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score", "ter"})
"""Metrics of which the harness says that lower is better (`register_metric` there)."""

_LENIENT = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")

_SETTINGS = (
    "output_type", "dataset_path", "dataset_name", "test_split", "validation_split", "num_fewshot",
    "generation_kwargs", "repeats", "description", "target_delimiter", "fewshot_delimiter",
)  # fmt: skip
"""Keys of a task's config that say how it was asked."""
_RUN_SETTINGS = ("model", "model_args", "batch_size", "gen_kwargs", "limit", "random_seed", "fewshot_seed")
"""Keys of the run's config."""


class Report:
    """What a results file says of one task. All is empty in the report of no file."""

    def __init__(self, path: Path | None, task: str) -> None:
        """Read what a file says of a task. Raises DatasetError."""
        self.path = path
        self.digest = ""
        given: JSONObject = {}
        config: JSONObject = {}
        if path is not None:
            source = files.read_source(path)
            self.digest = source.digest
            given = files.parse_json(source.data, str(path), allow_nan=True)
            config = _find_config(given, task, path)
        run = as_object(given.get("config"))
        metrics = [one for one in as_list(config.get("metric_list")) if isinstance(one, dict)]
        samples = as_object(as_object(given.get("n-samples")).get(task))
        self.model = _find_model(given, run)
        self.tool_version = str(given.get("lm_eval_version") or "")
        self.settings = _find_settings(given, config, run, task)
        self.output_type = str(config.get("output_type") or "")
        self.delimiter = _find_delimiter(given, config)
        """What stands between question and option."""
        self.doc_to_choice = config.get("doc_to_choice")
        """What the choices of a task are, where it has some: a list, a key of `doc`, a template, or code."""
        self.is_unscored = [one.get("metric") for one in metrics] == ["bypass"]
        """Whether the harness was told to score nothing (`--predict_only`)."""
        self.scores_itself = bool(config.get("process_results")) and not self.is_unscored
        """Whether code of the task's own makes its scores. --predict_only leaves these two words where the task may
        have had code (lm_eval/api/task.py, override_metric).
        """
        self.original, self.effective = _whole(samples.get("original")), _whole(samples.get("effective"))
        """How many questions the task has, and how many of them were asked."""
        if self.is_unscored and self.effective == 0:  # the harness counts values of metrics, and there are none
            self.effective = None
        results = {} if self.is_unscored else as_object(as_object(given.get("results")).get(task))
        self.aggregates = {
            name: float(value)
            for name, value in results.items()
            if "," in name and "_stderr," not in name and is_finite_number(value)
        }
        """What is reported, by `metric,filter`."""
        filters = [str(as_object(one).get("name")) for one in as_list(config.get("filter_list"))]
        self.filters = filters or (["none"] if path else [])
        """The names of the task's filters, in order: `none`, where it declares none."""
        self.metrics = [] if self.is_unscored else [_name_metric(one.get("metric")) for one in metrics]
        """Names of the task's metrics, in its order."""
        self._exact_match = next((one for one in metrics if one.get("metric") == "exact_match"), None)
        self._aggregations = {
            str(one.get("metric")): str(one["aggregation"]) for one in metrics if one.get("aggregation")
        }
        said = {str(one.get("metric")): one.get("higher_is_better") for one in metrics}
        self._higher = {**said, **as_object(as_object(given.get("higher_is_better")).get(task))}

    def is_mean(self, metric: str) -> bool | None:
        """Whether the harness reports the mean of the rows' values; None where a function of the task's says what."""
        given = self._aggregations.get(metric)
        if given is None:
            return metric not in _NO_MEANS
        if given in _MEANS:
            return True
        return False if given in _NO_MEANS or given in ("matthews_corrcoef", "weighted_perplexity", "median") else None

    def is_lower_better(self, metric: str) -> bool:
        """Whether a lower value of a metric is better: as the run says, else as the harness has it of its own."""
        return self._higher.get(metric) is False or (self.path is None and metric in _LOWER)

    def explain(self, metric: str) -> str:
        """Return in words why what is reported of a metric is no mean of the rows' scores."""
        given = self._aggregations.get(metric, metric if metric in _NO_MEANS else "a function of the task")
        return f"lm-eval makes it of all rows at once, by {_name_metric(given)}"

    @property
    def is_exact(self) -> bool:
        """Whether texts that differ are never equal to the task's `exact_match`."""
        return self._exact_match is not None and not any(self._exact_match.get(key) for key in _LENIENT)

    def make_cleaner(self) -> Callable[[str], str]:
        """Return what lm-eval's `exact_match` does to both texts before it compares them (lm_eval/api/metrics.py).

        Where an answer was filtered, golds and answers are cleaned so: the task says what in them is no part of the
        answer ("She has <<1+2=3>>3 pears. #### 3"). Case and punctuation are left to our scores, which forgive them.
        """
        given = as_list((self._exact_match or {}).get("regexes_to_ignore"))
        try:
            patterns = [re.compile(pattern) for pattern in given]
        except (re.error, TypeError) as error:
            raise RunEntryError(f"exact_match of the results file: {show(given)} are no regular expressions") from error

        def clean(text: str) -> str:
            for pattern in patterns:
                with limit_pattern(pattern.pattern, text):
                    text = pattern.sub("", text)
            return text

        return clean


def _find_config(given: Any, task: str, path: Path) -> JSONObject:
    if not isinstance(given, dict) or not isinstance(given.get("configs"), dict):
        raise DatasetSchemaError.at(path, "no results file of lm-eval: it has no `configs`", code="results")
    config = given["configs"].get(task)
    if not isinstance(config, dict):
        hint = did_you_mean(task, given["configs"]) or f"it has {', '.join(list(given['configs'])[:10])}"
        hint += "; results=none reads the samples alone"
        raise DatasetSchemaError.at(path, f"nothing is said of task {task}", hint, code="results")
    return config


def _find_model(given: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return the model's name; older files name it among its arguments alone."""
    if given.get("model_name"):
        return str(given["model_name"])
    arguments = run.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(one.split("=", 1) for one in arguments.split(",") if "=" in one)
    arguments = as_object(arguments)
    return str(arguments.get("pretrained") or arguments.get("model") or run.get("model") or "")


def _find_delimiter(given: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Return what stands before an option (lm_eval/api/task.py, construct_requests)."""
    delimiter = config.get("target_delimiter")
    delimiter = " " if delimiter is None else str(delimiter)
    if not given.get("chat_template") or str(given.get("lm_eval_version") or "0.4.2") in _WITH_DELIMITER:
        return delimiter
    prefix = config.get("gen_prefix")
    return delimiter if prefix and not str(prefix)[-1].isspace() else ""


_FUNCTION = re.compile(r"(?:^|\n)\s*def (\w+)|<function (?:\w+\.)*(\w+) at ")


def _name_metric(given: Any) -> str:
    """Return the name of a metric: of a function, which is written as its source or its place, the function's."""
    found = _FUNCTION.search(str(given))
    return str(given) if found is None else found[1] or found[2]


def _find_settings(
    given: Mapping[str, Any], config: Mapping[str, Any], run: Mapping[str, Any], task: str
) -> dict[str, Any]:
    found = {key: config.get(key) for key in _SETTINGS} | {key: run.get(key) for key in _RUN_SETTINGS}
    for key, title in (("versions", "task_version"), ("n-shot", "num_fewshot")):
        if (value := as_object(given.get(key)).get(task)) is not None:
            found[title] = value
    found["filters"] = [str(as_object(one).get("name")) for one in as_list(config.get("filter_list"))]
    found |= {key: given.get(key) for key in ("system_instruction", "chat_template_sha", "date", "git_hash")}
    return {key: value for key, value in found.items() if value not in (None, "", [], {})}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
