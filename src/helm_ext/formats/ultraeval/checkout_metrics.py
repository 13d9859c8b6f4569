"""Metrics that a user's checkout registers itself: `METRICS_REGISTRY` of its `metrics/__init__.py`.

They are called as upstream calls them (tasks/eval_task.py): made with the further keys of the config's `evaluation`,
then for each row with the row, its accepted answers and the postprocessed completions.
"""

from __future__ import annotations

import hashlib
import importlib
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.errors import RunEntryError, TransformError, did_you_mean, show
from helm_ext.formats.ultraeval.checkout import ALIASES, Checkout
from helm_ext.formats.ultraeval.metric_names import known_metrics

__all__ = ["CheckoutMetric", "digest_metrics", "load_metric", "require_metrics"]

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


def digest_metrics(checkout: Checkout) -> str:
    """Return the SHA-256 of all Python files in the checkout's `metrics`."""
    digest = hashlib.sha256()
    for path in sorted((checkout.root / METRICS.parent).glob("**/*.py")):
        digest.update(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


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
    choices = list(dict.fromkeys([*known_metrics(), *map(str, registered)]))
    hint = did_you_mean(name, choices) or f"known: {', '.join(choices)}"
    if checkout is None:
        hint += "; root=FOLDER names the UltraEval checkout that registers others"
    where = f", also in {checkout.root / METRICS}" if checkout else ""
    return RunEntryError(f"metric={name}: unknown metric{where}\n  hint: {hint}")
