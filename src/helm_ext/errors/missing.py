"""A package that is not installed, as in a light installation (requirements-light.txt), is said in one line."""

from __future__ import annotations

_PACKAGES = {"calibration": "uncertainty-calibration", "sklearn": "scikit-learn", "yaml": "PyYAML"}
"""Modules whose package has another name."""


def describe_missing(error: ModuleNotFoundError) -> str:
    """Return which package is missing, with the way out. Raises `error` again for a module of this package."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "helm", "helm_ext"):
        raise error
    package = _PACKAGES.get(module, module.replace("_", "-"))
    return f"this needs the package {package}, which is not installed\n  hint: pip install {package}"
