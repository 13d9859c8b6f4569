"""The keys that the format reads, by the object they stand in. Files may have others."""

from __future__ import annotations

from typing import Any

from helm_ext.formats.request_states import state_models

__all__ = ["IN_COMPLETION", "IN_INPUT", "IN_INSTANCE", "IN_REFERENCE", "IN_REQUEST", "IN_RESULT", "IN_STATE"]


def _known_keys(model: Any) -> frozenset[str]:
    return frozenset(model.__annotations__)


IN_STATE = _known_keys(state_models.StateModel)
IN_INSTANCE = _known_keys(state_models.InstanceModel)
IN_INPUT = _known_keys(state_models.InputModel)
IN_REFERENCE = _known_keys(state_models.ReferenceModel)
IN_REQUEST = _known_keys(state_models.RequestModel)
IN_RESULT = _known_keys(state_models.ResultModel)
IN_COMPLETION = _known_keys(state_models.CompletionModel)
