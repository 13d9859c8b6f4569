"""The reference pages that are made when the site is built say what there is."""

import sys
from pathlib import Path

from helm_ext.formats import all_formats
from helm_ext.scoring.registry import get_scores

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from reference_pages import arguments_page, command_page, scores_page  # noqa: E402


def test_every_argument_of_every_format_has_a_row():
    page = "\n".join(arguments_page())
    for format_ in all_formats():
        _, _, section = page.partition(f"## `{format_.name}:` ")
        section = section.partition("\n## ")[0]
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        assert rows == format_.argument_names()
        assert (ROOT / "docs" / f"{format_.name}.md").is_file()  # the section links to it


def test_every_score_has_a_row():
    page = "\n".join(scores_page())
    for output_format in ("string", "list"):
        for name in get_scores(output_format):
            assert f"| `{name}` |" in page
    named, _, refused = page.partition("## Not to be had by name")
    assert "| `pass` |" in refused
    assert "| `pass` |" not in named


def test_every_command_has_its_options():
    lines = list(command_page())
    assert {"## helm-ext validate", "## helm-ext hub upload", "## helm-ext convert"} <= set(lines)
    export = lines[lines.index("## helm-ext export") :]
    export = export[: next(i for i, line in enumerate(export) if i and line.startswith("## "))]
    (to,) = [line for line in export if line.startswith("| `--to`")]
    assert to.endswith("Required. |")
    assert any(line.startswith("| `RUN\\|FOLDER...` |") for line in export)
