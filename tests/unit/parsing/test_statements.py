"""Where options are named, what a completion states of them, how much each statement weighs (`Rank`), and lists that mark one."""

import pytest

from helm_ext.parsing import read_label, read_labels
from helm_ext.parsing.claims import Rank, Reading
from helm_ext.parsing.marks import Marks
from helm_ext.parsing.options import Options, get_label_set, simplify
from helm_ext.parsing.reader import read_list
from helm_ext.parsing.sentences import read_sentence

LABELS = {"A": "zormun", "B": "kolpus", "C": "wemtin", "D": "purkol"}
MODAL, PLAIN, STATED, CONCLUDED, CORRECTED = Rank.SUGGESTED, Rank.DECLARED, Rank.STATED, Rank.CONCLUDED, Rank.CORRECTED


def reading(text, labels=LABELS):
    return Reading(Marks(Options(get_label_set(tuple(labels)), labels), simplify(text)))


def states(text):
    """Rank and labels of each statement, "-" before the labels of one that denies."""
    return [(s.rank, ("-" if s.is_denied else "") + "".join(sorted(s.named))) for s in reading(text).find_claims()]


@pytest.mark.parametrize(("text", "expected"), [
    # What introduces an answer
    ("The answer is B.", [(STATED, "B")]), ("the answer is kolpus", [(STATED, "B")]), ("Answer: B", [(STATED, "B")]),
    ("I choose B.", [(STATED, "B")]), ("Correct: B", [(STATED, "B")]), ('{"answer": "B"}', [(STATED, "B")]),
    ("答案是B", [(STATED, "B")]), ("Respuesta: B", [(STATED, "B")]), ("It is B.", [(PLAIN, "B")]),
    ("It's kolpus.", [(PLAIN, "B")]), ("So B.", [(CONCLUDED, "B")]), ("So the answer is B.", [(CONCLUDED, "B")]),
    ("Therefore, the answer is B.", [(CONCLUDED, "B")]), ("That leaves B.", [(CONCLUDED, "B")]),
    ("Final answer: B", [(CORRECTED, "B")]), ("\\boxed{B}", [(CORRECTED, "B")]),
    ("The answer would be B.", [(MODAL, "B")]), ("The answer is A and C.", [(STATED, "AC")]),
    ("The answer is A or C.", [(STATED, "")]), ("The answer is AC.", [(STATED, "AC")]),
    # What declares one
    ("B is correct.", [(PLAIN, "B")]), ("A and C are correct.", [(PLAIN, "AC")]),
    ("kolpus is the right answer.", [(PLAIN, "B")]), ("B would be correct.", [(MODAL, "B")]),
    ("Only B fits.", [(PLAIN, "B")]), ("Not A, B.", [(STATED, "-A")]),
    # What denies
    ("A is not correct.", [(PLAIN, "-A")]), ("A is wrong.", [(PLAIN, "-A")]),
    ("A and B are incorrect.", [(PLAIN, "-AB")]), ("The answer is not A.", [(PLAIN, "-A")]),
    ("It is not A but B.", [(STATED, "B")]), ("Not A.", [(STATED, "-A")]), ("Wait, not A.", [(STATED, "-A")]),
    ("Oh no, wait, not A or B", [(STATED, "-AB")]), ("Sorry, not A, B.", [(STATED, "-A")]),
    # What states nothing
    ("They are not A.", []), ("Not A good question", []), ("Is it B?", []), ("The answer is B?", [(STATED, "-")]),
    ("If it rains, the answer is B.", [(STATED, "-")]), ("I do not think the answer is B.", [(STATED, "-")]),
    ("Banswer: B", []), ("The answers vary.", []), ("nothing", []), ("", []),
])  # fmt: skip
def test_statements(text, expected):
    assert states(text) == expected


