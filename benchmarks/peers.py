"""Other harnesses on the same rows, each in a virtual environment of its own.

An environment is named by a variable that holds its interpreter; a harness without one is left out of the table:

    LM_EVAL_PYTHON=... INSPECT_PYTHON=... REDLITE_PYTHON=... python -m benchmarks --peers
"""

from __future__ import annotations

import os
from pathlib import Path

PEERS = {"lm-eval": "LM_EVAL_PYTHON", "inspect-ai": "INSPECT_PYTHON", "redlite": "REDLITE_PYTHON"}
_SCRIPTS = {"lm-eval": "lm_eval_run.py", "inspect-ai": "inspect_run.py", "redlite": "redlite_run.py"}


def available() -> list[str]:
    return [name for name, variable in PEERS.items() if os.environ.get(variable)]


def command(name: str, workload: str, rows: Path) -> list[str]:
    script = Path(__file__).parent / "peer_scripts" / _SCRIPTS[name]
    return [os.environ[PEERS[name]], str(script), workload, str(rows)]
