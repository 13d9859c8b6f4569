"""Transform scripts: loading, calling, what they may import, and what is said when they fail."""

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from helm_ext.errors import TransformError
from helm_ext.formats.ultraeval.checkout import Checkout, find_checkout, open_checkout
from helm_ext.formats.ultraeval.script import TransformProblem, check_source, load_script

SEED = (
    """
import random

def transform(data, num_sample: int, r: random.Random, dataset_name: string):
    # Construct the question, context, instruction, and options parts.
    question = f"Question:\\nIs the second sentence entailed by the first sentence?\\n"
    context = f"First sentence: {data['passage'][0]}\\nSecond sentence: {data['passage'][1]}\\n"
    instruction = f"Requirement:\\nChoose and respond with the letter of the correct answer, including the parentheses.\\n"
    options = "Options:\\n"
    for idx, item in enumerate(data['target_scores'].keys()):
        options += f"({chr(65 + idx)}) {item}\\n"
    answer_prompt = f"Answer:\\n"
    text = question + context + instruction + options + answer_prompt

    # Determine the correct answer based on the target_scores field.
    index_of_correct_answer = list(data['target_scores'].values()).index(1)
    processed_correct_answer = correct_answer = f"({chr(65 + index_of_correct_answer)})"

    return {"input": text, "output": correct_answer, "processed_output": processed_correct_answer}
""",
    """
import random

def transform(data, num_sample: int, r: random.Random, dataset_name: string):
    # Construct the question description, context, and instruction parts.
    question = f"Question:\\nIs the second sentence entailed by the first sentence?\\n"
    context = f"First sentence: {data['passage'][0]}\\nSecond sentence: {data['passage'][1]}\\n"
    instruction = f"Requirement:\\nPlease respond with either 'Yes' or 'No'.\\n"
    answer_prompt = f"Answer:\\n"
    text = question + context + instruction + answer_prompt

    # processed_correct_answer and correct_answer are not used during evaluation, shown here for corresponding logic
    processed_correct_answer = correct_answer = [key for key, value in data["target_scores"].items() if value == 1][0].strip()
    return {"input": text, "output": correct_answer, "processed_output": processed_correct_answer}
""",
)
"""The format's own example scripts, as they stand in its documentation: `string` is never imported."""

ROW = {"passage": ["It rains.", "The street is wet."], "target_scores": {"Yes": 1, "No": 0}}
GOOD = 'def transform(a, b, c, d):\n    return {"input": "i", "output": "o", "processed_output": "p"}\n'


