"""Labels of options, as HELM's own joint adapter renders them, and in the texts of questions."""

import pytest
from helm.benchmark.adaptation.adapters.multiple_choice_joint_adapter import MultipleChoiceJointAdapter
from request_states_files import choice, reference, write

from helm_ext.evalset import row_extra
from helm_ext.formats.request_states import load
from helm_ext.formats.request_states.labels import _SERIES, shared_sequence, shows_options

RIVERS = ["Nile", "Volga", "Rhine"]


def render(tmp_path, row, **spec):
    """Return a row's labels, and the row as HELM's joint adapter renders it."""
    evalset = load(write(tmp_path / "x.json", [row], {"max_train_instances": 0, **spec}))
    assert evalset.adapter_spec.method == "multiple_choice_joint"
    adapter = MultipleChoiceJointAdapter.__new__(MultipleChoiceJointAdapter)
    adapter.adapter_spec = evalset.adapter_spec
    (instance,) = evalset.instances
    return row_extra(instance)["labels"], adapter.construct_example_prompt(instance, True, None)


@pytest.mark.parametrize(("prefix", "mapping", "lines"), [
    ("A. ", None, ["A. Nile", "B. Volga", "C. Rhine"]), ("(a) ", None, ["(a) Nile", "(b) Volga", "(c) Rhine"]),
    ("1) ", None, ["1) Nile", "2) Volga", "3) Rhine"]), ("甲、", None, ["甲、Nile", "乙、Volga", "丙、Rhine"]),
    ("А. ", None, ["А. Nile", "Б. Volga", "В. Rhine"]), ("가. ", None, ["가. Nile", "나. Volga", "다. Rhine"]),
    ("①", None, ["①Nile", "②Volga", "③Rhine"]), ("Ａ：", None, ["Ａ：Nile", "Ｂ：Volga", "Ｃ：Rhine"]),
    ("क. ", None, ["क. Nile", "ख. Volga", "ग. Rhine"]), ("9. ", None, ["9. Nile", "10. Volga", "11. Rhine"]),
    ("Y. ", None, ["Y. Nile", "Z. Volga", "AA. Rhine"]), ("ア. ", None, ["ア. Nile", "イ. Volga", "ウ. Rhine"]),
    ("- (A) ", None, ["- (A) Nile", "- (B) Volga", "- (C) Rhine"]),
    ("A. an Apple ", None, ["A. an Apple Nile", "B. an Apple Volga", "C. an Apple Rhine"]),  # HELM: both A
    ("10) ", {"10": 0, "2": 1, "1": 2}, ["10) Nile", "2) Volga", "1) Rhine"]),
    ("[x] ", {"[x]": 0, "[y]": 1, "[z]": 2}, ["[x] Nile", "[y] Volga", "[z] Rhine"]),
    ("B. ", {"A": 0, "B": 1, "C": 2}, ["A. Nile", "B. Volga", "C. Rhine"]),
    ("A. Answer: ", None, ["A. Answer: Nile", "B. Answer: Volga", "C. Answer: Rhine"]),
    ("A. ", {"甲": 0, "乙": 1, "丙": 2}, ["甲. Nile", "乙. Volga", "丙. Rhine"]),
    ("yes: ", {"yes": 0, "no": 1, "both": 2}, ["yes: Nile", "no: Volga", "both: Rhine"]),
    ("★ ", {"★": 0, "☆": 1, "✦": 2}, ["★ Nile", "☆ Volga", "✦ Rhine"]),
])  # fmt: skip
def test_labels_are_rendered_as_meant(tmp_path, prefix, mapping, lines):
    row = choice("a?", RIVERS, 1, **({"answer_mapping": mapping} if mapping else {}))
    labels, text = render(tmp_path, row, reference_prefix=prefix)
    wanted = {option: label for label, option in labels.items()}["Volga"]
    assert text == "Input: a?\n" + "".join(f"{line}\n" for line in lines) + f"Output: {wanted}\n"


def test_options_are_shown_in_the_order_of_their_labels(tmp_path):
    mapping = {"A": "Rhine", "B": "Nile", "C": "Volga"}
    row = choice("a?", [], answer_mapping=mapping, references=[])
    row["instance"]["references"] = [reference("Nile", correct=True), reference("Volga", kept=1), reference("Rhine")]
    assert render(tmp_path, row) == (mapping, "Input: a?\nA. Rhine\nB. Nile\nC. Volga\nOutput: B\n")


def test_labels_of_the_file(tmp_path):
    labels, text = render(tmp_path, choice("a?", RIVERS), reference_prefix_characters=["x", "yy", "z"])
    assert labels == {"x": "Nile", "yy": "Volga", "z": "Rhine"}
    assert text == "Input: a?\nx. Nile\nyy. Volga\nz. Rhine\nOutput: x\n"


def test_more_than_26_options(tmp_path):
    _, text = render(tmp_path, choice("a?", [f"option {number}" for number in range(30)], 27))
    assert "\nZ. option 25\nAA. option 26\nAB. option 27\n" in text
    assert text.endswith("Output: AB\n")


@pytest.mark.parametrize(("text", "is_there"), [
    ("Which? A. Nile B. Volga", True), ("Which? (A) Nile (B) Volga", True),
    ("Which? A) - Nile\nB) - Volga", True),  # four characters between a label and its option
    ("Which? A. --- Nile\nB. --- Volga", False),  # too far from it, and the line holds more
    ("Which?\n- Nile\n* Volga", True), ("Which?\nNile\nVolga", True), ("Which? Nile\nVolga", False),
    ("Which? A. Nile", False), ("Which? A. Nile B. the Volga", False), ("Which? A. Nile or Volga", False),
    ("Which? B. Nile A. Volga", False),
    ("Is Nile more than Volga? A. Nile B. Volga", True),  # the second time it stands behind its label
])  # fmt: skip
def test_options_that_stand_in_the_text(text, is_there):
    assert shows_options(text, {"A": 0, "B": 1}, ["Nile", "Volga"]) is is_there


def test_one_sequence_of_labels_for_all_rows():
    assert shared_sequence([("A", "B"), ("A", "B", "C")]) == ("A", "B", "C")
    assert shared_sequence([("C", "A", "B"), ("A", "B")]) == ("A", "B", "C")  # in the order of the labels
    assert shared_sequence([("2", "10", "1"), ("1",)]) == ("1", "2", "10")
    assert shared_sequence([("b", "a"), ("b",)]) == ("b", "a")


def test_no_series_of_labels_repeats_itself():
    assert all(len(set(series)) == len(series) for series in _SERIES)
