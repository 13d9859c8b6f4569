"""What is said of a whole file, by the rules of `checks`; how rows are drawn; the quick reading of known rows."""

import json
from dataclasses import asdict

import pytest
from request_states_files import (
    answered,
    choice,
    codes,
    draw_order,
    errors,
    problems,
    reference,
    split_rows,
    state,
    write,
)

from helm_ext.formats.request_states import load
from helm_ext.formats.request_states.checking import conform, read_known, read_state
from helm_ext.formats.request_states.labels import default_labels
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


class TestTopLevelKeys:
    @pytest.mark.parametrize(
        "key", ["scoring", "name", "description", "display_name", "annotator_specs", "adapter_spec"]
    )
    @pytest.mark.parametrize("value", [0.0, 1.0, 2.5, 0, True, "x", [], ["x"], [0.0]])
    def test_values_of_other_types_are_errors_at_their_key(self, tmp_path, key, value):
        if (
            isinstance(value, (str if key in ("name", "description", "display_name") else list))
            and key != "adapter_spec"
        ):
            return
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"adapter_spec": {}, "request_states": [state()], key: value}))
        found = errors(path)
        assert len(found) == 1
        assert f": {key}: expected " in found[0]
        assert f"got {json.dumps(value)}" in found[0]

    def test_a_float_is_shown_as_the_file_has_it(self, tmp_path):
        found = errors(write(tmp_path / "x.json", [state(sub_split=1.0)]))
        assert len(found) == 1
        assert "expected a string, got 1.0" in found[0]

    def test_a_float_that_shows_a_whole_number_stands_for_it(self, tmp_path):
        evalset = load(write(tmp_path / "x.json", split_rows(9, train=3), {"max_train_instances": 2.0}))
        assert evalset.adapter_spec.max_train_instances == 2


class TestTwoResults:
    def test_results_that_differ_contradict_each_other(self, tmp_path):
        row = answered(state(), "mercury")
        row["result"] = {"success": True, "completions": [{"text": "iron"}]}
        assert errors(write(tmp_path / "x.jsonl", [row])) == [
            "2: result: contradicts request.result, which means the same\n  hint: keep one of them"
        ]

    @pytest.mark.parametrize("other", [None, "same"])
    def test_one_result_or_the_same_twice_is_no_contradiction(self, tmp_path, other):
        row = answered(state(), "mercury")
        row["result"] = None if other is None else row["request"]["result"]
        assert errors(write(tmp_path / "x.jsonl", [row])) == []


class TestPerturbations:
    def test_a_perturbation_that_helm_does_not_know_is_reported_by_check_too(self, tmp_path):
        path = write(tmp_path / "x.jsonl", [state(perturbation={"A": True}), state("2?", perturbation={"A": True})])
        expected = 'instance.perturbation: HELM knows no such perturbation: {"A": true}'
        assert errors(path) == [f"2: {expected}", f"3: {expected}"]

    def test_one_that_helm_knows(self, tmp_path):
        known = {"name": "identity", "robustness": True, "fairness": True, "computed_on": "original"}
        assert errors(write(tmp_path / "x.jsonl", [state(perturbation=known)])) == []


class TestEmptyAnswers:
    def test_demonstrations_with_an_empty_answer_cannot_be_drawn(self, tmp_path):
        rows = split_rows(8, train=3)
        rows[1]["instance"]["references"] = [reference("", correct=True)]
        path = write(tmp_path / "x.jsonl", rows, {"max_train_instances": 2})
        assert errors(path) == [
            (
                "3: instance.references: 1 demonstration has an empty answer, and HELM cannot draw demonstrations where "
                'there is one\n  hint: write the answer, or "sample_train": false, which takes the first rows as they are'
            )
        ]
        for harmless in ({"max_train_instances": 0}, {"max_train_instances": 2, "sample_train": False}):
            assert errors(write(tmp_path / "x.jsonl", rows, harmless)) == []

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


