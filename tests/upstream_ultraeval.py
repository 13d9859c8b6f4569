"""UltraEval's own code, run beside ours: its functions in this process, its whole evaluation in one of its own.

Upstream is a checkout that `ULTRAEVAL_REPO` names. Its packages `openai` and `rouge_chinese` are stood in for where they
are not installed: nothing that is compared here needs the first, and `rouge` is compared only where the second is.
Started as a program (`python upstream_ultraeval.py CHECKOUT METHOD OUT`), it runs upstream's `Evaluator` on all task
configs of one method, with rows of our own and a model that answers from them.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import sys
import types
from pathlib import Path
from typing import Any

ROWS = 12
"""Of each task: more than any config's demonstrations."""


def stand_in() -> None:
    """Make upstream importable without packages that are not compared."""
    for name, attribute in (("openai", "OpenAI"), ("rouge_chinese", "Rouge")):
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            module = types.ModuleType(name)
            setattr(module, attribute, lambda *_, **__: None)
            sys.modules[name] = module


def load_upstream(root: Path, name: str, file: str) -> Any:
    """Return a module or package of upstream's under another name than its own."""
    stand_in()
    path = root / file
    folders = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# Rows of our own ------------------------------------------------------------------------------------------------------

ANSWERS = {
    "text": lambda number: f"answer {number}",
    "boxed": lambda number: f"So it is \\boxed{{{number}}}.",
    "list": lambda number: [f"Answer {number}", f"answer {number}"],
}
SHAPES = [(options, answer) for answer in ANSWERS for options in (0, 2, 3, 4, 5, 7)]
"""Number of options and kind of answer: a task gets the first shape that its script can take."""

HUMANEVAL = {
    "task_id": 1,
    "prompt": "def add(x):\n",
    "test": "def check(f):\n    assert f(1) == 2",
    "entry_point": "add",
}
MBPP = {
    "text": "Add one.", "code": "", "task_id": 1, "test_setup_code": "", "test_list": ["assert add(1) == 2"],
    "challenge_test_list": [],
}  # fmt: skip


def make_row(number: int, dataset: str, options: int, answer: str, *, right_first: bool) -> dict[str, Any]:
    """Return a row with every key that some script reads."""
    right = 0 if right_first or not options else number % options
    row = {
        "passage": f"Passage {number}.",
        "question": f"Which is {number}?",
        "target_scores": {f"Choice {number}-{index}": int(index == right) for index in range(options)},
        "answer": ANSWERS[answer](number),
        "cot": f"Step {number}.",
        "input": f"Input {number}",
        "activity_label": "Cooking",
        "score": 3,
    }
    if dataset == "gaokaobench":  # scored letter by letter; a list of answers is one letter a part
        row["answer"] = ["A", "C"] if number % 3 else "ABCD"[number % 4]
    return row | (HUMANEVAL if dataset == "humaneval" else MBPP if dataset.startswith("mbpp") else {})


def make_rows(uses: list[tuple[Path, str]], *, right_first: bool = False) -> list[dict[str, Any]]:
    """Return rows of the first shape that every use can take: (script, full name of the task)."""
    transforms = [(load_script(script), name) for script, name in uses]
    needs_options = any(name.endswith("_ppl") for _, name in uses)
    dataset = uses[0][1].split("_")[0]
    for options, answer in SHAPES:
        rows = [make_row(number, dataset, options, answer, right_first=right_first) for number in range(ROWS)]
        if (options or not needs_options) and all(_takes(t, row, name) for t, name in transforms for row in rows):
            return rows
    raise ValueError(f"no shape of rows fits {uses}")


