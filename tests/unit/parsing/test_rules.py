"""Each rule of answer reading by itself: texts that differ in what the rule looks at."""

import re

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.options import Options, get_label_set, simplify
from helm_ext.parsing.reader import read_options

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}


def rows(text):
    return [phrase.strip() for phrase in re.split(r" \| |\n", text.strip())]


@pytest.mark.parametrize(
    "word",
    rows("""
because it fits | since it fits | due to its size | based on the text | rather than C | instead of C | as it fits
as the answer | for the following reasons | for this reason | which fits | when you look at it | where it fits
given the text | given that it fits | over C. | so the rest is wrong | and not C | but not C | and here is why
and it fits | not C. | although C is close | though C is close | whereas C is not | while C is not | i.e. kolpus
e.g. here | I think | in this case | here. | for sure | only. | indeed | obviously | of course | (see above)
- it fits | — it fits | porque sí | car il convient | weil es passt | perché sì | потому что так
"""),
)
def test_prose_that_may_follow_an_answer(word):
    assert read_label(f"The answer is B {word}", LABELS) == "B"


@pytest.mark.parametrize(
    "words",
    rows("""
good question | as a whole | as an example | as well | as in alphabet | as usual | as for me | for effort
given name | over there we go | so far | and a city | but a city | not insignificant amount | while ago | hereby
fordable | sinceB | whichever way | only child | indeedy | town | is a town
"""),
)
def test_prose_that_may_not(words):
    assert read_label(f"The answer is B {words} there", LABELS) is None


@pytest.mark.parametrize("before", ["not", "never", "definitely not", "clearly not", "also not"])
def test_a_denied_answer(before):
    assert read_label(f"The answer is {before} B.", LABELS) is None
    assert read_label(f"The answer is B. The answer is {before} B.", LABELS) is None
    assert read_label(f"The answer is B. The answer is {before} C.", LABELS) == "B"
    assert read_label(f"The answer is {before} C but B.", LABELS) == "B"


@pytest.mark.parametrize("adjective", [
    *("previous", "prior", "other", "earlier", "former", "old", "initial", "original", "first", "alternative"),
    *("second", "next", "worst", "wrong", "incorrect", "false", "opposite", "common", "popular", "tempting"),
    *("typical", "rejected", "runner-up", "preceding", "second best", "common wrong", "student's", "teacher's"),
])  # fmt: skip
def test_another_answer(adjective):
    assert read_label(f"The {adjective} answer is C.", LABELS) is None
    assert read_label(f"The answer is B. The {adjective} answer is C.", LABELS) == "B"


@pytest.mark.parametrize("owner", ["Your", "His", "Her", "Their", "Another", "The last question's"])
def test_somebody_elses_answer(owner):
    assert read_label(f"{owner} answer is C.", LABELS) is None
    assert read_label(f"The answer is B. {owner} answer is C.", LABELS) == "B"


@pytest.mark.parametrize(
    "mine", ["My", "Our", "The", "The correct", "The right", "The best", "The only", "The final", "The most likely"]
)
def test_the_answer(mine):
    assert read_label(f"{mine} answer is C.", LABELS) == "C"
    assert read_label("So it's clear: the answer is C.", LABELS) == "C"


@pytest.mark.parametrize("condition", [
    "If it rained", "Unless it rains", "Otherwise", "Supposing it rains", "Assuming rain", "At first", "Initially",
    "In a different setting", "In another case", "Under different rules", "For the next question",
    "In the case of rain", "Had it rained", "Were it raining", "Should it rain", "Wenn es regnet", "如果下雨",
])  # fmt: skip
def test_a_condition_before_an_answer(condition):
    assert read_label(f"{condition}, the answer is C.", LABELS) is None
    assert read_label(f"The answer is B. {condition}, the answer is C.", LABELS) == "B"
    assert read_label(f"{condition}, it is wet, so the answer is C.", LABELS) == "C"
    assert read_label(f"{condition}, it would be A, but the answer is C.", LABELS) == "C"


@pytest.mark.parametrize(
    "condition", ["if it rained", "unless it rained", "were it raining", "had it rained", "only when it rains"]
)
def test_a_condition_behind_an_answer(condition):
    assert read_label(f"The answer would be C {condition}.", LABELS) is None
    assert read_label("The answer would be C because it rained.", LABELS) == "C"
    assert read_label("The answer would have been C.", LABELS) is None


