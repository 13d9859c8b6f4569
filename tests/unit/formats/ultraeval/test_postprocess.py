"""From a completion to its answer: our own rules, and tasks as they are in practice, row to score."""

import helm_states
import pytest
import ultraeval_checkout as made
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.metrics.metric import create_metric
from helm.common.request import Request

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.errors import RunEntryError
from helm_ext.evalset import row_extra
from helm_ext.formats.ultraeval import loading as ultraeval
from helm_ext.formats.ultraeval.checkout import get_postprocess


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("first_line", "\n  Paris \nand more", "Paris"), ("first_line", "", ""),
    ("last_number", "first 3, then -1,250.5 apples.", "-1250.5"),
    ("last_number", "none", ""),
    ("boxed", "so \\boxed{1} and \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
    ("boxed", "\\boxed{never closed", ""), ("boxed", "x", ""), ("option_letter", "The answer is (B).", "(B)"),
    ("option_letter", "B", "(B)"), ("option_letter", "A dog", ""), ("option_letter", "none", ""),
])  # fmt: skip
def test_ours(name, text, expected):
    assert get_postprocess(name)(text) == expected


@pytest.mark.parametrize("name", ["", "none", "general_torch"])
def test_nothing_is_stripped_where_nothing_is_asked_for(name):
    assert get_postprocess(name)("  a \n") == "  a \n"


def test_unknown_names():
    with pytest.raises(RunEntryError) as caught:
        get_postprocess("gsm8k_post")
    assert "root=FOLDER names the UltraEval checkout" in str(caught.value)


# Whole tasks: script, completion, postprocessing, metric

REASONING = """\
def transform(data, num_sample, r, dataset_name):
    gold = data["answer"].rsplit("#### ", 1)[1].replace(",", "")
    return {"input": f"Question: {data['question']}\\nAnswer: ", "output": data["answer"], "processed_output": gold}
"""
REASONING_ROWS = [
    {"question": "A crate holds 24 pears. How many pears are in 60 crates?", "target_scores": {},
     "answer": "24 * 60 = <<24*60=1440>>1440\n#### 1,440"},
    {"question": "Ida has 7 stamps and buys 5. How many now?", "target_scores": {}, "answer": "7 + 5 = 12\n#### 12"},
]  # fmt: skip

LETTERS = """\
def transform(data, num_sample, r, dataset_name):
    options = list(data["target_scores"])
    r.shuffle(options)
    shown = "".join(f"({chr(65 + i)}) {option}\\n" for i, option in enumerate(options))
    right = [f"({chr(65 + i)})" for i, option in enumerate(options) if data["target_scores"][option] == 1]
    return {"input": f"{data['question']}\\n{shown}Answer: ", "output": right[0], "processed_output": right}
"""

MATH = """\
def transform(data, num_sample, r, dataset_name):
    return {"input": data["question"], "output": data["answer"][1], "processed_output": data["answer"][1]}
"""

ACCEPTED = """\
def transform(data, num_sample, r, dataset_name):
    return {"input": data["question"] + " ", "output": data["answer"], "processed_output": data["answer"]}
"""

CHINESE = """\
def transform(data, num_sample, r, dataset_name):
    text = f"文章：{data['passage']}\\n问题：{data['question']}\\n答案："
    return {"input": text, "output": data["answer"], "processed_output": data["answer"]}
"""


def score(tmp_path, script, rows, completions, **arguments):
    """Load a task of these rows, answer it with the completions, return its main score."""
    data = made.write_rows(tmp_path / "task.jsonl", rows)
    path = tmp_path / "transform_gen_v0.py"
    path.write_text(script, encoding="utf-8")
    evalset = ultraeval.load(data=data, transform=path, **arguments)
    states = [
        helm_states.make_state(
            instance,
            request=Request(model_deployment="recorded/x", prompt="".join(row_extra(instance)["prompt"])),
            result=helm_states.make_result(helm_states.make_output(text), request_time=0.0),
        )
        for instance, text in zip(evalset.instances, completions, strict=True)
    ]
    metric = create_metric(evalset.details.to_metric_spec(evalset.scoring))
    spec = AdapterSpec(method="generation", model="x", model_deployment="recorded/x", num_outputs=1)
    return evalset, helm_states.means(metric, spec, states)[1][evalset.scoring.main_metric]


