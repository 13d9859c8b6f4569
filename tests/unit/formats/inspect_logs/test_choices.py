"""Multiple choice: targets are read as inspect_ai's scorer does, and shuffled options are put back into order."""

import pytest
from tests.inspect_files import header, read_row, sample

from helm_ext.errors import DatasetError
from helm_ext.formats.inspect_logs.choices import label, read_target

RIVERS = ["Anda", "Brell", "Cosk"]
SHUFFLED = header(plan={"steps": [{"solver": "multiple_choice", "params": {"shuffle": True}}]})


@pytest.mark.parametrize(("target", "positions"), [
    (["A"], [0]), (["c"], [2]), (["AC"], [0, 2]), (["C,A"], [0, 2]), (["A", "C"], [0, 2]), (["A B"], [0, 1]),
    (["D"], None), ([""], None), ([], None), (["Anda"], None), (["1"], None), (["ß"], None), (["²"], None),
])  # fmt: skip
def test_letters(target, positions) -> None:
    assert read_target(target, RIVERS, letters=True) == positions


def test_the_27th_option_is_1() -> None:
    many = [f"option {n}" for n in range(30)]
    assert [label(n) for n in (0, 25, 26, 29)] == ["A", "Z", "1", "4"]
    assert read_target(["2"], many, letters=True) == [27]


@pytest.mark.parametrize(("target", "choices", "positions"), [
    (["Brell"], RIVERS, [1]), (["Cosk ", "Anda"], RIVERS, [2, 0]), (["B"], RIVERS, [1]), (["A"], ["A", "B"], [0]),
    (["A"], ["B", "A"], None),  # the first option, or the one that reads "A"
    (["Dwin"], RIVERS, None), (["A"], ["A", "A"], None),
])  # fmt: skip
def test_without_the_scorer_for_it_a_target_may_be_a_text(target, choices, positions) -> None:
    assert read_target(target, choices, letters=False) == positions


def asked(order: str, said: str, *, parsed: bool, **changes):
    """Return a sample whose options were shown in another order; inspect_ai rewrites what it has parsed."""
    shown = [RIVERS["ABC".index(letter)] for letter in order]
    prompt = "Which?\n\n" + "\n".join(f"{label(n)}) {text}" for n, text in enumerate(shown))
    rewritten = f"ANSWER: {order['ABC'.index(said[-1])]}" if parsed else said
    event = {"event": "model", "input": [{"role": "user", "content": prompt}],
             "output": {"choices": [{"message": {"role": "assistant", "content": said}}], "completion": said}}  # fmt: skip
    judge = {**event, "output": {"completion": "GRADE: C", "choices": []}}
    events = [event, {"event": "span_begin", "type": "scorers", "name": "scorers"}, judge]
    return sample(text=rewritten, choices=RIVERS, target="B", events=events, scores={}, **changes)


EXPLAINED = (
    "Choices were shuffled before generating a response, the following was sent to the model:\n\n"
    "A) Cosk\nB) Anda\nC) Brell\nShuffled answer:\nANSWER: "
)
CAB = ["Cosk", "Anda", "Brell"]
REWRITTEN, SAID = asked("CAB", "ANSWER: C", parsed=True), asked("CAB", "it is C", parsed=False)
EPOCHS = [
    REWRITTEN,
    asked("BCA", "I think it is B", parsed=False, epoch=2),
    asked("ABC", "No idea", parsed=False, epoch=3),
]


@pytest.mark.parametrize(("made", "head", "options", "gold", "texts"), [
    # What the model said is in the order that it was shown, whether it was rewritten or not.
    ([asked("CAB", "Clearly.\nANSWER: C", parsed=True)], SHUFFLED, CAB, ["C"], ["Clearly.\nANSWER: C"]),
    ([SAID], SHUFFLED, CAB, ["C"], ["it is C"]),
    # Of several orders that of the dataset is taken.
    (EPOCHS, SHUFFLED, RIVERS, ["B"], ["ANSWER: B", "ANSWER: C", "No idea"]),
    # Without events, what was rewritten is in the order of the dataset.
    ([{**REWRITTEN, "events": []}], SHUFFLED, RIVERS, ["B"], ["ANSWER: B"]),
    # The scorer says in which order the options were shown.
    ([{**SAID, "events": [], "scores": {"choice": {"value": "I", "explanation": EXPLAINED}}}], None, CAB, ["C"], ["it is C"]),
    # Several are right, and there is no solver that says so.
    ([sample(choices=RIVERS, target=["A", "C"], text="A, C")], None, RIVERS, ["A", "C"], ["A, C"]),
])  # fmt: skip
def test_options_and_answers_stand_in_one_order(tmp_path, made, head, options, gold, texts) -> None:
    row = read_row(tmp_path, made, head)
    assert (list(row.options.items()), row.gold) == (list(zip("ABC", options, strict=True)), gold)
    assert ([answer.text for answer in row.answers], row.unscored) == (texts, "")


ASKS_FOR_ONE = header(plan={"steps": [{"solver": "multiple_choice", "params": {"multiple_correct": False}}]})


@pytest.mark.parametrize(("made", "head", "said"), [
    ({**SAID, "events": []}, SHUFFLED, "does not tell in which order"),
    (sample(choices=RIVERS, target="AC", text="ANSWER: A"), ASKS_FOR_ONE, "asks for one"),
])  # fmt: skip
def test_what_cannot_be_scored_is_not(tmp_path, made, head, said) -> None:
    assert said in read_row(tmp_path, [made], head).unscored


def test_an_event_of_another_shape_is_an_error_of_its_sample(tmp_path):
    made = asked("CAB", "ANSWER: C", parsed=True)
    made["events"][0]["output"] = "C"
    with pytest.raises(DatasetError, match=r"log\.json:\d+: expected an object, got "):
        read_row(tmp_path, [made], SHUFFLED)
