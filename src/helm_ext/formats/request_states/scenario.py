"""The scenario of `adapter_spec:` runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helm_ext.formats.request_states.format import FORMAT, default_name
from helm_ext.formats.scenario import EvalSetScenario


class AdapterSpecScenario(EvalSetScenario):
    """A JSON file with `adapter_spec` and `request_states` (docs/adapter_spec.md).

        <instructions>
        <instance_prefix><input_prefix>text<input_suffix><output_prefix>answer<output_suffix>    train
        <instance_prefix><input_prefix>text<input_suffix><output_prefix>                         test

    Arguments: `dataset` (a name) or `path` (a file), and those of `helm_ext.formats.request_states.load`.
    """

    format = FORMAT

    @classmethod
    def default_name(cls, arguments: Mapping[str, Any]) -> str:
        """Return the name of a dataset that has none of its own."""
        return default_name(arguments)