@pytest.mark.parametrize(("text", "label"), [
    ("The answer is A. Sorry, I meant B.", "B"), ("The answer is A. Wait, it is B.", "B"),
    ("The answer is A. No, the answer is B.", "B"), ("The answer is A. So the answer is B.", "B"),
    ("So the answer is A. The answer is B.", None),  # it weighs less, and says something else
    ("The answer is A. The answer is B.", None), ("It is A. The answer is B.", "B"),
    ("The answer is B. A would be right in June.", "B"), ("A would be right.", "A"),
    ("The answer is A. Final answer: B", "B"), ("The answer is A. A is wrong.", None),
    ("The answer is A. B is wrong.", "A"), ("A is wrong. The answer is A.", "A"),
    ("Sorry, I cannot tell A from B. The answer is C.", "C"), ("I apologize, I should not have said B.", None),
    ("I apologize for the earlier answer A. It is B.", "B"), ("I apologize, I should have said B.", "B"),
    ("The answer is A. Sorry, I should've written B, not A.", "B"),
    ("Perdón, debería haber dicho B.", "B"), ("I apologize, I said B.", None), ("I apologize for having said B.", None),
    ("Perdón por haber dicho B.", None),
    # An option that is denied behind a correction, alone or with the right one behind it
    ("The answer is B. Sorry, not B, C.", None), ("The answer is B. No, wait, not B, C.", None),
    ("The answer is B. Oh, my mistake, not B, C.", None), ("The answer is B. Sorry, not B but C.", "C"),
    ("It is B. Wait, not B. It is C.", "C"), ("The answer is B. Wait, not A. It is C.", "C"),
    ("It is B. Wait, not B.", None), ("It is B. Not B.", None), ("It is B. Wait, not B or C.", None),
    ("B. Wait, not B.", None), ("B\nWait, not B.", None), ("B. kolpus is not only nice, but old.", "B"),
    ("It is B. Wait, not A.", "B"), ("It is B. Not only B, I know, but it is.", "B"),
    ("It is B. Not just kolpus, since it is old.", "B"), ("It is B. Not A.", "B"), ("B. Wait, not A.", "B"),
    # What is doubted may stand in quotes or brackets
    ('It is not true that "the answer is B".', None), ('It is false that ("the answer is B").', None),
    ("I doubt that (the answer is B).", None), ("I don't believe that **the answer is B**.", None),
    ('It is true that "the answer is B".', "B"), ("I do not doubt that (the answer is B).", "B"),
    ("I don't doubt that the answer is B.", "B"),
    # What follows an apology
    ("A. I apologize. B.", "B"), ("Sorry for that; B it is", "B"), ("Sorry! My answer is B", "B"),
    ("Oops: kolpus", "B"),
    ("I apologize, B is meant.", None),  # a sentence about B
    ("I apologize, A is wrong.", None), ("Sorry, I confused A and B", None), ("Sorry, is it B?", None),
    ("Sorry, B?", None), ("抱歉,B", "B"), ("Sorry. It was late. There was much to do. B", "B"),
    # Ratings
    ('{"A": 0.05, "B": 0.85, "C": 0.06, "D": 0.04}', "B"), ("A: 10%, B: 75%", "B"), ("A (20%), B (60%)", "B"),
    ("zormun – 30%\nkolpus – 5%\nwemtin – 65%", "C"), ("| A | 0.1 |\n| B | 0.7 |", "B"), ("P(A) = .2, P(B) = .8", "B"),
    ("A: 2/10, B: 9/10", "B"), ('{"A": 3, "B": 4, "C": 90, "D": 3}', "C"), ("A: 10%, B: 75%. So the answer is A.", "A"),
    ("A. Incorrect B. Correct", "B"), ("A ✗ B ✓", "B"),
    ("A: 45%, B: 45%", None),  # two are largest
    ("A. Incorrect B. Incorrect", None), ("B ❌", None), ("A) B) C) D)", None),
    ('{"A": 3, "B": 4}', None),  # may count anything
    ("A: true, B: false", None),  # statements that hold, not all of the options
])  # fmt: skip
def test_which_statement_wins(text, label):
    assert read_label(text, LABELS) == label


@pytest.mark.parametrize(("text", "labels", "label"), [
    # An option may begin with a denial.
    ("It is entailment. Wait, not entailment.", {"A": "entailment", "B": "not entailment"}, "B"),
    ("Not entailment, since it is older.", {"A": "entailment", "B": "not entailment"}, "B"),
    # What is concluded weighs more where the clause begins with it.
    ("It is A. So B is correct.", LABELS, "B"), ("It is A. B is correct.", LABELS, None),
    # Options that are themselves such words are no marks, numbers that are options no chances.
    ("A - No\nB - Yes", {"A": "Yes", "B": "No"}, None), ("A: 25%, B: 75%", {"A": "25%", "B": "75%"}, None),
])  # fmt: skip
def test_what_a_statement_is_made_of(text, labels, label):
    assert read_label(text, labels) == label


