"""How errors end a program: as text for the user, not as a traceback."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import TracebackType

from helm_ext.errors.model import HelmExtError, printable

COMMANDS = ("helm-run", "helm-summarize")


def say_plainly() -> None:
    """Let errors that this package raises on purpose end HELM's commands with `error: ...`, and exit code 1.

    HELM's commands catch nothing, so that Python would print where in the code the error was found, and the text for
    the user below it. Other programs, and other errors, are left as they are. What HELM's log says of data and of
    servers' replies cannot steer the terminal.
    """
    logging.getLogger("helm").addFilter(_make_printable)
    if Path(sys.argv[0] if sys.argv else "").name not in COMMANDS or sys.excepthook is not sys.__excepthook__:
        return
    sys.excepthook = _print_error


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, HelmExtError):
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command's output
    else:
        sys.__excepthook__(kind, error, trace)


def _make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), None
    return True


_PACKAGES = {"calibration": "uncertainty-calibration", "sklearn": "scikit-learn", "yaml": "PyYAML"}
"""Modules whose package has another name."""


def describe_missing(error: ModuleNotFoundError) -> str:
    """Return which package is missing, with the way out. Raises `error` again for a module of this package."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "helm", "helm_ext"):
        raise error
    package = _PACKAGES.get(module, module.replace("_", "-"))
    return f"this needs the package {package}, which is not installed\n  hint: pip install {package}"
