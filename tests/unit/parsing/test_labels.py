"""Which option a completion means: a table of hand-made cases, by kind."""

import time

import pytest

from helm_ext.parsing import cut_at_next_question, read_choice, read_label, read_labels
from helm_ext.parsing.labels import HEAD, TAIL

CITIES = {"A": "London", "B": "Paris", "C": "Rome", "D": "Berlin"}
THIRTY = {str(i): f"text {i}" for i in range(1, 31)}
ROMAN = {"i": "one", "ii": "two", "iii": "three", "iv": "four"}
STEMS = {"甲": "北京", "乙": "上海", "丙": "广州", "丁": "深圳"}
CYRILLIC = {"а": "Москва", "б": "Париж", "в": "Рим"}
PRONOUN = {"I": "x1", "J": "x2"}
BOTH_CASES = {"a": "low", "A": "high"}
PREFIXES = {"A": "p", "AA": "q", "AB": "r"}
BRACKETED = {"(A)": "p", "(B)": "q"}
CIRCLED = {"①": "p", "②": "q", "③": "s"}
YES_NO = {"Yes": "it is", "No": "it is not"}
NUMBERS = {"A": "3", "B": "4", "C": "5", "D": "A and C"}
SWAPPED = {"A": "B", "B": "A"}
ARABIC = {"أ": "نعم", "ب": "لا", "هـ": "ربما"}
KANA = {"ア": "犬", "イ": "猫"}
SIGNS = {"A": "3", "B": "-3"}
MINUS_FIRST = {"A": "-3", "B": "3"}
UNSIGNED = {"A": "3", "B": "5"}
MARKED = {"A": "5", "B": "5%", "C": "$5", "D": "(5)"}
IN_BRACKETS = {"A": "[1]", "B": "1", "C": "{1}"}
BIOLOGY = {"A": "E. coli", "E": "yeast", "B": "A dog"}

