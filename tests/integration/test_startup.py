"""`helm-ext score` of a recorded file needs none of the large libraries that HELM's other metrics are built on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import request_states_files
from request_states_files import answered, state

LARGE = ("torch", "transformers", "spacy", "sklearn", "nltk", "datasets", "pandas", "scipy.stats")

SCORE = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {large!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.argv = ["helm-ext", "score", "rows.json", "--model", "m", "--json", *sys.argv[1:]]
from helm_ext.cli import main
main()
"""


def write_rows(folder, **completion):
    rows = [state(f"{n} + 1?", str(n + 1)) for n in range(40)]
    states = [answered(row, "", completions=[{"text": str(n + n % 2), **completion}]) for n, row in enumerate(rows)]
    request_states_files.write(folder / "rows.json", states)


def score(folder, *large):
    return subprocess.run(
        [sys.executable, "-c", SCORE.format(large=large)], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("large", [(*LARGE, "scipy", "aiohttp", "matplotlib")])
def test_texts_are_scored_without_large_libraries(tmp_path, large):
    write_rows(tmp_path)
    done = score(tmp_path, *large)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metrics"]["exact_match"] == {"mean": 0.5, "count": 40}
    assert found["metrics"]["f1_score"]["mean"] == 0.5


def test_answers_with_log_probabilities_have_all_stats_without_them(tmp_path):
    """HELM computes calibration with scikit-learn, by the package `calibration`."""
    write_rows(tmp_path, logprob=-0.5, tokens=[{"text": "1", "logprob": -0.5}])
    done = score(tmp_path, *LARGE, "calibration")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "benchmark_output/runs/score").glob("*/stats.json")
    names = {stat["name"]["name"] for stat in json.loads(path.read_text())}
    assert {"ece_10_bin", "ece_1_bin", "selective_cov_acc_area", "selective_acc@10"} <= names
    assert {"platt_coef", "platt_intercept", "platt_ece_10_bin", "platt_ece_1_bin"} <= names
    assert "warning: no" not in done.stderr


MODELS = """
import sys
from helm_ext.cli import main
sys.argv = ["helm-ext", "score", "rows.json", "--model", sys.argv[1]]
try:
    main()
except SystemExit as end:
    assert not end.code
from helm.benchmark.model_metadata_registry import ALL_MODELS_METADATA
print(len(ALL_MODELS_METADATA))
"""


@pytest.mark.parametrize(("model", "prefix"), [("m", ""), ("anthropic/claude-2.1", "\n\nHuman: ")])
def test_models_of_helm_are_read_where_it_names_the_model_alone(tmp_path, model, prefix):
    """HELM gives Claude 2 a prompt of its own by a tag of the model, also where the model is not asked."""
    write_rows(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", MODELS, model], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (int(done.stdout.splitlines()[-1]) > 0) == bool(prefix)
    (path,) = (tmp_path / "benchmark_output/runs/score").glob("*/run_spec.json")
    assert json.loads(path.read_text())["adapter_spec"]["global_prefix"].startswith(prefix)


def test_the_list_of_commands_imports_no_work():
    program = """
import sys
sys.argv = ["helm-ext", "--help"]
from helm_ext.cli import main
try:
    main()
finally:
    print(sorted({"helm", "numpy", "pydantic", "msgspec", "yaml"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
