"""The table of formats: one line brings a format; another distribution brings one by an entry point."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helm_ext.errors import RunEntryError
from helm_ext.formats import detect, registry

FOURTH = Path(__file__).parents[2] / "fourth_format" / "src"
ROWS = "question,answer,reply\nCapital of France?,Paris,Paris\nCapital of Italy?,Rome,Milan\n"


@pytest.fixture
def fresh():
    """The table is made anew, and what was imported for it is forgotten afterwards."""
    before = set(sys.modules)

    def clear():
        for made in (registry._entries, registry._load, registry._warn):
            made.cache_clear()

    clear()
    yield
    clear()
    for name in set(sys.modules) - before:
        if name.startswith("qa_csv_format"):
            del sys.modules[name]


def register(folder: Path, distribution: str, **formats: str) -> None:
    """Make an installed distribution that brings formats."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, target in formats.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{registry.GROUP}]", *lines, ""]))


def test_the_fourth_format_is_small():
    lines = [line for path in FOURTH.rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) < 100
    assert sum(1 for line in lines if line.strip()) < 80


def test_the_page_shows_the_fourth_format():
    """docs/how-to/add_a_format.md holds its files, so that whoever copies them has what these tests run."""
    page = (FOURTH.parents[2] / "docs" / "how-to" / "add_a_format.md").read_text(encoding="utf-8")
    files = [path for path in FOURTH.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) == 5
    for path in files:
        assert f'title="{path.relative_to(FOURTH)}"\n{path.read_text(encoding="utf-8")}```' in page, path


def test_one_line_in_the_table(fresh, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOURTH)
    monkeypatch.setitem(registry._OURS, "qa_csv", "qa_csv_format.format:FORMAT")
    (tmp_path / "capitals.qa").write_text(ROWS)
    found = detect(tmp_path / "capitals.qa")
    assert found.name == "qa_csv"
    evalset = found.load(path=str(tmp_path / "capitals.qa"))
    assert [instance.references[0].output.text for instance in evalset.instances] == ["Paris", "Rome"]


def test_an_entry_point_of_another_distribution(fresh, monkeypatch):
    monkeypatch.syspath_prepend(FOURTH)
    assert registry.format_names() == [*registry._OURS, "qa_csv"]
    assert registry.get_format("qa_csv").title == "CSV of questions and answers"
    assert not registry.is_ours("qa_csv")


BROKEN = {
    "no_module": "no_such_module:FORMAT",
    "no_object": "json:FORMAT",
    "no_format": "json:loads",
    "other_name": "qa_csv_format.format:FORMAT",
    "half": "half_a_format:FORMAT",
}
HALF = """
from helm_ext.formats import Format
class Half(Format):
    name = "half"
    title = dataset_title = expects = usage = "half"
    claims = load = lambda *arguments: None
FORMAT = Half()
"""


@pytest.mark.parametrize(("name", "reason"), [
    ("no_module", "no_such_module:FORMAT: ModuleNotFoundError: No module named 'no_such_module'"),
    ("no_object", "json:FORMAT: AttributeError: module 'json' has no attribute 'FORMAT'"),
    ("no_format", "json:loads is no helm_ext.formats.Format"),
    ("half", "half_a_format:FORMAT says nothing of arguments, scenario_class"),
    ("other_name", "qa_csv_format.format:FORMAT calls itself 'qa_csv'"),
])  # fmt: skip
def test_a_broken_one_is_one_warning_and_an_error_where_it_is_used(fresh, monkeypatch, tmp_path, caplog, name, reason):
    register(tmp_path, "broken-formats", **{name: BROKEN[name]})
    (tmp_path / "half_a_format.py").write_text(HALF)
    monkeypatch.syspath_prepend(FOURTH)
    monkeypatch.syspath_prepend(tmp_path)
    wanted = [*registry._OURS, "qa_csv"]
    for _ in range(2):
        assert [format_.name for format_ in registry.all_formats()] == wanted
    message = f"the format '{name}' of the distribution 'broken-formats' cannot be loaded: {reason}"
    assert [record.getMessage() for record in caplog.records] == [message]
    with pytest.raises(RunEntryError) as caught:
        registry.get_format(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(("distribution", "name", "owner", "title"), [
    ("thief", "innodata", "helm-ext", "Innodata Dataset Hub bundle"),
    ("late-csv", "qa_csv", "helm-qa-csv", "CSV of questions and answers"),  # the first by the alphabet
])  # fmt: skip
def test_a_name_belongs_to_one(fresh, monkeypatch, tmp_path, caplog, distribution, name, owner, title):
    register(tmp_path, distribution, **{name: "another:FORMAT"})
    monkeypatch.syspath_prepend(FOURTH)
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.get_format(name).title == title
    assert [record.getMessage() for record in caplog.records] == [
        f"the format {name!r} of the distribution {distribution!r} is refused: {owner!r} has a format of that name already"
    ]


def test_one_distribution_that_is_found_twice_is_one(fresh, monkeypatch, tmp_path, caplog):
    register(tmp_path, "helm-qa-csv", qa_csv="qa_csv_format.format:FORMAT")
    monkeypatch.syspath_prepend(FOURTH)
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.get_format("qa_csv").name == "qa_csv"
    assert not caplog.records


def test_help_lists_the_arguments_of_every_format():
    from helm_ext.cli import app
    from helm_ext.formats import all_formats

    for command in ("validate", "preview", "score", "convert"):
        page = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
        for format_ in all_formats():
            section = page.split(f"--arg of {format_.name} ")[1].split("--arg of ")[0]
            listed = [
                line.split()[0] for line in section.splitlines()[1:] if line[:5].strip() and line.startswith("    ")
            ]
            assert listed == format_.argument_names()
