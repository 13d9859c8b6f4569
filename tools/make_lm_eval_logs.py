"""Makes tests/data/lm_eval: logs that lm-evaluation-harness writes of invented questions and a scripted model.

    python -m venv lm-eval-venv && lm-eval-venv/bin/pip install lm-eval==0.4.13
    lm-eval-venv/bin/python tools/make_lm_eval_logs.py tests/data/lm_eval

The harness runs in a process of its own; what it leaves is kept as it is, but for the time in the names of the files,
and what describes the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TIME = "2026-01-02T03-04-05.678901"
_MACHINE = ("pretty_env_info", "date", "start_time", "end_time", "total_evaluation_time_seconds", "git_hash",
            "upper_git_hash", "transformers_version", "task_hashes")  # fmt: skip

ANIMALS = [
    ("Which animal hunts by echoes?", ["bat", "snow goose", "grey heron", "東の狐"], 0),
    ("Which animal builds dams?", ["otter", "beaver", "moor frog", "mole"], 1),
    ("Which animal sleeps upside down?", ["bat", "hare", "lynx", "white stork", "newt"], 0),
    ("Which animal changes its colour?", ["badger", "sea eagle", "chameleon"], 2),
    ("Which animal carries its house?", ["snail", "hare", "Bär", "lynx"], 0),
    ("Which animal spins?", ["moth", "moth", "garden spider", "mole"], 2),
    ("Which animal sings at night?", ["nightingale", "carp", "ox", "étourneau"], 0),
    ("Which animal has eight arms?", ["crab", "squid", "prawn", "octopus"], 3),
]
_LEVELS = ("easy", "hard")
TOWNS = [("Umbria Minor", "Calder"), ("Port Osk", "Osk"), ("Lower Vane", "Vanemouth"), ("Teal Isles", "Tarn"),
         ("Harrow Fell", "Fell"), ("Nine Wells", "Brook")]  # fmt: skip
SUMS = [(12, 7), (340, 1100), (5, 9), (27, 14), (981, 3045), (8, 8), (62, 1)]
OFF = [0, 10, 0, 0, 1, 3, 0]
PAIRS = [("Ida lent Oda a map because _ was lost.", "Ida", "Oda", "2"),
         ("Ned thanked Abe because _ had helped.", "Ned", "Abe", "2"),
         ("Una warned Eve because _ saw the bull.", "Una", "Eve", "1"),
         ("Kit called Jon because _ was bored.", "Kit", "Jon", "1")]  # fmt: skip


def make_documents() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each data file."""
    choices = [
        {"id": f"a{number}", "question": question, "choices": options, "answer": answer, "level": _LEVELS[number % 2]}
        for number, (question, options, answer) in enumerate(ANIMALS)
    ]  # fmt: skip
    return {
        "animals": choices,
        "four": [row for row in choices if len(row["choices"]) == 4],
        "unanswered": [
            {**row, "answer": -1 if number % 3 == 1 else row["answer"]}
            for number, row in enumerate(row for row in choices if len(row["choices"]) == 4)
        ],
        "named": [{**row, "answer": row["choices"][row["answer"]]} for row in choices],
        "several": [{**row, "answer": [row["answer"], 1] if row["answer"] else [0, 2]} for row in choices],
        "sums": [{"question": f"{a} + {b} = ?", "answer": f"{a} and {b} make {a + b}.\n#### {a + b}"} for a, b in SUMS],
        "towns": [{"country": country, "names": [town, town.lower(), f"{town} town"]} for country, town in TOWNS],
        "pairs": [{"text": text, "option1": one, "option2": two, "answer": answer} for text, one, two, answer in PAIRS],
        "truths": [
            {"statement": f"{a} + {b} = {a + b + off}", "answer": not off}
            for (a, b), off in zip(SUMS, OFF, strict=True)
        ],
        "lines": [{"text": f"The main town of {country} is {town}"} for country, town in TOWNS],
    }


_CHOICE = {"output_type": "multiple_choice", "doc_to_text": "Q: {{question}}\nA:", "doc_to_target": "answer",
           "doc_to_choice": "{{choices}}"}  # fmt: skip