def load_script(path: Path) -> Any:
    """Return a script's `transform`, as upstream loads it. `UltraEval` must be importable."""
    spec = importlib.util.spec_from_file_location("transform", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.transform


def _takes(transform: Any, row: dict[str, Any], name: str) -> bool:
    try:
        made = transform(json.loads(json.dumps(row)), 0, random.Random(0), name)
        texts = [made["input"], *(text for key in ("output", "processed_output") for text in _as_list(made[key]))]
    except Exception:  # noqa: BLE001 - whatever a script raises on a row that is none of its own
        return False
    return all(isinstance(text, str) for text in texts) and len(texts) > 2


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def importable(root: Path) -> None:
    """Let scripts write `from UltraEval.tasks.postprocess import ...`, as where UltraEval is installed."""
    package = types.ModuleType("UltraEval")
    package.__path__ = [str(root)]
    sys.modules["UltraEval"] = package


# A checkout with data -------------------------------------------------------------------------------------------------


def copy_checkout(repo: Path, target: Path) -> Path:
    """Copy what an evaluation needs, and write rows for every config's task. Returns the copy."""
    for name in ("datasets", "metrics", "models", "tasks", "utils", "configs"):
        shutil.copytree(repo / name, target / name)
    shutil.copy(repo / "main.py", target / "main.py")
    importable(target)
    uses: dict[str, list[dict[str, Any]]] = {}
    for config in [*make_configs(target, "gen"), *make_configs(target, "ppl")]:
        uses.setdefault(config["path"], []).append(config)
    for path, configs in uses.items():
        is_mc2 = "log_prob_mc2" in json.dumps([config["metric"] for config in configs])
        rows = make_rows([(target / c["transform"], c["task_name"]) for c in configs], right_first=is_mc2)
        (target / path).parent.mkdir(exist_ok=True)
        (target / path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return target


def make_configs(root: Path, method: str) -> list[dict[str, Any]]:
    """Return all task configs of a method with full names, as upstream's configs/make_config.py writes them."""
    configs = []
    for path in sorted(root.glob("datasets/*/config/*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        kind = "gen" if config["generate"]["method"] == "generate" else "ppl"
        if kind == method:
            task = "-".join(re.split("[-_]", config["task_name"]))
            configs.append({**config, "task_name": f"{path.parts[-3].lower()}_{task}_{kind}"})
    return configs


# Upstream's evaluation ------------------------------------------------------------------------------------------------


class Model:
    """Answers from the row, right and wrong in turn; as upstream's model classes."""

    concurrency = 1

    def generate(self, request: Any) -> list[str]:
        return [make_reply(instance, raw.data) for instance, raw in zip(request.instances, request.raw_example)]

    def loglikelihood(self, request: Any) -> list[list[list[float]]]:
        return [make_logprobs(raw.data) for raw in request.raw_example]


REPLIES = (
    "{}", "{} and more", " {}\n\nQ: next", "The answer is {}.", "So the answer is {}.", "答案是{}", "#### {}", "{}?",
    "\\boxed{{{}}}", "$x = {}$", "wrong 7", " 0",
)  # fmt: skip


def make_reply(instance: dict[str, Any], row: dict[str, Any]) -> str:
    """Return the reply to a row, which depends on nothing else."""
    number = int(hashlib.sha256(json.dumps([instance, row], sort_keys=True).encode()).hexdigest(), 16)
    if "entry_point" in row or "test_list" in row:
        body = "    return x + 1\n" if number % 2 else "    return x\n"
        return body if "entry_point" in row else f"def add(x):\n{body}"
    gold = _as_list(instance["processed_output"])[0]
    return REPLIES[number % len(REPLIES)].format(gold)


def make_logprobs(row: dict[str, Any]) -> list[list[float]]:
    """Return token log-probabilities: two of the prompt, equal for all options, and two or three of each option's."""
    rng = random.Random(json.dumps(row, sort_keys=True))
    shared = [-rng.random() for _ in range(2)]
    return [shared + [-rng.random() * 4 for _ in range(rng.randint(2, 3))] for _ in row["target_scores"]]


def evaluate(root: Path, method: str, out: Path) -> None:
    """Run upstream's Evaluator on all tasks of a method; it writes its logs below `out`. Its draws are seeded."""
    stand_in()
    importable(root)
    os.chdir(root)
    sys.path.insert(0, str(root))
    config = root / "configs" / f"all_{method}.json"
    config.write_text(json.dumps(make_configs(root, method)), encoding="utf-8")
    import main
    from models import MODEL_REGISTRY
    from tasks import eval_task

    MODEL_REGISTRY["ours"] = lambda _: Model()
    eval_task.random = types.SimpleNamespace(Random=lambda: random.Random(0))
    eval_task.tqdm = lambda items, **_: items
    params = "vllm_sample.json" if method == "gen" else "vllm_logprobs.json"
    args = argparse.Namespace(
        model="ours", model_args="x", config_path=str(config), output_base_path=str(out), batch_size=4,
        num_fewshot=None, postprocess="general_torch" if method == "gen" else "general_torch_ppl",
        params=f"models/model_params/{params}", limit=None, write_out=True,
    )  # fmt: skip
    with contextlib.redirect_stdout(sys.stderr):
        main.Evaluator(args).run()


if __name__ == "__main__":
    evaluate(Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve())
