"""Rows: splits and sampling, ids, references, what is recorded, and the odd shapes that real files have."""

from collections import Counter

import pytest
from request_states_files import answered, choice, split_rows, state, write

from helm_ext.evalset import row_extra
from helm_ext.formats.request_states import load

DEMOS = {"max_train_instances": 2}


def ids(evalset, split):
    return [instance.id for instance in evalset.instances if instance.split == split]


def rows_without(count, split=None, make=state):
    rows = split_rows(count, make)
    for row in rows:
        row["instance"].pop("split")
        if split:
            row["instance"]["split"] = split
    return rows


class TestOneRequestPerOption:
    """Methods that ask about each option, and a file that holds one completion for the question."""

    SPEC = {"method": "multiple_choice_separate_original", "max_train_instances": 0}

    @pytest.mark.parametrize(("tokens", "status"), [
        ([{"text": "a", "logprob": None}, {"text": " y", "logprob": -1.5}], "ok"),
        ([{"text": "y", "logprob": -0.5}], "ok"), ([{"text": "y", "logprob": None}], "not_run"),
        ([{"text": "a", "logprob": None}, {"text": " y"}], "not_run"),
        ([{"text": "a"}, {"text": " b"}, {"text": " y", "logprob": -1.5}], "not_run"),
        ([{"text": "a", "logprob": -0.5}, {"text": " y", "logprob": float("nan")}], "not_run"),
        # Where the option begins is not told, or it is not the option that was asked about.
        ([{"text": "a", "logprob": None}, {"text": " x", "logprob": -1.5}], "not_run"),
        ([{"text": "a", "logprob": None}, {"text": "ny", "logprob": -1.5}], "not_run"),
        ([{"text": "a y", "logprob": None}, {"text": "!", "logprob": -1.5}], "not_run"),
        ([], "not_run"),
    ])  # fmt: skip
    def test_log_probabilities_are_needed(self, tmp_path, tokens, status):
        rows = []
        for index in (0, 1):
            row = answered(choice("a?", ["x", "y"]), "a x")
            row["request"]["result"]["completions"][0]["tokens"] = tokens if index else [{"text": "x", "logprob": -1}]
            rows.append({**row, "reference_index": index, "train_trial_index": 0, "request_mode": "original"})
        (instance,) = load(write(tmp_path / "x.json", rows, self.SPEC)).instances
        found = row_extra(instance)["recorded"]
        assert found["status"] == status
        assert found.get("requests") == (None if status == "ok" else [1, 2])


class TestSampling:
    def test_the_seed_decides(self, tmp_path):
        path = write(tmp_path / "x.json", rows_without(120), {"max_train_instances": 5})
        draws = {seed: tuple(ids(load(path, seed=seed), "train")) for seed in (None, 0, 1, 2)}
        assert draws[None] == draws[0]
        assert len({draws[0], draws[1], draws[2]}) == 3

    def test_a_lower_cap_keeps_a_part_of_what_a_higher_one_keeps(self, tmp_path):
        rows = rows_without(120)
        kept = [
            set(ids(load(write(tmp_path / "x.json", rows, DEMOS | {"max_eval_instances": cap})), "test"))
            for cap in (5, 10, 110)
        ]
        assert [len(some) for some in kept] == [5, 10, 110]
        assert kept[0] < kept[1] < kept[2]


class TestRecordedAndLive:
    """A file with completions may be run either way: rows say which kind of run they take part in."""

    def test_every_row_is_scored_and_demonstrations_are_copies(self, tmp_path):
        rows = [answered(row, "4") for row in rows_without(110)]
        evalset = load(write(tmp_path / "x.json", rows, DEMOS | {"max_eval_instances": 50}))
        only = Counter((instance.split, row_extra(instance).get("only")) for instance in evalset.instances)
        # 110 rows: 2 drawn, of the other 108 the cap leaves 50.
        assert only == {("train", "live"): 2, ("test", "recorded"): 2 + 58, ("test", None): 50}
        copies = [instance for instance in evalset.instances if instance.split == "train"]
        originals = {instance.id: instance for instance in evalset.instances}
        for copy in copies:
            assert copy.id.endswith("-demo")
            original = originals[copy.id.removesuffix("-demo")]
            assert (original.input, row_extra(original)["only"]) == (copy.input, "recorded")
            assert "recorded" not in row_extra(copy)
        assert evalset.counts["eval"] == 110

    def test_live_and_recorded_draw_the_same_rows(self, tmp_path):
        rows = rows_without(110)
        live = load(write(tmp_path / "a.json", rows, DEMOS))
        recorded = load(write(tmp_path / "b.json", [answered(row, "4") for row in rows], DEMOS))
        assert [f"{name}-demo" for name in ids(live, "train")] == ids(recorded, "train")


class TestRecorded:
    NOT_RUN = [
        {}, None, {"prompt": "x"}, {"result": None}, {"result": {}},
        {"result": {"success": True, "completions": []}},
        {"result": {"success": True, "completions": None}},
        {"result": {"completions": [{"text": ""}]}},
        {"result": {"completions": [{"text": None, "logprob": None, "tokens": None}], "success": None}},
        {"result": {"completions": [{"text": "", "logprob": 0, "tokens": []}], "request_time": 0}},
    ]  # fmt: skip
    OK = [
        {"result": {"completions": [{"text": "", "tokens": [{"text": "</s>"}]}]}},
        {"result": {"completions": [{"text": ""}], "success": True}},
        {"result": {"completions": [{"text": ""}, {"text": ""}]}},
        {"result": {"completions": [{"text": "x"}]}},
        {"result": {"completions": [{"text": "x"}], "success": None}},
    ]
    FAILED = [
        {"result": {"completions": [{"text": "x"}], "success": False}},
        {"result": {"completions": [], "success": False, "error": "timeout"}},
        {"result": {"completions": [{"text": ""}], "success": False}},
    ]

    @pytest.mark.parametrize(("requests", "status"), [(NOT_RUN, "not_run"), (OK, "ok"), (FAILED, "failed")])
    def test_status(self, tmp_path, requests, status):
        rows = [answered(state("Always there?"), "yes"), *({**state(), "request": one} for one in requests)]
        found = [row_extra(one)["recorded"] for one in load(write(tmp_path / "x.json", rows)).instances[1:]]
        assert [(one["status"], len(one["states"])) for one in found] == [(status, int(status == "ok"))] * len(requests)
