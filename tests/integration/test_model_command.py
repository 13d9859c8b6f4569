"""helm-ext model: what it writes is what helm-run, preview, requests and PPL work with; keys are written nowhere."""

import logging
import os
import shutil
from pathlib import Path

import commands
import pytest
import yaml
from openai_server import serve
from processes import command, helm_run, only_run, run_folders, stat_means

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-hush-0123456789"
PPL = "ultraeval:config=examples/ultraeval/datasets/workshop/config/workshop_ppl.json"
QUESTIONS = "adapter_spec:dataset=short_answer_qa"


@pytest.fixture
def server():
    with serve() as running:
        running.models = ["org/Tiny-1B"]
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder, with HELM's registries as they are in a process that has just begun."""
    from helm.benchmark import model_deployment_registry, model_metadata_registry, tokenizer_config_registry

    for module, name in (
        (model_deployment_registry, "DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT"),
        (model_deployment_registry, "ALL_MODEL_DEPLOYMENTS"),
        (model_metadata_registry, "MODEL_NAME_TO_MODEL_METADATA"),
        (model_metadata_registry, "ALL_MODELS_METADATA"),
        (tokenizer_config_registry, "TOKENIZER_NAME_TO_CONFIG"),
        (tokenizer_config_registry, "ALL_TOKENIZER_CONFIGS"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name).copy())
    shutil.copytree(ROOT / "adapter_specs", tmp_path / "adapter_specs")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, env=None):
    done = commands.run("model", *arguments, env=env)
    logging.disable(logging.NOTSET)
    return done.stdout


def refusal(*arguments):
    done = commands.run("model", *arguments, code=None)
    assert done.code in (1, 2), done
    return done.stdout + done.stderr


def load(name):
    return yaml.safe_load(Path("prod_env", name).read_text())


@pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/cli/model")
def test_helm_run_preview_and_requests_know_the_model(folder, server):
    """Real processes, and a key that is nowhere afterwards but in the environment."""
    server.key = SECRET
    env = {"TINY_KEY": SECRET}
    shown = command(
        folder, "helm-ext", "model", "add", "local/tiny", "--url", f"{server.url}/v1", "--completions",
        "--tokenizer", "simple/tokenizer1", "--max-length", "3000", "--api-key-env", "TINY_KEY", env=env,
    ).stdout  # fmt: skip
    assert (folder / "prod_env" / "model_deployments.yaml").read_text().split("\n", 1)[1] in shown
    assert "openai_model_name: org/Tiny-1B" in shown  # the only one that the server lists
    done = [command(folder, "helm-ext", "model", "test", "local/tiny", env=env)]
    before = len(server.asked)
    done.append(helm_run(folder, QUESTIONS, PPL, options=("--models-to-run", "local/tiny"), env=env))
    assert len(server.asked) > before
    assert {key for key in server.keys[before:]} == {f"Bearer {SECRET}"}
    assert len(run_folders(folder)) == 2
    ppl = next(path for name, path in run_folders(folder).items() if "ppl" in name)
    assert stat_means(ppl)["num_instances"] > 0
    done.append(command(folder, "helm-ext", "preview", "adapter_specs/short_answer_qa.json", "--model", "local/tiny"))
    done.append(
        command(folder, "helm-ext", "requests", "out", QUESTIONS, "--model", "local/tiny", "--endpoint", "completions")
    )
    assert "as model org/Tiny-1B" in done[-1].stdout
    done.append(command(folder, "helm-ext", "model", "list", env=env))
    assert "TINY_KEY" in done[-1].stdout
    for output in done:
        assert SECRET not in output.stdout + output.stderr
    for path in folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_key_in_helms_file_is_found(folder, server):
    server.key = SECRET
    server.generates = True
    Path("prod_env").mkdir()
    Path("prod_env/credentials.conf").write_text(f'localApiKey: "{SECRET}"\n')
    assert "/models lists no models" not in run("add", "local/tiny", "--url", f"{server.url}/v1")
    assert "works" in run("test", "local/tiny")


@pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/cli/model")
def test_a_model_in_a_folder(tmp_path_factory, folder):
    from tiny_model import build_tiny_model, offline_environment

    build_tiny_model(folder / "my-model")
    shown = run("add", "local/my-model", "--path", "./my-model", "--device", "cpu", env=offline_environment())
    assert load("tokenizer_configs.yaml")["tokenizer_configs"] == [
        {
            "name": "local/my-model",
            "tokenizer_spec": {
                "class_name": "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer",
                "args": {"pretrained_model_name_or_path": "./my-model"},
            },
            "end_of_text_token": "<|endoftext|>",
            "prefix_token": "<|endoftext|>",
        }
    ]
    [deployment] = load("model_deployments.yaml")["model_deployments"]
    assert (deployment["tokenizer_name"], deployment["max_sequence_length"]) == ("local/my-model", 256)
    assert "no PPL" not in shown
    env = offline_environment()
    command(folder, "helm-ext", "model", "test", "local/my-model", env=env)
    helm_run(folder, PPL, options=("--models-to-run", "local/my-model", "-m", "3"), env=env)
    assert stat_means(only_run(folder))["num_instances"] == 3


def test_the_windows_length_is_the_servers(folder, server):
    server.is_vllm = True
    run("add", "local/tiny", "--url", f"{server.url}/v1", "--tokenizer", "simple/tokenizer1")
    [deployment] = load("model_deployments.yaml")["model_deployments"]
    assert deployment["max_sequence_length"] == 2048
    assert deployment["tokenizer_name"] == "simple/tokenizer1"
    assert not Path("prod_env/tokenizer_configs.yaml").exists()  # it is one of HELM's


def test_what_does_not_work_without_a_tokenizer_is_said(folder, server):
    shown = run("add", "local/tiny", "--url", f"{server.url}/v1/")
    assert "prompts are not fitted to the model's window" in shown
    assert "no log-probabilities of prompts: no PPL" in shown
    [deployment] = load("model_deployments.yaml")["model_deployments"]
    assert deployment == {
        "name": "local/tiny",
        "client_spec": {
            "class_name": "helm_ext.clients.OpenAICompatibleClient",
            "args": {"base_url": f"{server.url}/v1", "endpoint": "chat", "openai_model_name": "org/Tiny-1B"},
        },
    }


def test_all_that_is_said_of_the_client_reaches_it(folder, server):
    run(
        "add", "local/tiny", "--url", f"{server.url}/v1", "--omit", "temperature", "--omit", "n", "--top-k", "--seed",
        "0", "--extra-token", "--timeout", "90", "--model", "openai/gpt2", "--completions",
    )  # fmt: skip
    [deployment] = load("model_deployments.yaml")["model_deployments"]
    args = deployment["client_spec"]["args"]
    assert args["omit"] == ["temperature", "n"]
    assert (args["send_top_k"], args["seed"], args["extra_token"], args["timeout"]) == (True, 0, True, 90.0)
    assert deployment["model_name"] == "openai/gpt2"
    assert not Path("prod_env/model_metadata.yaml").exists()  # HELM's own is there


def test_what_helm_says_of_a_model_stays(folder, server):
    run("add", "openai/gpt2", "--url", f"{server.url}/v1")
    assert not Path("prod_env/model_metadata.yaml").exists()


def test_a_server_that_is_not_there_yet(folder):
    shown = run("add", "local/later", "--url", "http://127.0.0.1:9/v1")
    assert "/models lists no models, or nobody answers there" in shown
    assert "knows the model as 'later' (--model-name) is not known yet" in shown
    assert "nobody answers at http://127.0.0.1:9/v1/chat/completions" in refusal("test", "local/later")


def test_a_wrong_name_is_told_of_before_it_is_written(folder, server):
    said = refusal("add", "local/tiny", "--url", f"{server.url}/v1", "--model-name", "tiny")
    assert "tiny: the server has no such model" in said
    assert "org/Tiny-1B" in said
    assert not Path("prod_env").exists()


