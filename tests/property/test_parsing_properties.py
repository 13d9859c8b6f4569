"""Reading labels: what holds for any alphabet and any options."""

import re
import unicodedata

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helm_ext.parsing import read_choice, read_label, read_labels, split_segments

DECORATIONS = [
    "{}", " {}\n", "{}.", "({})", "[{}]", "{})", "**{}**", '"{}"', "`{}`", "（{}）", "{}。", "{{{}}}", "_{}_", "**({})**.",
    "\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$", "<answer>{}</answer>", "<b>{}</b>",
    "The answer is {}.", "The answer is ({}).", "Answer: {}", "**Answer:** {}", "Final answer: **({})**", "答案是{}。", "答案：{}",
    "I would choose {}.", "Let us see.\nThe answer is {}.", "The answer is ({}) because it fits.", "So it goes.\n\n({})",
    "<think>hm, hm</think>{}",
]  # fmt: skip
"""Ways to state a label."""

LABELS = st.sampled_from(
    [
        tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        tuple("abcde"),
        tuple(str(i) for i in range(1, 31)),
        ("i", "ii", "iii", "iv", "v", "vi"),
        ("A", "B", "AA", "AB", "BA"),
        tuple("甲乙丙丁"),
        tuple("абвгд"),
        tuple("אבגד"),
        ("أ", "ب", "ج", "د", "هـ"),
        tuple("アイウエ"),
        tuple("가나다라"),
        tuple("①②③④⑤"),
        tuple("ＡＢＣＤ"),
        ("(A)", "(B)", "(C)"),
        ("A.", "B.", "C."),
        ("Yes", "No", "Maybe"),
        ("true", "false"),
    ]
)

TEXT = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=30)


SYLLABLES = ["zor", "mun", "kol", "pus", "wem", "tin"]
WORDS = [f"{one}{other}" for one in SYLLABLES for other in SYLLABLES]
TEXTS = [*WORDS, *(f"{word} {WORDS[i - 7]}" for i, word in enumerate(WORDS))]


@st.composite
def plain_questions(draw):
    """A question with options of one or two words that look like no label."""
    labels, start = draw(LABELS), draw(st.integers(0, len(TEXTS) - 31))
    return dict(zip(labels, TEXTS[start:], strict=False))


@st.composite
def questions(draw, text=TEXT):
    """A question with any options at all."""
    labels = draw(LABELS)
    texts = draw(st.lists(text, min_size=len(labels), max_size=len(labels), unique_by=lambda t: t.strip()))
    return dict(zip(labels, texts, strict=True))


@settings(deadline=None)
@given(plain_questions(), st.data(), st.sampled_from(DECORATIONS))
def test_a_label_is_read_in_any_decoration(labels, data, decoration):
    label = data.draw(st.sampled_from(sorted(labels)))
    assert read_label(decoration.format(label), labels) == label


@settings(deadline=None)
@given(plain_questions(), st.data())
def test_a_label_with_its_text_is_read(labels, data):
    label = data.draw(st.sampled_from(sorted(labels)))
    for form in ("{}. {}", "({}) {}", "{}: {}", "{} - {}", "The answer is {}) {}.", "**{}. {}**", "{} {}"):
        assert read_label(form.format(label, labels[label]), labels) == label, form


@settings(deadline=None)
@given(questions(), st.data())
def test_a_label_alone_is_itself_whatever_the_options_are(labels, data):
    label = data.draw(st.sampled_from(sorted(labels)))
    assert read_label(label, labels) == label
    assert read_choice(f"<<{label}>>", labels, "<<(.*)>>") == [label]


@settings(deadline=None)
@given(questions(), st.data())
def test_an_options_text_is_that_option(labels, data):
    label = data.draw(st.sampled_from(sorted(labels)))
    text = labels[label]
    assume(text.strip() and text.strip() not in labels)
    assert read_label(text, labels) == label
    assert read_label(f"\n {text}\t", labels) == label


