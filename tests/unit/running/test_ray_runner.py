"""What a process on another machine is told, and that it needs no more."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import textwrap

import pytest
from helm.benchmark.executor import ExecutionSpec
from helm.common.authentication import Authentication
from helm.common.cache_backend_config import SqliteCacheBackendConfig

from helm_ext.errors import HelmExtError
from helm_ext.running.ray_runner import HelmContext, find_plugins

SECRET = "sk-7d1f-secret"

PLUGIN = """
    import os
    from helm.clients.client import Client
    from helm.common.request import GeneratedOutput, RequestResult

    class TellingClient(Client):
        def __init__(self, api_key=None, cache_config=None, greeting=""):
            self.text = f"{greeting} {api_key} {os.environ.get('SENT')} {cache_config}"

        def make_request(self, request):
            return RequestResult(True, [], [GeneratedOutput(self.text, 0, [])], False)
"""

DRIVER = """
    import pickle, sys
    from helm.benchmark.config_registry import register_configs_from_directory
    from helm.benchmark.executor import ExecutionSpec
    from helm.benchmark.run import import_user_plugins
    from helm.common.authentication import Authentication
    from helm.common.cache_backend_config import SqliteCacheBackendConfig
    from helm_ext.running.ray_runner import HelmContext

    register_configs_from_directory("prod_env")
    import_user_plugins(["./telling.py"])
    sys.argv[1:] = ["--suite", "s", "--plugins", "./telling.py", "-m", "3"]
    spec = ExecutionSpec(None, Authentication(""), "prod_env", 3, False, SqliteCacheBackendConfig("prod_env/cache"))
    context = HelmContext.of_this_process(spec)
    print(repr(context))
    with open("context.pickle", "wb") as file:
        pickle.dump(context, file)
"""

ACTOR = """
    import contextlib, io, json, pickle
    from helm.common.request import Request
    from helm_ext.running.executor import LiveExecutor

    with contextlib.redirect_stdout(io.StringIO()):
        with open("../driver/context.pickle", "rb") as file:
            spec = pickle.load(file).enter()
        result = LiveExecutor(spec).context.make_request(Request(model="told/model", model_deployment="told/model"))
    print(json.dumps([result.completions[0].text, spec.local_path, spec.parallelism]))
"""


def python(folder, code, **environ):
    folder.mkdir(exist_ok=True)
    given = {name: value for name, value in os.environ.items() if name != "HELM_CREDENTIALS"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=folder, env={**given, **environ}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def driver(tmp_path):
    """A folder in which a driver has packed its context."""
    folder = tmp_path / "driver"
    (folder / "prod_env").mkdir(parents=True)
    (folder / "prod_env" / "credentials.conf").write_text(f"toldApiKey: {SECRET}\n")
    (folder / "prod_env" / "model_deployments.yaml").write_text(
        "model_deployments:\n  - name: told/model\n    client_spec:\n"
        '      class_name: "telling.TellingClient"\n      args: {greeting: "hello"}\n'
    )
    (folder / "telling.py").write_text(textwrap.dedent(PLUGIN))
    printed = python(folder, DRIVER, SENT="sent-value", HELM_EXT_RAY_ENV="SENT")
    assert SECRET not in printed
    assert "sent-value" not in printed
    return folder


@pytest.mark.long
def test_a_machine_without_our_files(tmp_path, driver):
    shutil.rmtree(driver / "prod_env")
    text, local_path, threads = json.loads(python(tmp_path / "node", ACTOR, TMPDIR=str(tmp_path)))
    # Registries, credentials and the variable came along; the cache did not.
    assert text == f"hello {SECRET} sent-value BlackHoleCacheConfig()"
    assert threads == 3
    # Credentials are nowhere but in the pickle that this test wrote.
    assert local_path.startswith(str(tmp_path))
    found = [path.name for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert found == ["context.pickle"]


@pytest.mark.long
def test_a_plugin_that_is_not_there_is_named(driver):
    context = pickle.loads((driver / "context.pickle").read_bytes())
    (driver / "telling.py").unlink()
    with pytest.raises(HelmExtError, match="telling.py: not on this Ray node"):
        context.enter()


@pytest.mark.long
def test_no_credentials_are_none(tmp_path, driver):
    (driver / "prod_env" / "credentials.conf").unlink()
    python(driver, DRIVER)
    (driver / "prod_env" / "credentials.conf").write_text("toldApiKey: another\n")
    text, _, _ = json.loads(python(tmp_path / "node", ACTOR, TMPDIR=str(tmp_path)))
    assert text.startswith("hello None None ")


def test_plugins_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    found = find_plugins(["-m", "3", "--plugins", "some.module", "./mine.py", "--suite", "s"])
    assert found == ["some.module", str(tmp_path / "mine.py")]
    assert find_plugins(["-m", "3"]) == []


def test_a_variable_that_is_not_set(monkeypatch):
    monkeypatch.setenv("HELM_EXT_RAY_ENV", "NOT_SET_ANYWHERE")
    spec = ExecutionSpec(None, Authentication(""), "prod_env", 3)
    with pytest.raises(HelmExtError, match="NOT_SET_ANYWHERE"):
        HelmContext.of_this_process(spec)


@pytest.mark.long
def test_folders_are_told_as_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = ExecutionSpec(None, Authentication(""), "p", 3, False, SqliteCacheBackendConfig("p/cache"))
    context = pickle.loads(pickle.dumps(HelmContext.of_this_process(spec)))
    assert context.execution_spec.local_path == str(tmp_path / "p")
    assert context.execution_spec.sqlite_cache_backend_config.path == str(tmp_path / "p" / "cache")
