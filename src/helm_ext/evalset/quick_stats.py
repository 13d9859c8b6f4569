"""HELM's `PerInstanceStats`, made quickly (`quick`). Apart from the others: HELM's metrics take long to import."""

from __future__ import annotations

from helm.benchmark.metrics import metric

from helm_ext.evalset.quick import make_quick

__all__ = ["PerInstanceStats"]

PerInstanceStats = make_quick(metric.PerInstanceStats, __name__)