@pytest.fixture
def write(tmp_path):
    def write(text, name="transform_gen_v0.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def call(script, row=ROW):
    with script.running():
        return script.transform(row, 0, random.Random(0), "ax-b_ax-b_gen")


def load_error(path, checkout=None):
    with pytest.raises(TransformError) as caught:
        load_script(path, checkout)
    (problem,) = caught.value.problems
    return problem


def call_error(path, row=ROW):
    with pytest.raises(TransformProblem) as caught:
        call(load_script(path, None), row)
    return caught.value


def test_the_formats_own_examples_load_as_they_stand(write):
    gen = call(load_script(write(SEED[0]), None))
    assert gen.input.endswith("Options:\n(A) Yes\n(B) No\nAnswer:\n")
    assert gen.output == gen.processed_output == "(A)"
    ppl = call(load_script(write(SEED[1], "transform_ppl_v0.py"), None))
    assert ppl.input.endswith("Please respond with either 'Yes' or 'No'.\nAnswer:\n")
    assert ppl.output == "Yes"
    for text in SEED:
        assert check_source(write(text), has_checkout=False) == []


def test_called_by_position_with_a_copy_of_the_row(write):
    path = write(
        """
        def transform(anything, num_fewshot, generator, name):
            anything["target_scores"].clear()
            anything["question"][1].append("more")
            return {"input": f"{num_fewshot} {name}", "output": ["x", "y"], "processed_output": ["z"]}
        """
    )
    row = {"target_scores": {"a": 1}, "question": ["q", ["r"], None]}
    result = call(load_script(path, None), row)
    assert row == {"target_scores": {"a": 1}, "question": ["q", ["r"], None]}
    assert result.input == "0 ax-b_ax-b_gen"
    assert (result.output, result.processed_output) == ("x", ["z"])


def test_each_load_has_a_module_of_its_own_and_nothing_stays_on_the_path(write):
    path = write("import sys\ncount = []\n" + GOOD)
    before = list(sys.path)
    first, second = load_script(path, None), load_script(path, None)
    modules = [script.function.__globals__ for script in (first, second)]
    assert modules[0]["__name__"] != modules[1]["__name__"]
    assert modules[0]["count"] is not modules[1]["count"]
    assert sys.modules[modules[0]["__name__"]].__file__ == str(path)
    assert sys.path == before


# What is wrong with a script


def test_no_such_script(tmp_path):
    problem = load_error(tmp_path / "nowhere.py")
    assert problem.message == "transform script: no such file"
    assert problem.code == "no-script"
    assert check_source(tmp_path / "nowhere.py", has_checkout=False) == [problem]


TRANSFORM = "def transform(data, num_sample, r, dataset_name):"


@pytest.mark.parametrize(("text", "code", "line", "message"), [
    ("def tranform(a): pass", "no-transform", None, "the script has no function `transform`; it defines tranform"),
    ("", "no-transform", None, "it defines nothing"), ("transform = 3", "no-transform", None, ""),
    ("import random\n\ndef transform(:\n    pass", "script-syntax", 3, ""),
    ("x = 1\0", "script-syntax", None, "null bytes"),
    ("x = 1\ny = x / 0\n" + GOOD, "script-raised", 2, "the script raised ZeroDivisionError: division by zero while it was loaded"),
    ("import sys\nsys.exit(3)", "script-raised", 2, "SystemExit"),
])  # fmt: skip
def test_scripts_that_cannot_be_used(write, text, code, line, message):
    path = write(text + "\n")
    problem = load_error(path)
    assert (problem.code, message in problem.message) == (code, True), problem
    assert line in (None, problem.location.line)
    if code == "no-transform" and "has no function" in problem.message:
        assert problem.hint == TRANSFORM
    # What can be told without running it.
    if not (code == "script-raised" or text.startswith("transform =")):
        assert check_source(path, has_checkout=False) == [problem]


TEXT_OR_TEXTS = "expected a string or a list of strings, got"


@pytest.mark.parametrize(("returned", "message"), [
    ("None", "transform returned None, expected a dict"), ("'x'", 'transform returned str "x", expected a dict'),
    ("{'input': 'i', 'output': 'o'}", "lacks processed_output; expected exactly input, output, processed_output"),
    ("{'input': 'i', 'output': 'o', 'processed_output': 'p', 'score': 1}", "has score besides"),
    ("{'output': 'o', 'x': 1}", "lacks input, processed_output and has x besides"),
    ("{'input': 3, 'output': 'o', 'processed_output': 'p'}", "input: expected a string, got int 3"),
    ("{'input': 'i', 'output': 3, 'processed_output': 'p'}", f"output: {TEXT_OR_TEXTS} int 3"),
    ("{'input': 'i', 'output': 'o', 'processed_output': []}", f"processed_output: {TEXT_OR_TEXTS} list []"),
    ("{'input': 'i', 'output': ['o', 1], 'processed_output': 'p'}", f'output: {TEXT_OR_TEXTS} list ["o", 1]'),
    ("{'input': 'i', 'output': None, 'processed_output': 'p'}", "got None"),
    ("{'input': chr(0xd800), 'output': 'o', 'processed_output': 'p'}", "input: half of a surrogate pair"),
])  # fmt: skip
def test_wrong_returns_say_what_came(write, returned, message):
    problem = call_error(write(f"\ndef transform(a, b, c, d):\n    return {returned}\n"))
    assert message in problem.message
    assert problem.code == "transform-shape"
    assert problem.line == 2


def test_a_row_that_raises_has_the_scripts_line(write):
    path = write(
        """
        def helper(data):
            return data["answer"]

        def transform(data, n, r, name):
            return {"input": helper(data), "output": "", "processed_output": ""}
        """
    )
    problem = call_error(path)
    assert problem.message == "transform raised KeyError: 'answer'"
    assert problem.line == 3  # where it happened, in the script
    assert (
        call_error(write("def transform(a, b, c, d):\n    raise SystemExit\n")).message == "transform raised SystemExit"
    )


@pytest.mark.parametrize("text", ["def transform(a): pass", "transform = make()", "from x import *"])
def test_a_source_that_speaks_of_a_transform_may_have_one(write, text):
    assert check_source(write(text + "\n"), has_checkout=False) == []


def test_the_global_generators_are_seeded_for_each_row_and_put_back(write):
    path = write(
        """
        import random
        import numpy as np
        BASE = random.random()
        def transform(data, n, r, name):
            text = f"{BASE} {random.random()} {np.random.rand()}"
            return {"input": text, "output": "o", "processed_output": "p"}
        """
    )
    import numpy as np

    def run(seed):
        script = load_script(path, None)
        with script.running():
            return script.transform(ROW, 0, random.Random(0), "a_b_gen", seed=seed).input

    before = random.getstate()
    first = run(3)
    assert random.getstate() == before
    random.random()
    np.random.rand()  # noqa: NPY002 - the generator that scripts use
    assert run(3) == first
    assert run(4) != first
    expected = random.Random(0).random(), random.Random(3).random(), np.random.RandomState(3).rand()
    assert first == " ".join(str(float(value)) for value in expected)
    np.random.seed(9)  # noqa: NPY002
    run(5)
    assert np.random.rand() == np.random.RandomState(9).rand()  # noqa: NPY002


def test_what_a_script_prints_goes_to_standard_error(write, capsys):
    script = load_script(write("print('loaded')\n" + GOOD.replace("return", "print('called'); return")), None)
    call(script)
    assert capsys.readouterr() == ("", "loaded\ncalled\n")


def test_a_script_that_changes_the_working_directory_leaves_it_as_it_was(write, tmp_path, monkeypatch):
    """Files of the next task are looked for from there, and a run is written there."""
    monkeypatch.chdir(tmp_path)
    changes = "import os\nos.chdir('/')\n"
    script = load_script(write(changes + GOOD.replace("return", "os.chdir('/'); return")), None)
    assert Path.cwd() == tmp_path
    call(script)
    assert Path.cwd() == tmp_path


ODD = """
class Odd(BaseException):
    def __str__(self): raise ValueError
"""


@pytest.mark.parametrize("error", ["Odd", "BaseException", "SystemExit", "GeneratorExit"])
def test_whatever_is_raised_is_a_problem_of_the_row(write, error):
    script = load_script(write(f"{ODD}\ndef transform(a, b, c, d):\n    raise {error}()\n"), None)
    with pytest.raises(TransformProblem, match=f"transform raised {error}") as caught:
        call(script)
    assert caught.value.line == 6
    with pytest.raises(TransformError, match=f"the script raised {error}.* while it was loaded"):
        load_script(write(f"{ODD}\nraise {error}()\n"), None)


def test_the_user_can_still_stop_it(write):
    script = load_script(write("def transform(a, b, c, d):\n    raise KeyboardInterrupt\n"), None)
    with pytest.raises(KeyboardInterrupt):
        call(script)
    with pytest.raises(KeyboardInterrupt):
        load_script(write("raise KeyboardInterrupt\n"), None)


def test_a_value_that_cannot_be_shown(write):
    body = "class V:\n    def __repr__(self): raise KeyError\ndef transform(a, b, c, d):\n    return V()\n"
    with pytest.raises(TransformProblem, match="transform returned V, expected a dict"):
        call(load_script(write(body), None))


def test_relative_imports(checkout_folder, write):
    path = checkout_folder("one")
    script = "from ...tasks.postprocess import *\n" + GOOD
    path.write_text(script)
    loaded = load_script(path, open_checkout(None, path))
    assert loaded.uses_checkout
    assert call(loaded).input == "i"
    with pytest.raises(TransformError, match="a relative import works in a script that lies in an UltraEval checkout"):
        load_script(write(script), None)


# The checkout

USES = """
from UltraEval.tasks.postprocess import Shout

def transform(data, n, r, name):
    from UltraEval.metrics.lengths import length
    _, (text,) = Shout()([], ["abc"])
    return {"input": text, "output": str(length(text)), "processed_output": "p"}
"""


@pytest.fixture
def checkout_folder(tmp_path):
    def make(name, shout="text.upper()"):
        root = tmp_path / name
        (root / "datasets" / "sums").mkdir(parents=True)
        (root / "tasks").mkdir()
        (root / "metrics").mkdir()
        (root / "metrics" / "__init__.py").write_text("")
        (root / "metrics" / "lengths.py").write_text("def length(text):\n    return len(text)\n")
        (root / "tasks" / "postprocess.py").write_text(
            f"class Shout:\n    def __call__(self, raw, texts):\n        return raw, [{shout} for text in texts]\n"
        )
        path = root / "datasets" / "sums" / "transform_gen_v0.py"
        path.write_text(USES)
        return path

    return make


def test_imports_from_the_checkout_work_and_leave_nothing_behind(checkout_folder):
    path = checkout_folder("one")
    checkout = open_checkout(None, path)
    assert not checkout.used
    before = set(sys.modules)
    script = load_script(path, checkout)
    assert script.uses_checkout
    assert call(script).input == "ABC"
    assert call(script).output == "3"  # an import inside the function, each time
    assert not any(name.startswith("UltraEval") for name in set(sys.modules) - before)


def test_two_checkouts_in_one_process(checkout_folder):
    first, second = checkout_folder("one"), checkout_folder("two", "text + '!'")
    scripts = [load_script(path, open_checkout(None, path)) for path in (first, second)]
    assert [call(script).input for script in scripts] == ["ABC", "abc!"]
    assert [call(script).input for script in scripts[::-1]] == ["abc!", "ABC"]


def test_a_module_of_that_name_is_put_back(checkout_folder, monkeypatch):
    installed = type(sys)("UltraEval")
    monkeypatch.setitem(sys.modules, "UltraEval", installed)
    path = checkout_folder("one")
    call(load_script(path, open_checkout(None, path)))
    assert sys.modules["UltraEval"] is installed


def test_entering_twice_is_safe(checkout_folder):
    checkout = open_checkout(None, checkout_folder("one"))
    with checkout, checkout:
        assert "UltraEval" in sys.modules
        import UltraEval.tasks.postprocess  # noqa: F401

        assert checkout.used
    assert "UltraEval" not in sys.modules
    assert checkout.used


def test_without_a_checkout_the_import_and_the_way_out_are_named(write):
    path = write(USES)
    problem = load_error(path)
    assert (
        problem.message
        == ("the script imports `UltraEval`, which belongs to an UltraEval checkout, and none was found above it")
        or "`UltraEval" in problem.message
    )
    assert problem.hint.startswith("root=FOLDER")
    assert problem.location.line == 2
    found = check_source(path, has_checkout=False)
    assert {p.code for p in found} == {"no-checkout"}
    assert [p.location.line for p in found] == [2, 5]
    assert check_source(path, has_checkout=True) == []


def test_finding_the_checkout(checkout_folder, tmp_path):
    path = checkout_folder("one")
    assert find_checkout(path) == tmp_path / "one"
    assert open_checkout(tmp_path / "one", None).root == tmp_path / "one"
    assert open_checkout(tmp_path / "one" / "metrics", path) is None  # a root that is named is taken at its word
    assert open_checkout(None, None) is None
    with pytest.raises(TransformError, match="no such folder"):
        open_checkout(tmp_path / "nowhere", path)


def test_a_checkout_whose_postprocess_raises(checkout_folder, tmp_path):
    path = checkout_folder("one")
    (tmp_path / "one" / "tasks" / "postprocess.py").write_text("raise RuntimeError('broken')\n")
    with pytest.raises(TransformError, match="could not be loaded: RuntimeError: broken"):
        open_checkout(None, path).load_postprocesses()
    assert isinstance(open_checkout(None, path), Checkout)


@pytest.mark.long
def test_datasets_is_still_hugging_faces(checkout_folder, tmp_path):
    """In a process of its own, started in the checkout, as a user would."""
    path = checkout_folder("one")
    program = f"""
import random
from pathlib import Path
from helm_ext.formats.ultraeval.checkout import open_checkout
from helm_ext.formats.ultraeval.script import load_script

path = Path({str(path)!r})
script = load_script(path, open_checkout(None, path))
with script.running():
    script.transform({{}}, 0, random.Random(0), "a_b_gen")
    import importlib.util
    inside = importlib.util.find_spec("datasets").origin
import datasets
print(hasattr(datasets, "Dataset"), "site-packages" in datasets.__file__, inside == datasets.__file__)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program] if sys.version_info >= (3, 11) else [sys.executable, "-I", "-c", program],
        cwd=tmp_path / "one",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "True"]
