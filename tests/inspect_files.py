"""Small logs for tests, written as inspect_ai writes them, with what a test is about changed."""

import json
import zipfile
from pathlib import Path
from typing import Any

import zstandard

from helm_ext.formats import get_format
from helm_ext.formats.imported.row import Opened, Row

ZSTANDARD = 93


def sample(id: Any = 1, epoch: int = 1, text: str = "Anda", value: Any = "C", **changes: Any) -> dict[str, Any]:
    made = {
        "id": id,
        "epoch": epoch,
        "input": f"Which river runs through town {id}?",
        "target": "Anda",
        "messages": [],
        "output": {
            "model": "mockllm/model",
            "choices": [{"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}],
            "completion": text,
        },
        "scores": {"match": {"value": value, "history": []}},
        "metadata": {},
        "store": {"kept": [1, {"a": None}]},
        "events": [{"event": "info", "data": {"note": '} ] " \n'}}],
        "attachments": {},
    }
    return {**made, **changes}


def header(**changes: Any) -> dict[str, Any]:
    made = {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "rivers",
            "model": "mockllm/model",
            "dataset": {"name": "rivers"},
            "config": {},
            "packages": {"inspect_ai": "0.3.285"},
        },
        "plan": {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": {}},
        "results": {"scores": [score("match", accuracy=1.0)]},
        "stats": {},
    }
    return {**made, **changes}


def score(name: str, scorer: str | None = None, reducer: str | None = None, **metrics: float) -> dict[str, Any]:
    values = {metric: {"name": metric, "value": value, "params": {}} for metric, value in metrics.items()}
    return {"name": name, "scorer": scorer or name, "reducer": reducer, "metrics": values}


def with_eval(**changes: Any) -> dict[str, Any]:
    """Return a header with other values in its `eval`."""
    made = header()
    return {**made, "eval": {**made["eval"], **changes}}


def with_config(**changes: Any) -> dict[str, Any]:
    return with_eval(config=changes)


def write_json(folder: Path, samples: list[Any], head: dict[str, Any] | None = None, **layout: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps({**(head or header()), "samples": samples}, **{"indent": 2, **layout}), "utf-8")
    return path


def write_eval(folder: Path, samples: list[Any], head: dict[str, Any] | None = None, name: str = "log.eval") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(header()))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("header.json", json.dumps(head or header()))
    return path


def write_zstandard(path: Path, members: dict[str, bytes], frames: int = 1) -> Path:
    """Write a ZIP whose members are compressed by method 93, in so many frames each; zipfile writes the frame around."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            size = len(data) // frames + 1
            packed = b"".join(zstandard.compress(data[at : at + size]) for at in range(0, len(data), size))
            archive.writestr(name, packed)
            info = archive.getinfo(name)
            info.compress_type, info.file_size, info.CRC = ZSTANDARD, len(data), zipfile.crc32(data)
    return path


def open_log(path: Path, **arguments: Any) -> Opened:
    return get_format("inspect").open(path=str(path), **arguments)


def read_rows(path: Path) -> list[Row]:
    return list(open_log(path).rows())


def read_row(folder: Path, samples: list[Any], head: dict[str, Any] | None = None) -> Row:
    (row,) = read_rows(write_json(folder, samples, head))
    return row
