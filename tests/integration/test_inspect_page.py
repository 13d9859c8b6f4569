"""The commands of docs/inspect.md print what the page says."""

import shutil
import sys
from pathlib import Path

import pytest
from tiny_model import offline_environment

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "tools"))
import console_blocks  # noqa: E402


@pytest.mark.slow
def test_the_page_is_true(tmp_path):
    shutil.copytree(ROOT / "tests" / "data" / "inspect", tmp_path / "inspect")
    page = console_blocks.read_page((ROOT / "docs" / "inspect.md").read_text(encoding="utf-8"))
    assert page.commands
    differences = console_blocks.run_page(page, tmp_path, offline_environment())
    assert not differences, "\n".join(differences)
