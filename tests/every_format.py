"""The same rows in a file of each format, and the arguments of a run entry that name it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import every_eval_ever_records
import inspect_files
import openai_batches
import request_states_files
import table_files

from helm_ext.formats.innodata.hub import pack


class Row(NamedTuple):
    question: str
    gold: str
    said: Any
    more: dict[str, Any] = {}
    """What else the file says of a row, where its format has a place for it."""


def states(rows: list[Row]) -> list[dict[str, Any]]:
    made = [request_states_files.state(row.question, row.gold, split="test", **row.more) for row in rows]
    return [request_states_files.answered(state, row.said) for state, row in zip(made, rows, strict=True)]


def samples(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        inspect_files.sample(n, text=row.said, input=row.question, target=row.gold, metadata=row.more)
        for n, row in enumerate(rows, 1)
    ]


def records(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        every_eval_ever_records.sample(f"r{n}", row.said, float(n % 2), reference=row.gold, metadata=row.more)
        for n, row in enumerate(rows)
    ]


def adapter_spec(folder: Path, rows: list[Row]) -> dict[str, str]:
    spec = {"max_train_instances": 0, "stop_sequences": ["\n"]}
    return {"path": str(request_states_files.write(folder / "f.json", states(rows), spec))}


def table(folder: Path, rows: list[Row]) -> dict[str, str]:
    """An empty cell is an answer."""
    header = ["question", "answer", "output", *rows[0].more]
    path = table_files.write_csv(folder, header, *([*row[:3], *row.more.values()] for row in rows))
    return {"path": path, "output": "output", "empty": "answer"}


def inspect(folder: Path, rows: list[Row]) -> dict[str, str]:
    return {"path": str(inspect_files.write_json(folder, samples(rows)))}


def every_eval_ever(folder: Path, rows: list[Row]) -> dict[str, str]:
    return {"path": str(every_eval_ever_records.write(folder, records(rows)))}


def openai_batch(folder: Path, rows: list[Row], results: int | None = None) -> dict[str, str]:
    """A batch with results of its first rows only, where a number is given."""
    requests = [openai_batches.request(f"r{n}", row.question) for n, row in enumerate(rows)]
    said = [openai_batches.result(f"r{n}", row.said) for n, row in enumerate(rows)][:results]
    named = openai_batches.write_batch(folder, requests, said, {f"r{n}": row.gold for n, row in enumerate(rows)})
    return {**named, "output": str(folder / "out.jsonl")}


def innodata_lines(rows: list[Row]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the records and the replies to them."""
    asked = [
        {"id": f"q{n}", "messages": [{"role": "user", "content": row.question}], "expected": row.gold, **row.more}
        for n, row in enumerate(rows)
    ]
    return asked, [{"id": f"q{n}", "reply": row.said} for n, row in enumerate(rows)]


def innodata(folder: Path, rows: list[Row]) -> dict[str, str]:
    asked, replies = innodata_lines(rows)
    test = openai_batches.write(folder / "records.jsonl", asked)
    path = pack(name="words", test=test, target=folder, train=None, attributes={}).path
    return {"path": str(path), "replies": str(openai_batches.write(folder / "replies.jsonl", replies))}


def ultraeval(folder: Path, rows: list[Row], method: str = "gen", metric: str = "exact_match") -> dict[str, str]:
    """A log; `said` is what the model said, or the list of all outputs."""
    log = folder / f"words_words_{method}"
    log.mkdir()
    lines = [
        {"data": {"question": row.question, "answer": row.gold, "target_scores": {}, **row.more},
         "ground_truth": row.gold, "prompt_inputs": [f"{row.question} "],
         "raw_outputs": row.said if isinstance(row.said, list) else [row.said]}
        for row in rows
    ]  # fmt: skip
    (log / "config.json").write_text(json.dumps({"metric": {"accuracy": {"evaluation": {"type": metric}}}}))
    return {"data": str(openai_batches.write(log / "instance.jsonl", lines))}


RECORDED = {
    write.__name__: write
    for write in (adapter_spec, table, innodata, ultraeval, openai_batch, inspect, every_eval_ever)
}
