"""Files of other tools, in the layouts that their own code writes: read, or named with the way out.

promptfoo: EvaluateSummaryV3 and EvaluateResult (src/types/index.ts). evalscope: ModelResult and ReviewResult
(evalscope/api/evaluator/cache.py). OpenAI evals: LocalRecorder (evals/record.py), Match (elsuite/basic/match.py).
OpenCompass: format_details (opencompass/tasks/openicl_eval.py). ragas: SingleTurnSample (src/ragas/dataset_schema.py).
"""

import json
import pathlib
import re
import shutil
import subprocess
import zipfile

import finished_runs
import pytest
from table_files import answers, golds, load, refusal, write_csv, write_lines

from helm_ext.cli.validate import check_file
from helm_ext.errors import DatasetError, RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats import detect
from helm_ext.formats.table.format import FORMAT


def write_json(folder, value, name="x.json"):
    path = folder / name
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
    return str(path)


def scores(evalset):
    return [row_extra(instance).get("source_scores") for instance in evalset.instances]


def means(run, *names):
    stats = json.loads((run.folder / "stats.json").read_text())
    return {s["name"]["name"]: s["mean"] for s in stats if s["name"]["name"] in names and s["name"]["split"] == "test"}


def conversations(evalset):
    return [instance.input.messages for instance in evalset.instances]


class TestRowsOfUnknownColumns:
    ROWS = (
        {"goal": "Cut an onion.", "sol1": "Use a knife.", "sol2": "Use a spoon.", "right": 0},
        {"goal": "Boil water.", "sol1": "Use ice.", "sol2": "Use a stove.", "right": 1},
    )

    @pytest.mark.parametrize("is_list", [True, False])
    def test_are_a_table_once_the_columns_are_named(self, tmp_path, is_list):
        path = write_json(tmp_path, self.ROWS) if is_list else write_lines(tmp_path, *self.ROWS)
        assert detect(path) is FORMAT
        assert golds(load(path, question="goal", gold="right")) == [["Use a knife."], ["Use a stove."]]

    def test_are_refused_with_all_columns_until_then(self, tmp_path):
        report = check_file(tmp_path / write_lines(tmp_path, *self.ROWS), None, {})
        assert "columns: goal, sol1, sol2, right" in report["problems"][0].hint

    def test_arguments_of_a_table_for_another_document_name_it(self, tmp_path):
        path = write_json(tmp_path, {"items": list(self.ROWS)})
        assert golds(load(path, question="goal", gold="right")) == [["Use a knife."], ["Use a stove."]]
        with pytest.raises(RunEntryError, match="it is one of table\n  hint: --as table reads the file so"):
            check_file(pathlib.Path(path), None, {"question": "goal"})

    def test_states_without_a_header_stay_a_broken_adapter_spec_file(self, tmp_path):
        path = write_lines(tmp_path, {"instance": {"input": {"text": "?"}}, "request": {}})
        assert detect(path).name == "adapter_spec"


class TestGoldThatIsAnOption:
    SCIQ = ("question", "distractor3", "distractor1", "distractor2", "correct_answer", "support")
    GPQA = ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Subdomain")
    RIGHT = ("iron", "mercury", "tin", "lead")

    def test_is_not_always_shown_first(self, tmp_path):
        rows = [[f"{number}?", "w1", "w2", "w3", f"r{number}", ""] for number in range(40)]
        shown = [instance.references for instance in load(write_csv(tmp_path, self.SCIQ, *rows)).instances]
        places = {next(at for at, reference in enumerate(row) if reference.is_correct) for row in shown}
        assert places == {0, 1, 2, 3}

    def test_answers_count_by_text_and_letters_choose_nothing(self, tmp_path):
        header = ["question", "right", "w1", "w2", "output"]
        outputs = ["The answer is iron.", "iron", "A", "tin"]
        rows = [["What rusts?", "iron", "tin", "gold", output] for output in outputs]
        path = write_csv(tmp_path, header, *rows)
        assert golds(load(path, gold="right", options=["right", "w1", "w2"])) == [["iron"]] * 4
        run = finished_runs.score(tmp_path, path, gold="right", options="right+w1+w2")
        assert means(run, "exact_match", "unmapped") == {"exact_match": 0.5, "unmapped": 0.25}

    def test_two_that_read_the_same(self, tmp_path):
        header = ["question", "right", "w1", "w2", "output"]
        path = write_csv(tmp_path, header, ["?", "iron", "tin", "tin", "iron"], ["?", "iron", "iron", "tin", "iron"])
        evalset = load(path, gold="right", options=["right", "w1", "w2"])
        assert len(evalset.instances) == 2


