"""Which stop sequences cut references and predictions."""

import pytest

from helm_ext.parsing import StopCensus


def census(*references, stops=("<stop>", "\n")):
    made = StopCensus(stops)
    return made, [made.add(reference) for reference in references]


@pytest.mark.parametrize(("references", "cut_at"), [
    (["Po", "Ob"], ()), (["Po<stop>", "Ob"], ("<stop>",)), (["Po <stop> \n\n"], ("<stop>", "\n")),
    (["Po<stop> or Ob"], ()),
    (["Po<stop>", "Ob<stop> or Po"], ()),  # one reference with more behind it is enough
    (["Ob<stop> or Po", "Po<stop>"], ()),  # wherever it stands
    (["a\nb<stop>"], ("<stop>",)),  # each stop sequence by itself
    (["\n\nPo"], ()),  # a blank line before the text is no stop
    (["<stop>"], ("<stop>",)),
])  # fmt: skip
def test_only_what_is_followed_by_white_space_alone_cuts(references, cut_at):
    assert census(*references)[0].decide(None) == cut_at


def test_the_file_may_say_so():
    made, _ = census("Po<stop> or Ob")
    assert made.decide(True) == ("<stop>", "\n")
    assert made.decide(False) == ()
    assert census("Po<stop>")[0].decide(False) == ()


def test_references_are_counted_once():
    made, found = census("Po<stop>\n", "Ob", "a\nb")
    assert (found, made.count) == ([True, False, True], 2)


def test_two_censuses_together():
    made, _ = census("Po<stop>")
    other, _ = census("Ob<stop> or Po", "a\n")
    made.merge(other)
    assert (made.count, made.decide(None)) == (3, ("\n",))


def test_a_census_that_found_nothing_takes_nothing_away():
    for references in (["Po<stop>"], ["Ob<stop> or Po", "a\n"]):
        made, _ = census(*references)
        before = made.decide(None)
        made.merge(census("Po")[0])
        assert made.decide(None) == before
        other, _ = census("Po")
        other.merge(made)
        assert (other.count, other.decide(None)) == (made.count, before)


def test_an_empty_stop_sequence_is_none():
    assert census("Po", stops=("",))[0].decide(True) == ()
