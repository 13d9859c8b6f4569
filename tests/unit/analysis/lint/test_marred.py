"""Texts that are odd by themselves (docs/how-to/lint.md): each fault planted in ten of a hundred rows."""

from dataclasses import replace

import pytest
from helm.benchmark.scenarios.scenario import Input
from helm.common.media_object import MediaObject, MultimediaObject
from lint_rows import find, row, write

from helm_ext import formats
from helm_ext.analysis.lint import lint
from helm_ext.analysis.lint.marred import find_mojibake

CITIES = ("Bern", "Oslo", "Köln", "Łódź", "São Paulo", "Nîmes", "東京", "Αθήνα", "Málaga", "Zürich")


def clean(number, gold="blue", end="?"):
    return row(f"Which colour has door number {number} of the house in {CITIES[number % 10]}{end}", f"{gold} {number}")


def choice(number, *options):
    return row(
        f"Which door of house {number} in {CITIES[number % 10]} is open?", options[number // 10 % 2], options=options
    )


def broken(text, encoding="cp1252"):
    return text.encode().decode(encoding)


PLANTED = {
    "empty-question": lambda n: row("  " * (n % 2), f"blue {n}"),
    "empty-option": lambda n: choice(n, f"left {n}", f"right {n}", " " * (n % 2)),
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
    """The planted rows are found, and no other; nothing else is said of them."""
    rows = [PLANTED[code](number) if number % 10 == 3 else clean(number) for number in range(100)]
    assert find(tmp_path, rows) == [(code, number + 2) for number in range(100) if number % 10 == 3]


def test_what_is_empty_is_an_error(tmp_path):
    path = write(tmp_path / "rows.jsonl", [clean(1), row("", "x"), clean(2)])
    (problem,) = lint(formats.load(path), str(path))
    assert (problem.severity, problem.message) == ("error", 'id "q3": the question is empty')


@pytest.mark.parametrize(
    "rows",
    [
        [row(f"The colour of door {number} is ...", f"blue {number}") for number in range(100)],
        [row(f"<b>Door {number}</b> is of which colour?", f"blue {number}") for number in range(100)],
        [row(f"What does `// TODO {number}` mean?", f"to do {number}") for number in range(100)],
        [row(f"The colour of door number {number} is", f" blue {number}") for number in range(100)],
        [row(f"Ist die Tür №{number} «groß», 5 × 3 m, 20 °C, für 7 €?", f"naïve Größe {number}") for number in range(100)],
        [row(f"Is {number} < 12 & 3 > 2?", f"yes {number}") for number in range(100)],
        [row(f"Door {number}", f"blue {number}") for number in range(100)],
        [row(f"東京の {number} 番目のドアの色", f"青 {number}") for number in range(100)],
    ],
)  # fmt: skip
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
