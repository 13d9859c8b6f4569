"""Public layouts, and tables of other tools, are read without arguments (../shared/imports_samples/layouts.md)."""

import json

import commands
import datasets
import pytest
from table_files import answers, golds, labels, load, refusal, write_lines

from helm_ext.evalset import row_extra
from helm_ext.formats import detect
from helm_ext.formats.table.format import FORMAT


def prompt(evalset, index=0):
    return evalset.instances[index].input.text


class TestHellaSwag:
    ROW = {"ind": 4, "activity_label": "Smelting", "ctx_a": "He melts ore.", "ctx_b": "then he", "ctx": "He melts ore. then he",
           "endings": ["pours it.", "eats it.", "sings.", "sleeps."], "source_id": "z~1", "split": "val",
           "split_type": "indomain", "label": "0"}  # fmt: skip

    def test_says_that_models_were_shown_another_text(self, tmp_path):
        evalset = load(write_lines(tmp_path, self.ROW))
        assert prompt(evalset) == "He melts ore. then he"
        assert any("lm-eval shows models" in str(warning) for warning in evalset.warnings)


class TestGsm8k:
    ROW = {"question": "How many ingots?", "answer": "He has 2+2=<<2+2=4>>4 bars.\nAll in all 1,004.\n#### 1,004"}

    def test_gold_follows_the_last_hashes_without_commas(self, tmp_path):
        evalset = load(write_lines(tmp_path, {**self.ROW, "output": "4 and 1000, so 1,004."}))
        assert (golds(evalset), evalset.scoring.extract is not None) == ([["1004"]], True)

    def test_reasoning_becomes_the_chain_of_thought_of_demonstrations(self, tmp_path):
        evalset = load(
            write_lines(tmp_path, {**self.ROW, "split": "train"}, {**self.ROW, "question": "x", "split": "test"})
        )
        thought = "He has 2+2=4 bars.\nAll in all 1,004."
        train = next(instance for instance in evalset.instances if instance.split == "train")
        assert thought in json.dumps([str(train), train.extra_data], ensure_ascii=False).replace(
            "\\\\n", "\\n"
        ).replace("\\n", "\n")


class TestTruthfulQa:
    ROW = {"question": "Is zormun a metal?", "mc1_targets": {"choices": ["No.", "Yes.", "It glows."], "labels": [1, 0, 0]},
           "mc2_targets": {"choices": ["No.", "It is not.", "Yes."], "labels": [1, 1, 0]}}  # fmt: skip

    def test_a_live_run_does_not_show_the_right_option_first_always(self, tmp_path):
        rows = [{**self.ROW, "question": f"Is {n} a metal?"} for n in range(20)]
        evalset = load(write_lines(tmp_path, *rows))
        places = {[r.is_correct for r in instance.references].index(True) for instance in evalset.instances}
        assert (places, golds(evalset)) == ({0, 1, 2}, [["No."]] * 20)
        again = load(write_lines(tmp_path, *reversed(rows)))
        shown = {prompt(evalset, at): [r.output.text for r in i.references] for at, i in enumerate(evalset.instances)}
        assert {i.input.text: [r.output.text for r in i.references] for i in again.instances} == shown


class TestSquad:
    ROW = {"id": "z", "title": "Zormun", "context": "Iron rusts.", "question": "What rusts?",
           "answers": {"text": ["Iron", "Iron", "iron"], "answer_start": [0, 0, 0]}, "output": "Iron"}  # fmt: skip

    def test_its_original_nested_file_is_refused(self, tmp_path):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"version": "2", "data": [{"title": "Zormun", "paragraphs": []}]}))
        assert refusal(str(path)).hint == "say which: question=COLUMN; columns: title, paragraphs"


class TestLighteval:
    """Rows as lighteval's Doc and ModelResponse are written (tasks/requests.py, models/model_output.py)."""

    DOC = {
        "query": "Which rusts?",
        "choices": [" iron", " tin", " gold"],
        "gold_index": 0,
        "id": "7",
        "task_name": "ores",
    }

    def row(self, doc=None, response=None, **metric):
        response = {"input": "x", "text": [], "logprobs": [], "argmax_logits_eq_gold": [], **(response or {})}
        return {"doc": {**self.DOC, **(doc or {})}, "model_response": response, "metric": metric}

    def test_log_probabilities_of_options_are_kept(self, tmp_path):
        row = self.row(
            response={"logprobs": [-3.0, -1.0, -2.0], "argmax_logits_eq_gold": [False, True, False]},
            acc=0,
            acc_norm=1.0,
        )
        evalset = load(write_lines(tmp_path, row))
        assert golds(evalset) == [[" iron"]]
        assert row_extra(evalset.instances[0])["source_scores"] == {"lighteval_acc": 0.0, "lighteval_acc_norm": 1.0}
        assert answers(evalset) == [["B"]]

    def test_is_read_from_parquet_as_its_tracker_writes_it(self, tmp_path):
        # As logging/evaluation_tracker.py: Dataset.from_list of the dataclasses' dicts.
        doc = {**self.DOC, "original_query": "", "specific": None, "system_prompt": None, "instruction": "", "fewshot_samples": [],
               "sampling_methods": ["LOGPROBS"], "generation_size": None, "stop_sequences": []}  # fmt: skip
        response = {"input": "x", "text": [], "logprobs": [-1.0, -2.0, -3.0], "argmax_logits_eq_gold": [True, False, False],
                    "logits": None, "input_tokens": [1, 2], "output_tokens": [[3]], "unconditioned_logprobs": None}  # fmt: skip
        rows = [
            {"doc": {**doc, "gold_index": n % 3}, "metric": {"acc": int(n == 0)}, "model_response": response}
            for n in range(3)
        ]
        path = tmp_path / "details_ores_2026.parquet"
        datasets.Dataset.from_list(rows).to_parquet(path)
        evalset = load(str(path))
        assert (golds(evalset), answers(evalset)) == ([[" iron"], [" tin"], [" gold"]], [["A"]] * 3)
        assert evalset.scoring.main_metric == "acc"


