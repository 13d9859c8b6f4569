"""What is read does not depend on which label it is: every shape of a sentence, with every label of every sequence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_ext.parsing import read_label, read_labels

SEQUENCES = [
    tuple("ABCDEFGHIJ"),
    tuple("abcde"),
    tuple("123456789"),
    tuple("甲乙丙丁"),
    ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"),
    ("i", "ii", "iii", "iv", "v"),
    tuple("αβγδε"),
    tuple("АБВГД"),
    ("(A)", "(B)", "(C)", "(D)", "(E)"),
    ("A.", "B.", "C.", "D.", "E."),
    ("①", "②", "③", "④"),
    tuple("yaoeui"),
]

TEXTS = ["zormun", "kolpus", "wemtin", "purkol", "tinzor", "munwem", "zorpus", "kolwem", "purtin", "munkol"]

STATING = [
    "{}", "{}.", "({})", "{})", "**{}**", '"{}"', "The answer is {}.", "The answer is {}",
    "The answer is {} because it fits.", "The answer is {}, because it fits.",
    "The answer is {} since nothing else fits.", "The answer is {} as it fits best.",
    "The answer is {} for the following reasons.", "The answer is {} while the others do not fit.",
    "The answer is {} given the facts.", "The answer is {} and here is why.", "The answer is {} and it is easy to see.",
    "The answer is {} here.", "The answer is {} ({text}).", "The answer is {}: {text}.", "The answer is clearly {}.",
    "The answer must be {}.", "The correct answer is ({}) {text}.", "The correct option is {}.",
    "The right choice here is {}.", "The correct one is {}.", "Answer: {}", "Answer: {} because it fits", "Ans: {}",
    "ANSWER: ({})", "Correct: {}", "Final: {}", "Final answer: **{}**", "Answer: I think it is {}.",
    "Answer: I believe it is {}", "So the answer is {}.", "Therefore, {}.", "Hence ({}).", "I choose {}.",
    "I choose {} as the correct answer.", "I would go with {} because it fits.", "I'm going with {}, it fits.",
    "I'd say {}.", "I think it's {}.", "I believe the answer is {}.", "I am sure that it is {}.", "It is {}.",
    "It must be {}, I think.", "That would be {}.", "My answer is {}.", "My pick: {}", "{} because it fits",
    "{}, because it fits.", "{}, since nothing else fits.", "{} - because it fits", "{} is correct.",
    "{} is the correct answer.", "{} is the right choice because it fits.", "I think {} is correct.",
    "Option {} is right.", "Option {}", "Option {}: {text}", "{}. {text}", "{}) {text}", "{}: {text}", "{} {text}",
    "{text} ({})", "{text}, option {}", "{} it is.", "{} fits best.", "{}, not {other}.", "{} rather than {other}",
    "Not {other} but {}", "It is not {other}, it is {}.", "The answer is {}. {other} is wrong.",
    "The answer is {}. If it rained, the answer would be {other}.",
    "The answer is {}. The previous answer was {other}.", "The answer is {}. The other option is {other}.",
    "The answer is {other}. Sorry, I meant {}.", "The answer is {other}. Wait, no, the answer is {}.",
    "The answer is {other}. My apologies, it should have been {}.",
    "{other}. Sorry, that was a slip, {}.", "{other}. Strike that, {}.",
    "La réponse est {other}. Pardon, je voulais dire {}.", "Die Antwort ist {other}. Entschuldigung, ich meinte {}.",
    "La respuesta es {other}. Perdón, quería decir {}.", "La risposta è {other}. Scusa, intendevo {}.",
    "Ответ: {other}. Извините, я хотел сказать {}.", "答案是{other}。抱歉，应该是{}。",
    "The answer is {}. In question 4 the answer was {other}.", "The answer is {}. Last year the answer was {other}.",
    "Not {other}, {}.", "100% {}", "As explained above, {}.", "{} is the odd one out.", "That leaves {}.",
    "By elimination, only {} remains.", "Il ne reste que {}.", "只剩{}。", "{}\n\nQuestion: What else?\nAnswer: {other}",
    "{}\n\nExplanation: {other} does not fit.", "Let us see.\n\n{}", "Let us see.\nSo {}", '{{"answer": "{}"}}',
    '```json\n{{"choice": "{}", "why": "it fits"}}\n```', "\\boxed{{{}}}", "<answer>{}</answer>", "#### {}", "答案是{}。",
    "答案：{}", "选{}，因为对。", "正解は{}です。", "정답은 {}입니다.", "La respuesta correcta es la {}.",
    "La respuesta es {} porque es correcta.", "A resposta correta é {}.", "La bonne réponse est {}.",
    "La réponse est {} car elle convient.", "Die richtige Antwort ist {}.", "Die Antwort ist {}, weil sie passt.",
    "{} ist richtig.", "La risposta corretta è {}.", "Правильный ответ: {}.", "Ответ — {}, потому что так.",
    "Doğru cevap: {}", "Đáp án đúng là {}.", "الإجابة هي {}",
]  # fmt: skip
"""Each states the label at {}; `text` is its option's text, `other` another label."""