CASES = [
    (" b", CITIES, "B"), ("B. text", CITIES, "B"), ("The answer is (B).", CITIES, "B"), ("Paris", CITIES, "B"),
    ("paris.", CITIES, "B"), ("The correct answer is B) Paris", CITIES, "B"), ("B: Paris", CITIES, "B"),
    ("B - Paris", CITIES, "B"), ("$\\boxed{\\text{B}}$", CITIES, "B"), ("Final answer: **(B)**", CITIES, "B"),
    ("**Final Answer:** B", CITIES, "B"), ("A is wrong. So the answer is B.", CITIES, "B"),
    ("The answer is A. Wait. The answer is B.", CITIES, "B"), ("Option B is the best answer", CITIES, "B"),
    ("B, because it is", CITIES, "B"), ("B because it is", CITIES, "B"),
    ("The answer is B because of this.", CITIES, "B"), ("I would choose B.", CITIES, "B"),
    ("<think>The answer is A</think>B", CITIES, "B"), ("Ｂ", CITIES, "B"), ("（B）", CITIES, "B"), ("B）", CITIES, "B"),
    ("B Paris", CITIES, "B"), ("B.Paris", CITIES, "B"), ("The answer is Paris.", CITIES, "B"),
    ("The answer is: Paris", CITIES, "B"), ("Let me think.\n\nB", CITIES, "B"),
    ("B\n\nExplanation: A is wrong.", CITIES, "B"), ("B\n\nThe answer is B.", CITIES, "B"),
    ("The answer is option B: Paris", CITIES, "B"), ("the correct option is therefore **B**.", CITIES, "B"),
    ("The answer is B, not A.", CITIES, "B"), ("The answer is not A, the answer is B", CITIES, "B"),
    ("Answer: A\nWait.\nAnswer: B", CITIES, "B"), ("The answer is Paris, the capital of France.", CITIES, "B"),
    ("The answer is B: Paris, the capital.", CITIES, "B"), ("B) Paris is the capital", CITIES, "B"),
    ("(B) Paris", CITIES, "B"), ("**B) Paris**", CITIES, "B"), ("B.\nParis", CITIES, "B"),
    ("Options B and C are both plausible. The correct answer is C", CITIES, "C"),
    ("The best option is clearly D because", CITIES, "D"), ("I'd go with (C)", CITIES, "C"),
    ("Die Antwort ist B.", CITIES, "B"), ("La réponse est B", CITIES, "B"),
    ("B is the right one, A isn't.", CITIES, "B"), ("A is incorrect, B is correct.", CITIES, "B"),
    ("\\boxed{B. Paris}", CITIES, "B"), ("\\boxed{Paris}", CITIES, "B"), ("\\(B\\)", CITIES, "B"), ("$B$", CITIES, "B"),
    ("<b>B</b>", CITIES, "B"), ("<B>", CITIES, "B"), ("`B`", CITIES, "B"),
    ("The answer is B. It is the capital.", CITIES, "B"), ("Answer:\n\nB", CITIES, "B"), ("### Answer\nB", CITIES, "B"),
    ("The answer is **B**, as explained", CITIES, "B"), ("- B", CITIES, "B"), ("B!", CITIES, "B"), ("B?", CITIES, "B"),
    ("Sure! The answer is B) Paris.", CITIES, "B"), ("B—Paris", CITIES, "B"), ("B —  because", CITIES, "B"),
    ("Answer B", CITIES, "B"), ("answer is b", CITIES, "B"), ("it's b.", CITIES, "B"), ("a.", CITIES, "A"),
    ("The answer is a.", CITIES, "A"), ("选项B正确", CITIES, "B"), ("B选项", CITIES, "B"), ("答案是B选项", CITIES, "B"),
    ("B是正确答案。", CITIES, "B"), ("故选B", CITIES, "B"), ("(B", CITIES, "B"), ("{B}", CITIES, "B"), ("[B]", CITIES, "B"),
    ("【B】", CITIES, "B"), ("“B”", CITIES, "B"), ("B]", CITIES, "B"),
    ("The two options are A and B. Answer: B", CITIES, "B"), ("A. London\nB. Paris\nThe answer is B.", CITIES, "B"),
    ("A) London is big.\nB) Paris.\nThe answer is (C)", CITIES, "C"),
    ("The correct answer is:\n\n**B) Paris**", CITIES, "B"), ("ANSWER: B", CITIES, "B"), ("Answer:B", CITIES, "B"),
    ("whether or not\nAnswer: B", CITIES, "B"), ("No, the answer is B", CITIES, "B"),
    ("The answer is (B) Paris and not (A) London.", CITIES, "B"), ("The answer is most likely B", CITIES, "B"),
    ("B.\n", CITIES, "B"), ("So the final answer is \\boxed{\\textbf{(C)}}.", CITIES, "C"),
    ("<think>maybe A\n</think>\n\nThe answer is B", CITIES, "B"), ("A good question…", CITIES, None),
    ("Because", CITIES, None), ("a dog", CITIES, None), ("I think so", CITIES, None), ("(A) or (B)", CITIES, None),
    ("not B", CITIES, None), ("The answer is not B", CITIES, None), ("B. London", CITIES, None),
    ("The capital is Paris.", CITIES, "B"), ("A-level", CITIES, None), ("B's", CITIES, None), ("B+", CITIES, None),
    ("(B) is wrong", CITIES, None), ("A. London\nB. Paris", CITIES, None), ("A. London B. Paris", CITIES, None),
    ("The answer is A or B", CITIES, None), ("The answer is B. The answer is not B", CITIES, None),
    ("If the answer is B, then", CITIES, None), ("The wrong answer is B.", CITIES, None), ("A, B, C", CITIES, None),
    ("The answer is a dog", CITIES, None), ("B\nThe answer is C", CITIES, None),
    ("The capital is big. Therefore, B.", CITIES, "B"), ("The answer is Paris or London", CITIES, None),
    ("Paris or London", CITIES, None), ("B\nA\nC", CITIES, None), ("We pick a dog", CITIES, None),
    ("The answer could be B", CITIES, None), ("Hypothetically, if the answer is B, we lose.", CITIES, None),
    ("\u200b", CITIES, None), ("", CITIES, None), ("   \n", CITIES, None), ("E", CITIES, None),
    ("The answer is E.", CITIES, None), ("The answer is vitamin C", CITIES, None),
    ("If B is correct, A is wrong", CITIES, None), ("A or B is correct", CITIES, None), ("\\boxed{A, B}", CITIES, None),
    ("The answer is B. London", CITIES, None), ("B,C", CITIES, None), ("BC", CITIES, None), ("B C", CITIES, None),
    ("A B C D", CITIES, None), ("AB", CITIES, None), ("C++ is a language", CITIES, None), ("C# ", CITIES, None),
    ("A* search", CITIES, None), ("D'accord", CITIES, None), ("B-cells", CITIES, None), ("A.I. is", CITIES, None),
    ("B.C. dates", CITIES, None), ("C'est la vie", CITIES, None), ("the answer is a city", CITIES, None),
    ("选择题", CITIES, None), ("A股市场", CITIES, None), ("The adoption: B is new.", CITIES, None),
    ("Neither A nor B", CITIES, None), ("None of the above", CITIES, None), ("all of them", CITIES, None),
    ("B. Paris\n\nQuestion: x\nA. 1\nB. 2\nAnswer: C", CITIES, "B"),
    ("Option A: London\nOption B: Paris", CITIES, None), ("The answer: B is wrong, so C.", CITIES, "C"),
    ("The answer is A, B, and C.", CITIES, None), ("Looking at it, option C. That is all", CITIES, None),
    ("<think>B</think>", CITIES, None), ("答案是乙。", STEMS, "乙"), ("答案：乙", STEMS, "乙"), ("乙、上海", STEMS, "乙"),
    ("选乙", STEMS, "乙"), ("正确答案是乙。因为", STEMS, "乙"), ("答案是上海。", STEMS, "乙"), ("乙方", STEMS, None), ("乙上海", STEMS, "乙"),
    ("答案是乙上海", STEMS, "乙"), ("乙北京", STEMS, None), ("The answer is B? Not sure", CITIES, None),
    ("B? Not sure", CITIES, None), ("甲状腺", STEMS, None), ("答案不是乙", STEMS, None), ("甲和乙", STEMS, None),
    ("答案是甲或乙", STEMS, None), ("Ответ: б", CYRILLIC, "б"), ("Б", CYRILLIC, "б"), ("б) Париж", CYRILLIC, "б"),
    ("Правильный ответ — б.", CYRILLIC, "б"), ("а потом", CYRILLIC, None), ("в Риме", CYRILLIC, None),
    ("ответ: в Риме", CYRILLIC, None), ("1", THIRTY, "1"), ("10", THIRTY, "10"), ("The answer is 10.", THIRTY, "10"),
    ("10)", THIRTY, "10"), ("１２", THIRTY, "12"), ("1.5", THIRTY, None), ("The answer is 42.", THIRTY, None),
    ("The answer is 3 apples", THIRTY, None), ("1. First, think\n2. Then", THIRTY, None), ("-1", THIRTY, None),
    ("3%", THIRTY, None), ("1/2", THIRTY, None), ("1:30", THIRTY, None), ("The answer is 1,000", THIRTY, None),
    ("answer: 3.14", THIRTY, None), ("ii", ROMAN, "ii"), ("II", ROMAN, "ii"), ("(iii)", ROMAN, "iii"),
    ("The answer is iv.", ROMAN, "iv"), ("I", ROMAN, "i"), ("Ⅲ", ROMAN, "iii"), ("i think", ROMAN, None),
    ("I think so", ROMAN, None), ("I", PRONOUN, "I"), ("I.", PRONOUN, "I"), ("The answer is I.", PRONOUN, "I"),
    ("I am sure. The answer is J.", PRONOUN, "J"), ("I think…", PRONOUN, None), ("I, for one, disagree", PRONOUN, None),
    ("I'd say so", PRONOUN, None), ("a", BOTH_CASES, "a"), ("A", BOTH_CASES, "A"), ("(a)", BOTH_CASES, "a"),
    ("The answer is A.", BOTH_CASES, "A"), ("AA", PREFIXES, "AA"), ("aa", PREFIXES, "AA"), ("A", PREFIXES, "A"),
    ("The answer is AB", PREFIXES, "AB"), ("AAA", PREFIXES, None), ("A", BRACKETED, "(A)"), ("(B)", BRACKETED, "(B)"),
    ("the answer is (B).", BRACKETED, "(B)"), ("b)", BRACKETED, "(B)"), ("②", CIRCLED, "②"), ("2", CIRCLED, "②"),
    ("答案是②", CIRCLED, "②"), ("No.", YES_NO, "No"), ("The answer is no.", YES_NO, "No"), ("No, it isn't.", YES_NO, "No"),
    ("yes", YES_NO, "Yes"), ("No one knows", YES_NO, None), ("Yes and no", YES_NO, None), ("4", NUMBERS, "B"),
    ("The answer is 4.", NUMBERS, "B"), ("A and C", NUMBERS, "D"), ("The answer is A and C.", NUMBERS, "D"),
    ("The answer is 4.5", NUMBERS, None), ("B", SWAPPED, "B"), ("The answer is B.", SWAPPED, "B"),
    ("B. A", SWAPPED, "B"), ("b", SWAPPED, "B"), ("A. A", SWAPPED, None), ("هـ", ARABIC, "هـ"), ("ه", ARABIC, "هـ"),
    ("الإجابة: ب", ARABIC, "ب"), ("الإجابة الصحيحة هي ب.", ARABIC, "ب"), ("ア", KANA, "ア"), ("ｱ", KANA, "ア"),
    ("正解はイです。", KANA, "イ"), ("答え：ア", KANA, "ア"), ("The answer is E. coli.", BIOLOGY, "A"), ("E. coli", BIOLOGY, "A"),
    ("The answer is A dog.", BIOLOGY, "B"), ("A dog", BIOLOGY, "B"),
    # A sign, a currency mark or a bracket may be part of an option.
    ("The answer is -3.", SIGNS, "B"), ("The answer is −3", SIGNS, "B"), ("The answer is –3", SIGNS, "B"),
    ("The answer is 3", SIGNS, "A"), ("- 3", SIGNS, None), ("- 3.", SIGNS, None), ("The answer is - 3", SIGNS, None),
    ("The answer is - 3.", SIGNS, None), ("The answer is - 3.5", SIGNS, None), ("A - 3", SIGNS, "A"),
    ("A. -3", SIGNS, None), ("B. -3", SIGNS, "B"), ("A: -3", MINUS_FIRST, "A"), ("B) 3.", MINUS_FIRST, "B"),
    ("-3", UNSIGNED, None), ("**-3**", UNSIGNED, None), ("+3", UNSIGNED, None), ("The answer is -3", UNSIGNED, None),
    ("Answer: -3", UNSIGNED, None), ("#### -3", UNSIGNED, None), ("\\boxed{-3}", UNSIGNED, None),
    ("- 3", UNSIGNED, "A"), ("Answer: - 3", UNSIGNED, "A"), ("$5$", UNSIGNED, "B"), ("The answer is $5", UNSIGNED, "B"),
    ("- 1", {"1": "3", "2": "-1"}, None), ("The answer is -x", {"A": "x", "B": "-x"}, "B"),
    ("The answer is $5", MARKED, "C"), ("The answer is (5)", MARKED, "D"), ("5%", MARKED, "B"),
    ("The answer is 5%.", MARKED, "B"), ("**5**", MARKED, "A"), ("**$5**", MARKED, "C"), ("**(5)**.", MARKED, "D"),
    ("The answer is -$5", MARKED, None), ("\\boxed{5}", MARKED, "A"), ("\\boxed{(5)}", MARKED, "D"),
    ("A. $5", MARKED, None), ("C. $5", MARKED, "C"), ("The answer is [1]", IN_BRACKETS, "A"),
    ("`[1]`", IN_BRACKETS, "A"), ("The answer is {1}", IN_BRACKETS, "C"), ("The answer is 1", IN_BRACKETS, "B"),
    ("(1)", IN_BRACKETS, "B"), ("\\boxed{1}", IN_BRACKETS, "B"), ("\\boxed{\\text{1}}", IN_BRACKETS, "B"),
    # Tokens that say that the completion ends.
    ("B</s>", CITIES, "B"), ("B<|im_end|>", CITIES, "B"), ("B<|endoftext|>", CITIES, "B"), ("B<eos>", CITIES, "B"),
    ("B<|eot_id|>", CITIES, "B"), ("B<｜end▁of▁sentence｜>", CITIES, "B"),
    ("The answer is B.<|im_end|>\n<|endoftext|>", CITIES, "B"), ("<think>A</think>B</s>", CITIES, "B"),
    ("</s>", CITIES, None), ("**x</s>**", {"A": "x</s>", "B": "x"}, "A"),
    # Doubt, and what others may think.
    ("I doubt the answer is A", CITIES, None), ("I doubt the answer is A. The answer is B.", CITIES, "B"),
    ("There is no doubt that the answer is B.", CITIES, "B"), ("Without a doubt the answer is B", CITIES, "B"),
    ("It cannot be that the answer is A", CITIES, None), ("It may be that the answer is A", CITIES, None),
    ("It is unlikely that the answer is A.", CITIES, None), ("I don't think the answer is A.", CITIES, None),
    ("I don't think B is correct.", CITIES, None), ("I doubt that B is correct", CITIES, None),
    ("I believe B is correct.", CITIES, "B"), ("You might think the answer is A, but it is B.", CITIES, "B"),
    ("You might think A is correct.", CITIES, None), ("Some people say the answer is A.", CITIES, None),
    ("I would guess the answer is B.", CITIES, "B"), ("One can conclude that the answer is B", CITIES, "B"),
    ("The correct answer is not A but B.", CITIES, "B"),
    ("The answer is Likely.", {"Likely": "1", "Unlikely": "2"}, "Likely"),
]  # fmt: skip