_TEXT = {"output_type": "generate_until", "generation_kwargs": {"until": ["\n\n"], "do_sample": False}}
_NUMBER = {"function": "regex", "regex_pattern": "(-?[0-9,]+)"}
_FIRST = {"function": "take_first"}


def _metrics(*names: str, **options: Any) -> list[dict[str, Any]]:
    return [{"metric": name, **options} for name in names]


TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "lx_index": ("animals", {**_CHOICE, "metric_list": _metrics("acc", "acc_norm", "acc_bytes", "exact_match")}),
    "lx_shots": ("animals", {**_CHOICE, "metric_list": _metrics("acc"), "num_fewshot": 2, "fewshot_split": "test"}),
    "lx_text": ("named", {**_CHOICE, "metric_list": _metrics("acc", "acc_norm")}),
    "lx_several": ("several", {**_CHOICE, "metric_list": _metrics("acc", "acc_norm")}),
    "lx_mutual": ("animals", {**_CHOICE, "metric_list": _metrics("acc", "acc_mutual_info")}),
    "lx_letters": ("four", {
        **_CHOICE,
        "doc_to_text": "{{question}}\n{% for c in choices %}{{'ABCD'[loop.index0]}}. {{c}}\n{% endfor %}Answer:",
        "doc_to_choice": ["A", "B", "C", "D"],
        "metric_list": _metrics("acc", "brier_score"),
    }),
    "lx_contexts": ("pairs", {
        "output_type": "multiple_choice",
        "doc_to_text": "!function code.pair_index",
        "doc_to_target": "!function code.pair_end",
        "doc_to_choice": "!function code.pair_choices",
        "metric_list": _metrics("acc", "f1"),
    }),
    "lx_contexts_acc": ("pairs", {
        "output_type": "multiple_choice",
        "doc_to_text": "!function code.pair_index",
        "doc_to_target": "!function code.pair_end",
        "doc_to_choice": "!function code.pair_choices",
        "metric_list": _metrics("acc"),
    }),
    "lx_sums": ("sums", {
        **_TEXT,
        "doc_to_text": "Question: {{question}}\nAnswer:",
        "doc_to_target": "{{answer}}",
        "metric_list": _metrics("exact_match", ignore_case=True, regexes_to_ignore=[",", "(?s).*#### ", "\\.$"]),
        "filter_list": [
            {"name": "strict", "filter": [{"function": "regex", "regex_pattern": "#### ([0-9,]+)"}, _FIRST]},
            {"name": "last", "filter": [{**_NUMBER, "group_select": -1}, _FIRST]},
        ],
    }),
    "lx_repeats": ("sums", {
        **_TEXT,
        "doc_to_text": "Q: {{question}}\nA:",
        "doc_to_target": "{{answer.split('####')[-1].strip()}}",
        "repeats": 3,
        "metric_list": _metrics("exact_match", ignore_punctuation=True),
        "filter_list": [
            {"name": "first", "filter": [{**_NUMBER, "group_select": -1}, _FIRST]},
            {"name": "vote", "filter": [{**_NUMBER, "group_select": -1}, {"function": "majority_vote"}, _FIRST]},
        ],
    }),
    "lx_lists": ("towns", {
        **_TEXT, "doc_to_text": "Main town of {{country}}?", "doc_to_target": "names",
        "metric_list": _metrics("exact_match"),
    }),
    "lx_own": ("towns", {
        **_TEXT, "doc_to_text": "Main town of {{country}}?", "doc_to_target": "{{names[0]}}",
        "process_results": "!function code.own_scores",
        "metric_list": [{"metric": "found", "aggregation": "mean", "higher_is_better": True},
                        {"metric": "length", "aggregation": "mean", "higher_is_better": False}],
    }),
    "lx_predict": ("towns", {
        **_TEXT, "doc_to_text": "Main town of {{country}}?", "doc_to_target": "{{names[0]}}",
        "metric_list": _metrics("bypass"),
    }),
    "lx_ending": ("lines", {
        "output_type": "loglikelihood",
        "doc_to_text": "{{text.rsplit(' ', 1)[0]}}", "doc_to_target": "{{' ' + text.rsplit(' ', 1)[1]}}",
        "metric_list": _metrics("perplexity", "acc"),
    }),
    "lx_rolling": ("lines", {
        "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
        "metric_list": _metrics("word_perplexity"),
    }),
    "lx_truth": ("truths", {
        **_CHOICE, "doc_to_text": "{{statement}}. True?", "doc_to_choice": ["no", "yes"],
        "metric_list": _metrics("acc"),
    }),
    "lx_truth_words": ("truths", {
        **_CHOICE, "doc_to_text": "{{statement}}. True?", "doc_to_choice": ["True", "False"],
        "metric_list": _metrics("acc"),
    }),
    "lx_none": ("unanswered", {
        **_CHOICE, "metric_list": _metrics("acc", "acc_norm", "acc_bytes", "brier_score", "exact_match"),
    }),
    "lx_none_text": ("unanswered", {
        **_CHOICE, "doc_to_target": "{{answer}}", "metric_list": _metrics("acc", "acc_norm", "exact_match"),
    }),
    "lx_none_written": ("unanswered", {
        **_TEXT, "doc_to_text": "{{question}}", "doc_to_target": "answer", "doc_to_choice": "{{choices}}",
        "metric_list": _metrics("exact_match"),
    }),
    "lx_chosen": ("truths", {
        **_TEXT, "doc_to_text": "{{statement}}, yes or no?", "doc_to_target": "answer", "doc_to_choice": ["no", "yes"],
        "metric_list": _metrics("exact_match", ignore_case=True, ignore_punctuation=True),
    }),
    "lx_chosen_key": ("animals", {
        **_TEXT, "doc_to_text": "{{question}}", "doc_to_target": "answer", "doc_to_choice": "{{choices}}",
        "metric_list": _metrics("exact_match"),
    }),
    "lx_chosen_code": ("animals", {
        **_TEXT, "doc_to_text": "{{question}}", "doc_to_target": "answer", "doc_to_choice": "!function code.animals",
        "metric_list": _metrics("exact_match"),
    }),
}  # fmt: skip
"""Task to its data file and its config."""