SILENT = [
    "{} good question", "{} good question indeed.", "{} lot of people get this wrong.", "{} would need more context.",
    "{} think this one is tricky.", "{} do not know.", "{} am not sure.", "{}, for one, have no idea.",
    "{} am a language model.", "The answer is {} combination of the two.", "The answer is {} matter of taste.",
    "The answer is {} good one to know.", "Answer: {} believe that nobody knows", "Answer: {} small town by the sea",
    "It is {} shame.", "I choose {} word at random.", "{} or {other}", "The answer is {} or {other}.",
    "Either {} or {other}.", "{} and {other}", "Both {} and {other}", "{}, {other}", "{}/{other}",
    "The answer is not {}.", "{} is wrong.", "{} is not correct.", "It is not {}.", "Not {}",
    "If the answer is {}, then we are lost.", "The answer would be {} if it rained.", "The previous answer was {}.",
    "The other option is {}.", "Your answer was {}.", "The answer could be {}.", "You might think the answer is {}.",
    "I doubt that the answer is {}.", "Is the answer {}?", "The answer is {}. The answer is {other}.",
    "{}. {othertext}", "{text} ({other})", "The answer is {}. {othertext}", "不选{}", "答案不是{}",
    "Die Antwort ist nicht {}.", "La respuesta no es {}.", "Grade {} beef", "\n\nQuestion: What else?\nAnswer: {}",
    "Only {} is wrong.", "Sorry, I do not know about {}.",
]  # fmt: skip
"""None of these states an answer."""


def _fill(shape: str, question: dict[str, str], label: str, other: str) -> str:
    """Return the shape with the label as it is written in a sentence: A for "(A)" and "A."."""
    text, othertext = question[label], question[other]
    return shape.format(label.strip("()."), text=text, other=other.strip("()."), othertext=othertext)


def _questions():
    for sequence in SEQUENCES:
        question = dict(zip(sequence, TEXTS, strict=False))
        for i, label in enumerate(sequence):
            yield question, label, sequence[(i + 1) % len(sequence)]
            yield question, label, sequence[i - 1]


def test_there_are_enough_shapes():
    assert len(set(STATING)) == len(STATING) >= 60
    assert len(set(SILENT)) == len(SILENT) >= 40


@pytest.mark.long
@pytest.mark.parametrize("shape", STATING)
def test_a_shape_that_states_an_answer_states_every_label(shape):
    missed = [
        (label, read)
        for question, label, other in _questions()
        if (read := read_label(_fill(shape, question, label, other), question)) != label
    ]
    assert missed == []


@pytest.mark.long
@pytest.mark.parametrize("shape", SILENT)
def test_a_shape_that_states_none_states_no_label(shape):
    read = [
        (label, read)
        for question, label, other in _questions()
        if (read := read_label(_fill(shape, question, label, other), question)) is not None
    ]
    assert read == []


@st.composite
def _renamed(draw):
    """A completion, and the same with the labels of another sequence in their places."""
    one, two = draw(st.sampled_from(SEQUENCES)), draw(st.sampled_from(SEQUENCES))
    size = draw(st.integers(3, min(len(one), len(two))))
    texts = draw(st.permutations(TEXTS))[:size]
    first = dict(zip(draw(st.permutations(one))[:size], texts, strict=True))
    second = dict(zip(draw(st.permutations(two))[:size], texts, strict=True))
    shapes = draw(st.lists(st.sampled_from(STATING[6:] + SILENT), min_size=1, max_size=3))
    places = [draw(st.permutations(range(size)))[:2] for _ in shapes]
    filled = [
        " ".join(
            _fill(shape, question, list(question)[i], list(question)[j])
            for shape, (i, j) in zip(shapes, places, strict=True)
        )
        for question in (first, second)
    ]
    return (filled[0], first), (filled[1], second)


@pytest.mark.long
@settings(deadline=None, max_examples=300)
@given(_renamed())
def test_any_text_means_the_same_option_under_other_labels(pair):
    (one, first), (two, second) = pair
    read_one, read_two = read_label(one, first), read_label(two, second)
    assert first.get(read_one or "") == second.get(read_two or "")
    assert {first[label] for label in read_labels(one, first)} == {second[label] for label in read_labels(two, second)}
