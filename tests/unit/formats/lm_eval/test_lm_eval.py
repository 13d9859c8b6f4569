"""Logs that lm-eval wrote: our scores of each row are those that it logged, and its means those that it reports."""

import json
import math
import re

import pytest
from lm_eval_logs import LOGS, MODEL, TIME, changed, downgrade, lines, results, samples, write

from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats.lm_eval.format import FORMAT
from helm_ext.formats.registry import detect
from helm_ext.scoring.registry import get_scores

REPORT = json.loads(results().read_bytes())["results"]
OWN = "normalized_exact_match"
CHOICES = ["lx_index", "lx_shots", "lx_text", "lx_several", "lx_mutual", "lx_letters", "lx_contexts", "lx_ending"]


def load(path, **arguments):
    return FORMAT.load(path=str(path), **arguments)


def score(instance, name):
    """Our score of a row of log-probabilities."""
    right = ["correct" in reference.tags for reference in instance.references]
    return get_scores()[name].likelihood_function(row_extra(instance)["likelihoods"], right)


def completions(instance):
    return [one["text"] for one in row_extra(instance)["recorded"]["states"][0]["result"]["completions"]]


def notes(evalset):
    return " ".join(warning.message for warning in evalset.warnings)


def report_of(log):
    return json.loads(results(log).read_bytes())


def golds(instance):
    return [reference.output.text for reference in instance.references if reference.is_correct]


def refusal(path, **arguments):
    with pytest.raises(DatasetError) as raised:
        load(path, **arguments)
    found = [problem for problem in FORMAT.check(path=str(path), **arguments)[0] if problem.severity == "error"]
    assert [str(one) for one in found] == [str(one) for one in raised.value.problems if one in found]
    return str(raised.value)


CHOSEN = LOGS / "chosen"


@pytest.mark.parametrize("task", ["lx_chosen", "lx_chosen_key"])
def test_a_position_of_a_choice_is_its_text(task, tmp_path):
    """The harness's own exact_match of each row, and its mean, by our scores against the text."""
    path = samples(task, CHOSEN)
    logged = lines(path)
    assert all(row["target"] in ("0", "1", "2", "3", "False", "True") for row in logged)
    rows = score_with_helm_ext(path, tmp_path)
    assert rows == [row["exact_match"] for row in logged]
    reported = report_of(CHOSEN)["results"][task]["exact_match,none"]
    assert sum(rows) / len(rows) == pytest.approx(reported, abs=1e-12)
    assert 0 < sum(rows) < len(rows)


def score_with_helm_ext(path, tmp_path):
    """Our own score of each row, as helm-ext score writes it."""
    from finished_runs import score as score_file

    run = score_file(tmp_path, path)
    name = load(path).scoring.own_metric
    stats = json.loads((run.folder / "per_instance_stats.json").read_bytes())
    values = {row["instance_id"]: [s["mean"] for s in row["stats"] if s["name"]["name"] == name] for row in stats}
    return [values[instance.id][0] for instance in load(path).instances]


def test_a_position_beyond_the_choices_is_refused_and_a_negative_one_no_gold(tmp_path):
    rows = lines(samples("lx_chosen", CHOSEN))
    said = refusal(samples("lx_chosen_code", CHOSEN))  # the choices are not logged
    assert 'target "0" is the position of a choice, and doc_to_choice of the task is code or a template' in said
    assert "hint: gold=doc.KEY names where the right text stands" in said
    results(tmp_path).write_bytes(results(CHOSEN).read_bytes())
    rows[2]["target"] = "2"
    assert 'target "2" is no position of the task\'s 2 choices' in refusal(write(samples("lx_chosen", tmp_path), rows))
    rows[2]["target"] = "-1"
    instances = load(write(samples("lx_chosen", tmp_path), rows)).instances
    assert [golds(instance) for instance in instances][1:4] == [["no"], [], ["yes"]]