_TRUTHS = [name for name in TASKS if name.startswith("lx_truth")]
_CHOSEN = [name for name in TASKS if name.startswith("lx_chosen")]
_NONE = [name for name in TASKS if name.startswith("lx_none")]

RUNS: dict[str, tuple[list[str], list[str]]] = {
    "acme__scripted": (sorted(set(TASKS) - {*_TRUTHS, *_CHOSEN, *_NONE}), []),
    "truths": (_TRUTHS, []),
    "chosen": (_CHOSEN, []),
    "none_right": (_NONE, []),
    "predict_only": (["lx_ending", "lx_index", "lx_lists", "lx_own", "lx_sums"], ["--predict_only"]),
    "limited": (["lx_index"], ["--limit", "5"]),
    "chat": (["lx_lists"], ["--apply_chat_template"]),
}
"""Folder to the tasks of a run, and further arguments of lm-eval."""

_CODE = """
def pair_index(doc):
    return {"1": 0, "2": 1}[doc["answer"]]


def pair_end(doc):
    return doc["text"].split("_")[1].strip()


def pair_choices(doc):
    return [doc["text"].split("_")[0] + option for option in (doc["option1"], doc["option2"])]


def animals(doc):
    return [choice.upper() for choice in doc["choices"]]


def own_scores(doc, results):
    return {"found": any(name in results[0] for name in doc["names"]), "length": len(results[0])}
"""


