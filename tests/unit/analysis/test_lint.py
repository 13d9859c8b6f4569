"""What is odd about the rows of a dataset (docs/how-to/lint.md): what is found, beside what, and what only looks so."""

# ruff: noqa: E402 - `benchmarks` is not installed: the repository's root must be on the path first

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helm.benchmark.scenarios.scenario import Input
from helm.common.media_object import MediaObject, MultimediaObject
from lint_rows import find, row, write

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks import lint_sets
from benchmarks.lint import count_kind

from helm_ext import formats
from helm_ext.analysis.lint import lint
from helm_ext.analysis.lint.texts import find_mojibake
from helm_ext.errors import KEPT_PROBLEMS

CHOICE = {"method": "multiple_choice_joint"}


def problems(tmp_path, rows, **spec):
    path = write(tmp_path / "rows.jsonl", rows, **spec)
    return lint(formats.load(path), str(path))


# The same question twice

EMMA, SUM = row("Who wrote Emma?", "Jane Austen"), row("What is 2 + 2?", "4")
HI = [{"role": "user", "content": "Hi there!"}]
GO_ON = [*HI, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Hi there!"}]


@pytest.mark.parametrize(("rows", "expected", "spec"), [
    ([EMMA, SUM, EMMA], [("duplicate", 4)], {}),
    *(
        ([EMMA, row(text, "Jane Austen")], [("duplicate", 3)], {})
        for text in ("who wrote  emma?", "Who wrote Emma", "Who wrote “Emma”?", "Who\nwrote Emma ?")
    ),
    *(
        ([row(one, "9"), row(two, "7")], [], {})
        for one, two in [
            ("(1+2)*3?", "1+(2*3)?"), ("12 - 5?", "12 + 5?"), ("10² ?", "102 ?"), ("f.x or f?", "fx or f?"), ("1.5?", "15?"),
        ]
    ),
    ([row("US?", "Washington", "Washington, D.C."), row("US?", "washington")], [("duplicate", 3)], {}),
    ([row("Even?", "2", "4", options=("2", "3", "4")), row("Even?", "2", options=("2", "3", "4"))], [("different-golds", 3)], CHOICE),
    ([row("Even?", "2", options=("2", "3")), row("Even?", "2", options=("3", "2"))], [("duplicate", 3)], CHOICE),
    ([row("Fruit?", "fig", options=("fig", "oak")), row("Fruit?", "plum", options=("plum", "elm"))], [], CHOICE),
    ([{**EMMA, "split": "train"}, EMMA], [("leak", 3)], {}), ([EMMA, {**EMMA, "split": "train"}], [("leak", 2)], {}),
    ([{**EMMA, "split": "train"}, {**EMMA, "split": "train"}, SUM], [("duplicate", 3)], {}),
    ([row("", "x", messages=HI), row("", "x", messages=GO_ON), row("", "x", messages=HI)], [("duplicate", 4)], {"method": "chat"}),
])  # fmt: skip
def test_the_same_question_twice(tmp_path, rows, expected, spec):
    assert find(tmp_path, rows, **spec) == expected


def test_what_is_said_of_it(tmp_path):
    first, second = problems(tmp_path, [EMMA] * 3)
    path = tmp_path / "rows.jsonl"
    assert str(first) == (
        f'{path}:3: id "q3": asks the same as line 2 (id "q2"), with the same gold\n  hint: it counts twice in every score'
    )
    assert ("line 2" in second.message, second.location.line) == (True, 4)
    (problem,) = problems(tmp_path, [row("Largest moon?", "Ganymede"), row("Largest moon?", "Titan")])
    assert (problem.code, problem.severity, problem.location.line) == ("different-golds", "warning", 3)
    assert problem.message == (
        'id "q3": asks the same as line 2 (id "q2"), but has another gold: "Titan", there "Ganymede"'
    )
    (problem,) = problems(tmp_path, [{**EMMA, "split": "valid"}, EMMA])
    assert 'line 2 (id "q2"), a row of the valid split, with the same gold' in problem.message


def test_rows_of_a_document_are_named_by_their_place_and_their_line(tmp_path):
    instances = [{"id": name, **EMMA} for name in "ab"]
    path = tmp_path / "rows.json"
    document = {"adapter_spec": {"max_train_instances": 0}, "request_states": [{"instance": one} for one in instances]}
    path.write_text(json.dumps(document, indent=1))
    lines = path.read_text().splitlines()
    first, second = (number for number, line in enumerate(lines, 1) if '"instance"' in line)
    (problem,) = lint(formats.load(path), str(path))
    assert (problem.location.line, problem.location.field) == (second, "request_states[1].instance")
    assert f'request_states[0].instance (id "a"), with the same gold (line {first})' in problem.message


# Nearly the same question

OTHERS = [
    row("When did the first bridge across the Golden Horn open to carriages?", "1836"),
    row("Which metal do most church bells consist of besides tin?", "copper"),
    row("How long does a sloth sleep in captivity on an ordinary day?", "15 hours"),
]
MOON = "Which moon of the planet Jupiter is the largest of all?"
PASSAGE = (
    "The old bridge was built by Karl Venner in the spring of a wet year. It carried carts and later trams. "
    "Its arches were repaired twice, and its lamps came from a theatre that had closed."
)
BOOKS = {"Emma": "Jane Austen", "Persuasion": "Jane Austen", "Ulysses": "James Joyce", "Dracula": "Bram Stoker"}
MOONS = [{"role": "user", "content": "Tell me about the moons of the planet Jupiter, please."}]


def moons(*texts):
    return [row(text, "Ganymede") for text in texts] + OTHERS


def about(*questions):
    golds = ("Karl Venner", "Karl Venner", "a theatre")
    return [row(f"{PASSAGE}\nQuestion: {text}\nAnswer:", gold) for text, gold in zip(questions, golds, strict=True)]


@pytest.mark.parametrize("rows", [
    *(
        moons(MOON, text)
        for text in (
            f"Please, {MOON[0].lower()}{MOON[1:]}",
            f"Quick question: {MOON}",
            f"{MOON} Answer in one word.",
            MOON.replace("Jupiter", "Jupitre"),
            MOON.replace("of the planet", "of planet"),
            MOON.replace("moon", "satellite"),
            "Of all, which moon of the planet Jupiter is the largest?",
            "12. Which moon of the planet Jupiter is the largest of them all?",
        )
    ),
    # Without a third book nothing says that the title matters.
    [*(row(f"Who is the author of the novel {title}?", "Jane Austen") for title in ("Emma", "Persuasion")), *OTHERS],
    about("Who built the old bridge?", "Tell me: who built the old bridge?", "Where were the lamps from?"),
    moons("木星最大的卫星叫什么名字？", "木星最大的卫星叫什么？"),
    moons("Как называется самый большой спутник планеты Юпитер?", "Как называется самый большой спутник планеты Юпитр?"),
])  # fmt: skip
def test_small_changes_make_no_other_question(tmp_path, rows):
    assert find(tmp_path, rows) == [("near-duplicate", 3)]


def test_a_changed_train_row_is_a_leak(tmp_path):
    rows = [row(MOON, "Ganymede", split="train"), row(f"Please: {MOON}", "Ganymede"), *OTHERS]
    assert find(tmp_path, rows) == [("leak", 3)]


@pytest.mark.parametrize(("rows", "spec"), [
    (moons(MOON, MOON.replace("the largest", "not the largest")), {}),
    (moons(MOON, MOON.replace("largest", "smallest")), {}),
    (moons(MOON, MOON.replace("moon", "2 moons").replace("is", "are")), {}),
    (moons(MOON, "Who first saw the largest moon of the planet Jupiter?"), {}),
    ([row("What is the currency of the old kingdom?", "crown"), row("What is the capital of the old kingdom?", "Ulm")], {}),
    # A third question, with another answer, that differs there shows that it matters.
    ([row(f"Who is the author of the novel {title}?", author) for title, author in BOOKS.items()], {}),
    (about("Who built the old bridge?", "Whose work carried carts and later trams?", "Where were the lamps from?"), {}),
    ([row("", "x", messages=MOONS), row("", "x", messages=[*MOONS, GO_ON[1], {"role": "user", "content": "All."}])], {"method": "chat"}),
    ([row(f"Is stone number {n} of the garden wall heavier than the one above?", "yes") for n in range(40)], {}),
])  # fmt: skip
def test_what_only_looks_like_the_same_question(tmp_path, rows, spec):
    assert find(tmp_path, rows, **spec) == []


# Answers that give themselves away

FREE = [OTHERS[1], row("Who painted the ceiling of the old town hall?", "Karl Venner"), row("What is 12 + 5?", "17")]


@pytest.mark.parametrize("text", [
    "Which moon is the largest? Answer: Ganymede", "Which moon is the largest? (Answer: Ganymede)",
    "Which moon is the largest? The answer is Ganymede.", "Which moon is the largest? Ganymede",
    "Which moon is the largest? (Ganymede)", "Hint: Ganymede. Which moon is the largest?",
    "Ganymede. Which moon is the largest?",
    "The largest moon is called Ganymede. Which moon is the largest?",
    "Welcher Mond ist der größte? Antwort: Ganymede", "最大的卫星是哪个？答案是Ganymede",
])  # fmt: skip
def test_the_answer_stands_in_the_prompt(tmp_path, text):
    found = find(tmp_path, [*FREE * 7, row(text, "Ganymede")])
    assert [line for code, line in found if code == "answer-in-prompt"] == [len(FREE) * 7 + 2]


@pytest.mark.parametrize(("text", "gold"), [
    ("What is the capital of Luxembourg?", "Luxembourg"), ("Is a whale a fish? Answer yes or no.", "yes"),
    ("Is a whale a fish? Answer: yes or no", "yes"), ("Tom has 5 apples and eats 2. How many were there?", "5"),
    ("Which is larger, Titan or Ganymede?", "Ganymede"), ("Translate into German: Paris", "Paris"),
    ("Question: Who?\nAnswer: Ganymede\n\nQuestion: Which moon is the largest?\nAnswer:", "Ganymede"),
    ("Which moon is it?\nA. Titan\nB. Io\nAnswer:", "A"),
])  # fmt: skip
def test_and_here_it_does_by_design(tmp_path, text, gold):
    assert "answer-in-prompt" not in dict(find(tmp_path, [*FREE, row(text, gold)]))


def test_options_passages_and_numbers(tmp_path):
    options = [row("Titan. Which moon is it? Titan", "Titan", options=("Titan", "Io"))]
    assert find(tmp_path, options, **CHOICE) == []
    passages = [
        row(f"House {n} was built by {name} for the sake of a view. Who built the house?", name)
        for n, name in enumerate(("Venner", "Oldrich", "Tamsin", "Perrault"))
    ]
    assert "answer-in-prompt" not in dict(find(tmp_path, passages))
    # Numbers count after a cue and at the end.
    rows = [row("What is 12 + 5? 17", "17"), row("What is 30 + 5? Answer: 35", "35"), row("What is 17 + 4?", "21")]
    assert find(tmp_path, rows) == [("answer-in-prompt", 2), ("answer-in-prompt", 3)]


def trees(number, position):
    texts = tuple(f"{name} {number}" for name in ("oak", "elm", "fig", "ash"))
    return row(f"Tree number {number}?", texts[position], options=texts)


@pytest.mark.parametrize(("positions", "said"), [
    (
        [0] * 6 + [1] * 24 + [2] * 6 + [3] * 4,
        "40 rows stands at A 15.0%, B 60.0%, C 15.0%, D 10.0%: always answering A scores 15.0%, always B, the most frequent, 60.0%",
    ),
    (
        [0] * 20,
        "20 rows stands at A 100.0%, B 0.0%, C 0.0%, D 0.0%: always answering A scores 100.0%, which is the most frequent; guessing scores 25.0%",
    ),
    # What chance does too, and a few points too many in many rows, from which nobody gains
    ([0, 1, 2, 3] * 10, None), ([0] * 14 + [1] * 9 + [2] * 9 + [3] * 8, None), ([2] * 4, None),
    ([0] * 560 + [1] * 480 + [2] * 480 + [3] * 480, None),
])  # fmt: skip
def test_where_right_options_stand(tmp_path, positions, said):
    found = problems(tmp_path, [trees(number, position) for number, position in enumerate(positions)], **CHOICE)
    messages = [one.message for one in found if one.code == "gold-position"]
    assert len(messages) == (said is not None)
    assert said is None or said in messages[0]


def test_letters_are_positions_and_train_rows_are_not_counted(tmp_path):
    rows = [
        row(f"Tree number {n}?\nA. oak\nB. elm\nC. fig\nD. ash", "ABCD"[n % 4] if n > 30 else "C") for n in range(40)
    ]
    assert ("gold-position", None) in find(tmp_path, rows)
    shown = [{**trees(number, 0), "split": "train"} for number in range(40, 80)]
    assert find(tmp_path, [trees(number, number % 4) for number in range(40)] + shown, **CHOICE) == []


# Texts that are odd by themselves: each fault planted in ten of a hundred rows

CITIES = ("Bern", "Oslo", "Köln", "Łódź", "São Paulo", "Nîmes", "東京", "Αθήνα", "Málaga", "Zürich")


def clean(number):
    return row(f"Which colour has door number {number} of the house in {CITIES[number % 10]}?", f"blue {number}")


def doors(number, *options):
    text = f"Which door of house {number} in {CITIES[number % 10]} is open?"
    return row(text, options[number // 10 % 2], options=options)


def broken(text, encoding="cp1252"):
    return text.encode().decode(encoding)


PLANTED = {
    "empty-question": lambda n: row("  " * (n % 2), f"blue {n}"),
    "empty-option": lambda n: doors(n, f"left {n}", f"right {n}", " " * (n % 2)),
    "mojibake": lambda n: row(broken(f"Où est la porte n° {n} à l'école de {('Bâle', 'Sète')[n % 2]} ?"), f"là {n}"),
    "truncated": lambda n: row(f"Which colour has door number {n} of the house in {('the', 'Köln,', 'B...')[n % 3]}", f"{n}"),
    "padded-gold": lambda n: row(f"How many rooms has house {n}?", (f" {n} rooms", f"{n} rooms\n")[n % 2]),
    "placeholder": lambda n: row(
        (f"TODO: write question {n}.", f"Lorem ipsum dolor {n} sit amet?", f"Who is [insert name] of house {n}?")[n % 3], f"{n}"
    ),
    "markup": lambda n: row((f"<p>Who lives in house {n}?</p>", f"Who &amp; whose friend lives in house {n}?")[n % 2], f"Mr {n}"),
}  # fmt: skip


@pytest.mark.parametrize("code", PLANTED)
def test_ten_of_a_hundred_rows(tmp_path, code):
    """The planted rows are found, and no other; nothing else is said of them. What is empty is an error."""
    found = problems(tmp_path, [PLANTED[code](n) if n % 10 == 3 else clean(n) for n in range(100)])
    assert [(one.code, one.location.line) for one in found] == [(code, n + 2) for n in range(100) if n % 10 == 3]
    assert {one.severity for one in found} == {"error" if "empty" in code else "warning"}


@pytest.mark.parametrize("rows", [
    [row(f"The colour of door {number} is ...", f"blue {number}") for number in range(100)],
    [row(f"<b>Door {number}</b> is of which colour?", f"blue {number}") for number in range(100)],
    [row(f"What does `// TODO {number}` mean?", f"to do {number}") for number in range(100)],
    [row(f"The colour of door number {number} is", f" blue {number}") for number in range(100)],
    [row(f"Ist die Tür №{number} «groß», 5 × 3 m, 20 °C, für 7 €?", f"naïve Größe {number}") for number in range(100)],
    [row(f"Is {number} < 12 & 3 > 2?", f"yes {number}") for number in range(100)],
    [row(f"Door {number}", f"blue {number}") for number in range(100)],
    [row(f"東京の {number} 番目のドアの色", f"青 {number}") for number in range(100)],
])  # fmt: skip
def test_the_style_of_a_dataset_is_no_fault(tmp_path, rows):
    assert [code for code, _ in find(tmp_path, rows) if code in PLANTED] == []


def test_rows_of_pictures_are_not_empty(tmp_path):
    path = write(tmp_path / "rows.jsonl", [row("?", "a cat")])
    evalset = formats.load(path)
    shown = MultimediaObject([MediaObject(content_type="image/png", location="http://localhost/a.png")])
    (instance,) = evalset.instances
    pictures = replace(instance, input=Input(text="", multimedia_content=shown))
    assert lint(replace(evalset, instances=[pictures]), str(path)) == []


@pytest.mark.parametrize(
    "text", ["École", "naïve", "Ångström", "«Ça va ?»", "Größe", "São João", "€ 5", "â la carte", "Ã", "ÄÖÜ"]
)
def test_mojibake(text):
    """Texts of one character per letter are left; the same, decoded wrongly, are found."""
    assert find_mojibake(text) == ""
    for encoding in ("latin-1", "cp1252"):
        try:
            marred = broken(text, encoding)
        except UnicodeDecodeError:  # cp1252 has holes
            continue
        assert marred == text or find_mojibake(marred)
    assert find_mojibake("caf\ufffd")


# Large datasets, and how much is found


@pytest.mark.long
@pytest.mark.parametrize("kind", lint_sets.KINDS)
def test_every_kind_of_dataset(kind, tmp_path):
    """The promise of docs/how-to/lint.md, on smaller sets than its table."""
    alarms, planted, found = count_kind(kind, tmp_path, rows=1_000, each=8, seed=7)
    assert len(alarms) <= 1, alarms
    assert planted.total() >= 9 * 8
    assert found.total() >= 0.95 * planted.total(), planted - found


def test_of_many_that_are_alike_the_first_are_listed_and_all_are_counted(tmp_path):
    path = tmp_path / "rows.jsonl"
    lint_sets.write(path, lint_sets.make_clean("capitals", 150, 5) * 10)
    found = [problem for problem in lint(formats.load(path), "rows") if problem.code == "duplicate"]
    assert sum(problem.number for problem in found) == 9 * 150
    assert len(found) == KEPT_PROBLEMS + 1


def test_the_example_of_yes_and_no_has_no_near_duplicates():
    """Its questions are of templates, of which many words stand between the same words."""
    path = Path(__file__).parents[3] / "adapter_specs/yes_no_questions.jsonl"
    found = lint(formats.get_format("adapter_spec").load(path=str(path)), str(path))
    assert not [problem for problem in found if problem.code == "near-duplicate"]
