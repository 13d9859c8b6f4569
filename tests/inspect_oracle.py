"""inspect_ai itself, run by a Python that has it: makes logs of invented tasks, and says what its own reader reads.

    python tests/inspect_oracle.py make FOLDER      # the logs of every task, as .eval and .json
    python tests/inspect_oracle.py read FILE...     # one JSON object a file, on one line of stdout

The model is mockllm: it says what this script says. Nothing is downloaded, no model is asked.
"""

import json
import logging
import os
import signal
import sys
import tempfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("INSPECT_DISPLAY", "none")

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import ProvenanceData, edit_score, list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, ScoreEdit, accuracy, choice, includes, match, mean, scorer, stderr, value_to_float
from inspect_ai.solver import generate, multiple_choice, solver

logging.disable(logging.CRITICAL)

TOWNS = ["Orsk", "Velm", "Quade", "Tarn", "Üb", "Port Ilo", "白港", "Saint-Ro"]
RIVERS = ["Anda", "Brell", "Cosk", "Dwin", "Ellu", "Fane"]
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
USAGE = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)


def say(text: str, stop: str = "stop", parts: list[Any] | None = None) -> ModelOutput:
    """Return an output of the model; with usage, so that no tokenizer is looked for."""
    output = ModelOutput.from_content("mockllm/model", parts or text, stop_reason=stop)
    output.usage = USAGE
    return output


def model(answer: Any) -> Any:
    """Return the model that answers a question's text and number of times it was asked with `answer`."""
    asked: dict[str, int] = {}

    def outputs(messages: Any, _tools: Any, _choice: Any, _config: Any) -> ModelOutput:
        question = messages[-1].text
        asked[question] = asked.get(question, 0) + 1
        return answer(question, asked[question])

    return get_model("mockllm/model", custom_outputs=outputs)


@solver
def failing(ids: list[Any], epochs: list[int]) -> Any:
    async def solve(state: Any, _generate: Any) -> Any:
        if state.sample_id in ids and state.epoch in epochs:
            raise ValueError("no route to the mill")
        return state

    return solve


@solver
def interrupting(id: Any) -> Any:
    async def solve(state: Any, _generate: Any) -> Any:
        if state.sample_id == id:
            os.kill(os.getpid(), signal.SIGINT)
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def graded() -> Any:
    grades = "CPINC"

    async def score(state: Any, _target: Any) -> Score:
        return Score(value=grades[len(state.output.completion) % 5], explanation="by length")

    return score


@scorer(metrics={"depth": [mean()], "width": [mean()]})
def sized() -> Any:
    async def score(state: Any, _target: Any) -> Score:
        size = len(state.output.completion)
        return Score(value={"depth": size / 7, "width": size % 2 == 0})

    return score


@scorer(metrics=[mean()])
def partly() -> Any:
    async def score(state: Any, _target: Any) -> Score:
        known = int.from_bytes(str(state.sample_id).encode(), "big") % 3
        return Score(value=float("nan") if known == 0 else known == 1)

    return score


@scorer(metrics=[mean()])
def listed() -> Any:
    async def score(state: Any, _target: Any) -> Score:
        return Score(value=[1, 0])

    return score


def rivers(question: str, time: int) -> ModelOutput:
    number = next(index for index, town in enumerate(TOWNS) if town in question)
    if number == 3 and time == 1:
        return say("", "content_filter")
    if number == 4:
        return say(f"It may be the {RIVERS[number % 6]} or", "max_tokens")
    return say(RIVERS[number % 6] if (number + time) % 3 else RIVERS[(number + 1) % 6])


def river_samples() -> list[Sample]:
    return [
        Sample(
            id=f"town/{number}" if number % 2 else number,
            input=f"Which river runs through {town}?",
            target=[RIVERS[number % 6], f"the {RIVERS[number % 6]}"] if number % 3 == 0 else RIVERS[number % 6],
            metadata={"side": "east" if number % 2 else "west", "rank": number},
        )
        for number, town in enumerate(TOWNS)
    ]


def odd_samples() -> list[Sample]:
    said = "The chronicle of the valley says a great deal about weather. " * 12
    return [
        Sample(id=1, input=[ChatMessageSystem(content="Name it."), ChatMessageUser(content="The river of Orsk?")], target="Anda"),
        Sample(id=2, input=[ChatMessageUser(content=[ContentText(text="What is this?"), ContentImage(image=PIXEL)])], target="a dot"),
        Sample(id=3, input=[ChatMessageUser(content=said + "The river of Velm?"), ChatMessageAssistant(content="Wait."),
                            ChatMessageUser(content="Well?")], target=["Brell", "BRELL"]),
        Sample(id=4, input="The river of Quade?", target="Cosk", metadata={"long": said}),
        Sample(id=5, input="Say anything.", target=""),
    ]  # fmt: skip


