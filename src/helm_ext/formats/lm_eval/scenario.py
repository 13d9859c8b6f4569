"""HELM's scenario of `lm_eval:` entries. Its class path stands in run_spec.json: public API."""

from __future__ import annotations

from helm_ext.formats.lm_eval.format import FORMAT
from helm_ext.formats.scenario import ImportedScenario


class LmEvalScenario(ImportedScenario):
    """A task that lm-evaluation-harness ran."""

    format = FORMAT
