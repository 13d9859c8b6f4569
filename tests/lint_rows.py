"""Datasets of a few rows, and what lint says of them."""

import json

from helm_ext import formats
from helm_ext.analysis.lint import lint


def row(text, *golds, options=(), split="test", messages=None, **more):
    """One row: free text with its accepted answers, or `options` with the right ones."""
    texts = options or golds
    references = [{"output": {"text": one}, "tags": ["correct"] if one in golds else []} for one in texts]
    shown = {"messages": messages} if messages else {"text": text}
    return {"input": shown, "references": references, "split": split, **more}


def write(path, rows, **spec):
    """Write JSON Lines: the first row is on line 2."""
    head = {"adapter_spec": {"max_train_instances": 0, **spec}}
    lines = [{"instance": {"id": f"q{number}", **one}} for number, one in enumerate(rows, 2)]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (head, *lines)))
    return path


def find(tmp_path, rows, **spec):
    """Return (code, line) of what lint finds."""
    path = write(tmp_path / "rows.jsonl", rows, **spec)
    return [(str(problem.code), problem.location.line) for problem in lint(formats.load(path), str(path))]
