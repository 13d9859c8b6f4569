"""The normal form that every format is lowered to, and how a million rows of it are made, copied and kept cheaply."""

from helm_ext.evalset.model import (
    DECODING_NUMBERS,
    DIGEST_LENGTH,
    EXTRA_KEY,
    MEDIA_KEY,
    Decoding,
    EvalSet,
    Judged,
    LeftOut,
    Likelihood,
    Places,
    Recorded,
    RecordedState,
    RowExtra,
    RunScoring,
    ScoredRows,
    Scoring,
    row_extra,
)
from helm_ext.evalset.source import Source, SourceScore

__all__ = [
    "DECODING_NUMBERS",
    "DIGEST_LENGTH",
    "EXTRA_KEY",
    "MEDIA_KEY",
    "Decoding",
    "EvalSet",
    "Judged",
    "LeftOut",
    "Likelihood",
    "Places",
    "Recorded",
    "RecordedState",
    "RowExtra",
    "RunScoring",
    "ScoredRows",
    "Scoring",
    "Source",
    "SourceScore",
    "row_extra",
]
