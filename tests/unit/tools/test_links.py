"""Links between the texts of the repository lead somewhere. Those inside docs/ are checked by `make docs`."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [ROOT / "README.md", ROOT / "adapter_specs/README.md", *sorted((ROOT / "examples").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings: lower case, spaces as hyphens, no other punctuation."""
    headings = HEADING.findall(CODE.sub("", text))
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def broken_links(path: Path, text: str) -> list[str]:
    broken = []
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name) if name else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_noticed():
    text = "[a](docs/speed.md) [b](docs/nothing.md) [c](docs/speed.md#measuring) [d](docs/speed.md#nothing) [e](#no) [f](https://x)"
    assert broken_links(ROOT / "README.md", text) == ["docs/nothing.md", "docs/speed.md#nothing", "#no"]
