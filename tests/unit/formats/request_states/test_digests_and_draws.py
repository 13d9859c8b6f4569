"""What decides whether two files ask the same questions, which rows are drawn, and what rides along with a row."""

from hashlib import blake2b
from types import SimpleNamespace

import pytest
from request_states_files import answered, choice, draw_order, state, write

from helm_ext.formats.request_states import load

ROWS = [state("What is 1 plus 1?", "2", id="a"), choice("Which is red?", ["blood", "grass"], id="b")]
MAPPING = {"A": "blood", "B": "grass"}


def digest(tmp_path, rows=ROWS, spec=None, **top):
    return load(path=write(tmp_path / "x.json", rows, spec or {"max_train_instances": 0}, **top)).question_digest


@pytest.mark.parametrize("rows", [
    ROWS[:1], [*ROWS, state("What is 2 plus 2?", "4", id="c")], [state("What is 1 plus 2?", "2", id="a"), ROWS[1]],
    [state("What is 1 plus 1?", "3", id="a"), ROWS[1]], [state("What is 1 plus 1?", "2", id="z"), ROWS[1]],
    [ROWS[0], choice("Which is red?", ["blood", "grass"], 1, id="b")],
])  # fmt: skip
def test_other_questions_have_another_digest(tmp_path, rows):
    assert digest(tmp_path, rows) != digest(tmp_path)


def test_the_labels_of_a_mapping_belong_to_the_question(tmp_path):
    one = [{**ROWS[1], "answer_mapping": MAPPING}]
    other = [{**ROWS[1], "answer_mapping": {"A": "grass", "B": "blood"}}]
    spec = {"max_train_instances": 0, "method": "generation"}
    assert digest(tmp_path, one, spec) != digest(tmp_path, other, spec)


@pytest.mark.parametrize("spec", [{"instructions": "Be brief."}, {"max_tokens": 3}])
def test_another_header_has_another_digest(tmp_path, spec):
    assert digest(tmp_path, spec={"max_train_instances": 0, **spec}) != digest(tmp_path)
    assert digest(tmp_path, scoring={"metrics": ["exact_match"]}) != digest(tmp_path)


def test_what_was_answered_by_whom_and_in_which_order_does_not_count(tmp_path):
    asked = digest(tmp_path)
    assert digest(tmp_path, ROWS[::-1]) == asked
    assert digest(tmp_path, [answered(row, "2") for row in ROWS]) == asked
    spec = {"max_train_instances": 0, "model": "x/y", "model_deployment": "z/y"}
    assert digest(tmp_path, spec=spec) == asked


# The draw


def row(name=None, text=None, references=(), **given):
    instance = {"input": {"text": text} if text is not None else {}, **given}
    if name is not None:
        instance["id"] = name
    return SimpleNamespace(instance=instance, references=list(references), golds=[])


def order_by_hand(contents, seed):
    """Positions in the order of the keyed hashes of their contents."""
    hashes = [blake2b(content.encode(), digest_size=16, key=str(seed).encode()).digest() for content in contents]
    return sorted(range(len(contents)), key=hashes.__getitem__)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_rows_are_drawn_by_a_keyed_hash_of_id_and_text(seed):
    rows = [row(f"n{number}", f"What is {number}?") for number in range(30)]
    contents = [f"n{number}\0What is {number}?" for number in range(30)]
    assert draw_order(rows, seed) == [rows[place] for place in order_by_hand(contents, seed)]


def test_conversations_are_drawn_by_their_messages_whatever_the_order_of_their_keys():
    messages = [{"role": "user", "content": f"What is {number}?"} for number in range(20)]
    rows = [row(f"n{number}", None) for number in range(20)]
    for one, message in zip(rows, messages, strict=True):
        one.instance["input"] = {"messages": [dict(reversed(message.items()))]}
    contents = [f"n{number}\0\0{[message]}" for number, message in enumerate(messages)]
    assert draw_order(rows, 1) == [rows[place] for place in order_by_hand(contents, 1)]


def test_the_order_of_the_file_does_not_count():
    rows = [row(f"n{number % 3}", "the same", references=[{"output": {"text": str(number)}}]) for number in range(9)]
    assert draw_order(rows[::-1], 1) == draw_order(rows, 1)
    assert draw_order(rows, 1) != draw_order(rows, 2)
    assert draw_order([], 1) == []


# What rides along
