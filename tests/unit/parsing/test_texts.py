"""Completions as texts: what was thought, where the next question begins, extraction, cleaning, lists. Worked by hand."""

import time

import pytest

import helm_ext.parsing
from helm_ext.parsing import (
    clean,
    compile_pattern,
    cut_at_next_question,
    cut_at_stops,
    extract,
    find_question_starts,
    find_segments,
    names_thinking,
    read_label,
    split_segments,
    split_thinking,
)
from helm_ext.parsing.texts import apply_pattern


@pytest.mark.parametrize(("text", "pattern", "expected"), [
    ("So the answer is: 12", r"answer is: (\d+)", "12"),
    ("answer is: 12, no, answer is: 13", r"answer is: (\d+)", "13"),  # the last match
    ("a1 b2", r"[a-z]\d", "b2"),  # no group: the whole match
    ("a1 b2", r"([a-z])(\d)", "b"),  # the first group only
    ("nothing", r"\d+", None),
    ("x", r"(y)?x", ""),  # a group that took no part
    ("", r".*", None),  # a match of no character says nothing
    ("Paris.", r"(?:answer is )?(.*?)\.?$", "Paris"),  # the last match is empty, at the end of the text
    ("I say 7", r"(?=(\d))", "7"),  # of no character, and yet it captures one
    ("Answer: 5. Answer:", r"Answer:(.*?)(?:\.|$)", ""),  # the model began to answer again and stopped
    ("First. Second.", r"^(.*?\.)", "First."),
])  # fmt: skip
def test_extract(text, pattern, expected):
    assert extract(text, pattern) == expected


@pytest.mark.parametrize(("text", "pattern", "expected"), [
    ("a1 b2", r"[a-z]\d", "a1"),  # the first match, unlike `extract`
    ("a1 b2", r"([a-z])(\d)", "a"), ("nothing", r"\d+", ""), ("x", r"(y)?x", ""),
])  # fmt: skip
def test_apply_pattern(text, pattern, expected):
    assert apply_pattern(text, pattern) == expected


def test_clean_extracts_then_strips_then_lowers():
    text = "Reasoning. Answer:  The GARDEN  "
    assert clean(text) == text
    assert clean(text, pattern="Answer:(.*)") == "  The GARDEN  "
    assert clean(text, pattern="Answer:(.*)", strip=True) == "The GARDEN"
    assert clean(text, pattern="Answer:(.*)", strip=True, lower=True) == "the garden"
    assert clean(text, pattern="answer:(.*)", lower=True) is None  # the pattern sees the text before `lower`
    assert clean(" A ", lower=True) == " a "