@pytest.mark.parametrize("doubt", [
    *("I doubt that", "I don't think", "I do not believe that", "It is unlikely that", "It is impossible that"),
    *("You might think", "Some people say that", "Many believe", "Students often say", "They claim", "One may say"),
    *("It is not true that", "I am not sure whether", "Nobody said that", "I thought", "It is tempting to say"),
    *("I deny that", "It is false that", "It may be that", "It is unclear whether", "It cannot be that"),
])  # fmt: skip
def test_doubt_and_what_others_think(doubt):
    assert read_label(f"{doubt} the answer is C.", LABELS) is None
    assert read_label(f"The answer is B. {doubt} the answer is C.", LABELS) == "B"


@pytest.mark.parametrize("word", [
    *("Sorry,", "Wait,", "Actually,", "Oops,", "Correction:", "On second thought,", "On reflection,", "My mistake:"),
    *("Scratch that,", "Hold on,", "I was wrong,", "Let me reconsider.", "Let me recheck.", "My apologies,"),
    *("I changed my mind,", "Edit:", "Update:", "I misread it,", "Thinking again,", "No,", "I meant:"),
])  # fmt: skip
def test_a_correction_wins(word):
    assert read_label(f"The answer is B. {word} the answer is C.", LABELS) == "C"
    assert read_label(f"B\n\n{word} the answer is C.", LABELS) == "C"
    assert read_label("The answer is B. The answer is C.", LABELS) is None


@pytest.mark.parametrize("words", [
    "I meant", "I mean", "No,", "Wait,", "Actually,", "No wait,", "Rather", "Make it", "Make that", "Scratch that,",
])  # fmt: skip
def test_a_correction_may_be_short(words):
    assert read_label(f"The answer is B. {words} C.", LABELS) == "C"
    assert read_label(f"The answer is B. {words} nothing.", LABELS) == "B"


@pytest.mark.parametrize(("earlier", "later", "label"), [
    ("C would be correct.", "B is correct.", "B"), ("B is correct.", "C would be correct.", "B"),
    ("It is C.", "The answer is B.", "B"), ("The answer is B.", "It is C.", None),
    ("The answer is C.", "So the answer is B.", "B"), ("So the answer is B.", "The answer is C.", None),
    ("So the answer is C.", "So the answer is B.", None), ("So the answer is C.", "The final answer is B.", "B"),
    ("The final answer is B.", "The answer is C.", None), ("The final answer is C.", "The final answer is B.", "B"),
    ("The answer is C.", "#### B", "B"), ("The answer is C.", "\\boxed{B}", "B"), ("C\n", "So the answer is B.", None),
    ("C\n", "Final answer: B", "B"), ("B\n", "The answer is B.", "B"), ("B is correct.", "C is correct.", None),
    ("The answer is B.", "B is wrong.", None), ("B is wrong.", "The answer is B.", "B"),
    ("The answer is B.", "B is wrong. The answer is C.", "C"), ("Let us see.", "\nB", "B"),
    ("The answer is C.", "\nB", None),
])  # fmt: skip
def test_what_weighs_more(earlier, later, label):
    assert read_label(f"{earlier} {later}", LABELS) == label


@pytest.mark.parametrize("verdict", [
    *("is correct", "is right", "is the answer", "is my answer", "is the best choice", "is the correct option"),
    *("must be the answer", "should be correct", "seems correct", "appears to be the correct answer", "fits best"),
    *("makes the most sense", "is what I would choose", "is my final answer", "is clearly correct", "is true"),
    *("is the most appropriate answer", "is correct, because it fits", "is correct because it fits"),
])  # fmt: skip
def test_a_verdict(verdict):
    assert read_label(f"B {verdict}.", LABELS) == "B"
    assert read_label(f"I think that B {verdict}.", LABELS) == "B"
    assert read_label(f"So B {verdict}.", LABELS) == "B"
    assert read_label(f"If B {verdict}, we lose.", LABELS) is None
    assert read_label(f"I doubt that B {verdict}.", LABELS) is None
    assert read_label(f"A or B {verdict}.", LABELS) is None
    assert read_labels(f"A and B {verdict}.", LABELS) == ("A", "B")


