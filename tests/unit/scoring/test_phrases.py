"""Tables of phrases: where a phrase stands in a text, and how a file of them is read."""

from __future__ import annotations

import pytest

from helm_ext.errors import HelmExtError
from helm_ext.scoring.scores.phrases import Language, Phrase, Tables, make_plain, read_languages

GAP = 80


def phrase(*pieces, **where):
    return Phrase(pieces, **where)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café, naïve!", " cafe naive "),
        ("  a\n b\t", " a b "),
        ("It’s", " it's "),
        ("I am", " i'm "),
        ("we are", " we're "),
        ("do not, did not", " don't didn't "),
        ("cannot can not cant", " can't can't can't "),
        ("will not wont", " won't won't "),
        ("doesnt couldnt", " doesn't couldn't "),
        ("it is that is here is", " it's that's here's "),
        ("l'aide d'une", " l' aide d' une "),
        ("Note: no", " note : no "),
        ("a_b-c", " a b c "),
        ("Łódź ø æ ß", " lodz o ae ss "),
        ("", "  "),
    ],
)
def test_plain_texts(text, expected):
    assert make_plain(text) == expected


@pytest.mark.parametrize(
    ("one", "text", "place"),
    [
        (phrase(" no "), " say no or no ", (4, 8)),  # the first
        (phrase(" no "), " none ", None),
        (phrase(" no ", " way "), " no real way ", (0, 13)),
        (phrase(" no ", " way "), " no way ", (0, 8)),  # one space bounds both
        (phrase(" no ", " way "), " way no ", None),
        (phrase(" no ", " way ", " out "), " no way, no out ", None),
        (phrase(" no ", " way ", " out "), " no way x out ", (0, 14)),
        (phrase(" no ", " way "), " no way or way ", (0, 8)),
        (phrase(" no ", at_start=True), " no way ", (0, 4)),
        (phrase(" no ", at_start=True), " say no ", None),
        (phrase(" no ", at_end=True), " say no ", (4, 8)),
        (phrase(" no ", at_end=True), " no way ", None),
        (phrase(" no ", at_start=True, at_end=True), " no ", (0, 4)),
    ],
)
def test_where_a_phrase_stands(one, text, place):
    assert one.find(text) == place


def test_a_gap_is_bounded():
    one = phrase(" no ", " way ")
    assert one.find(" no " + "x" * GAP + " way ") == (0, 4 + GAP + 5)
    assert one.find(" no " + "x" * (GAP + 1) + " way ") is None
    assert phrase(" no ", " a rather long piece of text ").find(" no x a rather long piece of text ") == (0, 34)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (phrase(" no way "), "way"),
        (phrase(" no ", " longest "), "longest"),
        (phrase(" an", "ti "), ""),
        (phrase(" a b "), "a"),
    ],
)
def test_a_word_without_which_a_phrase_cannot_occur(one, word):
    assert one.get_word() == word


ENGLISH = Language(
    "english",
    unspaced=False,
    phrases={
        "refuse": (phrase(" decline "), phrase(" no way ")),
        "sorry": (phrase(" sorry "),),
        "filler": (phrase(" really "), phrase(" no way really ")),
        "answer": (phrase(" here you are "),),
    },
)
CHINESE = Language("chinese", unspaced=True, phrases={"refuse": (phrase("拒绝"),), "filler": (phrase("真的"),)})


def test_phrases_of_a_kind():
    assert ENGLISH.find("refuse", " no way i decline ") == (9, 18)  # the first in the order of the table
    assert ENGLISH.find("refuse", " no way ") == (0, 8)
    assert ENGLISH.find("refuse", " sorry ") is None
    assert ENGLISH.find("none", " sorry ") is None
    assert ENGLISH.has("sorry", " so sorry ")
    assert not ENGLISH.has("sorry", " no way ")
    assert ENGLISH.is_all("refuse", " no way ")
    assert ENGLISH.is_all("refuse", "decline")
    assert not ENGLISH.is_all("refuse", " i decline ")
    assert not ENGLISH.is_all("none", " decline ")


def test_phrases_are_cut_out():
    assert ENGLISH.cut("sorry", " so sorry i am ") == (" so i am ", True)
    assert ENGLISH.cut("refuse", " i decline no way ok ") == (" i ok ", True)
    assert ENGLISH.cut("sorry", " ok ") == (" ok ", False)
    assert ENGLISH.cut("none", " ok ") == (" ok ", False)
    assert CHINESE.cut("filler", "我真的拒绝") == ("我拒绝", True)
    assert (ENGLISH.write(" a b "), CHINESE.write(" a b ")) == (" a b ", "ab")


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        (" ok ", 0),
        (" here you are ", 12),
        (" decline ", 7),
        (" sorry i decline ", 12),
        (" sorry here you are ", 17),
        (" no way ", 6),
        (" really no way ", 6),  # fillers have no weight
        (" really ", 0),
    ],
)
def test_how_much_the_phrases_cover(text, weight):
    assert ENGLISH.weigh(text) == weight


