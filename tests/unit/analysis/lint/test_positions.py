"""Right options that stand nearly always in one place."""

import pytest
from lint_rows import find, row, write

from helm_ext import formats
from helm_ext.analysis.lint import lint

NAMES = ("oak", "elm", "fig", "ash")


def choice(number, position, options=4):
    texts = tuple(f"{name} {number}" for name in NAMES[:options])
    return row(f"Tree number {number}?", texts[position], options=texts)


def said(tmp_path, positions, options=4):
    rows = [choice(number, position, options) for number, position in enumerate(positions)]
    path = write(tmp_path / "rows.jsonl", rows, method="multiple_choice_joint")
    return [problem.message for problem in lint(formats.load(path), str(path)) if problem.code == "gold-position"]


def test_the_scores_of_always_a_and_of_the_most_frequent(tmp_path):
    # 40 rows: A 6, B 24, C 6, D 4
    (message,) = said(tmp_path, [0] * 6 + [1] * 24 + [2] * 6 + [3] * 4)
    assert message == (
        "the right option of 40 rows stands at A 15.0%, B 60.0%, C 15.0%, D 10.0%: always answering A scores 15.0%, "
        "always B, the most frequent, 60.0%; guessing scores 25.0%"
    )


def test_always_a(tmp_path):
    (message,) = said(tmp_path, [0] * 20)
    assert "always answering A scores 100.0%, which is the most frequent; guessing scores 25.0%" in message


@pytest.mark.parametrize("positions", [[0, 1, 2, 3] * 10, [0] * 14 + [1] * 9 + [2] * 9 + [3] * 8, [2] * 4])
def test_what_chance_does_too_is_not_reported(tmp_path, positions):
    assert said(tmp_path, positions) == []


def test_a_few_points_too_many_in_many_rows_are_no_matter(tmp_path):
    # 2,000 rows, A in 28 %: no accident, but nobody gains from it
    positions = [0] * 560 + [1] * 480 + [2] * 480 + [3] * 480
    assert said(tmp_path, positions) == []


def test_letters_as_golds_are_positions(tmp_path):
    rows = [
        row(f"Tree number {n}?\nA. oak\nB. elm\nC. fig\nD. ash", "ABCD"[n % 4] if n > 30 else "C") for n in range(40)
    ]
    assert ("gold-position", None) in find(tmp_path, rows)


def test_train_rows_are_not_counted(tmp_path):
    rows = [choice(number, number % 4) for number in range(40)] + [
        {**choice(number, 0), "split": "train"} for number in range(40, 80)
    ]
    assert find(tmp_path, rows, method="multiple_choice_joint") == []
