"""The prompt rule, against an independent statement of it (docs/ultraeval.md)."""

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_ext.formats.ultraeval.questions import Question, make_questions
from helm_ext.formats.ultraeval.script import load_script
from helm_ext.formats.ultraeval.task import Task

SCRIPT = """\
def transform(data, n, r, name):
    drawn = r.random() if data.get("random") else ""
    output = data["output"]
    return {"input": f"{data['input']}{drawn}", "output": output, "processed_output": "p"}
"""


def load():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transform.py"
        path.write_text(SCRIPT)
        return load_script(path, None)


LOADED = load()


def prompts_by_the_rule(rows, description, shots, seed):
    """Upstream's rule, said once more: one generator for the file; each question draws from all rows."""
    generator = random.Random(seed)
    prompts = []
    for row in rows:
        text = description + "\n\n" if description else ""
        if shots:
            others = [other for other in generator.sample(rows, shots + 1) if other != row][:shots]
            state = generator.getstate()
            for other in others:
                number = generator.random() if other.get("random") else ""
                output = other["output"] if isinstance(other["output"], str) else other["output"][0]
                text += other["input"] + str(number) + output + "\n\n"
                generator.setstate(state)
        number = generator.random() if row.get("random") else ""
        prompts.append(text + row["input"] + str(number))
    return prompts


TEXT = st.text(max_size=8)
ROW = st.fixed_dictionaries(
    {"input": TEXT, "output": TEXT | st.lists(TEXT, min_size=1, max_size=3)}, optional={"random": st.booleans()}
)
ROWS = st.lists(ROW, min_size=4, max_size=12)


def ours(rows, *, fewshot=0, description="", **options):
    nowhere = Path("nowhere")
    task = Task("a_b_gen", "a", "gen", nowhere, nowhere, None, description=description, fewshot=fewshot)
    made = list(make_questions(LOADED, task, rows, **options))
    assert all(isinstance(one, Question) for one in made)
    return made


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(rows=ROWS, description=TEXT, shots=st.integers(0, 3), seed=st.integers(0, 5))
def test_prompts_are_those_of_the_rule(rows, description, shots, seed):
    made = ours(rows, description=description, fewshot=shots, seed=seed)
    assert ["".join(question.parts) for question in made] == prompts_by_the_rule(rows, description, shots, seed)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, shots=st.integers(0, 3), limit=st.integers(1, 12))
def test_a_limit_changes_no_prompt(rows, shots, limit):
    assert ours(rows, fewshot=shots, limit=limit) == ours(rows, fewshot=shots)[:limit]


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(rows=ROWS, pool=st.lists(ROW, min_size=3, max_size=6), shots=st.integers(1, 3))
def test_demonstrations_of_another_file(rows, pool, shots):
    inputs = {row["input"] for row in pool}
    for question in ours(rows, fewshot=shots, demos=pool):
        assert len(question.parts) - 2 <= shots
        for part in question.parts[1:-1]:
            assert any(part.startswith(text) for text in inputs)


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(ROW, min_size=5, max_size=9, unique_by=lambda row: row["input"]),
    shots=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_rows_that_all_differ_give_every_demonstration_and_never_the_question(rows, shots, seed):
    for question in ours(rows, fewshot=shots, seed=seed):
        assert len(question.parts) == shots + 2
