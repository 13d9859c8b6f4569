"""Format 1: a JSON file with `adapter_spec` and `request_states` (or JSON Lines), lowered to an EvalSet.

    file ──reading──▶ header ──settings──┬─▶ what the file is ──adapter, sampling, build──▶ Instances
           └────────▶ states ──rows, survey──┘

`load` raises with every problem it finds; `check` returns them. Rules: formats.md, section 1; every key, its default
and HELM's counterpart: docs/adapter_spec.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_ext.errors import DatasetError, Problem, raise_for
from helm_ext.evalset import garbage
from helm_ext.formats.request_states.lowering import Lowering
from helm_ext.formats.request_states.models import ScoringModel

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet

__all__ = ["check", "json_schema", "load"]


def load(
    path: str | Path,
    *,
    method: str | None = None,
    seed: int | None = None,
    missing: Literal["error", "skip"] = "error",  # noqa: ARG001 - decided by the run, see helm_ext.adaptation
    output_format: Literal["string", "list"] | None = None,
    metrics: Sequence[str] | None = None,
    main_metric: str | None = None,
    extract: str | None = None,
    strip: bool | None = None,
    lower: bool | None = None,
    separator: str | None = None,
    extract_all: str | None = None,
    extract_positions: bool | None = None,
    extract_references: bool | None = None,
    drop_duplicates: bool | None = None,
    cut_at_stop: bool | None = None,
    name: str | None = None,
) -> EvalSet:
    """Read a file and return its EvalSet. Arguments win over what the file says.

    `seed` decides which rows become demonstrations and which a cap leaves (default 0).
    Raises a DatasetError that carries all problems.
    """
    lowering = Lowering(
        path,
        method=method,
        seed=seed or 0,
        output_format=output_format,
        scoring={
            "metrics": metrics,
            "main_metric": main_metric,
            "extract": extract,
            "strip": strip,
            "lower": lower,
            "separator": separator,
            "extract_all": extract_all,
            "extract_positions": extract_positions,
            "extract_references": extract_references,
            "drop_duplicates": drop_duplicates,
            "cut_at_stop": cut_at_stop,
        },
        name=name,
    )
    with garbage.paused():
        lowering.read(keep_rows=True)
        lowering.plan()
        raise_for(lowering.problems())
        return lowering.build()


def check(path: str | Path, **options: Any) -> tuple[list[Problem], dict[str, int]]:
    """Return all problems of a file (errors first, then warnings) and what was counted. Takes `load`'s options.

    Memory does not grow with JSON Lines but for some bytes a row (ids and inputs are compared).
    """
    scoring = {key: options.pop(key, None) for key in ScoringModel.__annotations__}
    options.pop("missing", None)
    seed = options.pop("seed", None) or 0
    try:
        lowering = Lowering(path, scoring=scoring, seed=seed, **options)
        lowering.read(keep_rows=False)
    except DatasetError as error:
        return list(error.problems), {}
    lowering.plan()
    return lowering.problems(), lowering.counts


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file, made from the models that read it."""
    from pydantic import TypeAdapter

    from helm_ext.formats.request_states.models import FileModel

    schema = TypeAdapter(FileModel).json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "adapter_spec + request_states",
    }
