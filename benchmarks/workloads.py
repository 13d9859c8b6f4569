"""Three deterministic workloads, and the files of each that the systems read.

W1: four-option multiple choice, questions of about 300 characters, options of about 20.
W2: generative question answering, passages of about 600 characters, one-word answers.
W3: what recorded files really hold, mixed: 40 % rows with options and answers of every kind, 40 % free answers of 5 to
200 characters, 20 % of 800 to 4,000; 15 % are Chinese. Recorded rows only: nobody is asked.
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
    "W3": ["exact_match", "quasi_exact_match", "normalized_exact_match", "f1_score"],
}
RECORDED_ONLY = frozenset({"W3"})
"""Workloads that a file of recorded completions has, and no client."""
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
    "W3": {
        "method": "generation",
        "instructions": "Answer the question.\n",
        "input_prefix": "Question: ",
        "input_suffix": "\n",
        "output_prefix": "Answer: ",
        "output_suffix": "\n",
        "max_tokens": 2000,
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
    is_right: bool
    request_time: float

    @property
    def gold(self) -> str:
        return self.options[self.right]


def make_rows(workload: str, count: int) -> list[Row]:
    """Return `count` rows after the demonstrations; the first rows are the same for every count."""
    return [_make_row(workload, number) for number in range(count + DEMONSTRATIONS)]


def known_accuracy(rows: list[Row]) -> float:
    """Return the share of right answers among the rows after the demonstrations: what exact match must come to."""
    evaluated = rows[DEMONSTRATIONS:]
    return sum(row.is_right for row in evaluated) / len(evaluated)


def _make_row(workload: str, number: int) -> Row:
    if workload == "W3":
        return _make_mixed_row(number)
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
        is_right = answer == LETTERS[right]
    else:
        options = (rng.choice(WORDS),)
        text += "\nQuestion: Which word is meant?"
        answer = options[0] if rng.random() < 0.5 else rng.choice(WORDS)
        is_right = answer == options[0]
    return Row(number, text, options, right, answer, is_right, round(0.2 + rng.random(), 9))


HAN = "山水火木金土日月星河江湖海云雨雪风雷花草树林石田路桥门窗书笔"
SHARE_OF_OPTIONS, SHARE_OF_SHORT, SHARE_OF_CHINESE = 0.4, 0.8, 0.15
"""Of W3; what is left over has long answers."""


def _make_mixed_row(number: int) -> Row:
    rng = random.Random(f"W3-{number}")
    is_chinese, kind = rng.random() < SHARE_OF_CHINESE, rng.random()
    text = f"[#{number}] {_prose(rng, rng.randrange(100, 600), is_chinese=is_chinese)}"
    is_right = rng.random() < 0.5
    if kind < SHARE_OF_OPTIONS:
        options = tuple(f"{name} {_prose(rng, 20, is_chinese=is_chinese)}" for name in rng.sample(WORDS, 4))
        right = rng.randrange(4)
        chosen = right if is_right else (right + 1) % 4
        answer = _choose_words(rng, LETTERS[chosen], options[chosen])
        is_right = is_right and (len(answer) < 200 or answer.endswith(f"{LETTERS[chosen]}."))
    else:
        gold = f"{rng.randrange(2000)} {rng.choice(WORDS)}" if rng.random() < 0.5 else rng.choice(WORDS)
        options, right = (_prose(rng, 8, is_chinese=True) if is_chinese else gold,), 0
        size = rng.randrange(5, 200) if kind < SHARE_OF_SHORT else rng.randrange(800, 4000)
        is_right = is_right and size < 200
        answer = options[0] if is_right else _prose(rng, size, is_chinese=is_chinese)
    return Row(number, text, options, right, answer, is_right, round(0.2 + rng.random(), 9))


def _choose_words(rng: random.Random, label: str, option: str) -> str:
    """Return an answer that chooses an option: most are short; some reason first, and a few never choose."""
    way = rng.random()
    if way < 0.5:
        return label
    if way < 0.9:
        return rng.choice(["({0})", "{0}.", "{0}. {1}", "The answer is {0}.", "**{0}**", "Answer: {0}"]).format(
            label, option
        )
    reasons = _prose(rng, rng.randrange(300, 1500), is_chinese=False)
    return f"{reasons}\nSo the answer is {label}." if way < 0.97 else reasons


def _prose(rng: random.Random, size: int, *, is_chinese: bool) -> str:
    """Return sentences, with numbers here and there."""
    pieces: list[str] = []
    while size > 0:
        piece = "".join(rng.choices(HAN, k=2)) if is_chinese else rng.choice(WORDS) + " "
        if rng.random() < 0.08:
            piece = f"{rng.randrange(10_000)}{'' if is_chinese else ' '}"
        if rng.random() < 0.1:
            piece = piece.rstrip() + ("，" if is_chinese else ", ")
        elif rng.random() < 0.1:
            piece = piece.rstrip() + ("。" if is_chinese else ". ")
        pieces.append(piece)
        size -= len(piece)
    return "".join(pieces).strip()


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
    head = "" if workload in RECORDED_ONLY else render_head(workload, demonstrations)
    spec = {**ADAPTER[workload], **COMMON, "decoding_parameters": {"temperature": 0.0}}
    spec.pop("temperature")
    spec.pop("num_outputs")
    with path.open("w", encoding="utf-8") as file:
        scoring = {"metrics": METRICS[workload], "main_metric": "exact_match"}
        file.write(json.dumps({"adapter_spec": spec, "scoring": scoring}) + "\n")
        for row in evaluated:
            logprob = -row.request_time if workload == "W3" else -0.5
            completion = {
                "text": f" {row.answer}",
                "logprob": logprob,
                "tokens": [{"text": row.answer, "logprob": logprob}],
            }
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
            if workload == "W3" and len(row.options) > 1:
                state["output_mapping"] = dict(zip(LETTERS, row.options, strict=True))
            file.write(json.dumps(state) + "\n")


def write_plain(path: Path, rows: list[Row]) -> None:
    """Write the rows one JSON object a line, for stock HELM."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({**vars(row), "gold": row.gold}) + "\n")
