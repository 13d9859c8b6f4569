"""What a column of golds means: label, position, text, list or flags (../shared/imports.md, "Gold")."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.formats import get_format
from helm_ext.formats.imported.gold import NO_YES, GoldColumn, to_options

METALS = {"A": "iron", "B": "zinc", "C": "tin", "D": "lead"}
DIGITS = {"1": "iron", "2": "zinc", "3": "tin", "4": "lead"}


def decide(golds, **said):
    """How a column of (gold, options of its row) is read."""
    column = GoldColumn(**said)
    for row, (value, options) in enumerate(golds, 1):
        column.see(value, options, row)
    return column.decide()


def read(values, options=METALS, **said):
    """Return what each gold of a column names."""
    golds = [(value, options) for value in values]
    kind = decide(golds, **said)
    return [kind.read(*gold) for gold in golds]


def refusal(values, options=METALS, **said):
    with pytest.raises(DatasetIntegrityError) as caught:
        decide([(value, options) for value in values], path="x.csv", name="answer", **said)
    return caught.value.problems[0]


@pytest.mark.parametrize("name", ["table", "lm_eval", "openai_batch", "every_eval_ever"])
def test_the_first_position_is_0_or_1(name):
    (argument,) = (one for one in get_format(name).arguments if one.name == "index_base")
    assert argument.kind.parse("index_base", 1) == 1
    with pytest.raises(RunEntryError, match="index_base=7: expected 0 or 1"):
        argument.kind.parse("index_base", 7)


class TestOfOptions:
    @pytest.mark.parametrize(("values", "options", "labels"), [
        (["A", "C", " D "], METALS, "ACD"), (["a", "c"], METALS, "AC"), (["zinc", " lead"], METALS, "BD"),
        ([0, 3, 1], METALS, "ADB"), (["0", "3", "1"], METALS, "ADB"), (["0.0", "3.0", 1.0], METALS, "ADB"),
        ([1, 4, 2], METALS, "ADB"), (["1", "4", "2"], METALS, "ADB"),
        # Labels go before positions, though these would be positions too.
        (["1", "2", "3"], DIGITS, "123"), (["1", " 2 "], DIGITS, "12"),
        # Numbers are positions, unless that makes no difference.
        ([1, 2, 4], DIGITS, "124"), ([0, 2, 3], DIGITS, "134"), ([True, False], {"A": "False", "B": "True"}, "BA"),
        ([True, False], {"A": "yes", "B": "no"}, "AB"),
        # A position that is also the text of that very option.
        (["0", "1", "2"], {"A": "0", "B": "1", "C": "2"}, "ABC"),
        # 3 can be no position from 0.
        (["1", "3"], {"A": "1", "B": "2", "C": "3"}, "AC"),
    ])  # fmt: skip
    def test_is_read_as_what_every_row_can_be(self, values, options, labels):
        assert read(values, options) == [(label,) for label in labels]

    def test_number_of_options_may_differ_from_row_to_row(self):
        three = to_options(["x", "y", "z"])
        golds = [(3, three), (2, METALS)]
        assert [decide(golds).read(*gold) for gold in golds] == [("C",), ("B",)]

    @pytest.mark.parametrize(("values", "options", "hint"), [
        ([1, 2, 3], METALS, "say which: index_base=0 or index_base=1"),
        (["2"], METALS, "say which: index_base=0 or index_base=1"),
        (["2", "1"], {"A": "1", "B": "2", "C": "3"}, "say which: gold_kind=text or index_base=0 or index_base=1"),
        (["A", "B"], {"A": "B", "B": "A", "C": "O"}, "say which: gold_kind=label or gold_kind=text"),
        ([1, 2, 3], DIGITS, "say which: gold_kind=label or index_base=0 or index_base=1"),
        ([[0, 1], [1, 0]], to_options(["x", "y"]), "say which: index_base=0 or gold_kind=flags"),
    ])  # fmt: skip
    def test_is_refused_where_it_could_be_two_things(self, values, options, hint):
        problem = refusal(values, options)
        assert (problem.code, problem.hint, problem.location.field) == ("gold-ambiguous", hint, "answer")
        for said in hint.removeprefix("say which: ").split(" or "):
            name, value = said.split("=")
            assert read(values, options, **{name: int(value) if name == "index_base" else value})
        if values == [1, 2, 3] and options is METALS:
            assert problem.message == "what the golds are cannot be told: 1 is B (index from 0) or A (index from 1)"

    @pytest.mark.parametrize(("values", "options", "said", "labels"), [
        ([1, 2], METALS, {"index_base": 0}, "BC"), ([1, 2], METALS, {"index_base": 1}, "AB"),
        ([1, 2], METALS, {"is_class_label": True}, "BC"),
        ([2], to_options(["1", "2", "3"]), {"is_class_label": True}, "C"),  # though an option is called so
        ([1, 2], METALS, {"gold_kind": "index", "index_base": 1}, "AB"),
    ])  # fmt: skip
    def test_is_settled_by_an_argument(self, values, options, said, labels):
        assert read(values, options, **said) == [(label,) for label in labels]

    def test_a_base_that_says_how_the_source_counts_is_no_word_about_what_golds_are(self):
        """By hand: 2 is the text of B and, counted from 1, too; 1 is the text of A, and from 0 the position of B."""
        texts = {"A": "1", "B": "2", "C": "3"}
        assert read(["2", "1"], texts, index_base=0) == [("C",), ("B",)]
        assert refusal(["2", "1"], texts, index_base=0, is_said=False).code == "gold-ambiguous"

    def test_text_of_two_options_is_refused_unless_it_is_said_to_be_a_text(self):
        doubled = to_options(["iron", "zinc", "iron"])
        assert refusal(["iron", "zinc"], doubled).code == "gold-unread"
        assert read(["iron", "zinc"], doubled, gold_kind="text") == [("A", "C"), ("B",)]

    @pytest.mark.parametrize("values", [[0, 4], [5], ["A", "zinc"], ["E"], ["007"], [1.5], [{"a": 1}], ["A", 1],
                                        [[0, 0, 0, 0], [1, 0, 0, 0]]])  # fmt: skip
    def test_what_nothing_can_read_is_refused(self, values):
        assert refusal(values).code == "gold-unread"

    def test_says_which_row_no_reading_fits(self):
        problem = refusal(["A", "B", "E"])
        assert problem.location.line == 3
        assert problem.message == f'"E" is none of the options of its row, {json.dumps(METALS)}'
        assert 'no label: line 3, "zinc"' in refusal(["A", "B", "zinc"]).message  # one of them, but no label


PAIR = to_options(["x", "y"])


class TestOfLists:
    @pytest.mark.parametrize(("values", "options", "said", "labels"), [
        ([["A", "C"], ["D"]], METALS, {}, ["AC", "D"]), ([["iron", "tin"], "lead"], METALS, {}, ["AC", "D"]),
        ([[0, 2], [3]], METALS, {}, ["AC", "D"]), ([[1, 0, 1, 0], [0, 0, 0, 1]], METALS, {}, ["AC", "D"]),
        ([[True, False, True, False]], METALS, {}, ["AC"]),
        # Flags and lists are told apart by the user.
        ([[0, 1], [1, 0]], PAIR, {"gold_kind": "flags"}, ["B", "A"]),
        ([[0, 1], [1, 0]], PAIR, {"gold_kind": "list"}, ["AB", "BA"]),
    ])  # fmt: skip
    def test_every_element_is_right(self, values, options, said, labels):
        assert read(values, options, **said) == list(map(tuple, labels))


@pytest.mark.parametrize("gold", ["(B)", "B.", "b)", " [B] "])
def test_a_label_may_have_brackets_or_a_point(gold):
    assert read([gold, "A"], {"A": "iron", "B": "tin"}) == [("B",), ("A",)]
    assert refusal(["(B)", "(A)"], {"A": "(B)", "B": "(A)"}).code == "gold-ambiguous"


class TestWithoutOptions:
    @pytest.mark.parametrize(("value", "texts"), [
        ("Paris", ("Paris",)), (72, ("72",)), (72.0, ("72",)), (0.5, ("0.5",)), (["72", 72, "lxxii"], ("72", "lxxii")),
        (-1, ("-1",)), ("-1", ("-1",)),
    ])  # fmt: skip
    def test_is_an_accepted_text(self, value, texts):
        assert read([value], None) == [texts]

    def test_true_and_false_are_options(self):
        kind = decide([(True, None), (False, None)])
        assert kind.options == NO_YES
        assert [kind.read(value) for value in (True, False)] == [("true",), ("false",)]

        assert refusal([True, "maybe"], None).code == "gold-mixed"

    @pytest.mark.parametrize("kind", ["label", "index", "flags"])
    def test_names_no_option(self, kind):
        assert "no options" in refusal(["A"], None, gold_kind=kind).message


class TestHidden:
    @pytest.mark.parametrize("value", [None, "", "  ", -1, "-1", [], float("nan")])
    def test_nothing_can_be_scored(self, value):
        problem = refusal([0, value, 3])
        assert (problem.code, problem.location.line) == ("gold-hidden", 2)
        assert "1 of 3 rows have none" in problem.message

    def test_may_be_counted(self):
        kind = decide([(0, METALS), (-1, METALS), (3, METALS)], allow_hidden=True)
        assert (kind.read(-1, METALS), kind.read(0, METALS)) == ((), ("A",))

        assert "every row has none" in refusal([-1, -1], allow_hidden=True).message

    def test_minus_one_may_be_an_option(self):
        assert read(["-1", "4"], to_options(["-1", "4"])) == [("A",), ("B",)]


SEQUENCES = ["ABCDEF", "abcdef", "123456", "甲乙丙丁戊己", "yaoeui"]
TEXTS = ["zormun", "kolpus", "wemtin", "purkol", "tinzor", "munwem"]


@st.composite
def columns(draw):
    """Rows as (number of options, order of their texts, position of the right one)."""
    sizes = draw(st.lists(st.integers(2, 6), min_size=1, max_size=8))
    return [(draw(st.permutations(TEXTS[:size])), draw(st.integers(0, size - 1))) for size in sizes]


@given(columns(), st.sampled_from(SEQUENCES), st.sampled_from(SEQUENCES), st.sampled_from(["label", "text", "list"]))
def test_a_reading_does_not_depend_on_the_names_of_labels(rows, labels, others, kind):
    def positions(names):
        column = []
        for texts, right in rows:
            options = dict(zip(names, texts, strict=False))
            gold = {"label": names[right], "text": texts[right], "list": [names[right]]}[kind]
            column.append((gold, options))
        decided = decide(column)
        return decided.element, [[list(options).index(label) for label in decided.read(gold, options)]
                                 for gold, options in column]  # fmt: skip

    element = "text" if kind == "text" else "label"
    assert positions(labels) == positions(others) == (element, [[right] for _, right in rows])


@given(columns(), st.randoms(use_true_random=False))
def test_a_reading_does_not_depend_on_the_order_of_rows(rows, random):
    column = [(right, to_options(texts)) for texts, right in rows]
    shuffled = random.sample(column, len(column))
    assert _outcome(column) == _outcome(shuffled)


def _outcome(column):
    try:
        kind = decide(column)
    except DatasetIntegrityError as error:
        return error.problems[0].code
    return kind.element, kind.base


@given(columns())
def test_positions_are_read_right_or_refused(rows):
    for base in (0, 1):
        column = [(right + base, to_options(texts)) for texts, right in rows]
        assert _outcome(column) in (("index", base), "gold-ambiguous")
