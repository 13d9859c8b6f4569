"""A workload run by inspect-ai: `python -m benchmarks.peer_runs.inspect_run FOLDER LOG_FOLDER`.

Its model is inspect-ai's own mockllm, with the recorded answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from inspect_ai import Task, eval, task  # noqa: A004 - inspect-ai's name for it
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, prompt_template

from benchmarks.peer_runs.answers import Answers


@task
def workload(folder: str) -> Task:
    return Task(
        dataset=json_dataset(str(Path(folder, "rows.jsonl")), FieldSpec(input="question", target="target", id="id")),
        solver=[prompt_template(Path(folder, "head.txt").read_text() + "{prompt}"), generate()],
        scorer=match(location="exact"),
    )


def main(folder: str, log_folder: str) -> None:
    answers = Answers(Path(folder, "answers.json"))

    def answer(messages, _tools, _tool_choice, _config) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", answers(messages[-1].text))
        output.usage = ModelUsage()  # without it, mockllm counts tokens and fetches a tokenizer for that
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    [log] = eval(workload(folder), model, log_dir=log_folder, display="none")
    if log.status != "success":
        sys.exit(f"{log.status}: {log.error.message if log.error else ''}")
    accuracy = log.results.scores[0].metrics["accuracy"].value
    Path(log_folder, "accuracy.txt").write_text(str(accuracy))


if __name__ == "__main__":
    main(*sys.argv[1:])