class TestReasonedAnswers:
    def rows(self, completions):
        return [answered(state(f"{n}?", "Nile", id=n), text) for n, text in enumerate(completions)]

    def test_completions_that_end_with_the_answer_get_the_expression(self, tmp_path):
        rows = self.rows(
            ["It is long. So the answer is: Nile.", "No other. So the answer is:  Nile", "Why? Answer is: nile"]
        )
        path = write(tmp_path / "x.jsonl", rows)
        (found,) = [one for one in problems(path) if one.code == "extract"]
        assert 'and the recorded completions end with it, after "answer is:"' in found.message
        pattern = json.loads(found.hint.removeprefix("extract the answer: ").removeprefix('"scoring": '))["extract"]
        import re

        assert [re.findall(pattern, row["request"]["result"]["completions"][0]["text"]) for row in rows] == [
            ["Nile"], ["Nile"], ["nile"],
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("completions", "top"),
        [
            (["So the answer is: Nile", "Nile"], {}),
            (["So the answer is: Nile", "Rhine", "Elbe"], {}),
            (["So the answer is: Nile"], {"scoring": {"extract": "is: (.*)"}}),
        ],
    )
    def test_nothing_is_said_where_some_match_or_few_have_it_or_it_is_extracted(self, tmp_path, completions, top):
        assert said(write(tmp_path / "x.jsonl", self.rows(completions), **top), "extract") == []

    def test_demonstrations_with_chains_of_thought(self, tmp_path):
        rows = split_rows(8, train=3)
        for row in rows[:3]:
            row["instance"]["chain_of_thought"] = "Twice the number"
        spec = {"max_train_instances": 2, "chain_of_thought_suffix": " So the answer is "}
        (found,) = [one for one in problems(write(tmp_path / "x.jsonl", rows, spec)) if one.code == "extract"]
        assert r"So\\s+the\\s+answer\\s+is\\s*(.+?)" in found.hint


class TestTooFewRows:
    def test_a_file_without_recordings_says_so_first(self, tmp_path):
        path = write(tmp_path / "x.jsonl", [state()], {"max_train_instances": 5})
        assert errors(path)[0].startswith(
            "1: request_states: no completions are recorded, so a model would be asked, and 1 row is too few: 5 would be"
        )

    def test_a_recorded_one_can_be_scored(self, tmp_path):
        path = write(tmp_path / "x.jsonl", [answered(state(), "x")], {"max_train_instances": 5})
        assert "too-few-rows" in codes(path, "warning")


def read_rows(tmp_path, rows, name="rows.jsonl"):
    """The rows of a file, as the draw sees them."""
    from helm_ext.errors import Problems
    from helm_ext.formats.request_states.header import Options, read_settings
    from helm_ext.formats.request_states.reading import open_file
    from helm_ext.formats.request_states.rows import RowReader

    found = Problems()
    reader, chat = (
        RowReader(read_settings({"method": method}, Options(), found), found) for method in ("generation", "chat")
    )
    made = [
        (chat if "messages" in s.value["instance"]["input"] else reader).read(s)
        for s in open_file(write(tmp_path / name, rows), found).states()
    ]
    assert found.errors == 0
    return made


def places(order):
    return [row.place.index for row in order]