def draw(*parts: object) -> float:
    """Return a number from 0 to 1 that depends on these texts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def run_harness() -> None:
    """Run lm-eval's command line with a model that answers by rules."""
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
    from lm_eval.models.api_models import JsonChatStr

    @register_model("scripted")
    class Scripted(LM):
        def __init__(self, **_: object) -> None:
            super().__init__()
            self.asked: dict[str, int] = {}

        tokenizer_name = "scripted"

        def apply_chat_template(self, chat_history: list[dict[str, str]], **_: object) -> JsonChatStr:
            return JsonChatStr(json.dumps(chat_history, ensure_ascii=False))

        def loglikelihood(self, requests: list[Any], **_: object) -> list[tuple[float, bool]]:
            pairs = [request.args for request in requests]
            return [(-0.25 - 4 * draw(context, text), draw(text, context) < 0.4) for context, text in pairs]

        def loglikelihood_rolling(self, requests: list[Any], **_: object) -> list[float]:
            return [-50 * draw(request.args[0]) for request in requests]

        def generate_until(self, requests: list[Any], **_: object) -> list[str]:
            return [self.answer(str(request.args[0])) for request in requests]

        def answer(self, prompt: str) -> str:
            self.asked[prompt] = time = self.asked.get(prompt, 0) + 1
            chance = draw(prompt, time)
            if prompt.endswith("yes or no?"):
                return ["yes", "No.", "1", "0", "no"][int(chance * 1000) % 5]
            if animals := [choices for question, choices, _ in ANIMALS if question == prompt]:
                return [*animals[0][:3], "1"][int(chance * 1000) % 4]
            numbers = [int(number) for number in re.findall(r"\d+", prompt)]
            if numbers:
                total = sum(numbers[-2:]) + (chance > 0.7)
                forms = [f" It is {total:,}.\n#### {total:,}", f" {numbers[-1]} more: #### {total}", f"{total}", ""]
                return forms[int(chance * 1000) % len(forms)]
            known = [town for country, town in TOWNS if country in prompt]
            return [known[0], f" {known[0]}", "I do not know.", known[0].lower()][int(chance * 1000) % 4]

    cli_evaluate()


def write_tasks(folder: Path) -> None:
    """Write the tasks as lm-eval reads them."""
    for name, rows in make_documents().items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "code.py").write_text(_CODE)
    for name, (data, config) in TASKS.items():
        files = {"test": str(folder / f"{data}.jsonl")}
        whole = {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": files}, "test_split": "test",
                 **config, "metadata": {"version": 1.0}}  # fmt: skip
        text = json.dumps(whole, ensure_ascii=False)  # JSON is YAML, but for functions
        (folder / f"{name}.yaml").write_text(re.sub(r'"(!function [\w.]+)"', r"\1", text), encoding="utf-8")


def main(target: Path) -> None:
    """Write all logs below `target`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "tasks").mkdir()
        write_tasks(folder / "tasks")
        for name, (tasks, more) in RUNS.items():
            command = [
                sys.executable, __file__, "run", "--model", "scripted", "--model_args", "pretrained=acme/scripted",
                "--include_path", str(folder / "tasks"), "--tasks", ",".join(tasks), "--log_samples",
                "--output_path", str(folder / name), *more,
            ]  # fmt: skip
            home = {"HF_HOME": str(folder / "hf"), "HF_DATASETS_OFFLINE": "1", "HARNESS": "1"}
            subprocess.run(command, check=True, env={**os.environ, **home})
            (made,) = [path.parent for path in (folder / name).rglob("results_*.json")]
            shutil.rmtree(target / name, ignore_errors=True)
            (target / name).mkdir(parents=True)
            for path in sorted(made.iterdir()):
                keep(path, target / name, str(folder))


def keep(path: Path, target: Path, folder: str) -> None:
    """Copy a file that the harness wrote, without its time, its machine and its paths."""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("results_"):
        found = json.loads(text)
        text = json.dumps({k: v for k, v in found.items() if k not in _MACHINE}, ensure_ascii=False, indent=1) + "\n"
    name = re.sub(r"_[^_]+(\.jsonl?)$", rf"_{TIME}\1", path.name)
    (target / name).write_text(text.replace(f"{folder}/", ""), encoding="utf-8")


if __name__ == "__main__":
    if os.environ.get("HARNESS"):
        run_harness()
    else:
        main(Path(sys.argv[1]))
