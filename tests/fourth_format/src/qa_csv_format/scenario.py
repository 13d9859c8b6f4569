"""The scenario that HELM makes of a run: its class path stands in run_spec.json."""

from helm_ext.formats.scenario import EvalSetScenario
from qa_csv_format.format import FORMAT


class QaCsvScenario(EvalSetScenario):
    format = FORMAT
