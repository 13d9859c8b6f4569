"""Multiple choice: targets are read as inspect_ai's scorer does, and shuffled options are put back into order."""

from __future__ import annotations

import pytest
from tests.inspect_files import header, read_row, sample

from helm_ext.errors import DatasetError
from helm_ext.formats.inspect_logs.choices import label, read_target

RIVERS = ["Anda", "Brell", "Cosk"]
SHUFFLED = header(plan={"steps": [{"solver": "multiple_choice", "params": {"shuffle": True}}]})


@pytest.mark.parametrize(
    ("target", "positions"),
    [(["A"], [0]), (["c"], [2]), (["AC"], [0, 2]), (["C,A"], [0, 2]), (["A", "C"], [0, 2]), (["A B"], [0, 1]),
     (["D"], None), ([""], None), ([], None), (["Anda"], None), (["1"], None), (["ß"], None), (["²"], None)],
)  # fmt: skip
def test_letters(target, positions) -> None:
    assert read_target(target, RIVERS, letters=True) == positions


def test_the_27th_option_is_1() -> None:
    many = [f"option {n}" for n in range(30)]
    assert [label(n) for n in (0, 25, 26, 29)] == ["A", "Z", "1", "4"]
    assert read_target(["2"], many, letters=True) == [27]


@pytest.mark.parametrize(
    ("target", "choices", "positions"),
    [
        (["Brell"], RIVERS, [1]),
        (["Cosk ", "Anda"], RIVERS, [2, 0]),
        (["B"], RIVERS, [1]),
        (["A"], ["A", "B"], [0]),
        (["A"], ["B", "A"], None),  # the first option, or the one that reads "A"
        (["Dwin"], RIVERS, None),
        (["A"], ["A", "A"], None),
    ],
)
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


def test_the_answer_is_what_the_model_said_in_the_order_that_it_was_shown(tmp_path) -> None:
    row = read_row(tmp_path, [asked("CAB", "Clearly.\nANSWER: C", parsed=True)], SHUFFLED)
    assert row.options == {"A": "Cosk", "B": "Anda", "C": "Brell"}
    assert row.gold == ["C"]
    assert [answer.text for answer in row.answers] == ["Clearly.\nANSWER: C"]


def test_an_answer_that_was_not_rewritten_keeps_its_meaning(tmp_path) -> None:
    row = read_row(tmp_path, [asked("CAB", "I think it is C", parsed=False)], SHUFFLED)
    assert (row.options["C"], row.gold) == ("Brell", ["C"])


def test_epochs_in_several_orders_are_answered_in_that_of_the_dataset(tmp_path) -> None:
    epochs = [
        asked("CAB", "ANSWER: C", parsed=True),
        asked("BCA", "I think it is B", parsed=False, epoch=2),
        asked("ABC", "No idea", parsed=False, epoch=3),
    ]
    row = read_row(tmp_path, epochs, SHUFFLED)
    assert list(row.options.values()) == RIVERS
    assert [answer.text for answer in row.answers] == ["ANSWER: B", "ANSWER: C", "No idea"]


def test_without_events_what_was_rewritten_is_in_the_order_of_the_dataset(tmp_path) -> None:
    row = read_row(tmp_path, [{**asked("CAB", "ANSWER: C", parsed=True), "events": []}], SHUFFLED)
    assert (list(row.options.values()), row.gold, row.answers[0].text) == (RIVERS, ["B"], "ANSWER: B")


def test_without_events_an_answer_of_unknown_order_is_not_scored(tmp_path) -> None:
    row = read_row(tmp_path, [{**asked("CAB", "it is C", parsed=False), "events": []}], SHUFFLED)
    assert "does not tell in which order" in row.unscored


def test_the_scorer_says_in_which_order_the_options_were_shown(tmp_path) -> None:
    explanation = (
        "Choices were shuffled before generating a response, the following was sent to the model:\n\n"
        "A) Cosk\nB) Anda\nC) Brell\nShuffled answer:\nANSWER: "
    )
    made = {**asked("CAB", "it is C", parsed=False), "events": []}
    made["scores"] = {"choice": {"value": "I", "explanation": explanation}}
    row = read_row(tmp_path, [made])
    assert (list(row.options.values()), row.gold, row.answers[0].text) == (["Cosk", "Anda", "Brell"], ["C"], "it is C")


def test_several_right_options_without_a_solver_that_says_so(tmp_path) -> None:
    row = read_row(tmp_path, [sample(choices=RIVERS, target=["A", "C"], text="A, C")])
    assert (row.gold, row.unscored) == (["A", "C"], "")


def test_several_right_options_where_the_task_asks_for_one_are_not_scored(tmp_path) -> None:
    plan = {"steps": [{"solver": "multiple_choice", "params": {"multiple_correct": False}}]}
    row = read_row(tmp_path, [sample(choices=RIVERS, target="AC", text="ANSWER: A")], header(plan=plan))
    assert "asks for one" in row.unscored


def test_an_event_of_another_shape_is_an_error_of_its_sample(tmp_path):
    made = asked("CAB", "ANSWER: C", parsed=True)
    made["events"][0]["output"] = "C"
    with pytest.raises(DatasetError, match=r"log\.json:\d+: expected an object, got "):
        read_row(tmp_path, [made], SHUFFLED)