class TestWorkbook:
    @pytest.mark.parametrize("name", ["x.xlsx", "x.zip", "x.bin"])
    def test_is_named_with_the_way_out(self, tmp_path, name):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("[Content_Types].xml", "<Types/>")
            file.writestr("xl/workbook.xml", "<workbook/>")
        if name == "x.zip":  # what is called a bundle is refused as one
            assert detect(tmp_path / name).name == "innodata"
            return
        with pytest.raises(DatasetError, match="an Excel workbook.*\n.*CSV UTF-8"):
            detect(tmp_path / name)
        assert refusal(str(tmp_path / name)).message.startswith("an Excel workbook")

    def test_of_old_excel(self, tmp_path):
        (tmp_path / "x.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
        with pytest.raises(DatasetError, match="an Excel workbook"):
            detect(tmp_path / "x.xls")


@pytest.mark.parametrize("name", ["nofile.json", "nofile.jsonl", "nofile", "no/file.json"])
def test_a_file_that_is_not_there_is_of_no_format(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match="no such file"):
        detect(name)


def promptfoo(provider="openai:gpt-4o", prompt=0, test=0, output="Paris", **more):
    variables = {"country": "France", "capital": "Paris"}
    return {
        "cost": 0.0, "error": None, "gradingResult": {"pass": True, "score": 1, "reason": "", "componentResults": []},
        "id": f"{provider}{prompt}{test}", "latencyMs": 3, "namedScores": {"style": 0.5},
        "prompt": {"raw": "What is the capital of France?", "label": "What is the capital of {{country}}?"},
        "promptId": "1f", "promptIdx": prompt, "provider": {"id": provider, "label": ""},
        "response": {"output": output, "tokenUsage": {"total": 3}, "cached": False}, "score": 1, "success": True,
        "testCase": {"vars": variables, "assert": [{"type": "javascript", "value": "output.length < 9"},
                                                    {"type": "icontains", "value": "{{capital}}"}]},
        "testIdx": test, "vars": variables, "failureReason": 0, **more,
    }  # fmt: skip


class TestPromptfoo:
    def write(self, folder, *rows, is_lines=False):
        if is_lines:
            return write_lines(folder, *rows, name="out.jsonl")
        summary = {
            "version": 3,
            "timestamp": "2026-01-01",
            "prompts": [{"raw": "?"}],
            "results": list(rows),
            "stats": {},
        }
        return write_json(folder, {"evalId": "eval-x", "results": summary, "config": {}, "shareableUrl": None})

    @pytest.mark.parametrize("is_lines", [True, False])
    def test_is_read(self, tmp_path, is_lines):
        failed = promptfoo(test=1, response=None, error="API error: 401", success=False, score=0, namedScores={})
        path = self.write(tmp_path, promptfoo(), failed, promptfoo(test=2, output={"city": "Rome"}), is_lines=is_lines)
        assert detect(path) is FORMAT
        evalset = load(path)
        assert evalset.source.tool == "promptfoo"
        assert evalset.source.model == "openai:gpt-4o"
        assert golds(evalset) == [["Paris"]] * 3
        assert answers(evalset) == [["Paris"], "not_run", ['{"city": "Rome"}']]
        assert scores(evalset)[0] == {"promptfoo_score": 1, "promptfoo_pass": 1, "promptfoo_style": 0.5}
        assert golds(load(path, gold="vars.country")) == [["France"]] * 3

    def test_a_conversation_is_one(self, tmp_path):
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of France?"}]
        row = promptfoo() | {"prompt": {"raw": json.dumps(turns), "label": "x"}}
        path = self.write(tmp_path, row)
        assert conversations(load(path)) == [turns]

    def test_of_several_models_is_refused(self, tmp_path):
        found = refusal(self.write(tmp_path, promptfoo(), promptfoo("anthropic:claude"), promptfoo()))
        assert "several models, openai:gpt-4o, anthropic:claude: they would be scored as one" in found.message

    def test_its_headline_is_the_main_metric_and_all_there_is_without_golds(self, tmp_path):
        judged = {"testCase": {"vars": {"capital": "Rom"}, "assert": [{"type": "llm-rubric", "value": "Is polite."}]}}
        path = self.write(tmp_path, promptfoo(**judged), promptfoo(**judged, test=1, success=False, score=0))
        evalset = load(path)
        assert (evalset.scoring.metrics, evalset.scoring.main_metric) == ((), "promptfoo_pass")
        assert means(finished_runs.score(tmp_path, path), "promptfoo_pass") == {"promptfoo_pass": 0.5}
        assert golds(load(path, gold="testCase.vars.capital")) == [["Rom"]] * 2


class TestEvalscope:
    REVIEW = {
        "index": 0, "target": "B",
        "messages": [{"id": "1", "content": "What rusts?\nA) tin\nB) iron", "source": None, "role": "user"},
                     {"id": "2", "content": "I think so.\nANSWER: B", "role": "assistant", "model": "qwen"}],
        "agent_trace": None,
        "sample_score": {"score": {"value": {"acc": 1.0}, "status": "success", "extracted_prediction": "B",
                                   "prediction": "I think so.\nANSWER: B", "explanation": None, "metadata": {},
                                   "main_score_name": None},
                         "sample_id": 0, "group_id": 0, "generation_index": 0, "sample_metadata": {}},
    }  # fmt: skip

    def test_reviews_are_read(self, tmp_path):
        old = {**self.REVIEW, "index": 1, "input": "What rusts?", "messages": []}
        path = write_lines(tmp_path, self.REVIEW, old)
        assert detect(path) is FORMAT
        evalset = load(path)
        assert evalset.source.tool == "evalscope"
        assert [i.input.text for i in evalset.instances] == ["What rusts?\nA) tin\nB) iron", "What rusts?"]
        assert (golds(evalset), answers(evalset)) == ([["B"]] * 2, [["B"]] * 2)
        assert scores(evalset) == [{"evalscope_acc": 1}] * 2
        assert evalset.scoring.main_metric == "evalscope_acc"

    def test_a_row_without_an_answer_has_no_part_in_its_mean(self, tmp_path):
        score = {"prediction": None, "extracted_prediction": None, "value": {"acc": 0}}
        evalset = load(
            write_lines(tmp_path, self.REVIEW, {**self.REVIEW, "index": 1, "sample_score": {"score": score}})
        )
        assert scores(evalset) == [{"evalscope_acc": 1}, None]
        assert evalset.counts["not_run"] == 1

    def test_predictions_are_named(self, tmp_path):
        row = {"index": 0, "model": "qwen", "model_output": {"choices": []}, "messages": [], "metadata": {}}
        with pytest.raises(DatasetError, match="predictions of evalscope.*\n.*reviews/"):
            detect(write_lines(tmp_path, row))


def events(sample, sampled, expected):
    """As `Match` records a sample."""
    common = {"run_id": "260101A", "created_by": "", "created_at": "2026-01-01"}
    prompt = [{"role": "user", "content": f"What is {sample}?"}]
    name = f"capitals.dev.{sample}"
    data = {
        "correct": sampled == expected,
        "expected": expected,
        "picked": None,
        "sampled": sampled,
        "options": [expected],
    }
    return [
        {**common, "event_id": 0, "sample_id": name, "type": "raw_sample", "data": {"input": prompt}},
        {**common, "event_id": 1, "sample_id": name, "type": "sampling", "data": {"prompt": prompt, "sampled": [sampled]}},
        {**common, "event_id": 2, "sample_id": name, "type": "match", "data": data},
    ]  # fmt: skip


def test_a_log_of_openai_evals_is_named_and_its_way_out_works(tmp_path):
    spec = {"spec": {"completion_fns": ["gpt-4o"], "eval_name": "capitals.dev.v0", "base_eval": "capitals"}}
    report = {"final_report": {"accuracy": 0.5}, "run_id": "260101A"}
    path = write_lines(tmp_path, spec, *events(0, "Paris", "Paris"), *events(1, "Rom", "Rome"), report)
    found = refusal(path)
    assert found.message.startswith("a log of OpenAI evals")
    with pytest.raises(DatasetError, match="a log of OpenAI evals"):
        detect(path)
    if shutil.which("jq"):
        query = re.search("jq -cs '(.*)' FILE", found.hint)[1]
        lines = subprocess.run(["jq", "-cs", query, path], capture_output=True, check=True, text=True).stdout
        (tmp_path / "rows.jsonl").write_text(lines)
        evalset = load(str(tmp_path / "rows.jsonl"), output="sampled", gold="expected")
        assert (golds(evalset), answers(evalset)) == ([["Paris"], ["Rome"]], [["Paris"], ["Rom"]])


class TestOpenCompass:
    @pytest.mark.parametrize("details", [
        [{"pred": "iron", "answer": "iron", "correct": True}],
        {"type": "GEN", "0": {"prompt": "What rusts?", "predictions": "iron", "references": "iron"}},
    ])  # fmt: skip
    def test_results_are_named(self, tmp_path, details):
        path = write_json(tmp_path, {"accuracy": 100.0, "details": details})
        with pytest.raises(DatasetError, match="results of OpenCompass.*\n.*predictions/"):
            detect(path)


def test_a_dataset_saved_by_a_newer_library_is_named(tmp_path):
    """`List` is what lists are called since datasets 4.0; before, `Sequence`."""
    import datasets

    folder = tmp_path / "saved"
    datasets.Dataset.from_dict({"question": ["?"], "choices": [["a", "b"]], "answer": [0]}).save_to_disk(folder)
    info = json.loads((folder / "dataset_info.json").read_text())
    info["features"]["choices"] = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "ListOfLater"}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    found = refusal(str(folder))
    assert datasets.__version__ in found.hint
    assert "to_parquet" in found.hint
