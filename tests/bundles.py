"""Small bundles of conversations for tests."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from helm_ext.formats.innodata.hub import pack


def record(record_id: str, expected: str = "4", **extra: Any) -> dict[str, Any]:
    return {"id": record_id, "messages": [{"role": "user", "content": "2+2?"}], "expected": expected, **extra}


def make(
    folder: Path, test: Iterable[Any] = (), train: Iterable[Any] = (), *, name: str = "demo", **attributes: Any
) -> Path:
    """Pack records, one of which there is if none is given, in a folder of any state."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in (("test", test or [record("a")]), ("train", train)):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sources = {"test": folder / "test.jsonl", "train": folder / "train.jsonl"}
    return pack(name=name, **sources, attributes=attributes, target=folder, replace=True).path