@pytest.mark.parametrize(("task", "answer", "value"), [("lx_chosen_key", "1", 0), ("lx_chosen_key", "beaver", 1)])
def test_without_the_results_a_position_is_told_by_what_was_right(tmp_path, task, answer, value):
    rows = [row for row in lines(samples(task, CHOSEN)) if row["exact_match"] == 0 and row["target"] != "1"]
    rows += [row for row in lines(samples(task, CHOSEN)) if row["target"] == "1"]
    rows[-1] |= {"filtered_resps": [answer], "resps": [[answer]], "exact_match": float(value)}
    said = refusal(write(samples(task, tmp_path), rows))
    assert f'target "1" is not what the harness compared with: the answer "{answer}" has exact_match {value}' in said
    assert "results=FILE" in said


def test_with_the_results_of_a_task_without_choices_a_target_is_a_text_whatever_the_harness_forgave(tmp_path):
    """`ignore_punctuation`, which lx_repeats has, takes -19 for 19."""

    def negate(rows):
        right = next(row["doc_id"] for row in rows if row["exact_match"] == 1)
        for row in rows:
            row["target"] = f"-{row['target']}" if row["doc_id"] == right else row["target"]

    assert "is not what the harness compared with" in refusal(changed(tmp_path, "lx_repeats", negate))
    evalset = load(changed(tmp_path, "lx_repeats", negate, alone=False))
    assert [target for i in evalset.instances for target in golds(i) if target.startswith("-")]


# Log-probabilities


@pytest.mark.parametrize("task", CHOICES)
def test_rows_have_the_scores_that_the_harness_logged_and_their_means_are_those_that_it_reports(task):
    evalset = load(samples(task))
    logged = lines(samples(task))
    assert len(evalset.instances) == len(logged) == REPORT[task]["sample_len"]
    ours = [name for name in logged[0]["metrics"] if name.startswith("acc")]
    assert "acc" in ours
    for name in ours:
        assert [score(instance, name) for instance in evalset.instances] == [row[name] for row in logged], name
    assert evalset.source.scores.keys() == {name for name in REPORT[task] if "," in name and "_stderr" not in name}
    for name, found in evalset.source.scores.items():
        assert found.mean == REPORT[task][name]
        if not found.no_mean:
            stat = evalset.source.stat_name(name)
            values = [row_extra(instance)["source_scores"][stat] for instance in evalset.instances]
            assert math.isclose(sum(values) / len(values), REPORT[task][name], abs_tol=1e-9)


def test_options_are_texts_without_the_delimiter():
    first = load(samples("lx_index")).instances[0]
    assert [reference.output.text for reference in first.references] == ["bat", "snow goose", "grey heron", "東の狐"]
    assert row_extra(first)["labels"] == {"A": "bat", "B": "snow goose", "C": "grey heron", "D": "東の狐"}
    assert first.input.text == "Q: Which animal hunts by echoes?\nA:"
    assert golds(first) == ["bat"]
    with_shots = load(samples("lx_shots"))
    assert with_shots.instances[0].input.text.count("Q: ") == 3
    assert with_shots.adapter_spec.max_train_instances == 0


def test_letters_have_the_texts_of_their_choices_where_these_are_as_many(tmp_path):
    instances = load(samples("lx_letters")).instances
    assert row_extra(instances[0])["labels"] == {"A": "bat", "B": "snow goose", "C": "grey heron", "D": "東の狐"}
    assert [one["text"] for one in row_extra(instances[0])["likelihoods"]] == ["A", "B", "C", "D"]
    mean = sum(score(instance, "brier_score") for instance in instances) / len(instances)
    assert mean == pytest.approx(REPORT["lx_letters"]["brier_score,none"], abs=1e-12)
    path = changed(tmp_path, "lx_letters", lambda rows: [row["doc"]["choices"].pop() for row in rows])
    assert row_extra(load(path).instances[0])["labels"] == {"A": "A", "B": "B", "C": "C", "D": "D"}


def test_several_contexts_are_options_by_what_differs():
    instance = load(samples("lx_contexts")).instances[0]
    assert instance.input.text == "Ida lent Oda a map because "
    assert list(row_extra(instance)["labels"].values()) == ["Ida was lost.", "Oda was lost."]
    assert golds(instance) == ["Oda was lost."]


