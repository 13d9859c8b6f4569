"""HELM's scenario of `openai_batch:` entries. Its class path stands in run_spec.json: public API."""

from __future__ import annotations

from helm_ext.formats.imported.scenario import ImportedScenario
from helm_ext.formats.openai_batch.format import FORMAT


class OpenAIBatchScenario(ImportedScenario):
    """Requests that a batch service has answered."""

    format = FORMAT
