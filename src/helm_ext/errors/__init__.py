"""What can be wrong, where, and how it is said.

    HelmExtError
    ├── DatasetError            a dataset cannot be used; carries *all* problems that were found
    │   ├── DatasetNotFoundError    (also a FileNotFoundError) no such file or dataset
    │   ├── DatasetSyntaxError      not JSON, not UTF-8, truncated, not a ZIP
    │   ├── DatasetSchemaError      JSON, but not of the format's shape
    │   ├── DatasetIntegrityError   the right shape, but it contradicts itself (digests, sizes, splits, labels)
    │   ├── DatasetChangedError     other bytes than the ones that the run was planned with
    │   └── TransformError          a user's transform script failed or returned the wrong thing
    ├── HubError                the dataset hub refused
    ├── DeploymentError         a model cannot be asked at all: address, name or key
    ├── RecordedError           recorded completions are missing, or were asked for where there are none
    └── RunEntryError           (also a ValueError) the arguments of a run entry make no sense

A problem is rendered on one line, with its hint on a second:

    adapter_specs/x.json:118: request_states[3].instance.references[0].output.text: expected a string, got 42
      hint: write "42" in quotes

Whoever reads a file collects its problems in `Problems` and raises them all at once.
"""

from __future__ import annotations

from helm_ext.errors.collector import KEPT_PROBLEMS, Problems
from helm_ext.errors.model import (
    SHOWN_VALUE_LENGTH,
    DatasetChangedError,
    DatasetError,
    DatasetIntegrityError,
    DatasetNotFoundError,
    DatasetSchemaError,
    DatasetSyntaxError,
    DeploymentError,
    HelmExtError,
    HubError,
    Location,
    Path,
    Problem,
    RecordedError,
    RunEntryError,
    Severity,
    TransformError,
    count,
    did_you_mean,
    format_path,
    near_words,
    printable,
    raise_for,
    show,
    to_problem,
)

__all__ = [
    "KEPT_PROBLEMS",
    "SHOWN_VALUE_LENGTH",
    "DatasetChangedError",
    "DatasetError",
    "DatasetIntegrityError",
    "DatasetNotFoundError",
    "DatasetSchemaError",
    "DatasetSyntaxError",
    "DeploymentError",
    "HelmExtError",
    "HubError",
    "Location",
    "Path",
    "Problem",
    "Problems",
    "RecordedError",
    "RunEntryError",
    "Severity",
    "TransformError",
    "count",
    "did_you_mean",
    "format_path",
    "near_words",
    "printable",
    "raise_for",
    "show",
    "to_problem",
]
