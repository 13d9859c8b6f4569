"""What is said of a whole file, by the rules of `checks`; how rows are drawn; the quick reading of known rows."""

import json

import pytest
from request_states_files import answered, choice, state

from helm_ext.formats.request_states.checking import conform, read_known, read_state
from helm_ext.formats.request_states.shapes import StateShape
from helm_ext.formats.ultraeval.scoring import make_digest


def test_a_digest_of_parts_tells_who_plays_which_role():
    assert make_digest([("data", "1"), ("script", "2")]) != make_digest([("data", "2"), ("script", "1")])
    assert make_digest([("data", "1"), ("script", "2")]) != make_digest([("data", "1"), ("demos", "2")])


class TestKnownRows:
    """Rows without keys of their own are read and checked in one step; the result is that of the two steps."""

    @pytest.mark.parametrize("row", [
        state(),
        answered(state(id=3, split="test"), "x", request_time=1, completions=[{"text": "x", "logprob": -1}]),
        choice("?", ["a", "b"], answer_mapping={"A": 0, "B": "b"}), state('say "so" \\u0022 or \\', 'a"b'),
        state(id=2**70),
    ])  # fmt: skip
    def test_equal_to_the_plain_way(self, row):
        line = json.dumps(row).encode()
        known = read_known(line)
        assert read_state(json.loads(line)) == (known or row, [], ())
        assert conform(json.loads(line), StateShape) == (known or row, [])

    @pytest.mark.parametrize("line", [
        b'{"instance": {"input": {"text": "a"}, "own": 1}}', b'{"instance": {"input": {"text": "a"}}, "own": "x"}',
        b'{"instance": {"input": {"text": "a", "text": "b"}}}',
        b'{"instance": {"input": {"text": "a"}}, "instance": {"input": {"text": "b"}}}',
        b'{"instance": {"input": {"text": 1}}}', b'{"instance": {"input": {"text": "a"}}',
        b'{"instance": {"input": {"text": "a"}}, "result": {"request_time": NaN}}',
        b'{"instance": {"input": {"text": "a\\ud800"}}}', b"[]",
    ])  # fmt: skip
    def test_what_would_be_lost_or_is_wrong_is_left_to_the_plain_way(self, line):
        assert read_known(line) is None
