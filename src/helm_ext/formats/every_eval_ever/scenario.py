"""HELM's scenario of `every_eval_ever:` entries. Its class path stands in run_spec.json: public API."""

from __future__ import annotations

from helm_ext.formats.every_eval_ever.format import FORMAT
from helm_ext.formats.scenario import ImportedScenario


class EveryEvalEverScenario(ImportedScenario):
    """An evaluation that Every Eval Ever has a record of."""

    format = FORMAT