def test_an_ending_is_right_if_the_model_would_have_written_it():
    evalset = load(samples("lx_ending"))
    greedy = [row["resps"][0][0][1] == "True" for row in lines(samples("lx_ending"))]
    assert {True, False} == set(greedy)
    for instance, is_greedy in zip(evalset.instances, greedy, strict=True):
        assert completions(instance) == [golds(instance)[0] if is_greedy else ""]
    assert evalset.scoring.metrics == ("acc",)


def test_minus_infinity_and_what_is_no_number(tmp_path):
    def change(rows):
        rows[0]["resps"][1][0][0] = "-inf"
        rows[1]["resps"][0][0][0] = "nan"

    evalset = load(changed(tmp_path, "lx_mutual", change))
    assert row_extra(evalset.instances[0])["likelihoods"][1]["logprob"] == -1e100
    assert evalset.counts["unscored"] == 1


# Targets


def test_a_target_may_be_an_option_that_looks_like_a_position(tmp_path):
    """The options are numbers, so "1" is the second option or the text "1": the logged acc tells."""

    def change(rows):
        for row in rows:
            numbers = ["1", "0", "3", "2", "4"][: len(row["arguments"])]
            winner = max(range(len(numbers)), key=lambda at: float(row["resps"][at][0][0]))
            for at, number in enumerate(numbers):
                row["arguments"][f"gen_args_{at}"]["arg_1"] = f" {number}"
            row["target"] = numbers[winner]  # the text of the likeliest option
            row["acc"] = 1.0

    evalset = load(changed(tmp_path, "lx_index", change))
    assert [score(instance, "acc") for instance in evalset.instances] == [1.0] * 8

    def without_acc(rows):
        change(rows)
        for row in rows:
            row["metrics"].remove("acc")

    path = changed(tmp_path, "lx_index", without_acc)
    assert "gold_kind=index or gold_kind=text" in refusal(path)
    assert load(path, gold_kind="text").counts["recorded"] == 8


NONE_RIGHT = LOGS / "none_right"


@pytest.mark.parametrize("task", ["lx_none", "lx_none_text"])
def test_a_target_that_names_no_option_is_wrong_as_the_harness_has_it(tmp_path, task):
    """Also where it is likeliest what Python finds at position -1."""
    beyond = load(changed(tmp_path, "lx_index", put(0, target="9", acc=0.0))).counts
    assert (beyond["none_right"], beyond.get("unscored")) == (1, None)
    path = samples(task, NONE_RIGHT)
    evalset = load(path)
    logged = lines(path)
    assert [row["target"] for row in logged] == ["0", "-1", "0", "2", "-1", "3"]
    assert score_with_helm_ext(path, tmp_path) == [row["acc"] for row in logged] == [1, 0, 0, 0, 0, 0]
    assert evalset.counts["none_right"] == 2
    assert "unscored" not in evalset.counts
    assert FORMAT.losses(evalset) == ["2 rows without a right option, wrong whatever was answered"]
    assert FORMAT.losses(load(samples("lx_index"))) == []
    (warning,) = [str(one) for one in evalset.warnings if one.code == "none-right"]
    assert f'{path}:2: 2 rows have no right option: target "-1" is the position of none; whatever' in warning


def test_scores_of_rows_without_a_right_option_are_0(tmp_path):
    from finished_runs import score as score_file

    names = ("exact_match", "normalized_exact_match", "f1_score", "rouge_l")
    metrics = "+".join([*names, "acc", "acc_norm", "acc_bytes", "brier_score"])
    run = score_file(tmp_path, samples("lx_none", NONE_RIGHT), metrics=metrics)
    stats = {stat["name"]["name"]: stat for stat in json.loads((run.folder / "stats.json").read_bytes())}
    report = report_of(NONE_RIGHT)["results"]["lx_none"]
    for name in ("acc", "acc_norm", "acc_bytes"):
        assert stats[name]["mean"] == pytest.approx(report[f"{name},none"], abs=1e-12)
        assert stats[f"lm_eval_{name}_differs"]["sum"] == 0
    assert stats["num_instances"]["mean"] == 6
    rows = json.loads((run.folder / "per_instance_stats.json").read_bytes())
    for place, row in enumerate(rows):
        values = {stat["name"]["name"]: stat.get("mean") for stat in row["stats"]}
        assert set(names) <= values.keys()
        assert ("brier_score" in values) == (place not in (1, 4))  # there the harness took the last option for right
        if place in (1, 4):
            assert [values[name] for name in names] == [0, 0, 0, 0]


