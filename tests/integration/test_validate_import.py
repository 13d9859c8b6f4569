"""`helm-ext validate` of a small file is run in every commit hook: it imports what that file needs, and no more."""

import json
import sys
from pathlib import Path

import pytest
from lint_rows import row, write
from processes import command

ROOT = Path(__file__).parents[2]
PPL = ROOT / "examples" / "ultraeval" / "datasets" / "workshop" / "config" / "workshop_ppl.json"

PROGRAM = """
import json, sys
from helm_ext.cli import main
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
print(json.dumps(sorted(sys.modules)))
"""

HEAVY = {"datasets", "nltk", "pandas", "pyarrow", "rich", "sacrebleu", "scipy", "torch"}
OTHERS = {
    "helm.benchmark.metrics.metric",
    "helm_ext.analysis.suite",
    "helm_ext.cli.score",
    "helm_ext.formats.innodata.hub",
    "helm_ext.parsing.phrases",
}
"""What other commands need, and completions that are more than a label."""

pytestmark = pytest.mark.slow


def modules_of(folder: Path, path: Path) -> set[str]:
    """The modules that the command has imported when it ends, of a file that it linted."""
    said = command(folder, sys.executable, "-c", PROGRAM, "validate", str(path), "--format", "json").stdout
    reports, modules = said.rstrip().rsplit("\n", 1)
    (report,) = json.loads(reports)
    assert report["linted"] is True
    assert not [problem for problem in report["problems"] if problem["severity"] == "error"]
    return set(json.loads(modules))


def questions(number):
    return [row(f"Who wrote the book with the number {one}?", f"author {one}") for one in range(number)]


def rows_of_format_1(folder):
    write(folder / "rows.jsonl", questions(40))
    return folder / "rows.jsonl"


def table(folder):
    lines = [f"Who wrote the book with the number {one}?,author {one},author {one % 7}" for one in range(40)]
    (folder / "rows.csv").write_text("\n".join(["question,answer,output", *lines, ""]))
    return folder / "rows.csv"


@pytest.mark.parametrize("make", [rows_of_format_1, table, lambda _: PPL], ids=["format 1", "table", "ultraeval"])
def test_a_small_file_needs_little(make, tmp_path):
    assert not (HEAVY | OTHERS) & modules_of(tmp_path, make(tmp_path))


def test_a_larger_one_is_compared_by_minhash(tmp_path):
    write(tmp_path / "rows.jsonl", questions(301))
    assert "numpy" in modules_of(tmp_path, tmp_path / "rows.jsonl")
