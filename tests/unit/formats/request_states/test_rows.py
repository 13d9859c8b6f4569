"""Rows: splits and sampling, ids, references, what is recorded, and the odd shapes that real files have."""

from collections import Counter

import pytest
from helm.benchmark.scenarios.scenario import Instance
from request_states_files import answered, choice, codes, errors, problems, raised, reference, split_rows, state, write

from helm_ext.evalset import row_extra
from helm_ext.formats.request_states import check, load

DEMOS = {"max_train_instances": 2}


def by_split(evalset):
    return Counter(instance.split for instance in evalset.instances)


def ids(evalset, split):
    return [instance.id for instance in evalset.instances if instance.split == split]


def rows_without(count, split=None, make=state):
    rows = split_rows(count, make)
    for row in rows:
        row["instance"].pop("split")
        if split:
            row["instance"]["split"] = split
    return rows


class TestEvalSplits:
    def rows(self, valid, test):
        return rows_without(valid, "dev") + [state(f"Test {n}?", split="test", id=f"t{n}") for n in range(test)]

    def test_others_are_drawn_as_demonstrations_first(self, tmp_path):
        spec = {"max_train_instances": 4, "eval_splits": ["valid"]}
        evalset = load(write(tmp_path / "x.json", self.rows(4, 3), spec))
        assert by_split(evalset) == {"valid": 3, "train": 4}
        assert evalset.counts["eval"] == 3
        assert {"t0", "t1", "t2"} < set(ids(evalset, "train"))
        spec["max_train_instances"] = 6
        assert by_split(load(write(tmp_path / "x.json", self.rows(4, 3), spec))) == {"valid": 1, "train": 6}
        spec["max_train_instances"] = 7
        assert codes(write(tmp_path / "x.json", self.rows(4, 3), spec), "error") == ["too-few-rows"]


