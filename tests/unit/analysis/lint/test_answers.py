"""Prompts that hold their answer, and those that do by design."""

import pytest
from lint_rows import find, row

OTHERS = [
    row("Which metal do most church bells consist of besides tin?", "copper"),
    row("Who painted the ceiling of the old town hall?", "Karl Venner"),
    row("What is 12 + 5?", "17"),
]


def lines(tmp_path, rows):
    return [line for code, line in find(tmp_path, rows) if code == "answer-in-prompt"]


@pytest.mark.parametrize(
    "text",
    [
        "Which moon is the largest? Answer: Ganymede",
        "Which moon is the largest? (Answer: Ganymede)",
        "Which moon is the largest? The answer is Ganymede.",
        "Which moon is the largest? Ganymede",
        "Which moon is the largest? (Ganymede)",
        "Hint: Ganymede. Which moon is the largest?",
        "Ganymede. Which moon is the largest?",
        "The largest moon is called Ganymede. Which moon is the largest?",
        "Welcher Mond ist der größte? Antwort: Ganymede",
        "最大的卫星是哪个？答案是Ganymede",
    ],
)
def test_the_answer_stands_in_the_prompt(tmp_path, text):
    rows = [*OTHERS * 7, row(text, "Ganymede")]
    rows = [{**one, "id": str(number)} for number, one in enumerate(rows)]
    assert lines(tmp_path, rows) == [len(OTHERS) * 7 + 2]


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("What is the capital of Luxembourg?", "Luxembourg"),
        ("Is a whale a fish? Answer yes or no.", "yes"),
        ("Is a whale a fish? Answer: yes or no", "yes"),
        ("Tom has 5 apples and eats 2. How many were there?", "5"),
        ("Which is larger, Titan or Ganymede?", "Ganymede"),
        ("Translate into German: Paris", "Paris"),
        ("Question: Who?\nAnswer: Ganymede\n\nQuestion: Which moon is the largest?\nAnswer:", "Ganymede"),
        ("Which moon is it?\nA. Titan\nB. Io\nAnswer:", "A"),
    ],
)
def test_and_here_it_does_by_design(tmp_path, text, gold):
    assert lines(tmp_path, [*OTHERS, row(text, gold)]) == []


def test_options_hold_the_answer(tmp_path):
    rows = [row("Titan. Which moon is it? Titan", "Titan", options=("Titan", "Io"))]
    assert find(tmp_path, rows, method="multiple_choice_joint") == []


def test_passages_hold_the_answer(tmp_path):
    names = ("Venner", "Oldrich", "Tamsin", "Perrault")
    rows = [
        row(f"House {n} was built by {name} for the sake of a view. Who built the house?", name)
        for n, name in enumerate(names)
    ]
    assert lines(tmp_path, rows) == []


def test_numbers_count_after_a_cue_and_at_the_end(tmp_path):
    rows = [row("What is 12 + 5? 17", "17"), row("What is 30 + 5? Answer: 35", "35"), row("What is 17 + 4?", "21")]
    assert lines(tmp_path, rows) == [2, 3]
