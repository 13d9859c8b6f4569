"""What a model thinks is no part of its answer, in any format, recorded or live, with our runner and with HELM's."""

import json

import every_format
import pytest
import request_states_files as files
import run_entries
from helm.benchmark.runner import Runner
from run_entries import completions, run, stats, value

from helm_ext.running.runner import StreamingRunner

TOWNS = ("Rome", "Oslo", "Bern", "Lima")
SAID = ("{}", "<think>Bari? Rather {}.\nOr so.</think>\n\n{}", "Bari?\n</think>\n\n{}", "<think>{0}? I wonder,")
"""One answer a town, with `{}` for the town: three are right, one has no end of its thought."""
PLAIN = ("{}", "{}", "{}", "")


def _rows(said):
    filled = [text.replace("{0}", town).replace("{}", town) for text, town in zip(said, TOWNS, strict=True)]
    return [
        every_format.Row(f"Which town is number {n}?", *one) for n, one in enumerate(zip(TOWNS, filled, strict=True))
    ]


SOURCES = ("inspect_", "every_eval_ever_")


def _scores(folder):
    """The scores of a run, without what the source of the file had said of it."""
    found = stats(folder)
    return {
        key: one["mean"]
        for key, one in found.items()
        if "mean" in one and not json.loads(key)["name"].startswith((*SOURCES, "num_thinking", *run_entries.TIMES))
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", every_format.RECORDED)
def test_recorded_answers_are_scored_without_it(tmp_path, kind):
    found = {}
    for name, said in (("plain", PLAIN), ("thought", SAID)):
        folder = tmp_path / name
        folder.mkdir()
        found[name] = run(folder, kind, **every_format.RECORDED[kind](folder, _rows(said)))
    assert value(found["plain"], "num_thinking") is None
    assert value(found["thought"], "num_thinking") == 3
    assert _scores(found["thought"]) == _scores(found["plain"])
    assert [one["text"] for one in completions(found["thought"])] == ["Rome", "Oslo", "Bern", ""]
    thoughts = [one.get("thinking", {}).get("text") for one in completions(found["thought"])]
    assert thoughts == [None, "Bari? Rather Oslo.\nOr so.", "Bari?", "Lima? I wonder,"]

    folder = tmp_path / "kept"
    folder.mkdir()
    kept = run(folder, kind, thinking="keep", **every_format.RECORDED[kind](folder, _rows(SAID)))
    assert [one["text"] for one in completions(kept)] == [row.said for row in _rows(SAID)]
    assert value(kept, "num_thinking") is None


@pytest.mark.long
@pytest.mark.parametrize("thinking", ["move", "keep"])
@pytest.mark.parametrize("model", ["recorded/m", run_entries.MODEL])
def test_both_runners_write_the_same(tmp_path, monkeypatch, model, thinking):
    """Recorded and live: the files of HELM's runner and of ours are equal, and so are recorded and live scores."""
    monkeypatch.setattr(run_entries.Saying, "answers", {row.question: [row.said] for row in _rows(SAID)})
    named = every_format.adapter_spec(tmp_path, _rows(SAID))
    ours, helms = (
        run(tmp_path, "adapter_spec", runner=runner, suite=runner.__name__, model=model, thinking=thinking, **named)
        for runner in (StreamingRunner, Runner)
    )
    assert completions(ours) == completions(helms)
    assert _scores(ours) == _scores(helms)
    right = 0.75 if thinking == "move" else 0.25
    assert value(ours, "normalized_exact_match") == right
    assert value(ours, "num_thinking") == (3 if thinking == "move" else None)


def test_tokens_and_log_probabilities_stay(tmp_path):
    state = files.state("Which town?", "Rome", split="test")
    tokens = [{"text": text, "logprob": -0.5} for text in ("<think>", "Bari", "</think>", "Rome")]
    completion = {"text": "<think>Bari</think>Rome", "logprob": -2.0, "tokens": tokens, "thinking": {"text": "Hm."}}
    state["request"] = {"result": {"success": True, "completions": [completion]}}
    made = run(tmp_path, "adapter_spec", path=str(files.write(tmp_path / "f.json", [state])))
    [written] = completions(made)
    assert written == {**completion, "text": "Rome", "thinking": {"text": "Hm.\nBari"}}


def test_a_reference_about_such_tags_keeps_it(tmp_path):
    state = files.answered(files.state("Which tags?", "<think></think>", split="test"), "<think></think>")
    made = run(tmp_path, "adapter_spec", path=str(files.write(tmp_path / "f.json", [state])))
    assert value(made, "exact_match") == 1
    assert value(made, "num_thinking") is None


@pytest.mark.long
def test_extract_lists_and_options_see_the_answer_alone(tmp_path):
    """A thought without an end, from which a pattern would take an answer, is none."""
    unfinished = files.answered(files.state("Which town?", "Rome", split="test"), "<think>So it is: Rome. No,")
    path = files.write(tmp_path / "f.json", [unfinished], scoring={"extract": r"is: (\w+)"})
    made = run(tmp_path, "adapter_spec", path=str(path))
    assert (value(made, "exact_match"), value(made, "unmapped")) == (0, 1)

    listed = files.answered(files.state("Which?", "red; green", split="test"), "<think>blue; red</think>red; green")
    path = files.write(tmp_path / "l.json", [listed], {"max_train_instances": 0, "output_format": "list"})
    assert value(run(tmp_path, "adapter_spec", path=str(path)), "exact_match") == 1

    for text, right, unmapped in (("<think>B? No.</think>(A)", 1, 0), ("<think>The answer is A", 0, 1)):
        chosen = files.answered(files.choice("Which?", ["Rome", "Bari"], split="test"), text)
        path = files.write(tmp_path / f"c{right}.json", [chosen])
        made = run(tmp_path, "adapter_spec", path=str(path))
        assert (value(made, "exact_match"), value(made, "unmapped")) == (right, unmapped)