class TestDraw:
    def chat(self, *turns, **instance):
        row = state(**instance)
        row["instance"]["input"] = {"messages": [{"role": role, "content": content} for role, content in turns]}
        return row

    def test_the_text_alone_decides_where_there_is_no_id(self, tmp_path):
        rows = [state(f"{n}?") for n in range(30)]
        one = [rows[n]["instance"]["input"]["text"] for n in places(draw_order(read_rows(tmp_path, rows), 0))]
        turned = rows[::-1]
        other = [turned[n]["instance"]["input"]["text"] for n in places(draw_order(read_rows(tmp_path, turned), 0))]
        assert one == other
        assert one != [row["instance"]["input"]["text"] for row in rows]

    def test_the_id_counts_and_the_answer_does_not(self, tmp_path):
        order = places(draw_order(read_rows(tmp_path, [state("?", str(n), id=n) for n in range(30)]), 0))
        answers = places(draw_order(read_rows(tmp_path, [state("?", "other", id=n) for n in range(30)]), 0))
        ids = places(draw_order(read_rows(tmp_path, [state("?", str(n), id=n + 100) for n in range(30)]), 0))
        assert order == answers
        assert order != ids

    def test_messages_decide_where_there_is_no_text_whoever_says_them(self, tmp_path):
        asked = [self.chat(("user", f"{n}?")) for n in range(30)]
        order = places(draw_order(read_rows(tmp_path, asked), 0))
        assert order == places(draw_order(read_rows(tmp_path, asked), 0))
        assert order != list(range(30))
        roles = [self.chat(("system", f"{n}?")) for n in range(30)]
        assert order != places(draw_order(read_rows(tmp_path, roles), 0))

    def test_another_row_leaves_the_others_in_their_order(self, tmp_path):
        rows = [state(f"{n}?", id=n) for n in range(30)]
        with_all = places(draw_order(read_rows(tmp_path, rows), 3))
        assert [n for n in with_all if n != 29] == places(draw_order(read_rows(tmp_path, rows[:29]), 3))

    def test_a_text_that_is_empty_is_one(self, tmp_path):
        rows = [state("", str(n), id=n) for n in range(12)]
        assert sorted(places(draw_order(read_rows(tmp_path, rows), 0))) == list(range(12))

    def test_rows_that_are_not_evaluated_are_drawn_first(self, tmp_path):
        rows = [state(f"{n}?", id=n, split="valid" if n in (4, 7) else "test") for n in range(20)]
        evalset = load(write(tmp_path / "x.json", rows, {"max_train_instances": 2, "eval_splits": ["test"]}))
        assert {i.id for i in evalset.instances if i.split == "train"} == {"4", "7"}
        assert evalset.counts["eval"] == 18


class TestLabels:
    """The letters of a sequence are counted by hand: 26 in the alphabet."""

    def test_series_go_on_after_their_last_letter(self):
        assert default_labels("Y. ", 4) == ["Y", "Z", "AA", "AB"]
        assert default_labels("A. ", 54)[51:] == ["AZ", "BA", "BB"]
        assert default_labels("a) ", 27)[25:] == ["z", "aa"]
        assert default_labels("9. ", 3) == ["9", "10", "11"]

    def test_thirty_options_are_read_by_labels_beyond_z(self, tmp_path):
        rows = [choice(f"{n}?", [f"option {k}" for k in range(30)], correct=27) for n in range(2)]
        evalset = load(write(tmp_path / "x.json", rows))
        extra = evalset.instances[0].extra_data["helm_ext"]
        assert list(extra["labels"])[24:] == ["Y", "Z", "AA", "AB", "AC", "AD"]
        assert extra["labels"]["AB"] == "option 27"
        assert evalset.adapter_spec.reference_prefix_characters[24:] == ["Y", "Z", "AA", "AB", "AC", "AD"]


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
        assert (read_state(json.loads(line)), conform(json.loads(line), StateShape)) == ((known or row, []),) * 2

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

    def test_both_spellings_make_the_same_instances(self, tmp_path):
        rows = [answered(choice(f"{n}?", ["a", "b", "c"], n % 3, id=n), "B", request_time=1) for n in range(6)]
        one, other = (load(write(tmp_path / name, rows)) for name in ("x.json", "x.jsonl"))
        assert [asdict(i) for i in one.instances] == [asdict(i) for i in other.instances]
        assert one.question_digest == other.question_digest

    def test_after_many_rows_with_keys_of_their_own_known_ones_are_still_right(self, tmp_path):
        rows = [state(f"{n}?", id=n, **({"own": n} if n < 150 else {})) for n in range(160)]
        extras = [i.extra_data["helm_ext"].get("data") for i in load(write(tmp_path / "x.jsonl", rows)).instances]
        assert extras == [{"instance": {"own": n}} for n in range(150)] + [None] * 10
