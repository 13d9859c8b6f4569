"""What tests of `helm-ext judge` share: the command, and the runs with judgements that it leaves."""

import json
from pathlib import Path

import commands


def run(*arguments: object, code: int = 0) -> str:
    """Run the command, and return all that it said. `code`: 0, or that of typer's refusals; 1 for any error of ours."""
    done = commands.run(*arguments, code=None)
    assert min(done.code, 1) == min(code, 1), done
    return done.stdout + done.stderr


def find_run(suite: str = "score", number: int | None = None) -> Path:
    """Return the only run of a suite; with a number, one of them in the order of time."""
    found = sorted(Path("benchmark_output/runs", suite).glob("*:*"), key=lambda path: path.stat().st_mtime)
    assert number is not None or len(found) == 1, found
    return found[number or 0]


def read_judgements(folder: Path) -> dict[str, list[dict]]:
    """Return what was said of each row, by the row's id."""
    states = json.loads((folder / "scenario_state.json").read_text())["request_states"]
    return {one["instance"]["id"]: one["instance"]["extra_data"]["helm_ext"].get("judgements", []) for one in states}
