"""HELM's descriptions of perturbations, as files have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from helm_ext.errors import show


def to_perturbation(given: Mapping[str, Any] | None) -> Any:
    """Return HELM's description of a perturbation; None where there is none.

    Raises ValueError if HELM knows none such.
    """
    if not given:
        return None
    # Slow to import, and only perturbed rows need it.
    from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
    from helm.common.codec import from_json

    try:
        return from_json(json.dumps(given), PerturbationDescription)
    except Exception as error:  # whatever the codec raises, the file is what is wrong
        raise ValueError(f"HELM knows no such perturbation: {show(given)}") from error