def odd_answers(question: str, time: int) -> ModelOutput:
    if "Orsk" in question:
        return say("", parts=[ContentReasoning(reasoning="East or west? East."), ContentText(text="Anda")])
    if "What is this" in question:
        return say("", parts=[ContentText(text="a"), ContentText(text="dot")])
    return say("Brell" if "Well" in question else "anything")


OPTIONS = [
    ("Which of these is a town by the sea?", ["Orsk", "Port Ilo", "Tarn"], "B"),
    ("Which of these rivers is longest?", RIVERS[:5], "E"),
    ("Which town has a saint's name?", ["Saint-Ro", "Velm", "Quade", "白港"], "A"),
    ("Which town has two letters?", ["Orsk", "Üb"], "B"),
]


def choice_samples() -> list[Sample]:
    return [Sample(id=f"q{n}", input=question, choices=options, target=target)
            for n, (question, options, target) in enumerate(OPTIONS)]  # fmt: skip


def chosen(right: bool = True) -> Any:
    """Answer with the label under which the right option stands in the prompt; now and then in other words."""

    def answer(question: str, time: int) -> ModelOutput:
        number = next(n for n, (asked, _, _) in enumerate(OPTIONS) if asked in question)
        _, options, target = OPTIONS[number]
        wanted = options["ABCDEF".index(target)]
        lines = dict(line.split(") ", 1)[::-1] for line in question.splitlines() if line[1:3] == ") ")
        label = lines[wanted]
        if (number + time) % 4 == 0:
            label = next(other for other in lines.values() if other != label)
        if number == 2 and time == 1:
            return say(f"I am sure that it is ({label}).")  # inspect_ai finds no answer here
        return say(f"Let me see.\nANSWER: {label}")

    return answer


def several_samples() -> list[Sample]:
    return [
        Sample(id="odd", input="Which numbers are odd?", choices=["1", "2", "5", "8"], target=["A", "C"]),
        Sample(id="even", input="Which numbers are even?", choices=["3", "4", "6"], target=["B", "C"]),
        Sample(id="prime", input="Which numbers are prime?", choices=["4", "7", "9"], target="B"),
    ]


def several_answers(question: str, time: int) -> ModelOutput:
    return say("ANSWER: A, C" if "odd?" in question else "ANSWER: B" if "even?" in question else "ANSWER: B")


def tasks() -> dict[str, tuple[Task, Any, dict[str, Any]]]:
    """Return each task with its model and arguments of `eval`."""
    two = Epochs(3, ["mean", "at_least_2", "pass_at_2"])
    return {
        "rivers": (Task(name="rivers", dataset=MemoryDataset(river_samples()), solver=[failing(["town/5", 2], [2]), failing(["town/7"], [1, 2, 3]), generate()],
                        scorer=[match(location="any"), includes(), graded()], epochs=two), model(rivers), {}),
        "modes": (Task(name="modes", dataset=MemoryDataset(river_samples()), solver=[generate()], scorer=[graded(), sized(), partly()],
                       epochs=Epochs(4, "mode")), model(rivers), {}),
        "odd": (Task(name="odd", dataset=MemoryDataset(odd_samples()), solver=[failing([4], [1]), generate()],
                     scorer=[includes(), graded(), sized(), partly(), listed()]), model(odd_answers), {}),
        "plain_choice": (Task(name="plain_choice", dataset=MemoryDataset(choice_samples()), solver=[multiple_choice(cot=True)],
                              scorer=choice(), epochs=2), model(chosen()), {}),
        "shuffled": (Task(name="shuffled", dataset=MemoryDataset(choice_samples()), solver=[multiple_choice(shuffle=Random(3))],
                          scorer=choice()), model(chosen()), {}),
        "shuffled_twice": (Task(name="shuffled_twice", dataset=MemoryDataset(choice_samples()), solver=[multiple_choice(shuffle=Random(5))],
                                scorer=choice(), epochs=3), model(chosen()), {}),
        "several": (Task(name="several", dataset=MemoryDataset(several_samples()), solver=[multiple_choice(multiple_correct=True)],
                         scorer=choice()), model(several_answers), {}),
        "limited": (Task(name="limited", dataset=MemoryDataset(river_samples()), solver=[generate()], scorer=match()), model(rivers), {"limit": 3}),
        "broken": (Task(name="broken", dataset=MemoryDataset(river_samples()), solver=[failing([4], [1]), generate()], scorer=match()),
                   model(rivers), {"fail_on_error": True, "max_samples": 1}),
        "cancelled": (Task(name="cancelled", dataset=MemoryDataset(river_samples()), solver=[interrupting(4), generate()], scorer=match()),
                      model(rivers), {"max_samples": 1}),
    }  # fmt: skip


