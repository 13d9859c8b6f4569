"""The rooms of `src/helm_ext` and who may know whom: [tool.importlinter] in pyproject.toml.

The contracts hold; each is broken here on purpose, by one import in a copy of the sources, and seen to fail.
"""

from __future__ import annotations

import ast
import graphlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "src" / "helm_ext"
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
LAYERS = [layer.split(" | ") for layer in CONTRACTS["layers"]["layers"]]

BROKEN = {
    # Each room imports the one above it.
    **{
        f"layers: {below}": (below, above)
        for (above, *_), belows in zip(LAYERS, LAYERS[1:], strict=False)
        for below in belows
    },
    "layers: side by side": ("helm_ext.files", "helm_ext.parsing"),
    "formats": ("helm_ext.formats.innodata.schema", "helm_ext.formats.ultraeval.rows"),
    "formats: the base": ("helm_ext.formats.request_states.labels", "helm_ext.formats.imported.row"),
    "fast": ("helm_ext.planning.run_specs", "helm_ext.fast.display"),
    "parsing": ("helm_ext.parsing.reader", "numpy"),
    "light": ("helm_ext.formats.registry", "pydantic"),
    "circles": ("helm_ext.planning.pending", "helm_ext.planning.run_specs"),
}
"""Contract (and which part of it) to the import that breaks it: a module, and what it imports."""


def lint(folder: Path) -> str:
    """Return what `lint-imports` says of the sources in a folder."""
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "lint-imports"),
            "--no-cache",
            "--config",
            str(REPOSITORY / "pyproject.toml"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Contracts: " in said, said
    return re.sub(r"\s+", " ", said)


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> str:
    """What is said when every contract is broken."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(SOURCES, folder / "helm_ext", ignore=shutil.ignore_patterns("__pycache__"))
    for module, imported in BROKEN.values():
        path = folder.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        path.write_text(f"{path.read_text()}\nimport {imported}\n")
    return lint(folder)


def test_the_contracts_hold():
    said = lint(SOURCES.parent)
    assert " 0 broken." in said, said


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_contract_is_seen(broken, what):
    module, imported = BROKEN[what]
    name = re.sub(r"\s+", " ", CONTRACTS[what.split(":")[0]]["name"])
    assert f"{name} BROKEN" in broken
    section = broken.split("Broken contracts")[1].split(f"{name} ---")[1]
    # Of circles only the room is said, and one import of each that would have to go.
    expected = f"- {module} -> {imported} " if what != "circles" else f"allowed in {module.rpartition('.')[0]}. "
    assert expected in section, section


def test_every_contract_is_broken_above():
    assert {what.split(":")[0] for what in BROKEN} == CONTRACTS.keys()


def test_every_name_at_the_root_is_in_a_layer():
    names = {path.stem for path in SOURCES.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert {f"helm_ext.{name}" for name in names if not name.startswith("_")} == {n for layer in LAYERS for n in layer}
    assert len([name for name in names if not name.startswith("_")]) <= 17


def test_the_readme_has_a_question_for_every_room():
    table = (REPOSITORY / "README.md").read_text().split("| question | room in `src/helm_ext/` |")[1].split("\n\n")[0]
    named = re.findall(r"\| `([^`]+)`[^|]*\|$", table, re.MULTILINE)
    rooms = {f"helm_ext.{name.split('/')[0].removesuffix('.py')}" for name in named}
    assert rooms == {name for layer in LAYERS for name in layer}
    for name in named:
        assert (SOURCES / name.replace("NAME", "innodata")).exists(), name


def test_every_format_is_in_the_contract():
    packages = {path.parent.name for path in (SOURCES / "formats").glob("*/__init__.py")}
    assert packages == {name for layer in CONTRACTS["formats"]["layers"] for name in layer.split(" | ")}


def test_parsing_imports_the_standard_library_alone():
    for path in (SOURCES / "parsing").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names or name.startswith("helm_ext.parsing"), (
                    path,
                    name,
                )


def test_no_circle_of_modules():
    """Packages' own modules (`__init__`) included, and imports inside functions; those for type checkers are none."""
    import grimp

    graph = grimp.build_graph("helm_ext", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()


def test_no_format_is_named_outside_its_package():
    """A format is told from another by what its object says."""
    names = "|".join(re.findall(r'^    "(\w+)": ', (SOURCES / "formats" / "registry.py").read_text(), re.MULTILINE))
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        if not (path.is_relative_to(SOURCES / "formats") and len(path.relative_to(SOURCES).parts) > 2)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(rf'(==|!=|\bin)\s*[\[({{]?\s*["\']({names})["\']', line)
    ]
    assert found == []
