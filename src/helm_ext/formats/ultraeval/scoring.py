"""Which metrics a task is scored with: upstream's names in ours, per method; and what is known of how it is scored.

Upstream looks a metric's `type` up in its table, in lower case, and makes it with the further keys of `evaluation`
(upstream's tasks/eval_task.py, `construct_metrics`). A name that is neither upstream's nor HELM's may be one that the
user's checkout registers (`METRICS_REGISTRY` of its `metrics/__init__.py`). Such a metric is called as upstream calls
it: for each row with the row, its accepted answers and the postprocessed completions.
"""

from __future__ import annotations

import hashlib
import importlib
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import DatasetSchemaError, Location, RunEntryError, TransformError, did_you_mean, show
from helm_ext.evalset import Scoring
from helm_ext.formats.ultraeval.checkout import ALIASES, NONE, OURS, Checkout, get_postprocess
from helm_ext.formats.ultraeval.config import Method, Metric
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores.likelihoods import MAIN_STATS, MEANS
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, EXECUTING, PREFIX, SCORES, make_rouge, score_name

if TYPE_CHECKING:
    from helm.benchmark.metrics.metric import MetricSpec

DEFAULT = "exact_match"
PPL_NORM = "general_torch_ppl_norm"
"""Upstream's postprocess name that makes `log_prob` the normalised rule."""

_PPL_TYPES = {"log_prob": "ppl", **{rule: rule for rule in MAIN_STATS}, "log_prob_mc2": "mc2"}
_PPL_POSTPROCESS = ("", "none", "general_torch", "general_torch_ppl", PPL_NORM)

MAX_STAT = 64
"""Bytes in the name of a stat that is made of a config's arguments."""

HELM_NAMES = tuple(name for name, score in get_scores().items() if score.kind == "helm" and not score.refused)
"""HELM's metrics that may be asked for beside upstream's (`evaluate_reference_metrics.metric_fn_mapping`)."""


@dataclass(frozen=True)
class MetricChoice:
    """The metrics of a task."""

    names: tuple[str, ...]
    """Names of stats, the main one first. For PPL the main stat of one of `likelihoods.RULES`."""
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Stat to upstream's `evaluation` (`type` and arguments), for what the registry of scores does not hold as such:
    `rouge` with arguments, and all metrics of the checkout's own."""

    @property
    def from_checkout(self) -> Mapping[str, Mapping[str, Any]]:
        """The definitions of metrics that only the user's checkout can make."""
        return {stat: made for stat, made in self.definitions.items() if made["type"] != "rouge"}

    @property
    def need_row(self) -> bool:
        """Whether a metric reads the row itself."""
        scores = get_scores()
        return bool(self.definitions) or any(name in scores and scores[name].kind == "row" for name in self.names)


def parse_metric_argument(value: Any, method: Method, postprocess: str) -> MetricChoice:
    """Return the metrics of `metric=a+b` (or a sequence of names); the first is the main one. Raises RunEntryError."""
    names = (
        [str(name) for name in value]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value).split("+")
    )
    if method == "ppl":
        return MetricChoice((_ppl_rule(names, postprocess),))
    return _choose((name, {}) for name in names)


def read_metrics(metrics: Mapping[str, Metric] | None, method: Method, postprocess: str, place: str) -> MetricChoice:
    """Return a config's metrics; `accuracy` is the main one where there is one. Raises RunEntryError, DatasetError."""
    if not metrics:
        return MetricChoice((_ppl_rule(["log_prob"], postprocess) if method == "ppl" else score_name(DEFAULT),))
    for name, metric in metrics.items():
        how = "mean" if metric.aggregation is None else metric.aggregation.type
        if how.lower() not in ("mean", "pass_k"):
            hint = did_you_mean(how, ("mean", "pass_k")) or "upstream has mean and pass_k"
            location = Location(place, field=f"metric.{name}.aggregation.type")
            raise DatasetSchemaError.at(location, f"unknown aggregation {how!r}", hint, code="aggregation")
    if method == "ppl":
        return MetricChoice((_ppl_rule([metric.evaluation.type for metric in metrics.values()], postprocess),))
    ordered = sorted(metrics.items(), key=lambda item: item[0] != "accuracy")
    return _choose((metric.evaluation.type, metric.evaluation.model_extra or {}) for _, metric in ordered)