def test_a_position_before_the_first_choice_is_left_out_where_the_harness_took_one_from_the_end():
    evalset = load(samples("lx_none_written", NONE_RIGHT))
    assert evalset.counts["unscored"] == 2
    (warning,) = [str(one) for one in evalset.warnings if one.code == "unscored"]
    assert 'target "-1" is the position of no choice, and the harness took a last one' in warning


def test_a_list_of_answers_is_one_if_doc_has_it(tmp_path):
    first = load(samples("lx_lists")).instances[0]
    assert golds(first) == ["Calder", "calder", "Calder town"]

    def as_text(rows):
        for row in rows:
            row["doc"] = {"answer": row["target"]}

    assert golds(load(changed(tmp_path, "lx_lists", as_text)).instances[0]) == ["['Calder', 'calder', 'Calder town']"]


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_gold_names_a_key_of_doc_and_what_is_no_number_is_not_there(value, tmp_path):
    path = changed(tmp_path, "lx_lists", lambda rows: rows[1]["doc"].update(country=value))
    evalset = load(path, gold="doc.country")
    assert golds(evalset.instances[0]) == golds(load(path, gold="country").instances[0]) == ["Umbria Minor"]
    assert (evalset.counts["unscored"], golds(evalset.instances[1])) == (1, [])


# Generated answers and filters


def test_lines_of_one_question_are_one_row_with_the_scores_of_all_filters():
    evalset = load(samples("lx_sums"))
    assert (evalset.counts["lines"], evalset.counts["read"]) == (14, 7)
    logged = lines(samples("lx_sums"))
    for number, instance in enumerate(evalset.instances):
        assert row_extra(instance)["source_scores"] == {
            "lm_eval_exact_match,strict": logged[number]["exact_match"],
            "lm_eval_exact_match,last": logged[number + 7]["exact_match"],
        }
        assert completions(instance) == logged[number]["resps"][0]


@pytest.mark.parametrize(("task", "chosen"), [("lx_sums", "strict"), ("lx_sums", "last"), ("lx_repeats", "first"), ("lx_repeats", "vote")])  # fmt: skip
def test_filtered_answers_have_the_scores_that_the_harness_logged(task, chosen):
    evalset = load(samples(task), filter=chosen)
    ours = get_scores()["normalized_exact_match"].function
    for instance in evalset.instances:
        (text,) = completions(instance)
        logged = row_extra(instance)["source_scores"][f"lm_eval_exact_match,{chosen}"]
        assert max(ours(gold, text) for gold in golds(instance)) == logged
    invalid = sum(row["filter"] == chosen and row["filtered_resps"] == ["[invalid]"] for row in lines(samples(task)))
    assert evalset.counts.get("unmapped", 0) == invalid
    (other,) = {"lx_sums": {"strict", "last"}, "lx_repeats": {"first", "vote"}}[task] - {chosen}
    said = f"answers by filter {chosen} are scored: lm-eval's scores by {other} are of other answers"
    assert said in str(evalset.warnings)
    assert "of other answers" not in str(load(samples(task)).warnings)


def test_repeats_and_empty_texts_are_answers(tmp_path):
    assert [len(completions(instance)) for instance in load(samples("lx_repeats")).instances] == [3] * 7
    evalset = load(changed(tmp_path, "lx_sums", lambda rows: [rows[at].update(resps=[[""]]) for at in (0, 7)]))
    assert completions(evalset.instances[0]) == [""]
    assert (evalset.counts["recorded"], evalset.counts["not_run"]) == (7, 0)
    assert completions(load(samples("lx_lists"), prediction="filtered").instances[0]) == [" Calder"]


def test_conversations_of_chat_apis_stay_conversations():
    evalset = load(samples("lx_lists", LOGS / "chat"))
    assert evalset.adapter_spec.method == "chat"
    assert evalset.instances[0].input.messages == [{"role": "user", "content": "Main town of Umbria Minor?"}]