@pytest.mark.parametrize("verdict", [
    "is wrong", "is not correct", "isn't right", "is incorrect", "cannot be right", "is false", "is never right",
])  # fmt: skip
def test_a_rejection(verdict):
    assert read_label(f"B {verdict}.", LABELS) is None
    assert read_label(f"The answer is B. B {verdict}.", LABELS) is None
    assert read_label(f"The answer is B. C {verdict}.", LABELS) == "B"


@pytest.mark.parametrize(("text", "label"), [
    ("I choose B.", "B"), ("They choose B.", None), ("Choose B.", "B"), ("We pick B.", "B"), ("Let's go with B.", "B"),
    ("Let us think B.", None), ("I think B.", "B"), ("Think B.", None), ("anything but B", None), ("not A but B", "B"),
    ("A but B", None), ('{"answer": "B"}', "B"), ('{"answers": "B"}', "B"), ('{"my_answer": "B"}', "B"),
    ('{"options": ["A", "B"]}', None), ('{"question": "B"}', None), ("Result: B", "B"), ("no result: B", None),
    ("The answer is B?", None), ("B?", "B"), ("Is the answer B?", None), ("Is it B?", None), ("it's clear. B", "B"),
    ("kolpus (B)", "B"), ("kolpus (A)", None), ("kolpus, A", None), ("kolpus, option B", "B"), ("kolpus - B", "B"),
    ("B kolpus", "B"), ("B zormun", None), ("B-kolpus", "B"), ("B-level", None), ("the kolpus", "B"),
    ("The result is kolpus.", "B"), ("The result is not kolpus.", None), ("The result is kolpus or zormun.", None),
    ("The result is kolpus. It was zormun before.", None), ("Is the result kolpus?", None),
    ("kolpus is the result.", "B"), ("kolpus is not the result.", None),
    ("kolpus is a result.", "B"),  # the only one that is named
    ("A story of kolpus", None), ("It ended in a kolpus.", "B"), ("Why not? kolpus.", "B"),
    # What follows a comma in a sentence of doubt
    ("Not A, B.", "B"), ("Not zormun, not kolpus, wemtin.", "C"), ("If I had to guess, kolpus.", "B"),
    # Two options in doubt, or denied, are no answer.
    ("Maybe A, B", None), ("It could be A, B", None), ("It can't be A, B", None), ("I would not say A, B", None),
    ("It states A, B", None), ("Possibly A, B.", None),
    # A sentence counts where others are denied
    ("A is wrong. The capital is kolpus.", "B"),  # what is denied is another one
    ("I would eliminate D first. Then C.", None), ("It is not D. Then C.", "C"),
    ("A, B, C eliminated. Then D.", "D"), ("Ruled out: A, B, C. Then D.", "D"), ("Ruled out: A, B. Then answer D", "D"),
    ("Ruled out everything small. Then C", "C"), ("The court ruled so. Then D", "D"), ("B. Options discarded: A. then D. Answer B", "B"),
    ("✔ B. Options discarded: A. then D. Answer B", "B"), ("✗ A; A -> wrong, B -> correct", "B"),
    ("B -> wrong, A -> correct. ✗ B", "A"), ("(A) > correct", "A"), ("A) > right", "A"), ("A: > correct", "A"), ("(A) > wrong", None),
    ("The answer is kolpus and done.", "B"), ("The answer is kolpus and final.", "B"), ("It is kolpus and definitely.", "B"),
    ("kolpus and thanks!", "B"), ("kolpus and vinegar.", None),
    ("I rule out A and C. Then B.", None), ("Dismiss A. Next D. So B or C.", None),
    ("The one of the four → B", "B"), ("zormun → A, kolpus → B", None),
    ("Not zormun but kolpus is the longest river.", "B"), ("kolpus and others.", None),
    ("kolpus and its valleys are large.", "B"),
    ("B is wrong. The capital is kolpus.", None), ("Not A. B would be nice. The capital is wemtin.", "C"),
    ("B would be correct, wemtin as well.", "B"),
    ("C. B would be correct in June.", "C"),  # what would be counts only where nothing else is said
])  # fmt: skip
def test_where_an_answer_stands(text, label):
    assert read_label(text, LABELS) == label


