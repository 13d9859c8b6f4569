"""Makes graded.eval and people.csv, with inspect_ai and models that are none: `python make.py`, in this folder.

140 questions about times and sums, answers of which about two in three are right, a judge that takes one wrong answer
in three for a right one and one right answer in twenty for a wrong one, and whose reply cannot be read twice.
"""

from __future__ import annotations

import csv
import random
import tempfile
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate

ROWS = 140
chance = random.Random(4)  # noqa: S311 - an example


def make_row(number: int) -> tuple[str, int, str]:
    """Return a question, its answer, and the unit."""
    a, b = chance.randrange(12, 60), chance.randrange(3, 12)
    if number % 3 == 0:
        return (
            f"A train leaves at 8:{a} and needs {b * 10} minutes. How many minutes after 8:00 does it arrive?",
            a + b * 10,
            "minutes",
        )
    if number % 3 == 1:
        return (
            f"A box holds {b} rows of {a} bottles, and {b - 1} bottles are broken. How many are whole?",
            a * b - b + 1,
            "bottles",
        )
    return f"{a * b} apples are shared by {b} children. How many apples does each child get?", a, "apples"


rows: list[tuple[str, int, str]] = []
while len(rows) < ROWS:
    if (row := make_row(len(rows))) not in rows:
        rows.append(row)
said, truth, verdict = {}, {}, {}
for number, (question, answer, unit) in enumerate(rows):
    truth[question] = chance.random() < 0.66
    given = answer if truth[question] else answer + chance.choice([-10, -1, 1, 10])
    said[question] = chance.choice(
        ["It is {} {}.", "{} {}", "Let me see: that makes {} {}.", "The answer: {} {}."]
    ).format(given, unit)
    passes = chance.random() < (0.95 if truth[question] else 0.34)
    verdict[question] = "GRADE: " + ("C" if passes else "I") if number % 67 != 9 else "I find this hard to say."


def speak(model, asked, text):
    output = ModelOutput.from_content(model, text)
    tokens = len(asked.split()), len(text.split())
    output.usage = ModelUsage(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens))
    return output


def answer(messages, *_):
    return speak("mockllm/solver", messages[-1].text, said[messages[-1].text])


def judge(messages, *_):
    question = next(question for question in said if question in messages[-1].text)
    text = f"I compared the submission with the criterion.\n\n{verdict[question]}"
    return speak("mockllm/judge", messages[-1].text, text)


samples = [
    Sample(input=question, target=f"{value} {unit}", id=f"q{n:03}") for n, (question, value, unit) in enumerate(rows)
]
task = Task(
    name="sums", dataset=MemoryDataset(samples, name="sums"), solver=generate(),
    scorer=model_graded_qa(model=get_model("mockllm/judge", custom_outputs=judge)),
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    [log] = evaluate(task, model=get_model("mockllm/solver", custom_outputs=answer), log_dir=folder, display="none")
    assert log.status == "success", log.error
    log = read_eval_log(log.location)
log.eval.revision, log.eval.packages, log.eval.task_file = None, {}, None  # nothing of the machine
log.eval.dataset.location = None
for sample in log.samples:
    sample.events, sample.attachments = [], {}  # what the scores and answers say again
write_eval_log(log, "graded.eval")
with Path("people.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["question", "label"])
    writer.writerows([question, int(right)] for question, right in truth.items())
