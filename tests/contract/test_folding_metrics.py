"""Every metric of ours is computed batch by batch: a run of any size takes the memory of one batch."""

import importlib
import pkgutil

from helm.benchmark.metrics.metric import MetricInterface

import helm_ext
from helm_ext.scoring.folding import FoldingMetric


def all_subclasses(cls):
    return {found for child in cls.__subclasses__() for found in (child, *all_subclasses(child))}


def test_every_metric_of_ours_folds():
    for module in pkgutil.walk_packages(helm_ext.__path__, "helm_ext."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # of an optional dependency; a module of ours must be importable
            assert not (error.name or "").startswith("helm_ext"), error  # noqa: PT017
    ours = {cls for cls in all_subclasses(MetricInterface) if cls.__module__.startswith("helm_ext.")}
    assert {"EvalSetMetric", "SentenceLikelihoodMetric", "UltraEvalMetric", "RunArguments"} <= {
        c.__name__ for c in ours
    }
    assert {cls for cls in ours if not issubclass(cls, FoldingMetric)} == set()
