"""helm-ext as a user starts it, on the README's first dataset and on files that are wrong."""

import re
from pathlib import Path

import pytest
from processes import command, load

pytestmark = pytest.mark.slow

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """The README's own example, where the README says to put it."""
    (example,) = re.findall(r"```json\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "adapter_specs").mkdir()
    (tmp_path / "adapter_specs" / "capitals.json").write_text(example, encoding="utf-8")
    return tmp_path


def readme_commands(program):
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    return [line.split() for block in blocks for line in block.splitlines() if line.startswith(f"{program} ")]


def test_the_readmes_commands_in_order(folder):
    validate, preview, score = readme_commands("helm-ext")[:3]
    assert "0 errors" in command(folder, *validate).stdout
    shown = command(folder, *preview).stdout
    assert "Answer with one word.\nQuestion: What is the capital of France?\nAnswer:\n──── end of prompt" in shown
    assert "stop_sequences=['\\n']" in shown
    assert "expected: 'Paris'" in shown
    scored = command(folder, *score, fresh=True)
    assert re.search(r"num_instances +│ +2 ", scored.stdout)
    assert "nltk_data" not in scored.stderr  # what HELM prints of itself
    assert "Looking in path" not in scored.stderr
    recorded, live = readme_commands("helm-run")
    command(folder, *recorded, fresh=True)
    command(folder, *live)
    (summarize,) = readme_commands("helm-summarize")
    command(folder, *summarize)
    tables = load(folder / "benchmark_output/runs/demo/groups/all_scenarios.json")
    (main,) = [table for table in tables if table["title"] == "Main Metric"]
    values = {row[0]["value"]: [cell.get("value") for cell in row[1:]] for row in main["rows"]}
    assert 0.5 in values["recorded/my-model"]