def test_step_by_step_arithmetic(tmp_path):
    """Demonstrations show the reasoning (`output`), the score looks at the number (`processed_output`)."""
    completions = ["24 crates make 24 * 60 = 1440 pears.\n#### 1440", "7 + 5 = 13\n#### 13"]
    evalset, mean = score(tmp_path, REASONING, REASONING_ROWS, completions, fewshot=1, postprocess="last_number")
    assert mean == 0.5
    assert row_extra(evalset.instances[1])["prompt"][1].endswith("<<24*60=1440>>1440\n#### 1,440\n\n")
    assert [r.output.text for r in evalset.instances[0].references] == ["1440"]


def test_options_with_letters(tmp_path):
    rows = [{"question": f"Which is number {n}?", "target_scores": {"one": 1, "two": 0, "three": 0}} for n in range(4)]
    evalset, _ = score(tmp_path, LETTERS, rows, [""] * 4, postprocess="option_letter")
    rights = [instance.references[0].output.text for instance in evalset.instances]
    assert len(set(rights)) > 1  # the script shuffles with our seeded generator
    completions = [f"The answer is {rights[0]}.", rights[1].strip("()"), "(Z)", "none"]
    assert score(tmp_path, LETTERS, rows, completions, postprocess="option_letter")[1] == 0.5


WHO = [{"question": "Who wrote it?", "answer": ["Ada Berg", "A. Berg", "Berg"]}]
LOWER = [{"question": "Who wrote it?", "answer": ["ada berg", "berg"]}]
HALF = [{"question": "Half of one?", "answer": ["latex", "\\frac{1}{2}"]}, {"question": "2+2?", "answer": ["int", "4"]}]
SEA = [{"passage": "小明住在海边的小镇。", "question": "小明住在哪里？", "answer": "海边的小镇"}]
PLAIN = [{"question": "?", "answer": "x"}]
DOG = [{"question": "Which animal barks?", "target_scores": {"the cat": 0, "the dog": 1}, "answer": "(B)"}]


@pytest.mark.parametrize(("script", "rows", "completions", "arguments", "mean"), [
    (MATH, HALF, ["It is \\boxed{\\frac{1}{2}}.", "It is 4."], {"postprocess": "boxed"}, 0.5),
    (ACCEPTED, WHO, ["A.Berg"], {}, 1),  # spaces do not count
    (ACCEPTED, WHO, ["berg"], {}, 0),
    (ACCEPTED, WHO, ["It was Berg."], {"metric": "in_match"}, 0),
    (ACCEPTED, LOWER, [" Berg\n"], {"metric": "in_match"}, 1),
    (ACCEPTED, WHO, ["Ada Lund"], {"metric": "f1_score"}, pytest.approx(0.5)),
    (CHINESE, SEA, ["海边的小镇。\n"], {"postprocess": "first_line", "metric": "prefix_match"}, 1),
    # Raw completions are not stripped before the metric.
    (ACCEPTED, PLAIN, ["x\n"], {}, 0), (ACCEPTED, PLAIN, [" x "], {}, 1),
    (ACCEPTED, PLAIN, ["\nx\n"], {"postprocess": "first_line"}, 1),
    # Metrics that need the row get it.
    (ACCEPTED, DOG, ["I think B"], {"metric": "qa_match"}, 1),
    (ACCEPTED, DOG, ["the dog, surely"], {"metric": "qa_match"}, 1),
    (ACCEPTED, DOG, ["the cat"], {"metric": "qa_match"}, 0),
])  # fmt: skip
def test_tasks_as_they_are_in_practice(tmp_path, script, rows, completions, arguments, mean):
    evalset, found = score(tmp_path, script, rows, completions, **arguments)
    assert found == mean
    assert evalset.instances[0].input.text.endswith("答案：") == (script == CHINESE)


def test_all_references_at_once(tmp_path):
    golds = ["the cat sat on the mat", "a dog ran in the park"]
    together, *alone = (
        score(tmp_path, ACCEPTED, [{"question": "?", "answer": gold}], ["the cat sat in the park"], metric="bleu")[1]
        for gold in (golds, *golds)
    )
    assert together > max(alone)
