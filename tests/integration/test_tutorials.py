"""The commands of the tutorials print what the pages say."""

import sys
from pathlib import Path

import pytest
from tiny_model import build_tiny_model, offline_environment

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted(path.name for path in (ROOT / "docs" / "tutorials").glob("*.md"))

sys.path.insert(0, str(ROOT / "tools"))
import console_blocks  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_page_is_true(name, tmp_path):
    if name == "live_model.md":
        build_tiny_model(tmp_path / "my-model", chat_template=True)
    page = console_blocks.read_page((ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8"))
    assert len(page.commands) > 3
    differences = console_blocks.run_page(page, tmp_path, offline_environment())
    assert not differences, "\n".join(differences)
