"""Where a completion goes on with another question."""

from __future__ import annotations

import pytest

from helm_ext.parsing import cut_at_next_question, find_question_starts, read_label

CITIES = {"A": "London", "B": "Paris", "C": "Rome", "D": "Berlin"}


@pytest.mark.parametrize(
    ("instance_prefix", "input_prefix", "stops", "starts"),
    [
        ("\n\n", "Question: ", [], ("\n\nQuestion: ",)), ("", "Q", [], ("Q",)), ("\n\n", "", [], ()),
        ("\n\n", "- ", [], ()),  # no word
        ("###", "\n", [], ()), ("\n", "问题：", [], ("\n问题：",)), ("", "", ["\n", "\n\n", " "], ()),
        ("", "", ["\n", "###", "\nQ:"], ("###", "\nQ:")), ("\n", "Q: ", ["\nQ: "], ("\nQ: ",)),
    ],
)  # fmt: skip
def test_what_the_next_question_begins_with(instance_prefix, input_prefix, stops, starts):
    assert find_question_starts(instance_prefix, input_prefix, stops) == starts


NEXT = [
    "Question: why?", "Question 2: why?", "question: why?", "Q: why?", "Q2. why?", "QUESTION: why?", "**Question:** why?",
    "### Question", "# Question 3", "## Next question", "Problem: why?", "Exercise 3. Why?", "Example: why?", "Question",
    "Next question: why?", "Human: why?", "User: why?", "Student: why?", "Instruction: why?", "Input: why?",
    "The following are multiple choice questions.", "The following is a multiple-choice question.", "<|im_start|>user",
    "<|user|>", "[INST] why?", "<start_of_turn>user", "问题：", "题目：", "第2题：", "質問：", "문제: ", "Frage: warum?", "Pregunta: ¿?",
    "Pergunta: ?", "Domanda: ?", "Вопрос: ?", "Soru: ?", "Câu hỏi: ?", "Vraag: ?",
]  # fmt: skip


@pytest.mark.parametrize("line", NEXT)
def test_another_question_is_not_read(line):
    assert read_label(f"B\n\n{line}\nAnswer: A", CITIES) == "B"
    assert read_label(f"I cannot say.\n{line}\nAnswer: A", CITIES) is None


@pytest.mark.parametrize("line", NEXT)
def test_a_completion_that_begins_with_another_question_answers_nothing(line):
    assert read_label(f"\n\n{line}\nAnswer: A", CITIES) is None


@pytest.mark.parametrize(
    "text",
    [
        "Question: What is it?\nAnswer: B",  # the question is repeated
        "Here it is:\nQuestion: What is it?\nAnswer: B",  # it is announced
        "Here it is：\nQuestion: What is it?\nAnswer: B", "Let us see.\nQuestions like this are easy.\nAnswer: B",
        "Let us see.\nThe question: what is it?\nAnswer: B", "Let us see.\nQ is the charge.\nAnswer: B",
        "Let us see.\nUsers differ.\nAnswer: B",
    ],
)  # fmt: skip
def test_what_is_no_other_question_is_read_on(text):
    assert read_label(text, CITIES) == "B"


def test_a_question_with_options_ends_what_is_read_where_an_answer_stands_before_it():
    question = "What is next?\nA. x\nB. y\nAnswer: A"
    assert read_label(f"B\n\n{question}", CITIES) == "B"
    assert read_label(f"Let me repeat it.\n\n{question}", CITIES) == "A"
    assert read_label(f"B\n{question}", CITIES) is None  # no blank line: two answers


@pytest.mark.parametrize(
    ("text", "starts", "expected"),
    [
        ("B\nQ: 2+2?", ["\nQ:"], "B"),
        ("\nQ: 2+2?", ["\nQ:"], ""),  # on a line of its own, from the beginning
        ("Q: 2+2?", ["Q:"], "Q: 2+2?"),  # the question is repeated
        (" Q: 2+2?", ["Q:"], " Q: 2+2?"), ("B Q: 2+2?", ["Q:"], "B "), ("B ### Q: 2", ["Q:", "###"], "B "),
        ("B ### Q: 2", ["###", "Q:"], "B "), ("B\n\nQ: x\n\nQ: y", ["\n\nQ: "], "B"), ("Q: x Q: y", ["Q: "], "Q: x "),
        ("\n\nB", ["\n\nQ"], "\n\nB"), ("B", ["Q:"], "B"), ("B", [], "B"), ("", ["Q:"], ""),
    ],
)  # fmt: skip
def test_where_a_completion_is_cut(text, starts, expected):
    assert cut_at_next_question(text, starts) == expected
