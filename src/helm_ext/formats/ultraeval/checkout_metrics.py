"""Metrics that a user's checkout registers itself: `METRICS_REGISTRY` of its `metrics/__init__.py`.

They are called as upstream calls them (tasks/eval_task.py): made with the further keys of the config's `evaluation`,
then for each row with the row, its accepted answers and the postprocessed completions.
"""

from __future__ import annotations

import contextlib
import hashlib
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helm_ext.errors import Location, RunEntryError, TransformError, did_you_mean, show
from helm_ext.formats.ultraeval.checkout import Checkout, describe
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
    registry = getattr(_run(checkout, "could not be loaded", lambda: _load_module(checkout)), "METRICS_REGISTRY", {})
    if name not in registry:
        raise _unknown(name, checkout, registry)
    metric = _run(checkout, f"could not make {name}", lambda: registry[name](**arguments))

    def score(row: Mapping[str, Any], golds: str | list[str], results: Sequence[str]) -> float:
        said = f"could not score the answer {show(results[0])} with {name}"
        value = _run(checkout, said, lambda: metric(dict(row), golds, list(results)))
        return _to_number(value, checkout, name)

    return score


def digest_metrics(checkout: Checkout) -> str:
    """Return the SHA-256 of all Python files in the checkout's `metrics`."""
    digest = hashlib.sha256()
    for path in sorted((checkout.root / METRICS.parent).glob("**/*.py")):
        digest.update(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _load_module(checkout: Checkout) -> Any:
    return checkout.load_module("metrics")


def _run(checkout: Checkout, what: str, call: Callable[[], Any]) -> Any:
    """Call the checkout's code. Raises TransformError for whatever it raises."""
    try:
        with checkout, contextlib.redirect_stdout(sys.stderr):
            return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"the checkout's metrics {what}: {describe(error)}"
        hint = "upstream's metrics import openai, rouge_chinese and sacrebleu" if isinstance(error, ImportError) else ""
        place = Location(str(checkout.root / METRICS))
        raise TransformError.at(place, message, hint, code="metric-raised") from error


def _to_number(value: Any, checkout: Checkout, name: str) -> float:
    """Return a metric's value as upstream averages it: several values (one for each completion) are averaged first."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple) and value:
        return sum(_to_number(item, checkout, name) for item in value) / len(value)
    if isinstance(value, numbers.Real):
        return float(value)
    message = f"metric {name} of the checkout returned {show(value)}, expected a number"
    place = Location(str(checkout.root / METRICS))
    raise TransformError.at(place, message, code="metric-returned")


def _unknown(name: str, checkout: Checkout | None, registered: Iterable[str]) -> RunEntryError:
    choices = list(dict.fromkeys([*known_metrics(), *map(str, registered)]))
    hint = did_you_mean(name, choices) or f"known: {', '.join(choices)}"
    if checkout is None:
        hint += "; root=FOLDER names the UltraEval checkout that registers others"
    where = f", also in {checkout.root / METRICS}" if checkout else ""
    return RunEntryError(f"metric={name}: unknown metric{where}\n  hint: {hint}")