@pytest.mark.parametrize(("arguments", "said"), [
    (("tiny", "--url", "http://x/v1"), "expected ORGANIZATION/NAME"),
    (("local/ti,ny", "--url", "http://x/v1"), "expected ORGANIZATION/NAME"),
    (("recorded/x", "--url", "http://x/v1"), "those of recordings"),
    (("local/x",), "one of --url and --path"),
    (("local/x", "--url", "http://x/v1", "--path", "y"), "one of --url and --path"),
    (("local/x", "--url", "x:8000"), "expected the server's address"),
    (("local/x", "--url", "http://me:pw@127.0.0.1:9/v1"), "base_url holds a password"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--omit", "temprature"), "did you mean 'temperature'"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--prompt-logprobs"), "for the endpoint completions"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--max-length", "9"), "hint: --tokenizer"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--tokenizer", "simple/tokenizer1"), "hint: --max-length"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--tokenizer", "./none"), "no tokenizer can be loaded"),
    (("local/x", "--url", "http://127.0.0.1:9/v1", "--model", "a/b"), "HELM knows no such model"),
    (("huggingface/gpt2", "--url", "http://127.0.0.1:9/v1"), "HELM has a deployment of this name"),
    (("local/x", "--path", "y", "--seed", "1"), "--seed: is for a server"),
])  # fmt: skip
def test_what_makes_no_sense(folder, arguments, said):
    os.environ["HF_HUB_OFFLINE"] = "1"
    assert said in refusal("add", *arguments)
    assert not Path("prod_env").exists()


def test_a_key_in_place_of_a_variables_name_is_not_repeated(folder):
    said = refusal("add", "local/x", "--url", "http://127.0.0.1:9/v1", "--api-key-env", SECRET)
    assert "not the key itself" in said
    assert SECRET not in said


def test_what_is_there_is_written_again_only_if_asked_for(folder, server):
    add = ("add", "local/tiny", "--url", f"{server.url}/v1")
    run(*add)
    before = Path("prod_env/model_deployments.yaml").read_bytes()
    assert "is there already" in refusal(*add, "--seed", "4")
    assert Path("prod_env/model_deployments.yaml").read_bytes() == before
    run(*add, "--seed", "4", "--replace")
    [deployment] = load("model_deployments.yaml")["model_deployments"]
    assert deployment["client_spec"]["args"]["seed"] == 4


def test_a_model_is_removed_with_what_no_other_needs(folder, server):
    build = ("--url", f"{server.url}/v1")
    for name in ("local/one", "local/two"):
        run("add", name, *build)
    run("remove", "local/one")
    assert [entry["name"] for entry in load("model_deployments.yaml")["model_deployments"]] == ["local/two"]
    assert [entry["name"] for entry in load("model_metadata.yaml")["models"]] == ["local/two"]
    assert "no such deployment" in refusal("remove", "local/one")
    assert "there are: local/two" in refusal("test", "local/one")
    assert run("list").startswith("local/two: OpenAICompatibleClient http")
    run("remove", "local/two")
    assert run("list") == "no models in prod_env\n"
    # HELM reads what is left
    command(folder, "helm-ext", "preview", "adapter_specs/short_answer_qa.json", "-n", "1")


@pytest.mark.parametrize(("text", "said"), [
    ("", "TypeError"), ("model_deployments: null\n", "ModelDeployments: "), ("model_deployments:\n- name: a/b\n", "client_spec"),
])  # fmt: skip
def test_files_that_helm_cannot_read_are_told_of(folder, text, said):
    Path("prod_env").mkdir()
    Path("prod_env/model_deployments.yaml").write_text(text)
    found = refusal("add", "local/tiny", "--url", "http://127.0.0.1:9/v1")
    assert "error: prod_env: HELM cannot read the models that are described there: " in found
    assert said in found


def test_other_clients_are_tried_too(folder):
    Path("prod_env").mkdir()
    Path("prod_env/model_deployments.yaml").write_text(
        "model_deployments:\n"
        "  - {name: local/simple, client_spec: {class_name: helm.clients.simple_client.SimpleClient}}\n"
        "  - {name: local/none, client_spec: {class_name: helm.clients.nothing.NoClient}}\n"
    )
    assert "its client cannot be made" in refusal("test", "local/none")
    assert "a text" in run("test", "local/simple")
