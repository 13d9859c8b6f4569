"""Two deterministic workloads, and the files of each that the systems read.

W1: four-option multiple choice, questions of about 300 characters, options of about 20.
W2: generative question answering, passages of about 600 characters, one-word answers.
Half of the answers are right; 5 demonstrations; every row has a request time of its own, as real recordings do.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WORDS = (  # noqa: SIM905 - words read better than a list of strings
    "amber basin cedar delta ember fjord grove harbor island jasper kernel lagoon meadow nectar orchid pebble quartz "
    "ripple summit timber upland valley willow yonder zephyr anchor bridge canyon desert engine forest garden hollow"
).split()
DEMONSTRATIONS = 5
LETTERS = "ABCD"
METRICS = {
    "W1": ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"],
    "W2": ["exact_match", "quasi_exact_match", "f1_score"],
}
ADAPTER = {
    "W1": {
        "method": "multiple_choice_joint",
        "instructions": "Answer with the letter of one option.\n",
        "input_prefix": "Question: ",
        "input_suffix": "",
        "reference_prefix": "\nA. ",
        "reference_suffix": "",
        "output_prefix": "\nAnswer: ",
        "output_suffix": "\n",
        "max_tokens": 1,
    },
    "W2": {
        "method": "generation",
        "instructions": "Answer with one word.\n",
        "input_prefix": "Passage: ",
        "input_suffix": "\n",
        "output_prefix": "Answer: ",
        "output_suffix": "\n",
        "max_tokens": 5,
    },
}
COMMON = {"max_train_instances": DEMONSTRATIONS, "temperature": 0.0, "stop_sequences": ["\n"], "num_outputs": 1}


@dataclass(frozen=True)
class Row:
    """One question. `answer` is what the model said, `options[right]` what is right."""

    number: int
    text: str
    options: tuple[str, ...]
    right: int
    answer: str
    request_time: float

    @property
    def gold(self) -> str:
        return self.options[self.right]


def make_rows(workload: str, count: int) -> list[Row]:
    """Return `count` rows after the demonstrations; the first rows are the same for every count."""
    return [_make_row(workload, number) for number in range(count + DEMONSTRATIONS)]


def known_accuracy(workload: str, rows: list[Row]) -> float:
    """Return the share of right answers among the rows after the demonstrations: what exact match must come to."""
    evaluated = rows[DEMONSTRATIONS:]
    return sum(row.answer == target(workload, row) for row in evaluated) / len(evaluated)


def _make_row(workload: str, number: int) -> Row:
    rng = random.Random(f"{workload}-{number}")
    length = 300 if workload == "W1" else 600
    text = f"[#{number}] "
    while len(text) < length:
        text += rng.choice(WORDS) + rng.choice([" ", " ", " ", ", ", ". "])
    right = rng.randrange(4) if workload == "W1" else 0
    if workload == "W1":
        options = tuple(" ".join(rng.choices(WORDS, k=3)) for _ in range(4))
        while len(set(options)) < len(options):  # once in ten thousand rows
            options = tuple(" ".join(rng.choices(WORDS, k=3)) for _ in range(4))
        answer = LETTERS[right if rng.random() < 0.5 else (right + 1) % 4]
    else:
        options = (rng.choice(WORDS),)
        text += "\nQuestion: Which word is meant?"
        answer = options[0] if rng.random() < 0.5 else rng.choice(WORDS)
    return Row(number, text, options, right, answer, round(0.2 + rng.random(), 9))


def target(workload: str, row: Row) -> str:
    """Return what the model should say: the letter of the right option, or the word."""
    return LETTERS[row.right] if workload == "W1" else row.gold


def render_head(workload: str, demonstrations: list[Row]) -> str:
    """Render what stands before each question: the instructions and the answered demonstrations."""
    blocks = [render(workload, row, with_answer=True) for row in demonstrations]
    return f"{ADAPTER[workload]['instructions']}\n" + "\n".join(blocks) + "\n"


def render(workload: str, row: Row, *, with_answer: bool) -> str:
    """Render one block of the prompt, as HELM's adapters do."""
    adapter = ADAPTER[workload]
    text = f"{adapter['input_prefix']}{row.text}{adapter['input_suffix']}"
    if workload == "W1":
        text += "".join(f"\n{label}. {option}" for label, option in zip(LETTERS, row.options, strict=True))
    prefix = str(adapter["output_prefix"])
    return text + (f"{prefix}{target(workload, row)}\n" if with_answer else prefix.rstrip())


def write_recorded(path: Path, workload: str, rows: list[Row]) -> None:
    """Write the rows as `adapter_spec` JSON Lines with recorded completions and the prompts that were sent."""
    demonstrations, evaluated = rows[:DEMONSTRATIONS], rows[DEMONSTRATIONS:]
    head = render_head(workload, demonstrations)
    spec = {**ADAPTER[workload], **COMMON, "decoding_parameters": {"temperature": 0.0}}
    spec.pop("temperature")
    spec.pop("num_outputs")
    with path.open("w", encoding="utf-8") as file:
        scoring = {"metrics": METRICS[workload], "main_metric": "exact_match"}
        file.write(json.dumps({"adapter_spec": spec, "scoring": scoring}) + "\n")
        for row in evaluated:
            completion = {"text": f" {row.answer}", "logprob": -0.5, "tokens": [{"text": row.answer, "logprob": -0.5}]}
            state = {
                "instance": {
                    "id": f"id{row.number}",
                    "split": "test",
                    "input": {"text": row.text},
                    "references": [
                        {"output": {"text": option}, "tags": ["correct"] if index == row.right else []}
                        for index, option in enumerate(row.options)
                    ],
                },
                "request": {
                    "prompt": head + render(workload, row, with_answer=False),
                    "temperature": 0.0,
                    "max_tokens": spec["max_tokens"],
                    "result": {
                        "success": True,
                        "cached": False,
                        "completions": [completion],
                        "request_time": row.request_time,
                        "request_datetime": 1_700_000_000 + row.number,
                    },
                },
            }
            file.write(json.dumps(state) + "\n")


def write_plain(path: Path, rows: list[Row]) -> None:
    """Write the rows one JSON object a line, for stock HELM."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({**vars(row), "gold": row.gold}) + "\n")