@pytest.mark.parametrize(("text", "expected"), [
    ("The capital of France is kolpus.", "B"), ("It lies north. The capital is kolpus.", "B"),
    ("The capital is kolpus. It lies north.", "B"), ("The capital is not kolpus.", None),
    ("Is the capital kolpus?", None), ("The capital is kolpus, and wemtin is a town.", None),
    ("zormun is the capital.", "A"), ("zormun is not the capital.", None), ("He was born in kolpus.", "B"),
    ("Nothing of it.", None),
    ("The capital is zormun. I like zormun a lot. It is big.", "A"),
    ("This is a story about zormun.", None),
    ("There are people in zormun.", "A"),  # the only one that is named
])  # fmt: skip
def test_a_sentence_about_an_option(text, expected):
    found = read_sentence(reading(text))
    assert ("".join(sorted(found)) if found else None) == expected


def test_where_several_may_be_right_they_add_up():
    assert read_labels("A is correct. C is correct. D is correct.", LABELS) == ("A", "C", "D")
    assert read_label("A is correct. C is correct.", LABELS) is None
    assert read_labels("The answer is A. The answer is C.", LABELS) == ()
    assert read_labels("The answer is A. C is correct.", LABELS) == ()
    assert read_label("So\nB", LABELS) == "B"
    assert read_label("Option\nOption B", LABELS) == "B"


# Options that are named together


def items_at(text, place=0, labels=LABELS):
    """The labels of the options that are named at a place, in their order: "" where they are unclear."""
    found = [one for one in reading(text, labels).groups if one.start == place and one.is_named]
    return "".join(sorted(found[0].named)) if found else None


# Options that are named together


@pytest.mark.parametrize(("text", "expected"), [
    ("B", "B"), ("B and C", "BC"), ("B, C", "BC"), ("B, C and D", "BCD"), ("B., C.", "BC"), ("B & C", "BC"),
    ("B/C", "BC"), ("B + C", "BC"), ("(B) and (C)", "BC"), ("both kolpus", None), ("kolpus and wemtin", "BC"),
    ("kolpus, wemtin", "BC"), ("B and also C", "BC"), ("B, and maybe C", ""), ("B or C", ""),
    ("B or kolpus", "B"),  # the same one
    ("B 或 C", ""), ("B、C", "BC"), ("B、E", None), ("B、C good", None),
    ("B and E", None),  # a label of no option
    ("B and everything", None), ("B\nC", "BC"), ("B\n- C", "BC"), ("B\nC is nice", "B"), ("A good question", None),
    ("A, for one, like it", None), ("kolpus kolpus", None),
])  # fmt: skip
def test_options_named_together(text, expected):
    assert items_at(text) == expected


def test_words_of_one_letter_between_options_are_labels_where_there_are_such():
    assert items_at("B y C") == "BC"
    assert items_at("B o C") == items_at("B, o C") == ""
    assert items_at("B o kolpus") == "B"


@pytest.mark.parametrize(("text", "expected"), [
    ("B. kolpus", "B"), ("B. wemtin", ""), ("B - wemtin", ""), ("B. wemtin. It lies north.", ""), ("B. C", ""),
    ("B. B", "B"), ("B. wemtin is north of it", "B"), ("B: it is not wemtin", "B"), ("B\nwemtin is north of it", "B"),
])  # fmt: skip
def test_a_label_with_another_options_text(text, expected):
    assert items_at(text) == expected


def test_the_same_text_of_another_label_contradicts_nothing():
    twice = {"A": "kolpus", "B": "kolpus", "C": "wemtin"}
    assert items_at("B. kolpus", labels=twice) == "B"
    assert items_at("A. B", labels=twice) == "A"
    assert items_at("A. C", labels=twice) == ""


def test_a_label_with_another_options_long_text():
    long = {"A": " ".join(["red"] * 40), "B": " ".join(["blue"] * 40)}
    assert items_at(f"B. {long['A']}", labels=long) == ""
    assert items_at(f"B. {long['B']}", labels=long) == "B"


# A completion that goes through the options and marks each as right or wrong


def _go_through(shape, right, wrong, label):
    return "\n".join(shape.format(key, text, right if key == label else wrong) for key, text in LABELS.items())


@pytest.mark.parametrize(("right", "wrong"), [
    *(("✅", "❌"), ("✓", "✗"), ("✔️", "✘"), ("correct", "incorrect"), ("right", "wrong"), ("true", "false"), ("yes", "no")),
    *(("is correct.", "is not correct."), ("(correct)", "(incorrect)"), ("correct, it fits", "incorrect, it does not")),
    *(("richtig", "falsch"), ("correcto", "incorrecto"), ("corretta", "sbagliata"), ("vrai", "faux"), ("верно", "неверно")),
    *(("正确", "错误"), ("对", "不对"), ("正解", "不正解"), ("← answer", ""), ("(correct)", ""), ("<- correct", ""), ("✅", "")),
    ("", "❌"),
])  # fmt: skip
@pytest.mark.parametrize("shape", ["{}. {} {}", "{}) {}: {}", "- {}: {} {}", "**{}** {} - {}"])
@pytest.mark.parametrize("label", LABELS)
def test_the_one_that_is_marked_right_is_the_answer(shape, right, wrong, label):
    assert read_label(_go_through(shape, right, wrong, label), LABELS) == label