@settings(deadline=None)
@given(plain_questions(), st.data())
def test_a_stated_text_is_that_option(labels, data):
    label = data.draw(st.sampled_from(sorted(labels)))
    text = labels[label]
    for form in (
        "The answer is {}.",
        "Answer: {}",
        "\\boxed{{{}}}",
        "**{}**",
        "{}.",
        "Hm, hm.\nThe correct answer is: {}",
    ):
        assert read_label(form.format(text.upper()), labels) == label, form


WORD = st.from_regex(r"[a-z]{2,8}", fullmatch=True).filter(
    lambda word: (
        word not in {"answer", "option", "choice", "ii", "iii", "iv", "vi", "yes", "no", "true", "false", "maybe"}
        and word not in {"aa", "ab", "ba", "letter", "select", "it", "is", "so", "thus"}
    )
)


@settings(deadline=None)
@given(questions(), st.lists(WORD, min_size=2, max_size=30), st.sampled_from(["", "A ", "I ", "a ", "В ", "1 "]))
def test_prose_without_a_statement_means_nothing(labels, words, start):
    prose = start + " ".join(words) + "."
    flat = " ".join(words)
    assume(
        not any(
            flat in text.casefold() or (text and text.casefold().strip() in prose.casefold())
            for text in labels.values()
        )
    )
    assert read_label(prose, labels) is None


@settings(deadline=None)
@given(plain_questions(), st.data())
def test_two_labels_mean_nothing(labels, data):
    one, other = data.draw(st.permutations(sorted(labels)))[:2]
    for form in (
        "{} or {}",
        "{} and {}",
        "{}, {}",
        "({}) or ({})",
        "The answer is {} or {}.",
        "Answer: {}, {}",
        "{}/{}",
    ):
        assert read_label(form.format(one, other), labels) is None, form


@settings(deadline=None)
@given(questions(), st.text(max_size=60))
def test_any_text_is_read_as_a_label_or_nothing(labels, completion):
    assert read_label(completion, labels) in {None, *labels}


@settings(deadline=None)
@given(plain_questions(), st.data(), st.sampled_from([", ", " and ", "; ", "/", "\n", "、"]))
def test_a_set_of_labels_or_texts_is_read_in_any_order(labels, data, between):
    chosen = data.draw(st.lists(st.sampled_from(sorted(labels)), min_size=1, max_size=5, unique=True))
    named = [data.draw(st.sampled_from([label, f"({label})", labels[label]])) for label in chosen]
    assert set(read_labels(between.join(named), labels)) == set(chosen)


@settings(deadline=None)
@given(questions(), st.text(max_size=60))
def test_any_text_is_read_as_some_labels_in_order(labels, completion):
    found = read_labels(completion, labels)
    assert list(found) == [label for label in labels if label in found]


@settings(deadline=None)
@given(
    st.integers(1, 999),
    st.sampled_from(["{}", "**{}**", "The answer is {}.", "Answer: {}", "\\boxed{{{}}}", "#### {}"]),
)
def test_a_sign_tells_numbers_apart(number, form):
    both = {"A": str(number), "B": str(-number)}
    assert read_label(form.format(number), both) == "A"
    assert read_label(form.format(-number), both) == "B"
    assert read_label(form.format(-number), {"A": str(number), "B": str(number + 1)}) is None


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), max_size=5))
def test_lists_survive_being_written_down(segments):
    plain = [re.sub("[;.。．]", "", segment).strip() for segment in segments]
    while plain and not plain[-1]:
        plain.pop()
    assert split_segments("; ".join(plain)) == plain


@settings(deadline=None)
@given(st.text(max_size=40))
def test_compatibility_forms_of_a_completion_mean_the_same(completion):
    labels = {"A": "first", "B": "second"}
    folded = unicodedata.normalize("NFKC", completion)
    assume(folded.strip() not in labels)
    assert read_label(completion, labels) == read_label(folded, labels)
