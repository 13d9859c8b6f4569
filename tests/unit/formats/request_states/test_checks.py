"""What is said of a whole file, by the rules of `checks`; how rows are drawn; the quick reading of known rows."""

import json

import pytest
from request_states_files import answered, choice, codes, problems, reference, split_rows, state, write

from helm_ext.formats.request_states import load
from helm_ext.formats.request_states.checking import conform, read_known, read_state
from helm_ext.formats.request_states.shapes import StateShape
from helm_ext.formats.ultraeval.scoring import make_digest


def said(path, code):
    """The problems of one kind, without the file's name."""
    return [str(one).split(": ", 1)[1] for one in problems(path) if one.code == code]


class TestSegments:
    """`output_format: list`, and each segment as a correct reference of its own."""

    def row(self, *golds):
        one = state()
        one["instance"]["references"] = [reference(gold, correct=True) for gold in golds]
        return one

    def test_each_alone_would_be_a_right_list(self, tmp_path):
        spec = {"output_format": "list"}
        (found,) = said(write(tmp_path / "x.json", [self.row("red", "blue")], spec), "separate-segments")
        assert '1 row has several correct references, none with ";": each alone is a right list' in found

    @pytest.mark.parametrize(
        ("golds", "spec"),
        [
            (("red", "blue"), {}),
            (("red", "blue"), {"output_format": "list", "multi_label": True}),
            (("red; blue", "rouge; bleu"), {"output_format": "list"}),
            (("red",), {"output_format": "list"}),
        ],
    )
    def test_nothing_is_said_of(self, tmp_path, golds, spec):
        assert said(write(tmp_path / "x.json", [self.row(*golds)], spec), "separate-segments") == []


class TestEmptyAnswers:
    def test_in_a_recorded_file_it_is_a_warning(self, tmp_path):
        rows = [row if n < 3 else answered(row, "x") for n, row in enumerate(split_rows(8, train=3))]
        rows[1]["instance"]["references"] = [reference("", correct=True)]
        assert "empty-demonstration" in codes(write(tmp_path / "x.jsonl", rows, {"max_train_instances": 2}), "warning")

    def test_rows_with_an_empty_answer_are_drawn_last(self, tmp_path):
        rows = [state(f"{n}?", "" if n < 6 else "x", id=n) for n in range(8)]
        evalset = load(write(tmp_path / "x.jsonl", rows, {"max_train_instances": 2}))
        assert {i.id for i in evalset.instances if i.split == "train"} == {"6", "7"}
        too_many = write(tmp_path / "x.jsonl", rows, {"max_train_instances": 3})
        assert codes(too_many, "error") == ["empty-demonstration"]

    def test_evaluated_rows_are_counted(self, tmp_path):
        rows = [state(f"{n}?", "" if n in (1, 2) else "x", id=n) for n in range(4)]
        assert said(write(tmp_path / "x.jsonl", rows), "empty-answer") == [
            "instance.references: 2 rows have an empty correct reference: only an empty reply is equal to it"
        ]
        assert said(write(tmp_path / "x.jsonl", rows[3:]), "empty-answer") == []


def test_a_digest_of_parts_tells_who_plays_which_role():
    assert make_digest([("data", "1"), ("script", "2")]) != make_digest([("data", "2"), ("script", "1")])
    assert make_digest([("data", "1"), ("script", "2")]) != make_digest([("data", "1"), ("demos", "2")])


class TestKnownRows:
    """Rows without keys of their own are read and checked in one step; the result is that of the two steps."""

    @pytest.mark.parametrize(
        "row",
        [
            state(),
            answered(state(id=3, split="test"), "x", request_time=1, completions=[{"text": "x", "logprob": -1}]),
            choice("?", ["a", "b"], answer_mapping={"A": 0, "B": "b"}),
            state('say "so" \\u0022 or \\', 'a"b'),
            state(id=2**70),
        ],
    )
    def test_equal_to_the_plain_way(self, row):
        line = json.dumps(row).encode()
        known = read_known(line)
        assert read_state(json.loads(line)) == (known or row, [], ())
        assert conform(json.loads(line), StateShape) == (known or row, [])

    def test_quick_for_plain_rows(self):
        assert read_known(json.dumps(answered(state(), "x")).encode()) is not None

    @pytest.mark.parametrize(
        "line",
        [
            b'{"instance": {"input": {"text": "a"}, "own": 1}}',
            b'{"instance": {"input": {"text": "a"}}, "own": "x"}',
            b'{"instance": {"input": {"text": "a", "text": "b"}}}',
            b'{"instance": {"input": {"text": "a"}}, "instance": {"input": {"text": "b"}}}',
            b'{"instance": {"input": {"text": 1}}}',
            b'{"instance": {"input": {"text": "a"}}',
            b'{"instance": {"input": {"text": "a"}}, "result": {"request_time": NaN}}',
            b'{"instance": {"input": {"text": "a\\ud800"}}}',
            b"[]",
        ],
    )
    def test_what_would_be_lost_or_is_wrong_is_left_to_the_plain_way(self, line):
        assert read_known(line) is None

    def test_after_many_rows_with_keys_of_their_own_known_ones_are_still_right(self, tmp_path):
        rows = [state(f"{n}?", id=n, **({"own": n} if n < 150 else {})) for n in range(160)]
        extras = [i.extra_data["helm_ext"].get("data") for i in load(write(tmp_path / "x.jsonl", rows)).instances]
        assert extras == [{"instance": {"own": n}} for n in range(150)] + [None] * 10
