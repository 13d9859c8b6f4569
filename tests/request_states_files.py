"""Builds files of `adapter_spec` + `request_states` for tests. The data is invented."""

import json
from pathlib import Path
from typing import Any

from helm_ext.errors import DatasetError, Problem, Problems
from helm_ext.formats import request_states
from helm_ext.formats.request_states.header import Options, read_header
from helm_ext.formats.request_states.instances import order_rows
from helm_ext.formats.request_states.profile import Profile, draw

CORRECT = ["correct"]


def reference(text: str, *, correct: bool = False, **more: Any) -> dict[str, Any]:
    return {"output": {"text": text}, "tags": CORRECT if correct else [], **more}


def state(text: str = "Which metal is liquid?", answer: str = "mercury", **instance: Any) -> dict[str, Any]:
    """A short-answer row; keyword arguments are keys of the instance."""
    return {"instance": {"input": {"text": text}, "references": [reference(answer, correct=True)], **instance}}


def choice(text: str, options: list[str], correct: int = 0, **instance: Any) -> dict[str, Any]:
    references = [reference(option, correct=index == correct) for index, option in enumerate(options)]
    return {"instance": {"input": {"text": text}, "references": references, **instance}}


def answered(row: dict[str, Any], text: str, **result: Any) -> dict[str, Any]:
    """The row with a recorded completion."""
    return {**row, "request": {"result": {"success": True, "completions": [{"text": text}], **result}}}


def split_rows(count: int, make: Any = state, train: int = 0) -> list[dict[str, Any]]:
    """`train` train rows, the rest test rows, all different."""
    return [
        make(
            f"What is {number} plus {number}?",
            str(2 * number),
            id=f"n{number}",
            split="train" if number < train else "test",
        )
        for number in range(count)
    ]


def write(path: Path, states: list[Any], spec: dict[str, Any] | None = None, **top: Any) -> Path:
    """Write one object, indented; a JSON Lines file where the name says so."""
    spec = {"max_train_instances": 0} if spec is None else spec
    if ".jsonl" in path.name:
        path.write_text("".join(json.dumps(line) + "\n" for line in [{"adapter_spec": spec, **top}, *states]))
    else:
        path.write_text(json.dumps({"adapter_spec": spec, "request_states": states, **top}, indent=1))
    return path


def problems(path: Path, **options: Any) -> list[Problem]:
    return request_states.check(path, **options)[0]


def codes(path: Path, severity: str | None = None, **options: Any) -> list[str]:
    return [problem.code for problem in problems(path, **options) if severity in (None, problem.severity)]


def errors(path: Path, **options: Any) -> list[str]:
    """The texts of all errors, without the file's name; the same from `check` and `load`."""
    found = [problem for problem in problems(path, **options) if problem.severity == "error"]
    assert [problem for problem in raised(path, **options) if problem.severity == "error"] == found
    return [str(problem).replace(f"{path}:", "", 1) for problem in found]


def raised(path: Path, **options: Any) -> tuple[Problem, ...]:
    """The problems that `load` raises, none if it does not raise."""
    try:
        request_states.load(path, **options)
    except DatasetError as error:
        return error.problems
    return ()


def draw_order(rows, seed):
    """Return rows in the order in which demonstrations are drawn."""
    profile = Profile(read_header({"adapter_spec": {}}, Options(seed=seed), Problems()), is_checked=False)
    for row in rows:
        profile.drawn += draw(row, str(seed))
    return [rows[ordinal] for ordinal in order_rows(profile, lambda ordinals: [rows[ordinal] for ordinal in ordinals])]
