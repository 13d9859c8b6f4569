"""What some tests compare with where the machine has it. Without it they are skipped, and say what is missing.

| what | where |
|---|---|
| sample files of other harnesses | `shared/imports_samples`, in the checkout, beside it or further up |
| a checkout of github.com/OpenBMB/UltraEval | `ULTRAEVAL_REPO` |
| a checkout of github.com/evaleval/every_eval_ever | `EEE_REPO`, run by `EEE_PYTHON` (else `python3.12`, else this Python) |
| a Python that has inspect_ai | this one, or `INSPECT_PYTHON` |
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_BESIDE = [parent / "shared" / "imports_samples" for parent in Path(__file__).resolve().parents[1:]]

IMPORT_SAMPLES = next((folder for folder in _BESIDE if folder.is_dir()), _BESIDE[0])
"""The folder of the samples; it need not be there."""

needs_import_samples = pytest.mark.skipif(
    not IMPORT_SAMPLES.is_dir(), reason="no shared/imports_samples in the checkout or beside it"
)


def _find(variable: str) -> Path | None:
    named = os.environ.get(variable)
    return Path(named).resolve() if named else None


ULTRAEVAL_REPO = _find("ULTRAEVAL_REPO") or Path("ULTRAEVAL_REPO")
needs_ultraeval = pytest.mark.skipif(
    not _find("ULTRAEVAL_REPO"), reason="ULTRAEVAL_REPO names no checkout of github.com/OpenBMB/UltraEval"
)

EEE_REPO = _find("EEE_REPO") or Path("EEE_REPO")
EEE_PYTHON = os.environ.get("EEE_PYTHON") or shutil.which("python3.12") or sys.executable
needs_eee = pytest.mark.skipif(
    not _find("EEE_REPO"), reason="EEE_REPO names no checkout of github.com/evaleval/every_eval_ever"
)

INSPECT_PYTHON = sys.executable if find_spec("inspect_ai") else os.environ.get("INSPECT_PYTHON", "")
needs_inspect_ai = pytest.mark.skipif(
    not INSPECT_PYTHON, reason="inspect_ai is not installed, and INSPECT_PYTHON names no Python that has it"
)