@pytest.mark.parametrize("shape", ["{2} {0}. {1}", "- {2} {0}", "{0} {2}"])
def test_a_mark_may_stand_before_the_option_and_without_its_text(shape):
    assert read_label(_go_through(shape, "✅", "❌", "C"), LABELS) == "C"
    assert read_label(_go_through(shape, "[x]", "[ ]", "C"), LABELS) == "C" or shape == "{0} {2}"


@pytest.mark.parametrize(
    ("right", "wrong"), [("✅", "❌"), ("Yes", "No"), ("correct", "wrong"), ("✅ Correct", "❌ Incorrect")]
)
@pytest.mark.parametrize(
    "shape", ["| {0} | {2} |", "|{0}|{2}|", "| **{0}** | {2} |", "| {0} | {1} | {2} |", "| {0}. {1} | {2} |"]
)
def test_the_rows_of_a_table_are_a_list(shape, right, wrong):
    table = "| Option | Correct? |\n|---|---|\n" + _go_through(shape, right, wrong, "C")
    assert read_label(table, LABELS) == read_label(table, LABELS, is_cut_off=True) == "C"
    assert read_label(f"Here they are:\n\n{table}\n\nLet me know if you have questions!", LABELS) == "C"


@pytest.mark.parametrize("answer", ["\\boxed{D}", "Only purkol fits.", "The right one is D: purkol."])
def test_what_is_written_bold_and_marked_as_wrong_is_not_the_answer(answer):
    assert (
        read_label(
            f"A) {LABELS['A']} – not correct.\n- **B. {LABELS['B']}**: Incorrect.\n{answer}\nThis is well known.",
            LABELS,
        )
        == "D"
    )


def test_a_verdict_at_the_end_of_a_line_does_not_take_back_what_follows():
    assert read_label("B: kolpus -> no\nD: purkol -> no\nSo the answer is (C).", LABELS) == "C"
    assert read_label("The answer is B.\nNo\nC", LABELS) == "C"


@pytest.mark.parametrize("text", [
    "The longest one is the kolpus, i.e. option B.", "Der längste Fluss ist die kolpus, also B.",
    "Korrekt ist Antwort B: kolpus.", "È B.",
])  # fmt: skip
def test_a_choice_that_is_complete_counts_where_the_answer_is_cut_off(text):
    assert read_label(text, LABELS, is_cut_off=True) == "B"


@pytest.mark.parametrize("text", ["Let us look at kolpus, i.e. option B.", "The longest one is kolpus."])
def test_what_is_only_spoken_of_counts_nothing_there(text):
    assert read_label(text, LABELS, is_cut_off=True) is None


def test_a_line_behind_a_sentence_is_not_named_together_with_its_last_option():
    text = "Let us see.\n\nIt is tempting to choose A.\n\nC\n\nLet me know if you have other questions."
    assert read_label(text, LABELS) == "C"


@pytest.mark.parametrize("text", [
    "We go through them.\n\n- **A. zormun**: Incorrect.\n\nD\n\nThis is well known.",
    "A is incorrect because it does not fit.\nC. wemtin: This is wrong.\nD\nThe other options are wrong.",
])  # fmt: skip
def test_another_label_on_a_line_of_its_own_leaves_no_option_the_only_one(text):
    assert read_label(text, LABELS) in {None, "D"}


def test_marks_on_one_line():
    assert read_label("A ❌ B ❌ C ✅ D ❌", LABELS) == "C"
    assert read_labels("A ✅ B ❌ C ✅ D ❌", LABELS) == ("A", "C")


@pytest.mark.parametrize("text", [
    "A ✅ B ❌ C ✅ D ❌",  # two are right
    "A ❌ B ❌ C ❌ D ❌", "A ✅ B ✅ C ✅ D ✅",
    "A: correct\nA: incorrect\nB: correct\nB: incorrect",  # each option twice
    "A. zormun\nB. kolpus\nC. wemtin\nD. purkol",
])  # fmt: skip
def test_a_list_that_does_not_mark_one_means_none(text):
    assert read_label(text, LABELS) is None