class TestOneRequestPerOption:
    """Methods that ask about each option, and a file that holds one completion for the question."""

    SPEC = {"method": "multiple_choice_separate_original", "max_train_instances": 0}

    @pytest.mark.parametrize(
        ("tokens", "status"),
        [
            ([{"text": "a", "logprob": None}, {"text": " y", "logprob": -1.5}], "ok"),
            ([{"text": "y", "logprob": -0.5}], "ok"),
            ([{"text": "y", "logprob": None}], "not_run"),
            ([{"text": "a", "logprob": None}, {"text": " y"}], "not_run"),
            ([{"text": "a"}, {"text": " b"}, {"text": " y", "logprob": -1.5}], "not_run"),
            ([{"text": "a", "logprob": -0.5}, {"text": " y", "logprob": float("nan")}], "not_run"),
            # Where the option begins is not told, or it is not the option that was asked about.
            ([{"text": "a", "logprob": None}, {"text": " x", "logprob": -1.5}], "not_run"),
            ([{"text": "a", "logprob": None}, {"text": "ny", "logprob": -1.5}], "not_run"),
            ([{"text": "a y", "logprob": None}, {"text": "!", "logprob": -1.5}], "not_run"),
            ([], "not_run"),
        ],
    )
    def test_log_probabilities_are_needed(self, tmp_path, tokens, status):
        rows = []
        for index in (0, 1):
            row = answered(choice("a?", ["x", "y"]), "a x")
            row["request"]["result"]["completions"][0]["tokens"] = tokens if index else [{"text": "x", "logprob": -1}]
            rows.append({**row, "reference_index": index, "train_trial_index": 0, "request_mode": "original"})
        (instance,) = load(write(tmp_path / "x.json", rows, self.SPEC)).instances
        found = row_extra(instance)["recorded"]
        assert found["status"] == status
        assert found.get("requests") == (None if status == "ok" else (1, 2))


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
    def recorded(self, tmp_path, *rows, spec=None):
        path = write(tmp_path / "x.json", [answered(state("Always there?"), "yes"), *rows], spec)
        return [row_extra(i)["recorded"] for i in load(path).instances[1:]]

    @pytest.mark.parametrize(
        ("request_", "status"),
        [
            ({}, "not_run"),
            (None, "not_run"),
            ({"prompt": "x"}, "not_run"),
            ({"result": None}, "not_run"),
            ({"result": {}}, "not_run"),
            ({"result": {"success": True, "completions": []}}, "not_run"),
            ({"result": {"success": True, "completions": None}}, "not_run"),
            ({"result": {"completions": [{"text": ""}]}}, "not_run"),
            (
                {"result": {"completions": [{"text": None, "logprob": None, "tokens": None}], "success": None}},
                "not_run",
            ),
            ({"result": {"completions": [{"text": "", "logprob": 0, "tokens": []}], "request_time": 0}}, "not_run"),
            ({"result": {"completions": [{"text": "", "tokens": [{"text": "</s>"}]}]}}, "ok"),
            ({"result": {"completions": [{"text": ""}], "success": True}}, "ok"),
            ({"result": {"completions": [{"text": ""}, {"text": ""}]}}, "ok"),
            ({"result": {"completions": [{"text": "x"}]}}, "ok"),
            ({"result": {"completions": [{"text": "x"}], "success": None}}, "ok"),
            ({"result": {"completions": [{"text": "x"}], "success": False}}, "failed"),
            ({"result": {"completions": [], "success": False, "error": "timeout"}}, "failed"),
            ({"result": {"completions": [{"text": ""}], "success": False}}, "failed"),
        ],
    )
    def test_status(self, tmp_path, request_, status):
        (found,) = self.recorded(tmp_path, {**state(), "request": request_})
        assert found["status"] == status
        assert len(found["states"]) == (status == "ok")

    @pytest.mark.parametrize(
        ("completion", "what", "keys"),
        [
            ({"output": "a", "logprob": -1}, "missing", '"logprob", "output"'),
            ({}, "missing", "no key at all"),
            ({"text": None}, "null", '"text"'),
        ],
    )
    @pytest.mark.parametrize("beside", [False, True])
    @pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
    def test_a_completion_without_text_is_no_wrong_answer(self, tmp_path, completion, what, keys, beside, name):
        result = {"success": True, "completions": [{"text": "x"}, completion]}
        row = {**state(), **({"result": result} if beside else {"request": {"result": result}})}
        path = write(tmp_path / name, [answered(state("Always there?"), "yes"), row])
        [found] = [problem for problem in problems(path) if problem.severity == "error"]
        assert found.message == f"{what}, so there is no answer to score; the completion has {keys}"
        assert found.hint.startswith('an empty answer is "text": ""')
        where = "result.completions[1].text" if beside else "request.result.completions[1].text"
        assert found.location.field.endswith(where)
        assert raised(path)
        # Without `success` nothing says that it was run.
        placeholder = {**state(), "request": {"result": {"completions": [completion]}}}
        counts = check(write(tmp_path / name, [answered(state("Always there?"), "yes"), placeholder]))[1]
        assert counts["not_run"] == 1

    @pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
    @pytest.mark.parametrize(
        ("result", "completion", "said"),
        [
            ({}, {"finish_reason": {}}, "completions[0].finish_reason.reason: missing"),
            ({}, {"finish_reason": {"reason": None}}, "completions[0].finish_reason.reason: expected a string, got null"),
            ({}, {"logprob": -1e200}, "completions[0].logprob: expected at least -1e+100, got -1e+200"),
            ({}, {"tokens": [{"text": "a", "logprob": 1e308}]}, "completions[0].tokens[0].logprob: expected at most 1e+100, got 1e+308"),
            ({"request_time": 1e308}, {}, "request_time: expected at most 1e+100, got 1e+308"),
            ({"batch_size": 0, "batch_request_time": 1.0}, {}, "batch_size: expected at least 1, got 0"),
        ],
    )  # fmt: skip
    def test_what_helms_stats_would_fail_at_is_said(self, tmp_path, name, result, completion, said):
        row = answered(state(), "a", **result)
        row["request"]["result"]["completions"][0].update(completion)
        (error,) = errors(write(tmp_path / name, [row]))
        assert error.endswith(f"request.result.{said}")


class TestExtras:
    def test_helms_other_fields(self, tmp_path):
        row = state(
            sub_split="hard",
            contrast_inputs=[{"text": "And which gas?"}],
            contrast_references=[[reference("neon", correct=True), {"output": {"text": "argon"}}]],
        )
        (instance,) = load(write(tmp_path / "x.json", [row])).instances
        assert isinstance(instance, Instance)
        assert (instance.sub_split, instance.contrast_inputs[0].text) == ("hard", "And which gas?")
        assert [[r.is_correct for r in some] for some in instance.contrast_references] == [[True, False]]
