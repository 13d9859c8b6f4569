"""helm-run imports the plugin for every user of the environment: it must cost next to nothing and never fail."""

import json
import sys

import pytest
from processes import command

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys, time
import helm.benchmark.run
before = set(sys.modules)
start = time.process_time()
import helm_ext.plugin
print(json.dumps({"seconds": time.process_time() - start, "new": sorted(set(sys.modules) - before)}))
"""


def test_the_plugin_imports_nothing_heavy(tmp_path):
    report = json.loads(command(tmp_path, sys.executable, "-c", PROGRAM).stdout)
    new = set(report["new"])
    assert "helm_ext.plugin" in new
    # Of HELM, which is there already, no further module; of others, one that is a single file.
    assert {name.partition(".")[0] for name in new} <= {"helm_ext", "typing_extensions"}
    rooms = {name.split(".")[1] for name in new if name.startswith("helm_ext.")}
    assert not rooms & {"cli", "running", "analysis", "clients", "scoring", "fast", "hub", "parsing"}
