"""A small checkout in UltraEval's layout, with scripts and rows of our own, for tests."""

import json
from pathlib import Path

PPL_SCRIPT = """\
import random

def transform(data, num_sample: int, r: random.Random, dataset_name: str):
    text = f"Q: {data['question']}\\nA: "
    answer = next((key for key, worth in data["target_scores"].items() if worth), "")
    return {"input": text, "output": answer, "processed_output": answer}
"""

GEN_SCRIPT = """\
def transform(data, num_fewshot, rng, name):
    return {"input": f"Q: {data['question']}\\nA: ", "output": data["answer"], "processed_output": data["answer"]}
"""

POSTPROCESS = """\
class Shout:
    def __call__(self, raw_outputs, processed_outputs):
        return raw_outputs, [text.upper() for text in processed_outputs]


class Nothing:
    def __call__(self, raw_outputs, processed_outputs):
        return raw_outputs, [None]


class Whole:
    def __call__(self, raw_outputs, processed_outputs):
        return raw_outputs, processed_outputs[0] + "!"


POSTPROCESS_REGISTRY = {"shout": Shout, "nothing": Nothing, "whole": Whole, "first_line": Shout}
"""


def question(number, **more):
    return {
        "question": f"What is {number} + 1?",
        "target_scores": {str(number): 0, str(number + 1): 1},
        "answer": str(number + 1),
        **more,
    }


def write_rows(path: Path, rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_config(path: Path, config) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def config(method="gen", dataset="sums", task=None, **changes):
    task = task or dataset
    metric = {"accuracy": {"evaluation": {"type": "exact_match" if method == "gen" else "log_prob"}}}
    return {
        "task_name": task,
        "path": f"datasets/{dataset}/data/{task}.jsonl",
        "description": "",
        "transform": f"datasets/{dataset}/transform_{method}_v0.py",
        "fewshot": 0,
        "generate": {"method": "generate" if method == "gen" else "loglikelihood", "params": ""},
        "postprocess": "",
        "metric": metric,
        **changes,
    }


def make_checkout(root: Path, rows=10, postprocess=True) -> Path:
    """`datasets/sums` with GEN and PPL scripts v0 and v1, ten rows, configs; `tasks/postprocess.py`."""
    folder = root / "datasets" / "sums"
    write_rows(folder / "data" / "sums.jsonl", [question(n) for n in range(rows)])
    for version in ("v0", "v1"):
        (folder / f"transform_gen_{version}.py").write_text(GEN_SCRIPT)
        (folder / f"transform_ppl_{version}.py").write_text(PPL_SCRIPT)
    if postprocess:
        (root / "tasks").mkdir()
        (root / "tasks" / "postprocess.py").write_text(POSTPROCESS)
    return root