def run(name: str, task: Task, model: Any, folder: Path, arguments: dict[str, Any]) -> Path:
    """Run a task; return where its log is."""
    with tempfile.TemporaryDirectory() as made:
        given = {"fail_on_error": False, "max_samples": 4, **arguments}
        try:
            eval(task, model=model, log_dir=made, log_format="eval", display="none", log_level="critical", **given)
        except KeyboardInterrupt:
            pass
        log = next(iter(list_eval_logs(made)))
        target = folder / f"{name}.eval"
        target.write_bytes(Path(log.name.removeprefix("file://")).read_bytes())
    if name != "cancelled":  # it has no header yet, and keeps none when it is written again
        write_eval_log(without_tracebacks(read_eval_log(str(target))), str(target))
    return target


def without_tracebacks(log: Any) -> Any:
    """Return a log without the paths of the machine that made it."""
    for sample in log.samples or []:
        errors = [sample.error, *(event.error for event in sample.events if event.event == "error")]
        for error in filter(None, errors):
            error.traceback = error.traceback_ansi = ""
    if log.error:
        log.error.traceback = log.error.traceback_ansi = ""
    log.eval.task_file = None
    log.eval.revision = None
    return log


def make(folder: Path) -> None:
    """Write the logs of all tasks, and what comes of them afterwards: edited, added to."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (task, answers, arguments) in tasks().items():
        path = run(name, task, answers, folder, arguments)
        write_eval_log(read_eval_log(str(path)), str(folder / f"{name}.json"))
    log = read_eval_log(str(folder / "limited.eval"))
    provenance = ProvenanceData(author="a reader", reason="read again")
    edit_score(log, log.samples[0].id, "match", ScoreEdit(value="I", provenance=provenance))
    write_eval_log(log, str(folder / "edited.eval"))
    add_again(folder / "limited.eval", folder / "requeued.eval")


def add_again(path: Path, target: Path) -> None:
    """Write a copy of a log in which the first sample stands again, with another answer: as a run adds what it redid."""
    target.write_bytes(path.read_bytes())
    with zipfile.ZipFile(target, "a", compression=93) as archive:  # type: ignore[arg-type]
        name = next(name for name in archive.namelist() if name.startswith("samples/"))
        sample = json.loads(archive.read(name))
        sample["output"]["choices"][0]["message"]["content"] = sample["output"]["completion"] = "another river"
        archive.writestr(name, json.dumps(sample))


def read(path: str) -> dict[str, Any]:
    """Return what inspect_ai's own reader makes of a log."""
    log = read_eval_log(path, resolve_attachments=True)
    number = value_to_float()
    return {
        "status": log.status,
        "task": log.eval.task,
        "model": log.eval.model,
        "samples": [
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "input": sample.input if isinstance(sample.input, str) else [[m.role, m.text] for m in sample.input],
                "choices": sample.choices,
                "target": sample.target,
                "text": sample.output.message.text if sample.output.choices else None,
                "completion": sample.output.completion,
                "said": next((e.output.completion for e in reversed(sample.events) if e.event == "model"), None),
                "error": sample.error.message if sample.error else None,
            }
            for sample in log.samples or []
        ],
        "reductions": [
            {
                "scorer": one.scorer,
                "reducer": one.reducer,
                "values": [
                    [s.sample_id, {k: number(v) for k, v in s.value.items()} if isinstance(s.value, dict)
                     else None if isinstance(s.value, list) else number(s.value)]
                    for s in one.samples
                ],
            }
            for one in log.reductions or []
        ],
        "results": [
            {"name": s.name, "scorer": s.scorer, "reducer": s.reducer, "metrics": {k: m.value for k, m in s.metrics.items()}}
            for s in (log.results.scores if log.results else [])
        ],
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        for file in sys.argv[2:]:
            print(json.dumps(read(file)))
