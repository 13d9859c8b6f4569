"""The commands of the tutorials and how-to pages print what the pages say."""

import shutil
import sys
from pathlib import Path

import pytest
from openai_server import serve_process
from tiny_model import build_tiny_model, offline_environment

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for folder in ("tutorials", "how-to") for path in (ROOT / "docs" / folder).glob("*.md"))
PAGES = [path for path in PAGES if "```console\n" in path.read_text(encoding="utf-8")]

sys.path.insert(0, str(ROOT / "tools"))
import console_blocks  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly(
        "docs/tutorials",
        "docs/how-to",
        "src/helm_ext/cli",
        "src/helm_ext/formats/format.py",
        "src/helm_ext/formats/registry.py",
        "tools/console_blocks.py",
    ),  # fmt: skip
]


def test_every_tutorial_shows_what_its_commands_print():
    """The notebook's page has Python alone: tests/unit/test_notebooks.py runs it."""
    tutorials = set((ROOT / "docs/tutorials").glob("*.md")) - {ROOT / "docs/tutorials/notebook.md"}
    assert {path for path in PAGES if path.parent.name == "tutorials"} == tutorials


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_is_true(path, tmp_path):
    if path.name == "live_model.md":
        build_tiny_model(tmp_path / "my-model", chat_template=True)
    if path.name == "judged_scores.md":
        shutil.copytree(ROOT / "examples/judged", tmp_path / "judged")
    with serve_process("--model", "my-org/my-model", "--generates", "--vllm") as url:
        text = path.read_text(encoding="utf-8").replace("http://localhost:8000", url)
        page = console_blocks.read_page(text)
        assert page.commands
        differences = console_blocks.run_page(page, tmp_path, offline_environment())
    assert not differences, "\n".join(differences)
