"""What commands and the plugin import: `helm-ext validate` runs in commit hooks, and the plugin in every `helm-run`."""

import json
import sys
from pathlib import Path

import lint_rows
import pytest
import request_states_files
from processes import command
from request_states_files import answered, state

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PPL = ROOT / "examples" / "ultraeval" / "datasets" / "workshop" / "config" / "workshop_ppl.json"
LARGE = ("torch", "transformers", "spacy", "sklearn", "nltk", "datasets", "pandas", "scipy.stats")

PROGRAM = """
import json, sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from helm_ext.cli import main
code = 0
try:
    main()
except SystemExit as stopped:
    code = stopped.code or 0
models = sys.modules.get("helm.benchmark.model_metadata_registry")
with open("imported.json", "w") as file:
    json.dump({{"modules": sorted(sys.modules), "models": len(models.ALL_MODELS_METADATA) if models else 0}}, file)
sys.exit(code)
"""


def run(folder: Path, *arguments: object, absent: tuple[str, ...] = ()):
    """Run the command in a process without these modules; return what it printed, and what it imported."""
    done = command(folder, sys.executable, "-c", PROGRAM.format(absent=absent), *map(str, arguments), fresh=True)
    return done, json.loads((folder / "imported.json").read_text())


def write_rows(folder, **completion):
    rows = [state(f"{n} + 1?", str(n + 1)) for n in range(40)]
    states = [answered(row, "", completions=[{"text": str(n + n % 2), **completion}]) for n, row in enumerate(rows)]
    request_states_files.write(folder / "rows.json", states)


def test_texts_are_scored_without_large_libraries(tmp_path):
    write_rows(tmp_path)
    done, _ = run(
        tmp_path, "score", "rows.json", "--model", "m", "--json", absent=(*LARGE, "scipy", "aiohttp", "matplotlib")
    )
    found = json.loads(done.stdout)
    assert found["metrics"]["exact_match"] == {"mean": 0.5, "count": 40}
    assert found["metrics"]["f1_score"]["mean"] == 0.5


def test_answers_with_log_probabilities_have_all_stats_without_them(tmp_path):
    """HELM computes calibration with scikit-learn, by the package `calibration`."""
    write_rows(tmp_path, logprob=-0.5, tokens=[{"text": "1", "logprob": -0.5}])
    done, _ = run(tmp_path, "score", "rows.json", "--model", "m", absent=(*LARGE, "calibration"))
    (path,) = (tmp_path / "benchmark_output/runs/score").glob("*/stats.json")
    names = {stat["name"]["name"] for stat in json.loads(path.read_text())}
    assert {"ece_10_bin", "ece_1_bin", "selective_cov_acc_area", "selective_acc@10"} <= names
    assert {"platt_coef", "platt_intercept", "platt_ece_10_bin", "platt_ece_1_bin"} <= names
    assert "warning: no" not in done.stderr


@pytest.mark.parametrize(("model", "prefix"), [("m", ""), ("anthropic/claude-2.1", "\n\nHuman: ")])
def test_models_of_helm_are_read_where_it_names_the_model_alone(tmp_path, model, prefix):
    """HELM gives Claude 2 a prompt of its own by a tag of the model, also where the model is not asked."""
    write_rows(tmp_path)
    _, imported = run(tmp_path, "score", "rows.json", "--model", model)
    assert (imported["models"] > 0) == bool(prefix)
    (path,) = (tmp_path / "benchmark_output/runs/score").glob("*/run_spec.json")
    assert json.loads(path.read_text())["adapter_spec"]["global_prefix"].startswith(prefix)


def test_the_list_of_commands_imports_no_work(tmp_path):
    _, imported = run(tmp_path, "--help")
    assert not {"helm", "numpy", "pydantic", "msgspec", "yaml"} & set(imported["modules"])


def rows_of_format_1(folder, number=40):
    rows = [lint_rows.row(f"Who wrote the book with the number {n}?", f"author {n}") for n in range(number)]
    lint_rows.write(folder / "rows.jsonl", rows)
    return folder / "rows.jsonl"


def table(folder):
    lines = [f"Who wrote the book with the number {n}?,author {n},author {n % 7}" for n in range(40)]
    (folder / "rows.csv").write_text("\n".join(["question,answer,output", *lines, ""]))
    return folder / "rows.csv"


def validate(folder, file) -> set[str]:
    done, imported = run(folder, "validate", file, "--format", "json")
    (report,) = json.loads(done.stdout)
    assert report["linted"] is True
    return set(imported["modules"])


@pytest.mark.parametrize("make", [rows_of_format_1, table, lambda _: PPL], ids=["format 1", "table", "ultraeval"])
def test_a_small_file_needs_little(make, tmp_path):
    heavy = {"datasets", "nltk", "pandas", "pyarrow", "rich", "sacrebleu", "scipy", "torch"}
    # What other commands need, and completions that are more than a label
    others = {
        "helm.benchmark.metrics.metric", "helm_ext.analysis.suite", "helm_ext.cli.score",
        "helm_ext.formats.innodata.hub", "helm_ext.parsing.words",
    }  # fmt: skip
    assert not sorted((heavy | others) & validate(tmp_path, make(tmp_path)))


def test_a_larger_one_is_compared_by_minhash(tmp_path):
    assert "numpy" in validate(tmp_path, rows_of_format_1(tmp_path, 301))


PLUGIN = """
import json, sys
import helm.benchmark.run
before = set(sys.modules)
import helm_ext.plugin
assert sys.excepthook is sys.__excepthook__  # other programs that use HELM keep their tracebacks
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_plugin_imports_nothing_heavy(tmp_path):
    new = json.loads(command(tmp_path, sys.executable, "-c", PLUGIN).stdout)
    assert "helm_ext.plugin" in new
    # Of HELM, which is there already, no further module; of others, one that is a single file.
    assert {name.partition(".")[0] for name in new} <= {"helm_ext", "typing_extensions"}
    rooms = {name.split(".")[1] for name in new if name.startswith("helm_ext.")}
    assert not rooms & {"cli", "running", "analysis", "clients", "scoring", "fast", "hub", "parsing"}