# Targets that are true or false


@pytest.mark.parametrize(("task", "options"), [("lx_truth", ["no", "yes"]), ("lx_truth_words", ["True", "False"])])
def test_false_and_true_are_the_first_and_the_second_option(task, options):
    """As the harness compares them, whatever the options read: its `acc` is 4 of 7 in both."""
    evalset = load(samples(task, LOGS / "truths"))
    answers = [line["doc"]["answer"] for line in lines(samples(task, LOGS / "truths"))]
    assert len(set(answers)) == 2
    for instance, answer in zip(evalset.instances, answers, strict=True):
        assert [one.output.text for one in instance.references] == options
        assert [one.is_correct for one in instance.references] == [not answer, answer]
    assert evalset.source.scores["acc,none"].mean == pytest.approx(4 / 7)


@pytest.mark.parametrize("changes", [
    lambda row: {"target": f"[{row['target']}]"},
    lambda row: {"metrics": [*row["metrics"], "f1"], "f1": [row["doc"]["answer"], 0], "target": "?"},  # as f1 logs
])  # fmt: skip
def test_they_may_stand_in_a_list_or_begin_a_logged_pair(tmp_path, changes):
    rows = [{**row, **changes(row)} for row in lines(samples("lx_truth", LOGS / "truths"))]
    evalset = load(write(tmp_path / "samples_lx_truth_x.jsonl", rows))
    assert [one.references[1].is_correct for one in evalset.instances] == [row["doc"]["answer"] for row in rows]


# What --predict_only leaves


@pytest.mark.parametrize(
    ("task", "rows", "main"), [("lx_index", 8, "acc"), ("lx_ending", 6, "acc"), ("lx_lists", 6, OWN), ("lx_own", 6, OWN), ("lx_sums", 7, OWN)]
)  # fmt: skip
def test_answers_that_the_harness_did_not_score_are_compared_with_the_target(task, rows, main):
    evalset = load(samples(task, LOGS / "predict_only"))
    scored = load(samples(task)) if task != "lx_own" else evalset
    assert len(evalset.instances) == rows
    assert evalset.scoring.main_metric == main
    assert evalset.source.scores == {}
    assert [one.references for one in evalset.instances] == [one.references for one in scored.instances]
    assert "scored nothing (--predict_only)" in notes(evalset)
    assert "process_results" not in notes(evalset)
    assert "not averaged" not in notes(evalset)


# Scores that are no means


def test_where_the_task_scores_itself_its_scores_are_all_there_is():
    evalset = load(samples("lx_own"))
    assert evalset.scoring.metrics == ()
    assert evalset.scoring.main_metric == "lm_eval_found"
    assert "process_results" in notes(evalset)
    assert evalset.source.scores["length,none"].lower_is_better
    assert load(samples("lx_own"), metrics=["exact_match"]).scoring.metrics == ("exact_match",)


@pytest.mark.parametrize(("task", "kept"), [("lx_letters", "brier_score"), ("lx_contexts", "f1"), ("lx_ending", "perplexity"), ("lx_predict", "bypass")])  # fmt: skip
def test_what_is_no_mean_is_not_averaged(task, kept):
    evalset = load(samples(task), results="none")
    assert f"{kept},none" not in evalset.source.scores
    assert f"not averaged: {kept},none" in notes(evalset)


# The main metric


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(LOGS.glob("*/samples_*.jsonl")), ids=lambda path: f"{path.parent.name}-{path.name.split('_2026')[0]}")  # fmt: skip
def test_the_main_metric_is_the_first_that_the_harness_reports(path, tmp_path):
    """By the first filter; brought to the run's stats, to the last digit."""
    from finished_runs import score as score_file

    task = path.name.removeprefix("samples_").partition("_2026")[0]
    report = report_of(path.parent)
    config = report["configs"][task]
    metric = config["metric_list"][0]["metric"]
    if metric == "bypass" or task in ("lx_chosen_code", "lx_contexts_acc"):
        return  # --predict_only: the harness scored nothing; and golds that are not logged
    filters = [one["name"] for one in config.get("filter_list") or [{"name": "none"}]]
    stat = f"lm_eval_{metric},{filters[0]}".removesuffix(",none")
    run = score_file(tmp_path, path)
    spec = json.loads((run.folder / "run_spec.json").read_bytes())
    assert spec["scenario_spec"]["args"]["main_metric"] == stat
    stats = {one["name"]["name"]: one for one in json.loads((run.folder / "stats.json").read_bytes())}
    assert stats[stat]["mean"] == pytest.approx(report["results"][task][f"{metric},{filters[0]}"], abs=1e-9)
    assert (f"{stat}@ci_low" in stats) == (task not in ("lx_ending", "lx_rolling"))