@pytest.mark.parametrize(("pattern", "message"), [
    ("(", "not a regular expression: missing ), unterminated subpattern at character 1: ("),
    ("a[", "not a regular expression: unterminated character set at character 2: a["),
    ("(" * 100, "not a regular expression: missing ), unterminated subpattern at character 100: " + "(" * 79 + "…"),
    ("a{1,99999999999999999999}", "not a regular expression: too deeply nested or too large: a{1,99999999999999999999}"),
])  # fmt: skip
def test_a_bad_pattern_is_explained(pattern, message):
    with pytest.raises(ValueError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == message
    with pytest.raises(ValueError):
        extract("text", pattern)


@pytest.mark.parametrize(("text", "segments"), [
    ("bedroom", ["bedroom"]), (" a ; b;c ", ["a", "b", "c"]),
    ("a; b;", ["a", "b"]),  # a separator at the end starts no segment
    ("a;;;", ["a"]),
    ("a;;b", ["a", "", "b"]),  # an empty segment elsewhere shifts what follows
    (";a", ["", "a"]), ("", []), (" ; ", []), ("a, b", ["a, b"]), ("a\n;b", ["a", "b"]),
    ("a; b.", ["a", "b"]),  # a final full stop is no part of a segment
    ("a.; b .", ["a", "b"]),
    ("北京；上海。", ["北京；上海"]),  # noqa: RUF001
    ("3.5; v1.", ["3.5", "v1"]), ("wait...", ["wait..."]), ("a; .", ["a"]),
])  # fmt: skip
def test_split_segments(text, segments):
    assert split_segments(text) == segments


@pytest.mark.parametrize(("text", "separator", "segments"), [
    ("a\nb\n\n", "\n", ["a", "b"]), ("a, b;c", ",", ["a", "b;c"]), ("a <sep> b<sep>", "<sep>", ["a", "b"]),
])  # fmt: skip
def test_another_separator(text, separator, segments):
    assert split_segments(text, separator) == segments


@pytest.mark.parametrize(("text", "pattern", "segments"), [
    ("red, Blue. green", r"\w+", ["red", "Blue", "green"]),  # no group: the whole match
    ("<a> <b.>", r"<(.*?)>", ["a", "b"]),
    ("[Rome|city] [Nile | river]", r"\[(.*?)\|(.*?)\]", ["Rome\x1fcity", "Nile\x1friver"]),  # a tuple
    ("(|a)(a|)", r"\((.*?)\|(.*?)\)", ["\x00\x1fa", "a\x1f\x00"]),  # an empty part is a part
    ("nothing", r"\d", []), ("x", r"(y)?x", [""]),
])  # fmt: skip
def test_find_segments(text, pattern, segments):
    assert find_segments(text, pattern) == segments


@pytest.mark.parametrize(("text", "stops", "kept"), [
    ("Paris <stop> more", ("<stop>",), "Paris "),
    ("a END b STOP c", ("STOP", "END"), "a "),  # the first in the text
    ("<stop>", ("<stop>",), ""), ("Paris", ("<stop>",), "Paris"),
    ("\n\nParis\nQ: next", ("\n",), "\n\nParis"),  # white space counts only behind text
    ("  ", ("\n", " "), "  "),
    ("\n\nQ: next", ("\n\nQ:",), ""),  # one that holds more is found in front, too
    ("Paris", (), "Paris"),
])  # fmt: skip
def test_cut_at_stops(text, stops, kept):
    assert cut_at_stops(text, stops) == kept


def test_public_names():
    assert sorted(helm_ext.parsing.__all__) == helm_ext.parsing.__all__
    assert all(hasattr(helm_ext.parsing, name) for name in helm_ext.parsing.__all__)


@pytest.mark.parametrize("stop", [".", "。", "．"])
def test_a_final_stop_of_any_script_is_no_part_of_a_segment(stop):
    assert split_segments(f"東京{stop} ;大阪{stop}") == ["東京", "大阪"]
    assert split_segments(f"a{stop}b;c{stop * 3};{stop}") == [f"a{stop}b", f"c{stop * 3}"]
    assert find_segments(f"<a {stop}><b>", "<(.*?)>") == ["a", "b"]


# What was thought


HARMONY = "<|channel|>analysis<|message|>Capital?<|end|><|start|>assistant<|channel|>final<|message|>Rome"


@pytest.mark.parametrize(("text", "thought", "said"), [
    ("<think>Rome or Bari?</think>\n\nRome", "Rome or Bari?", "Rome"),
    (" \n<thinking>\nBari\n</thinking>Rome ", "Bari", "Rome "), ("<Think>Bari</Think>Rome", "Bari", "Rome"),
    ("Bari?\n</think>\n\nRome", "Bari?", "Rome"),  # the chat template opened the thought
    ("</think>Rome", "", "Rome"), ("<think></think>Rome", "", "Rome"),
    ("<think>a</think><think>b</think>Rome", "ab", "Rome"), ("<think>a<think>b</think>c</think>Rome", "abc", "Rome"),
    ("<think>Bari?", "Bari?", ""),  # cut off while thinking
    ("<think>a</think>\n<think>Bari?", "a\nBari?", ""), ("Bari?</think> Rome <think>", "Bari?", "Rome <think>"),
    (HARMONY, "Capital?", "Rome"), (HARMONY + "<|return|>", "Capital?", "Rome"),
    ("<|start|>assistant" + HARMONY, "Capital?", "Rome"),
    ("Capital?<|end|><|start|>assistant<|channel|>final<|message|>Rome", "Capital?", "Rome"),
    ("<|channel|>final <|constrain|>json<|message|>Rome", "", "Rome"),
    ("<|channel|>analysis<|message|>Capital?", "Capital?", ""), ("Rome", None, "Rome"), ("a < b", None, "a < b"),
    ("Use <think>so</think> for it", None, ""), ("A thought ends with `</think>`.", None, ""),
    ('A thought ends with "</think>".', None, ""), ("<thinker>Rodin</thinker>", None, ""),
])  # fmt: skip
def test_splits(text, thought, said):
    assert split_thinking(text) == (None if thought is None else (thought, said))


@pytest.mark.parametrize("part", ["<think>", "</think>", "<think></think>", "<|channel|>", " ", "<|channel|>final"])
def test_time_grows_with_the_length(part):
    began = time.process_time()
    split_thinking("<think>" + part * 100_000)
    split_thinking(part * 100_000 + "</think>x")
    assert time.process_time() - began < 5


def test_references_that_are_about_such_tags():
    assert names_thinking("write </think> there")
    assert not names_thinking("a <b> thinks")


# Where a completion goes on with another question


CITIES = {"A": "London", "B": "Paris", "C": "Rome", "D": "Berlin"}


@pytest.mark.parametrize(("instance_prefix", "input_prefix", "stops", "starts"), [
    ("\n\n", "Question: ", [], ("\n\nQuestion: ",)), ("", "Q", [], ("Q",)), ("\n\n", "", [], ()),
    ("\n\n", "- ", [], ()),  # no word
    ("###", "\n", [], ()), ("\n", "问题：", [], ("\n问题：",)), ("", "", ["\n", "\n\n", " "], ()),
    ("", "", ["\n", "###", "\nQ:"], ("###", "\nQ:")), ("\n", "Q: ", ["\nQ: "], ("\nQ: ",)),
])  # fmt: skip
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


@pytest.mark.parametrize("text", [
    "Question: What is it?\nAnswer: B",  # the question is repeated
    "Here it is:\nQuestion: What is it?\nAnswer: B",  # it is announced
    "Here it is：\nQuestion: What is it?\nAnswer: B", "Let us see.\nQuestions like this are easy.\nAnswer: B",
    "Let us see.\nThe question: what is it?\nAnswer: B", "Let us see.\nQ is the charge.\nAnswer: B",
    "Let us see.\nUsers differ.\nAnswer: B",
])  # fmt: skip
def test_what_is_no_other_question_is_read_on(text):
    assert read_label(text, CITIES) == "B"


def test_a_question_with_options_ends_what_is_read_where_an_answer_stands_before_it():
    question = "What is next?\nA. x\nB. y\nAnswer: A"
    assert read_label(f"B\n\n{question}", CITIES) == "B"
    assert read_label(f"Let me repeat it.\n\n{question}", CITIES) == "A"
    assert read_label(f"B\n{question}", CITIES) is None  # no blank line: two answers


@pytest.mark.parametrize(("text", "starts", "expected"), [
    ("B\nQ: 2+2?", ["\nQ:"], "B"),
    ("\nQ: 2+2?", ["\nQ:"], ""),  # on a line of its own, from the beginning
    ("Q: 2+2?", ["Q:"], "Q: 2+2?"),  # the question is repeated
    (" Q: 2+2?", ["Q:"], " Q: 2+2?"), ("B Q: 2+2?", ["Q:"], "B "), ("B ### Q: 2", ["Q:", "###"], "B "),
    ("B ### Q: 2", ["###", "Q:"], "B "), ("B\n\nQ: x\n\nQ: y", ["\n\nQ: "], "B"), ("Q: x Q: y", ["Q: "], "Q: x "),
    ("\n\nB", ["\n\nQ"], "\n\nB"), ("B", ["Q:"], "B"), ("B", [], "B"), ("", ["Q:"], ""),
])  # fmt: skip
def test_where_a_completion_is_cut(text, starts, expected):
    assert cut_at_next_question(text, starts) == expected