@pytest.mark.parametrize(
    ("text", "speaks"),
    [(" here you are ", False), (" decline ", True), (" sorry here you are ", True), (" really ", False)],
)
def test_what_speaks_of_refusing(text, speaks):
    assert ENGLISH.speaks(text) is speaks


def test_tables_are_narrowed_to_what_can_occur():
    tables = Tables([ENGLISH, CHINESE])
    found = tables.narrow(make_plain("I decline, sorry!"))
    assert [(language.name, dict(language.phrases)) for language in found] == [
        ("english", {"refuse": [phrase(" decline ")], "sorry": [phrase(" sorry ")]})
    ]
    found = tables.narrow(make_plain("我 拒绝"))
    assert [(language.name, language.unspaced, dict(language.phrases)) for language in found] == [
        ("chinese", True, {"refuse": [phrase("拒绝")]})
    ]
    assert tables.narrow(make_plain("hello")) == []
    opened = Tables([Language("english", unspaced=False, phrases={"refuse": (phrase(" an", "ti "),)})])
    assert [dict(language.phrases) for language in opened.narrow(" an anti ")] == [{"refuse": [phrase(" an", "ti ")]}]


@pytest.fixture
def write(tmp_path):
    path = tmp_path / "own.txt"

    def write_text(text):
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def phrases_of(tables):
    return [
        (language.name, language.unspaced, {kind: list(found) for kind, found in language.phrases.items()})
        for language in tables.languages
    ]


def test_a_file_of_phrases(write):
    path = write(
        "# phrases\n[english]\nrefuse: I decline, ^no way$,\n  not/never ... again  # a comment\nsorry: sorry*, *ful day\n"
        "\n[thai unspaced]\ncannot: ไม่ ได้\n"
    )
    assert phrases_of(read_languages(path)) == [
        (
            "english",
            False,
            {
                "refuse": [
                    phrase(" i decline "),
                    phrase(" no way ", at_start=True, at_end=True),
                    phrase(" not ", " again "),
                    phrase(" never ", " again "),
                ],
                "sorry": [phrase(" sorry"), phrase("ful day ")],
            },
        ),
        ("thai", True, {"cannot": [phrase(make_plain("ไม่ ได้").replace(" ", ""))]}),
    ]


def test_a_choice_may_go_on_in_the_next_line(write):
    path = write("[english]\nrefuse: not/\n  never again\n")
    assert phrases_of(read_languages(path)) == [
        ("english", False, {"refuse": [phrase(" not again "), phrase(" never again ")]})
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("refuse: no\n", '{path}:1: expected [NAME], a language, before the first phrase: "refuse: no"'),
        ("\n[two words]\n", '{path}:2: expected [NAME] or [NAME unspaced]: "[two words]"'),
        ("[a]\nrefuse no\n", '{path}:2: expected kind: phrase, phrase: "refuse no"'),
        ("[a]\nidium: no\n", '{path}:2: no such kind of phrase: "idium"\n  hint: did you mean \'idiom\'?'),
        ("[a]\nrefuse: no\nrefuse: never\n",
         "{path}:3: refuse stands twice in this language\n  hint: an indented line goes on"),
        ("[a]\nsorry: sorry\n",
         "{path}: nothing in this file can refuse\n  hint: for example [english], and below it refuse: i decline"),
        ("", "{path}: nothing in this file can refuse\n  hint: for example [english], and below it refuse: i decline"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file(write, text, message):
    path = write(text)
    with pytest.raises(HelmExtError) as error:
        read_languages(path)
    assert str(error.value) == message.format(path=path)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(HelmExtError, match="none.txt: cannot read phrases of refusals: "):
        read_languages(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"[a]\nrefuse: \xff\n")
    with pytest.raises(HelmExtError, match="bytes.txt: cannot read phrases of refusals: "):
        read_languages(tmp_path / "bytes.txt")


def test_an_unknown_kind_that_is_like_none_lists_them(write):
    with pytest.raises(
        HelmExtError, match=r'no such kind of phrase: "zzzzz"\n  hint: one of refuse, cannot, .*, common$'
    ):
        read_languages(write("[a]\nzzzzz: no\n"))
