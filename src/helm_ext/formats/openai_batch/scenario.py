"""HELM's scenario of `openai_batch:` entries. Its class path stands in run_spec.json: public API."""

from __future__ import annotations

from helm_ext.formats.openai_batch.format import FORMAT
from helm_ext.formats.scenario import ImportedScenario


class OpenAIBatchScenario(ImportedScenario):
    """Requests that a batch service has answered."""

    format = FORMAT
