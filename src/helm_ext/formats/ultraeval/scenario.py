"""The scenario of `ultraeval:` runs."""

from __future__ import annotations

from helm_ext.formats.scenario import EvalSetScenario
from helm_ext.formats.ultraeval.format import FORMAT


class UltraEvalScenario(EvalSetScenario):
    """An UltraEval task (docs/ultraeval.md). Arguments: those of `ultraeval.loading.load`, `name` always."""

    format = FORMAT
