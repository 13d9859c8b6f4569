"""What the package says of itself."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import pythons  # noqa: E402 - tools/ is put on the path above

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def imported():
    """Top-level names that modules import, and where."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name.partition(".")[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0], path


@pytest.mark.long
def test_whatever_is_imported_is_declared():
    given = [
        *PROJECT["dependencies"],
        *(one for extra in ("s3", "ray") for one in PROJECT["optional-dependencies"][extra]),
    ]
    declared = {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in given}
    of = packages_distributions()
    undeclared = {
        (name, path.name)
        for name, path in imported()
        if name not in sys.stdlib_module_names and name != "helm_ext"
        if declared.isdisjoint(dist.lower().replace("_", "-") for dist in of.get(name, [name]))
    }
    assert undeclared == set()


def test_the_version_is_the_newest_of_the_changelog():
    assert (
        re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
        == PROJECT["version"]
    )


def test_the_classifiers_are_the_pythons_that_are_tested():
    named = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert tuple(named) == pythons.VERSIONS
    assert all((ROOT / folder).is_dir() for folder in pythons.FEW)
    assert PROJECT["requires-python"] == f">={named[0]}"
