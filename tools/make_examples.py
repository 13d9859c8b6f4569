"""Write the example datasets in `adapter_specs/`, and what each recorded one must score.

    python tools/make_examples.py

The output depends on nothing but this code: a test makes the files again and compares the bytes. Questions come from
templates and small simulated worlds, with computed answers; completions come from an imaginary model that is right as
often as its plan says (`example_data/pieces.py`). A second model answered some of the same questions: its files, of the
same names, are in `examples/second_model/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from example_data import choices, lists, passages, reasoning, russian, statements, stems
from example_data.pieces import FIRST, SECOND, Example

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {FIRST: "adapter_specs", SECOND: "examples/second_model"}
SCORES = "tests/data/example_scores.json"

BUILDERS = (
    passages.build,
    choices.build,
    stems.build,
    reasoning.build,
    lists.build,
    statements.build,
    passages.build_small,
    russian.build,
)
BY_TWO_MODELS = (passages.build, choices.build, stems.build, reasoning.build, lists.build)


def render(example: Example) -> str:
    """Return the text of a file: a readable header and one state a line."""
    states = [json.dumps(state, ensure_ascii=False) for state in example.states]
    if example.file_name.endswith(".jsonl"):
        return "".join(f"{line}\n" for line in [json.dumps(example.header, ensure_ascii=False), *states])
    header = json.dumps(example.header, ensure_ascii=False, indent=2).removesuffix("\n}")
    rows = ",\n".join(f"    {state}" for state in states)
    return f'{header},\n  "request_states": [\n{rows}\n  ]\n}}\n'


def render_scores(examples: list[Example]) -> str:
    """Return what a recorded run of each file must report for the split `test`: by model, then by dataset."""
    table: dict[str, dict[str, Any]] = {model: {} for model in FOLDERS}
    for example in examples:
        if example.stats:
            table[example.model][Path(example.file_name).stem] = {
                "main_metric": example.main_metric,
                "rows": example.scored,
                "stats": {name: float(mean) for name, mean in example.stats.items()},
            }
    return json.dumps(table, indent=2) + "\n"


def make_files() -> dict[str, str]:
    """Return the text of every file, by its path in the repository."""
    examples = [*(build() for build in BUILDERS), *(build(SECOND) for build in BY_TWO_MODELS)]
    files = {f"{FOLDERS[example.model]}/{example.file_name}": render(example) for example in examples}
    files[SCORES] = render_scores(examples)
    return files


def main() -> None:
    """Write them."""
    for path, text in make_files().items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))
        print(f"{path}: {len(text.encode('utf-8')):,} bytes")


if __name__ == "__main__":
    main()