@pytest.mark.parametrize(("completion", "labels", "label"), CASES)
def test_label(completion, labels, label):
    assert read_label(completion, labels) == label


@pytest.mark.parametrize("position", [HEAD // 2, HEAD + TAIL, 500_000])
def test_a_statement_at_the_end_of_a_long_completion_counts(position):
    assert read_label("so it goes. " * (position // 12) + "The answer is C.", CITIES) == "C"


def test_what_stands_in_the_middle_of_a_very_long_completion_is_not_seen():
    filler = "so it goes. " * 2_000
    assert read_label(f"{filler}The answer is C. {filler}", CITIES) is None


ODD_OPTIONS = {
    "no labels, no label": ({}, {"A": None, "The answer is A.": None}),
    "a blank label is never read": ({"": "nothing", "A": "something"}, {"x": None, "A.": "A"}),
    "labels come back as they are spelled": ({" A": "x", " B": "y"}, {"b": " B"}),
    "with their brackets too": ({"A)": "x", "B)": "y"}, {"(b).": "B)"}),
    "labels that decoration alone tells apart need their exact spelling": (
        {"A": "x", "(A)": "y"}, {"A": "A", "(A)": "(A)", "[A]": None},
    ),
    "the same text twice is the first label": ({"A": "other", "B": "same", "C": "same"}, {"same": "B", "Same.": "B"}),
    "texts that case alone tells apart need their exact spelling": (
        {"A": "Polish", "B": "polish"}, {"polish": "B", "POLISH": None, "The answer is Polish.": None},
    ),
    "punctuation is read exactly": ({"A": "?", "B": "!"}, {"!": "B", "The answer is B.": "B"}),
    "empty texts match nothing": ({"A": "", "B": "x"}, {"The answer is": None, "...": None}),
    "letters that lengthen in lower case do not shift positions": (CITIES, {"İİİİ. The answer is B.": "B"}),
    "labels that were those of another question": ({"A": "Paris", "B": "London"}, {"Paris": "A"}),
    "and are those of this one": ({"A": "London", "B": "Paris"}, {"Paris": "B"}),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "labels_of"), ODD_OPTIONS.values(), ids=ODD_OPTIONS)
def test_odd_options(labels, labels_of):
    assert {text: read_label(text, labels) for text in labels_of} == labels_of


@pytest.mark.parametrize(("completion", "pattern", "label"), [
    ("I choose C, not B", r"choose (\w)", "C"), ("I choose C", r"\b[A-D]\b", "C"), ("choice=(b)!", r"choice=(.*)", "B"),
    ("choice=Rome", r"choice=(.*)", "C"),
    ("  B  ", r"^B$", "B"),  # HELM strips before the pattern is applied
    ("A B", r"[A-D]", "A"),  # the first match
    ("The answer is B.", r"choice=(.*)", None),  # the pattern overrides
    ("E", r"(A)|E", None),  # a group that took no part
    ("B", None, "B"), ("B.", "", "B"),
])  # fmt: skip
def test_an_output_mapping_pattern_overrides(completion, pattern, label):
    assert read_choice(completion, CITIES, pattern) == [label]


HOSTILE = [
    "(", "A ", "answer is ", "B, ", "\n", "a\n", "A is correct. ", "\\boxed{", "<b>", "</think>", "<think>", "option ", " ",
    "答案是", "e\u0301\u0316", "answer is not ", "İ", "1. ", "**", "A or ", "A, ", "A and ", "AC", "answers are A, ",
    "Paris, ", "Question:\n", "\nQuestion: x\n", "\n\nx?\n", "?\nA. ", "\n\n", "A ❌ ", "A. ✅\n", "✅", "A: 1%, ", "A: ",
    "1% ", "[", "A (", "1,", "1", "1 m/", "5 m·", "1×10^", "not A, ",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("labels", [CITIES, THIRTY, {"A": "5 m", "B": "7 m"}], ids=["four", "thirty", "lengths"])
@pytest.mark.parametrize("piece", HOSTILE)
def test_many_characters_of_anything_are_read_at_once(piece, labels):
    began = time.process_time()
    text = piece * (100_000 // len(piece)) + "x"
    read_label(text, labels)
    read_labels(text, labels)
    cut_at_next_question(text, ("\n\nQuestion: ", "###"))
    assert time.process_time() - began < 15  # seconds of this process: what is quadratic takes minutes