def test_what_is_said_outside_of_the_list_counts_too():
    assert read_label("A = True, B = False. The answer is D.", LABELS) == "D"
    marked = _go_through("{}. {} {}", "✅", "❌", "B")
    assert read_label(f"{marked}\n\nSorry, I meant C.", LABELS) == "C"
    assert read_label(f"The answer is B.\n\n{marked}", LABELS) == "B"
    assert read_label(f"The answer is D.\n\n{marked}", LABELS) is None


def shown(found):
    """Where the list begins and ends, and the labels that it marks as right."""
    return None if found is None else (found[0], found[1], "".join(sorted(found[2])))


@pytest.mark.parametrize(("text", "expected"), [
    ("A ✅\nB ❌\nC ❌", (0, 11, "A")), ("So:\nA ✅\nB ❌\nC ✅\nThat is it.", (4, 15, "AC")),
    # Two of four, with nothing but a verdict behind each
    ("- ✅ D\n- ❌ C", (2, 11, "D")), ("- ❌ C\n- ✅ D", (2, 11, "D")), ("❌ A\n❌ B", None), ("A > no, B > yes", (0, 15, "")),
    ("❌ A ❌ B ✅ C ❌ D", (0, 15, "C")), ("So: ✅ A, ❌ B, ❌ C", (4, 17, "A")), ("A > wrong, B > right", (0, 20, "B")),
    # A mark too many, or one that stands alone, moves no other
    ("A is ✅ B ❌ C ❌ D ❌", (7, 18, "A")), ("A ❌❌ B ✅ C ❌ D ❌", (0, 16, "B")), ("A ❌ ❌ B ✅ C ❌ D ❌", (0, 17, "B")),
    ("❌ A ✅ B ❌ C ❌ D ❌", (2, 17, "A")), ("✅ A ❌ B ❌ C ❌ D ✅", (2, 17, "D")), ("✅ A ✅ B ❌ C ❌ D ❌", (2, 17, "A")),
    ("A ✅✅ B ❌ C ❌ D ❌", (0, 16, "A")), ("❌ A ✅, B ❌, C ❌, D ❌", (2, 20, "A")),
    ("❌ B ✅ C ❌ D ❌", (2, 13, "B")), ("B -> wrong, A -> right. ✗ B", (0, 22, "A")),
    ("A ✅\nB ❌", (0, 7, "A")), ("So:\nB: wrong\nA: right", (4, 21, "A")), ("| A | ✅ |\n| B | ❌ |", (2, 17, "A")),
    ("A ✅\nB ✅", (0, 7, "AB")), ("A ❌\nB ❌", None), ("A: yes\nB: no", None), ("A: yes, B: no", (0, 13, "")),
    ("A → no, B → yes, C → no, D → no.", (0, 31, "B")), ("A = False\nB = True\nC = False", (0, 28, "B")),
    ("A ❌\nB ❌\nC ❌", (0, 11, "D")),  # all others are wrong
    ("A ❌\nB ❌\nC ❌\nD", (0, 13, "D")),
    ("A ❌\nB ❌\nC\nD", None),  # two are left
    ("A ✅\nB ✅\nC ✅", (0, 11, "")),
    ("A: right\nB: right\nC: right", None),  # words and no marks: prose
    ("A ✅\nB ❌\nC ❌\nA ❌", None),  # twice
    ("A\nB\nC\nD", None),
])  # fmt: skip
def test_lists(text, expected):
    assert shown(read_list(reading(text), text)) == expected


def test_a_list_of_two_options_is_all_of_them():
    two = {"A": "zormun", "B": "kolpus"}
    assert shown(read_list(reading("A ✅\nB ❌", two), "A ✅\nB ❌")) == (0, 7, "A")
    assert shown(read_list(reading("A\nB ❌", two), "A\nB ❌")) == (0, 5, "A")
    assert shown(read_list(reading("B ❌", two), "B ❌")) is None


@pytest.mark.parametrize(("text", "expected"), [
    ("It happens by way of photosynthesis. Light is needed, and the chloroplasts.", "A"),  # two of three words
    ("It happens by way of photosynthesis. Light is needed.", None),
    ("It happens by way of photosynthesis in the chloroplasts. Or is it yeast?", None),
])  # fmt: skip
def test_words_of_an_option_may_stand_in_several_sentences(text, expected):
    options = {
        "A": "photosynthesis in the chloroplasts of leaves",
        "B": "respiration within mitochondria",
        "C": "fermentation by yeast",
    }
    assert read_label(text, options) == expected