def _ppl_rule(names: Sequence[str], postprocess: str) -> str:
    for name in names:
        if name.lower() not in _PPL_TYPES:
            gen = any(score.name == score_name(name) for score in SCORES)
            hint = "it scores generated answers: method=gen" if gen else did_you_mean(name, _PPL_TYPES)
            raise RunEntryError(
                f"metric={name}: no metric of PPL tasks\n  hint: {hint or 'known: ' + ', '.join(_PPL_TYPES)}"
            )
    if postprocess not in _PPL_POSTPROCESS:
        hint = did_you_mean(postprocess, _PPL_POSTPROCESS) or f"known: {', '.join(filter(None, _PPL_POSTPROCESS))}"
        raise RunEntryError(f"postprocess={postprocess}: no postprocessing of PPL tasks\n  hint: {hint}")
    rule = _PPL_TYPES[names[0].lower()]
    if postprocess == PPL_NORM and rule not in MEANS:
        rule += "_norm"
    return MAIN_STATS[rule]


def _choose(asked: Iterable[tuple[str, Mapping[str, Any]]]) -> MetricChoice:
    made = dict(_gen_metric(name, arguments) for name, arguments in asked)
    return MetricChoice(tuple(made), {stat: definition for stat, definition in made.items() if definition is not None})