def test_which_score_is_the_main_one_is_said_and_chosen():
    def headline(task, **arguments):
        evalset = load(samples(task), **arguments)
        return evalset.scoring.main_metric, evalset.scoring.own_metric, evalset.source.main_reason

    strict, last = "lm_eval_exact_match,strict", "lm_eval_exact_match,last"
    assert headline("lx_sums") == (strict, OWN, "the first of the task's metric_list and filter_list")
    assert headline("lx_sums", results="none") == (strict, OWN, "the first in the file")
    assert headline("lx_sums", filter="last") == (last, OWN, "the first by filter last")
    assert headline("lx_sums", main_metric="exact_match,last")[:2] == (last, OWN)
    assert headline("lx_sums", main_metric="exact_match")[:2] == ("exact_match", None)
    assert headline("lx_lists") == ("lm_eval_exact_match", "exact_match", "")  # there is no other
    assert headline("lx_ending", results="none")[0] == "lm_eval_acc"  # nothing says what the perplexity is
    assert headline("lx_index", gold="doc.answer", gold_kind="index", index_base=0)[:2] == ("acc", None)


def test_a_metric_that_is_a_function_is_known_by_its_name(tmp_path):
    """It is written as its source, or where that is not found as its place in memory (lm_eval/config/task.py)."""
    rows = lines(samples("lx_lists"))
    for row in rows:
        row["metrics"], row["mine"], row["other"] = ["other", "mine"], row.pop("exact_match"), 1.0
    path = write(samples("lx_lists", tmp_path), rows)
    report = report_of(MODEL)
    found = report["results"]["lx_lists"]
    found |= {"mine,none": found.pop("exact_match,none"), "other,none": 1.0}
    for text in ("def mine(items):\n    return items[0]\n", "<function mine at 0x7f>", "<function Task.mine at 0x7f>"):
        report["configs"]["lx_lists"]["metric_list"] = [{"metric": text}, {"metric": "other"}]
        results(tmp_path).write_text(json.dumps(report))
        assert load(path).scoring.main_metric == "lm_eval_mine"


@pytest.mark.parametrize(("task", "lower"), [("lx_ending", True), ("lx_rolling", True), ("lx_index", False)])
def test_a_lower_perplexity_is_better(task, lower):
    evalset = load(samples(task))
    assert evalset.source.scores[evalset.source.main].lower_is_better is lower


def test_numbers_may_be_texts_and_nan_is_no_score(tmp_path):
    def change(rows):
        rows[0]["acc_norm"], rows[1]["acc_norm"] = str(bool(rows[0]["acc_norm"])), math.nan

    evalset = load(changed(tmp_path, "lx_text", change))
    logged = lines(samples("lx_text"))
    assert row_extra(evalset.instances[0])["source_scores"]["lm_eval_acc_norm"] == logged[0]["acc_norm"]
    assert "lm_eval_acc_norm" not in row_extra(evalset.instances[1])["source_scores"]


# Files that do not belong together


def test_repeated_lines_are_counted_and_what_is_missing_is_said(tmp_path):
    evalset = load(changed(tmp_path, "lx_index", lambda rows: rows.extend(rows[:3])))
    assert (evalset.counts["lines"], evalset.counts["read"], evalset.counts["duplicates"]) == (11, 8, 3)
    part = load(changed(tmp_path, "lx_index", lambda rows: rows.__delitem__(slice(5, None)), alone=False))
    assert "5 of 8 rows are in the file" in notes(part)
    limited = load(LOGS / "limited")
    assert (len(limited.instances), "5 of the task's 8 rows were asked" in notes(limited)) == (5, True)


