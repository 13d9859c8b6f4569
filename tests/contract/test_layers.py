"""The rooms of `src/helm_ext`: what `lint-imports`, which `make lint` runs, does not say of them."""

import ast
import graphlib
import re
import sys
from pathlib import Path

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
            known = [
                name.startswith("helm_ext.parsing") or name.split(".")[0] in sys.stdlib_module_names for name in names
            ]
            assert all(known), (path, names)


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
