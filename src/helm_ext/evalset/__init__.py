"""The normal form that every format is lowered to, and how a million rows of it are made, copied and kept cheaply."""

from helm_ext.evalset.model import (
    EXTRA_KEY,
    Decoding,
    EvalSet,
    LeftOut,
    Recorded,
    RecordedState,
    RowExtra,
    Scoring,
    row_extra,
)

__all__ = [
    "EXTRA_KEY",
    "Decoding",
    "EvalSet",
    "LeftOut",
    "Recorded",
    "RecordedState",
    "RowExtra",
    "Scoring",
    "row_extra",
]