OPTIONS = {
    "a label goes before another option's text": (
        {"A": "AB", "B": "A", "C": "B", "D": "O"},
        {**dict.fromkeys(("B", "B.", "(B)", "[B]", "**B**"), "B"), "O": "D", "AB.": "A", "C. B": "C"},
    ),
    "however it is decorated": (
        {"A": "x", "B": "y", "C": "B"}, dict.fromkeys(("B", "B.", "B..", "(B.)", "(B)", "**B.**", "B.\nIt fits best."), "B"),
    ),
    "what is raised is not folded": (
        {"A": "32", "B": "25", "C": "2^5", "D": "H2O"}, {"2⁵": "C", "10²": None, "H₂O": "D", "25": "B"},
    ),
    "an article may be a label": (LABELS, {"A kolpus": None, "a kolpus": "B"}),  # the label A with the text of B
    "also a small one": ({"a": "zormun", "b": "kolpus"}, {"a kolpus": None}),
    "an article may be left out": ({"A": "the Nile", "B": "Volga"}, {"Nile": "A"}),
    "so may a currency": (
        {"A": "$20", "B": "$5"},
        {"20": "A", "It costs 20 dollars.": "A", "The total is 20 dollars.": "A", "The total is 20 thousand.": None},
    ),
    "unless another option has none": ({"A": "$20", "B": "20"}, {"20": "B"}),
    "a mismatched pair of brackets is no pair": ({"A": "x", "B": "y", "C": "(B]"}, {"(B]": "C"}),
    "of any kind": ({"A": "x", "B": "y", "C": "{B)"}, {"{B)": "C"}),
    "the same text twice is that of the label before it": (
        {"A": "the Nile", "B": "the Nile", "C": "Rhine"},
        {"the Nile": "A", "B. the Nile": "B", "B. Nile": "B", "The answer is B. Nile": "B"},
    ),
    "a symbol may follow": (LABELS, dict.fromkeys(("B ✅ because it fits.", "So B ✅", "B ✅", "B  ✔ it is"), "B")),
    "with two, the other is left": ({"A": "x", "B": "y"}, {"Rule out A. Then B.": "B"}),
    "what is asked is no answer": (
        LABELS, dict.fromkeys(("it's D?", "Answer: I think it is D?", "Label: purkol?", "The answer is D?")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "labels_of"), OPTIONS.values(), ids=OPTIONS)
def test_options(options, labels_of):
    assert {text: read_label(text, options) for text in labels_of} == labels_of


@pytest.mark.parametrize("form", [
    "The answer is {}.", "the answer is {}", "Answer: {}", "So the correct option is ({}).",
    "The final answer is: option {}", "answer:{}", 'The choice is "{}".',
])  # fmt: skip
@pytest.mark.parametrize(
    "options", [LABELS, {"A": "x", "B": "y"}, {"A": "b", "B": "(A)"}, {"A": "option B", "B": "long enough a text"}]
)
def test_the_quick_way_reads_what_the_long_way_reads(form, options):
    for label in options:
        text = form.format(label)
        long_way = read_options(Options(get_label_set(tuple(options)), options), simplify(text), several=False)
        assert read_label(text, options) == (next(iter(long_way)) if len(long_way) == 1 else None)


LOGIC = {"A": "entailment", "B": "neutral", "C": "contradiction"}


# Rules 1 and 2: nothing but a label or a text


@pytest.mark.parametrize("spelled", ["B", "B.", "(B)", "[B]", "(B).", " B\n"])
def test_a_label_goes_before_the_same_text(spelled):
    assert read_label(spelled, {"A": spelled.strip(), "B": "x"}) == ("B" if spelled.strip() != "A" else "A")


# Decoration


def test_what_is_nothing_but_an_option():
    options = {"A": "5", "B": "$5", "C": "3.5", "D": "Yes!"}
    said = ("$5", "5", "(5)", "3.5", "yes", "yes!", "**d**", "4")
    assert [read_label(text, options) for text in said] == ["B", "A", "A", "C", "D", "D", "D", None]


# Where options are named


@pytest.mark.parametrize("label", "ACI")
def test_a_letter_behind_a_label_makes_a_word_in_any_script_with_spaces(label):
    labels = dict.fromkeys("ABCDEFGHI", "")
    labels = {key: f"text {number}" for number, key in enumerate(labels)}
    assert read_label(f"The answer is {label}, for it is small.", labels) == label
    assert read_label(f"The answer is {label}nd so on", labels) is None
    assert read_label(f"答案是{label}因为", labels) == label
    assert read_label(f"正解は{label}です", labels) == label
    assert read_label(f"정답은 {label}입니다", labels) == label


def test_an_article_may_stand_before_a_text():
    assert read_label("This is an entailment\nA", LOGIC) == "A"
    assert read_label("This is an entailment\nB", LOGIC) is None  # two answers
    assert read_label("The answer is: the zormun", LABELS) == "A"
    assert read_label("Both the zormun and the wemtin", LABELS) is None
    assert read_labels("the zormun, the wemtin", LABELS) == ("A", "C")


@pytest.mark.parametrize("mark", [". ", ") ", ": ", ".", ")", " - "])
@pytest.mark.parametrize("first", LABELS)
def test_who_lists_options_answers_nothing(mark, first):
    other = "A" if first != "A" else "C"
    assert read_label(f"{first}, {LABELS[first]}; {other}{mark}{LABELS[other]}", LABELS) is None
    assert read_label(" ".join(f"{label}{mark}{text}" for label, text in LABELS.items()), LABELS) is None


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n\n\n", "\nOption "])
def test_who_goes_on_with_another_option_on_a_later_line_answers_nothing(between):
    assert read_label(f"A, because it is nice{between}B. It is nice too", LABELS) is None
    assert read_label(f"A, because it is nice{between}A. It is nice", LABELS) == "A"


def test_the_mark_at_the_end_of_a_long_line_of_a_list():
    lines = ["A. zormun", "B. kolpus", "C. wemtin, which has six letters (correct)", "D. purkol"]
    assert read_label("\n".join(lines), LABELS) == "C"
    lines[2] = "C. wemtin" + ", which has six letters and not seven" * 3 + " (correct)"
    assert read_label("\n".join(lines), LABELS) == "C"


@pytest.mark.parametrize(("text", "labels"), [
    # Nothing but options
    ("A\nC D", "ACD"), ("B B", "B"), ("B x B", ""), ("AA", ""), ("A E", ""), ("A 1", ""), ("A C" + " C" * 14, ""),
    (" ".join("B" * 17), "B"), ("- B", "B"), ("B. kolpus", "B"), ("both A and C!", "AC"),
    # The first line and the last
    ("B\nIt is a nice one.", "B"), ("It is a nice one.\nOption B", "B"), ("B\nIt is a nice one.\nB", "B"),
    ("B\nB\nIt is.", "B"), ("B\n- Option C", ""), ("It is.\n- B", "B"), ("AC\nThey are.", "AC"),
    # The beginning
    ("1. B, because", "B"), ("B and C, because", "BC"), ("(B) is wrong", ""), ("B? It is", ""),
    ("B. kolpus C. wemtin", ""), ("B. It is nice\nC. It is, too", ""), ("B. kolpus. It is nice, B. kolpus", "B"),
    ("kolpus. Actually, on second thought, it is wemtin", "C"), ("kolpus. Actually, it is all one", "B"),
])  # fmt: skip
def test_lines_and_beginnings(text, labels):
    assert read_labels(text, LABELS) == tuple(labels)


@pytest.mark.parametrize("text", ["A E", "B x", "B x B", "B or C", "A I"])
def test_an_option_and_something_else_is_no_answer(text):
    assert read_label(text, LABELS) is None
    assert read_labels(text, LABELS) == ()


def test_alternatives_are_no_two_answers():
    assert read_labels("La respuesta es B o C.", LABELS) == ()
    assert read_labels("La respuesta es B y C.", LABELS) == ("B", "C")
    assert read_labels("La risposta è B o C", LABELS) == ()


NUMBERS = {"A": "-5", "B": "5", "C": "1/5", "D": "-1/5"}


@pytest.mark.parametrize(("text", "expected"), [
    ("minus 5", "A"), ("The answer is negative 5.", "A"),
    (r"\frac{1}{5}", "C"),  # no 5
    (r"The answer is $-\frac15$.", "D"), ("5 - 10 = -5", "A"), ("5 - 10 = -5, so it is 5 minus 10", None),
])  # fmt: skip
def test_a_number_is_read_with_its_sign_and_fraction_and_no_operand_is_an_answer(text, expected):
    assert read_label(text, NUMBERS) == expected