def test_results_may_be_missing_or_named(tmp_path):
    path = changed(tmp_path, "lx_index", lambda rows: None)
    evalset = load(path)
    assert "no results file" in notes(evalset)
    assert {name: score.mean for name, score in evalset.source.scores.items()}["acc,none"] is None
    assert [score(i, "acc_norm") for i in evalset.instances] == [row["acc_norm"] for row in lines(samples("lx_index"))]
    assert load(path, results=str(results())).source.model == "acme/scripted"
    assert "nothing is said of task lx_odd" in refusal(path.rename(samples("lx_odd", tmp_path)), results=str(results()))


def test_a_folder_has_tasks_and_times(tmp_path):
    tasks = FORMAT.tasks({"path": str(MODEL)})
    assert {"task": "lx_sums"} in tasks
    assert len(tasks) == 15
    assert FORMAT.tasks({"path": str(samples("lx_sums"))}) == [{}]
    assert FORMAT.tasks({"path": str(results(LOGS / "limited"))}) == [{}]
    assert "task=NAME chooses one" in refusal(MODEL)
    assert len(load(MODEL, task="lx_index").instances) == 8
    assert len(load(results(), task="lx_index").instances) == 8
    assert "did you mean 'lx_sums'" in refusal(MODEL, task="lx_sum")
    for time in (TIME, "2026-02-02T00-00-00.000000"):
        write(tmp_path / f"samples_lx_a_b_{time}.jsonl", lines(samples("lx_index")))
    assert "2 times could be meant" in refusal(tmp_path)
    assert load(tmp_path, time=TIME).name == "lx_a_b"
    (tmp_path / f"samples_lx_a_b_{TIME}.jsonl.gz").touch()
    assert f"the same samples twice: samples_lx_a_b_{TIME}.jsonl, " in refusal(tmp_path, time=TIME)
    assert "samples of 7 models" in refusal(LOGS)


def test_logs_are_told_from_files_of_other_formats(tmp_path):
    for path in (samples("lx_sums"), results(), MODEL):
        assert detect(path) is FORMAT
    path = changed(tmp_path, "lx_index", lambda rows: rows[0].pop("doc"))
    assert detect(path) is not FORMAT


def test_the_source_is_said():
    source = load(samples("lx_shots")).source
    said = (source.tool, source.model, source.task, source.version)
    assert said == ("lm_eval", "acme/scripted", "lx_shots", "0.4.13")
    assert (source.settings["num_fewshot"], source.settings["output_type"]) == (2, "multiple_choice")


def test_rows_keep_their_documents_and_may_be_grouped_by_them():
    for name in ("doc.level", "level"):
        evalset = load(samples("lx_index"), by=[name])
        assert evalset.attributes[name] == ("easy", "hard")


def test_a_reported_number_that_no_float_holds_is_not_compared(tmp_path):
    path = changed(tmp_path, "lx_index", lambda rows: None, alone=False)
    report = report_of(tmp_path)
    report["results"]["lx_index"]["acc,none"] = 10**400
    results(tmp_path).write_text(json.dumps(report), encoding="utf-8")
    scores = FORMAT.open(path=str(path)).source.scores
    assert (scores["acc,none"].mean, scores["acc_norm,none"].mean) == (None, 0.5)


@pytest.mark.parametrize("before_0_4_3", [False, True])
@pytest.mark.parametrize("task", [*CHOICES, "lx_lists", "lx_repeats", "lx_sums"])
def test_logs_of_older_versions_are_read_as_those_of_newer_ones(tmp_path, task, before_0_4_3):
    path = downgrade(tmp_path, task, before_0_4_3=before_0_4_3)
    newer, older = load(samples(task)), load(path)
    assert str([*older.instances]) == str([*newer.instances])
    assert older.source == newer.source
    assert [str(one.message) for one in older.warnings] == [str(one.message) for one in newer.warnings]
    assert detect(path) is detect(tmp_path) is FORMAT
    assert FORMAT.tasks({"path": str(tmp_path)}) == [{}]
    with_results = [name for name in ("results.json", results().name) if (tmp_path / name).exists()]
    for named in (tmp_path, tmp_path / with_results[0]):
        assert str([*load(named).instances]) == str([*newer.instances])