def _gen_metric(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the stat of a metric, and its definition where the registry of scores does not hold it as such."""
    lowered = name.lower().removeprefix(PREFIX)
    if lowered == "bleu" and arguments.get("tokenizer", BLEU_TOKENIZERS[0]) not in BLEU_TOKENIZERS:
        tokenizer = arguments["tokenizer"]
        raise RunEntryError(
            f"metric bleu: tokenizer {tokenizer!r} is not available\n  hint: one of {', '.join(BLEU_TOKENIZERS)}"
        )
    if lowered == "rouge":
        known = {key: value for key, value in arguments.items() if key in ("tokenizer", "index", "n_gram")}
        stat = make_rouge(**known).name
        return stat, {"type": lowered, **known} if stat != score_name(lowered) else None
    stat = score_name(lowered, arguments)
    if any(score.name == stat for score in SCORES):
        return stat, None
    if lowered in HELM_NAMES:
        return lowered, None
    if lowered in _PPL_TYPES:
        raise RunEntryError(f"metric={name}: it compares log-probabilities of options\n  hint: method=ppl")
    full = stat + "".join(f"_{key}={value}" for key, value in sorted(arguments.items()))
    if len(full.encode(errors="replace")) > MAX_STAT:  # HELM makes file names of stats
        full = f"{full[: MAX_STAT // 4]}_{hashlib.sha256(full.encode(errors='replace')).hexdigest()[:8]}"
    return full, {"type": lowered, **arguments}


METRICS = Path("metrics") / "__init__.py"

CheckoutMetric = Callable[[Mapping[str, Any], "str | list[str]", Sequence[str]], float]
"""(row, accepted answers, postprocessed completions) to a number."""


def require_metrics(definitions: Iterable[Mapping[str, Any]], checkout: Checkout | None, *, execute: bool) -> None:
    """Raise RunEntryError for a metric that the checkout does not register; look inside it only if `execute`."""
    for definition in definitions:
        if checkout is None or not (checkout.root / METRICS).is_file():
            raise _unknown(definition["type"], checkout, ())
        if execute:
            load_metric(definition, checkout)


def load_metric(definition: Mapping[str, Any], checkout: Checkout) -> CheckoutMetric:
    """Return a metric of the checkout, ready to be called.

    Raises RunEntryError if it registers none of that name, TransformError if its code fails.
    """
    name = str(definition["type"])
    arguments = {key: value for key, value in definition.items() if key != "type"}
    hint = "upstream's metrics import openai, rouge_chinese and sacrebleu"
    with checkout.running(METRICS, "the checkout's metrics could not be loaded", hint, code="metric-raised"):
        module = importlib.import_module(f"{ALIASES[0]}.metrics")
    registry = getattr(module, "METRICS_REGISTRY", {})
    if name not in registry:
        raise _unknown(name, checkout, registry)
    with checkout.running(METRICS, f"the checkout's metrics could not make {name}", code="metric-raised"):
        metric = registry[name](**arguments)

    def score(row: Mapping[str, Any], golds: str | list[str], results: Sequence[str]) -> float:
        failed = f"{name} of the checkout's metrics could not score the answer"
        with checkout.running(METRICS, failed, code="metric-raised", about=results[0]):
            value = metric(dict(row), golds, list(results))
        return _to_number(value, checkout, name)

    return score


def _to_number(value: Any, checkout: Checkout, name: str) -> float:
    """Return a metric's value as upstream averages it: several values (one for each completion) are averaged first."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple) and value:
        return sum(_to_number(item, checkout, name) for item in value) / len(value)
    if isinstance(value, numbers.Real):
        return float(value)
    message = f"metric {name} of the checkout returned {show(value)}, expected a number"
    raise TransformError.at(checkout.root / METRICS, message, code="metric-returned")


def _unknown(name: str, checkout: Checkout | None, registered: Iterable[str]) -> RunEntryError:
    ours = sorted(score.name.removeprefix(PREFIX) for score in SCORES)
    choices = list(dict.fromkeys([*ours, *HELM_NAMES, *map(str, registered)]))
    hint = did_you_mean(name, choices) or f"known: {', '.join(choices)}"
    if checkout is None:
        hint += "; root=FOLDER names the UltraEval checkout that registers others"
    where = f", also in {checkout.root / METRICS}" if checkout else ""
    return RunEntryError(f"metric={name}: unknown metric{where}\n  hint: {hint}")


@dataclass(frozen=True)
class TaskFacts:
    """The value of `EvalSet.details` of an UltraEval task, or of a finished run."""

    method: Method
    dataset: str
    script: str
    """The transform script's version; of a finished run, its file's name."""
    script_sha: str
    data_sha: str
    metrics: MetricChoice
    postprocess: str = ""
    root: str | None = None
    """The checkout, where its code postprocesses completions or scores them."""

    def to_scoring(self, thinking: Literal["move", "keep"] | None) -> Scoring:
        """Return how outputs become scores; of PPL the likelihoods do."""
        names = self.metrics.names
        return Scoring(names if self.method == "gen" else (), main_metric=names[0], thinking=thinking or "move")

    def to_name_arguments(self) -> dict[str, str]:
        """Return what the run's name says beside the arguments of its entry."""
        return {"script": self.script, "script_sha": self.script_sha[:12], "data_sha": self.data_sha[:12]}

    def to_metric_spec(self, scoring: Scoring) -> MetricSpec:
        """Return HELM's MetricSpec of the task."""
        from helm.benchmark.metrics.metric import MetricSpec

        if self.method == "ppl":
            rule = next(rule for rule, stat in MAIN_STATS.items() if stat == self.metrics.names[0])
            return MetricSpec("helm_ext.scoring.likelihood.SentenceLikelihoodMetric", {"rule": rule})
        own = {
            "postprocess": self.postprocess,
            "root": self.root,
            "definitions": {stat: dict(made) for stat, made in self.metrics.definitions.items()},
        }
        args = scoring.to_args() | {key: value for key, value in own.items() if value}
        return MetricSpec("helm_ext.formats.ultraeval.metrics.UltraEvalMetric", args)


def require_allowed(metrics: MetricChoice, *, allow_code: bool) -> None:
    """Raise RunEntryError for metrics that run a model's code, unless that was allowed."""
    executing = EXECUTING.intersection(metrics.names)
    if executing and not allow_code:
        raise RunEntryError(
            f"metric={', '.join(sorted(executing))}: it runs the code that the model writes, on this machine\n"
            "  hint: allow_code=true permits it; run it only where nothing can be lost"
        )


def require_scores(
    method: Method, metrics: MetricChoice, postprocess: str, checkout: Checkout | None, *, execute: bool = True
) -> dict[str, str]:
    """Return the SHA-256 of the checkout's code that makes scores: of `postprocess` and `metrics`, where it does.

    No code of the checkout is run unless `execute`. Raises RunEntryError for an unknown metric or postprocessing,
    TransformError where the checkout's code fails.
    """
    used: dict[str, str] = {}
    if method == "gen" and execute:
        made = get_postprocess(postprocess, str(checkout.root) if checkout else None)
        if checkout and postprocess not in NONE and made is not OURS.get(postprocess):
            used["postprocess"] = checkout.digest()
    require_metrics(metrics.from_checkout.values(), checkout, execute=execute)
    if checkout and metrics.from_checkout:
        digest = hashlib.sha256()
        for path in sorted((checkout.root / METRICS.parent).glob("**/*.py")):
            digest.update(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        used["metrics"] = digest.hexdigest()
    return used


def make_digest(parts: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of what an EvalSet was made of: (role, SHA-256) of each."""
    text = "".join(f"{role}:{sha256}\n" for role, sha256 in parts)
    return hashlib.sha256(text.encode()).hexdigest()
