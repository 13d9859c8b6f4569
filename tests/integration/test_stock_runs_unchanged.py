"""Stock HELM runs are byte-identical with and without the plugin."""

import pytest
from processes import command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/planning", "src/helm_ext/adaptation", "src/helm_ext/running"),
]

WITHOUT_PLUGIN = """
import sys
import helm.benchmark.run as run
run.load_entry_point_plugins = lambda group="helm": []
sys.argv[0] = "helm-run"
run.main()
assert not any(name.startswith("helm_ext") for name in sys.modules), "the plugin was loaded after all"
"""
ENTRIES = ["simple1:model=simple/model1", "simple_mcqa:model=simple/model1"]


def test_every_output_file_is_byte_identical(tmp_path):
    (tmp_path / "without_plugin.py").write_text(WITHOUT_PLUGIN)

    def run(suite, *, plugin):
        # The request cache holds request_time, so that later runs repeat the first one's to the byte.
        arguments = ["--suite", suite, "-m", "20", "--run-entries", *ENTRIES]
        if plugin:
            command(tmp_path, "helm-run", *arguments)
        else:
            command(tmp_path, tmp_path / "without_plugin.py", *arguments)
        folder = tmp_path / "benchmark_output" / "runs" / suite
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}

    run("fill", plugin=False)
    without, with_plugin = run("without", plugin=False), run("with", plugin=True)
    assert len(without) == 10
    assert sorted(without) == sorted(with_plugin)
    assert [name for name in without if without[name] != with_plugin[name]] == []