def test_older_logs_without_results_number_their_filters_and_one_that_breaks_off_is_refused_with_its_line(tmp_path):
    path = downgrade(tmp_path, "lx_sums", before_0_4_3=False)
    results(tmp_path).unlink()
    assert {name.partition(",")[2] for name in load(path).source.scores} == {"filter 1", "filter 2"}
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    assert re.search(rf"{path.name}:\d+: ", refusal(path))


# What is refused


def put(at, **values):
    return lambda rows: rows[at].update(values)


def wrong_logprob(value):
    return lambda rows: rows[2]["resps"][1][0].__setitem__(0, value)


def hide(rows):
    for row in rows:
        row["target"], row["acc"] = "-1", 0.0


def same(rows):
    """The log as it is."""


def other_kind(rows):
    rows.insert(2, {**lines(samples("lx_lists"))[0], "doc_id": 99})


@pytest.mark.parametrize(("task", "change", "arguments", "said"), [
    ("lx_rolling", same, {}, "LOG: loglikelihood_rolling measures how likely a text is: there is nothing that could"),
    *(("lx_index", wrong_logprob(value), {}, "LOG:3: resps: expected a log-probability") for value in ("inf", math.inf, 10**400)),
    ("lx_index", lambda rows: put(3, acc=1 - rows[3]["acc"])(rows), {}, "LOG:4: target is not what the harness compared with"),
    ("lx_index", hide, {}, "no target names an option of its row"),
    ("lx_contexts_acc", same, {}, 'target "was lost." names no option'),
    ("lx_lists", same, {"gold": "doc.town"}, "no gold"),
    ("lx_lists", lambda rows: [row["doc"].pop("names") for row in rows], {}, "could be a list of answers or a text"),
    ("lx_lists", lambda rows: rows[0]["arguments"]["gen_args_0"].update(arg_2={"visual": ["…"]}), {}, "images or sound"),
    ("lx_sums", put(9, resps=[["something else"]]), {}, "LOG:10: another answer to doc_id 2 than before: two runs were appended"),
    ("lx_index", other_kind, {}, "LOG:3: the line is of generate_until, and those before are of multiple_choice"),
    *(("lx_index", lambda rows, key=key: rows[4].pop(key), {}, "LOG:5: ") for key in ("resps", "target_hash", "acc")),
    ("lx_sums", same, {"prediction": "filtered"}, "filter=NAME chooses one: strict, last"),
    ("lx_sums", same, {"filter": "strikt"}, "did you mean 'strict'"),
    ("lx_sums", same, {"filter": "strict", "prediction": "raw"}, "prediction=raw"),
    ("lx_index", same, {"prediction": "filtered"}, "has no answers that were filtered"),
    ("lx_index", same, {"gold_kind": "label"}, "gold_kind=label is about golds of doc, and none is named"),
    ("lx_index", same, {"index_base": 1}, "index_base=1 is about golds of doc, and none is named"),
])  # fmt: skip
def test_what_is_refused_and_where(tmp_path, task, change, arguments, said):
    path = changed(tmp_path, task, change)
    assert said in refusal(path, **arguments).replace(str(path), "LOG")


def test_what_is_refused_for_the_target_or_the_report_is_read_where_another_is_named(tmp_path):
    path = changed(tmp_path, "lx_index", lambda rows: put(3, acc=1 - rows[3]["acc"])(rows))
    assert len(load(path, gold="doc.answer").instances) == 8
    evalset, logged = load(samples("lx_contexts_acc"), gold="doc.answer"), lines(samples("lx_contexts_acc"))
    assert [score(instance, "acc") for instance in evalset.instances] == [row["acc"] for row in logged]
    path = changed(tmp_path, "lx_index", lambda rows: put(0, acc_norm=1 - rows[0]["acc_norm"])(rows), alone=False)
    assert "the results file says" in refusal(path)
    assert len(load(path, results="none").instances) == 8
