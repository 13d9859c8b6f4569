"""What a user sets for a runner of this package, where `helm-run` was told to use none.

Limits of what is spent are enforced or refused by the clients (`clients.estimate.find_unenforced_limit`). What does no
harm but makes a run slower than the user thinks is said here: run entries are planned in helm-run's process, before any
run. So are settings that make no sense, before a file is read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from helm.common.hierarchical_logger import hwarn

_OPTION = "--runner-class-name"
_warned: set[str] = set()


def check_settings() -> None:
    """Raise HelmExtError for settings that make no sense: workers, limits, how progress is shown."""
    if not any(name.startswith("HELM_EXT_") for name in os.environ):
        return  # nothing is set, and what reads settings takes 3 % of a preview to import
    from helm_ext.engines.processes import find_engine
    from helm_ext.engines.progress import read_mode
    from helm_ext.running.spending import read_limits

    find_engine()
    read_mode()
    read_limits()


def warn_without() -> None:
    """Warn, once a process, of HELM_EXT_WORKERS where `helm-run` uses HELM's own runner, which knows no workers."""
    if Path(sys.argv[0]).name != "helm-run" or _names_own_runner(sys.argv[1:]):
        return
    from helm_ext.engines.processes import WORKERS_ENV

    workers = os.environ.get(WORKERS_ENV)
    if not workers or WORKERS_ENV in _warned:
        return
    _warned.add(WORKERS_ENV)
    hwarn(
        f"{WORKERS_ENV}={workers} is for runners of this package: HELM's own runs in this process alone\n"
        f"  hint: {_OPTION} helm_ext.running.StreamingRunner"
    )


def _names_own_runner(arguments: Sequence[str]) -> bool:
    """Whether the command names a runner that is not HELM's."""
    parser = argparse.ArgumentParser(add_help=False)  # helm-run's is one, too: it takes the beginning of an option
    parser.add_argument(_OPTION, default="helm.")
    return not parser.parse_known_args(arguments)[0].runner_class_name.startswith("helm.")