class TestOpenCompass:
    def write(self, tmp_path, rows):
        path = tmp_path / "ores.json"
        path.write_text(json.dumps(rows))
        assert detect(path) is FORMAT
        return str(path)

    def test_predictions_are_read(self, tmp_path):
        turns = [{"role": "SYSTEM", "prompt": "Be brief."}, {"role": "HUMAN", "prompt": "What rusts?"}]
        rows = {
            "0": {"origin_prompt": turns, "prediction": "iron", "gold": "iron"},
            "1": {"origin_prompt": turns, "prediction": ["tin", "iron"], "gold": ["iron"]},
        }
        evalset = load(self.write(tmp_path, rows))
        assert (golds(evalset), answers(evalset)) == ([["iron"], ["iron"]], [["iron"], ["tin", "iron"]])
        assert evalset.instances[0].input.messages[1] == {"role": "user", "content": "What rusts?"}

    def test_golds_that_it_did_not_write_are_missed(self, tmp_path):
        rows = {
            "0": {"origin_prompt": "1-1", "prediction": "0"},
            "1": {"origin_prompt": "1+1", "prediction": "2", "gold": "2"},
        }
        found = refusal(self.write(tmp_path, rows))
        assert (found.code, found.hint.startswith("OpenCompass does not write golds")) == ("gold-hidden", True)

    def test_numbers_are_no_texts(self, tmp_path):
        rows = {"0": {"origin_prompt": "?", "prediction": [0.2, 0.8], "gold": "iron"}}
        assert refusal(self.write(tmp_path, rows)).code == "cell"


def test_deepeval_keeps_its_own_scores_and_leaves_out_what_has_no_gold(tmp_path):
    case = {"name": "t", "input": "What rusts?", "actualOutput": "iron", "expectedOutput": "iron", "success": True,
            "metricsData": [{"name": "Relevancy", "score": 0.75, "success": True}]}  # fmt: skip
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"testCases": [case, {**case, "expectedOutput": None}], "metricsScores": []}))
    assert detect(path) is FORMAT
    evalset = load(str(path))
    assert (evalset.counts["recorded"], evalset.counts["unscored"], evalset.counts["read"]) == (1, 1, 2)
    assert row_extra(evalset.instances[0])["source_scores"] == {"deepeval_Relevancy": 0.75}
    assert evalset.source.model == ""  # no model is called `actualOutput`


class TestOwnExport:
    """What `helm-ext export` writes of a run of free text and of one of multiple choice scores as the run did."""

    FREE = [
        {"question": f"{n}?", "answer": "iron", "output": given} for n, given in enumerate(["iron", "", None, "tin"])
    ]
    CHOICE = [
        {"question": f"{n}?", "choices": ["tin", "iron"], "answer": "B", "output": f"({x})"} for n, x in enumerate("AB")
    ]

    @pytest.mark.long
    @pytest.mark.parametrize("to", ["csv", "jsonl", "parquet"])
    @pytest.mark.parametrize("rows", [FREE, CHOICE], ids=["free", "choice"])
    def test_is_read_in_each_of_its_kinds(self, tmp_path, rows, to):
        table = write_lines(tmp_path, *rows)
        commands.run("score", table, "-o", tmp_path / "o", "--model", "zormun")
        exported = tmp_path / f"predictions.{to}"
        commands.run("export", tmp_path / "o", "--to", to, "--out", exported)
        before, after = load(table), load(str(exported))
        assert (golds(after), labels(after), answers(after)) == (golds(before), labels(before), answers(before))
        assert detect(exported) is FORMAT
        assert FORMAT.name_model({"path": str(exported)}) == "recorded/zormun"

    @pytest.mark.parametrize(("column", "value"), [("trial", 1), ("perturbation", "typos")])
    def test_rows_of_trials_and_perturbations_are_no_questions_of_their_own(self, tmp_path, column, value):
        row = {"run": "r", "instance_id": "q1", "trial": 0, "perturbation": None, "input": "Which?", "messages": None,
               "gold": ["iron"], "options": None, "completions": [{"text": "iron"}], "left_out": None}  # fmt: skip
        assert "how the run was scored" in str(load(write_lines(tmp_path, row)).warnings)
        found = refusal(write_lines(tmp_path, row, {**row, column: value}))
        assert found.location.line == 2
        assert "scenario_state.json" in str(found.hint)
