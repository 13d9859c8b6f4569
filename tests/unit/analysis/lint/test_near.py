"""Nearly the same question, and what only looks so."""

import pytest
from lint_rows import find, row

NEAR = [("near-duplicate", 3)]

OTHERS = [
    row("When did the first bridge across the Golden Horn open to carriages?", "1836"),
    row("Which metal do most church bells consist of besides tin?", "copper"),
    row("How long does a sloth sleep in captivity on an ordinary day?", "15 hours"),
]


def pair(tmp_path, one, two, gold="Ganymede"):
    return find(tmp_path, [row(one, gold), row(two, gold), *OTHERS])


@pytest.mark.parametrize(
    "text",
    [
        "Please, which moon of the planet Jupiter is the largest of all?",
        "Quick question: Which moon of the planet Jupiter is the largest of all?",
        "Which moon of the planet Jupiter is the largest of all? Answer in one word.",
        "Which moon of the planet Jupitre is the largest of all?",
        "Which moon of planet Jupiter is the largest of all?",
        "Which satellite of the planet Jupiter is the largest of all?",
        "Of all, which moon of the planet Jupiter is the largest?",
        "12. Which moon of the planet Jupiter is the largest of them all?",
    ],
)
def test_small_changes_make_no_other_question(tmp_path, text):
    assert pair(tmp_path, "Which moon of the planet Jupiter is the largest of all?", text) == NEAR


@pytest.mark.parametrize(
    "text",
    [
        "Which moon of the planet Jupiter is not the largest of all?",
        "Which moon of the planet Jupiter is the smallest of all?",
        "Which 2 moons of the planet Jupiter are the largest of all?",
        "Who first saw the largest moon of the planet Jupiter?",
    ],
)
def test_a_denial_an_opposite_a_number_do(tmp_path, text):
    assert pair(tmp_path, "Which moon of the planet Jupiter is the largest of all?", text) == []


def test_another_answer_makes_another_question(tmp_path):
    rows = [
        row("What is the currency of the old kingdom?", "crown"),
        row("What is the capital of the old kingdom?", "Ulm"),
    ]
    assert find(tmp_path, [*rows, *OTHERS]) == []


def test_a_place_where_many_words_stand_is_a_slot_of_a_template(tmp_path):
    books = {"Emma": "Jane Austen", "Persuasion": "Jane Austen", "Ulysses": "James Joyce", "Dracula": "Bram Stoker"}
    rows = [row(f"Who is the author of the novel {title}?", author) for title, author in books.items()]
    assert find(tmp_path, rows) == []


def test_without_a_third_book_nothing_says_that_the_title_matters(tmp_path):
    rows = [row(f"Who is the author of the novel {title}?", "Jane Austen") for title in ("Emma", "Persuasion")]
    assert find(tmp_path, [*rows, *OTHERS]) == NEAR


def test_a_swap_that_matters_elsewhere_matters(tmp_path):
    rows = [
        row("What is the capital of Freedonia?", "Ulm"),
        row("What is the largest city of Freedonia?", "Ulm"),
        row("What is the capital of Sylvania?", "Bree"),
        row("What is the largest city of Sylvania?", "Rohan"),
    ]
    assert find(tmp_path, rows) == []


PASSAGE = (
    "The old bridge was built by Karl Venner in the spring of a wet year. It carried carts and later trams. "
    "Its arches were repaired twice, and its lamps came from a theatre that had closed."
)


def test_two_questions_about_one_passage_with_one_answer(tmp_path):
    questions = ("Who built the old bridge?", "Whose work carried carts and later trams?", "Where were the lamps from?")
    golds = ("Karl Venner", "Karl Venner", "a theatre")
    rows = [row(f"{PASSAGE}\nQuestion: {text}\nAnswer:", gold) for text, gold in zip(questions, golds, strict=True)]
    assert find(tmp_path, rows) == []


def test_one_question_about_one_passage_twice(tmp_path):
    questions = ("Who built the old bridge?", "Tell me: who built the old bridge?", "Where were the lamps from?")
    golds = ("Karl Venner", "Karl Venner", "a theatre")
    rows = [row(f"{PASSAGE}\nQuestion: {text}\nAnswer:", gold) for text, gold in zip(questions, golds, strict=True)]
    assert find(tmp_path, rows) == NEAR


def test_a_conversation_and_its_continuation_are_two(tmp_path):
    ask = [{"role": "user", "content": "Tell me about the moons of the planet Jupiter, please."}]
    go_on = [*ask, {"role": "assistant", "content": "Which?"}, {"role": "user", "content": "All."}]
    assert find(tmp_path, [row("", "x", messages=ask), row("", "x", messages=go_on)], method="chat") == []


def test_a_changed_train_row_is_a_leak(tmp_path):
    text = "Which moon of the planet Jupiter is the largest of all?"
    rows = [row(text, "Ganymede", split="train"), row(f"Please: {text}", "Ganymede"), *OTHERS]
    assert find(tmp_path, rows) == [("leak", 3)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("木星最大的卫星叫什么名字？", "木星最大的卫星叫什么？"),
        ("Как называется самый большой спутник планеты Юпитер?", "Как называется самый большой спутник планеты Юпитр?"),
    ],
)
def test_in_other_scripts(tmp_path, one, two):
    assert pair(tmp_path, one, two) == NEAR


def test_it_is_the_same_whenever_it_is_asked(tmp_path):
    rows = [row(f"Is stone number {n} of the garden wall heavier than the one above?", "yes") for n in range(40)]
    assert find(tmp_path, rows) == find(tmp_path, rows) == []
