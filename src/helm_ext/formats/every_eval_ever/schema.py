"""What Every Eval Ever 0.3.0 demands of its two files, restated (every_eval_ever/schemas/*.json upstream)."""

from __future__ import annotations

VERSION = "0.3.0"
"""Of what we export."""

READ_VERSIONS = ("0.2.", "0.3.")
"""Beginnings of the versions that are read: 0.2.x has the same fields where they matter here."""

KEPT = "every_eval_ever"
"""The key under which a row keeps what the importer read of its sample and HELM has no place for."""

ORIGINAL_LIBRARY = "original_eval_library_name"
"""The key of `source_metadata.additional_details` that names, in our export of an imported record, its tool."""

AGGREGATE_KEYS = frozenset({"schema_version", "evaluation_id", "source_metadata", "model_info", "evaluation_results"})
"""By these an aggregate is recognised; files of 0.2.x have them too."""

INSTANCE_KEYS = frozenset({"schema_version", "evaluation_id", "model_id", "sample_id", "interaction_type"})
"""By these a line of samples is recognised."""

ENUMS = {
    "source_metadata.source_type": ("documentation", "evaluation_run"),
    "source_metadata.evaluator_relationship": ("first_party", "third_party", "collaborative", "other"),
    "model_info.additional_details.deployment_type": ("self_deployed", "externally_managed", "unknown"),
    "model_info.additional_details.model_availability": ("open_weights", "closed_weights", "unknown"),
    "interaction_type": ("single_turn", "multi_turn", "agentic"),
    "source_data.source_type": ("url", "hf_dataset", "other"),
    "metric_config.score_type": ("binary", "continuous", "levels"),
}
