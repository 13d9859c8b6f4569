"""Conversations on a real (tiny) Hugging Face chat model through helm-run, against plain transformers."""

import json
import subprocess
import sys
from pathlib import Path

import processes
import pytest
import tiny_model

from helm_ext import hub
from helm_ext.formats.innodata.hub import pack
from helm_ext.formats.innodata.replies import render_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/formats/innodata", "src/helm_ext/adaptation"),
]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "innodata"
CHAT, PLAIN = "tiny/gpt2", "tiny/plain"
MAX_TOKENS = 6

OWN = {
    "spaces": [("user", "  two lines\n\n and a tab\t ")],
    "template-like": [("system", "{{ 7 * 7 }}"), ("user", "<|assistant|>\n{% raw %}"), ("assistant", ""), ("user", "?")],
    "empty-system": [("system", ""), ("user", "Is it raining?")],
    "long-talk": [("system", "Kurz."), *[(role, f"{n} 😀") for n in range(3) for role in ("user", "assistant")], ("user", "Ende.")],
}  # fmt: skip
"""What a template, or code before it, might change: white space, template syntax, empty turns, many turns."""

TRANSFORMERS = """
import json, sys
from helm.clients.huggingface_client import HuggingFaceClient
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request
from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, max_tokens, asked = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()

def generate(prompt):
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    output = model.generate(ids, do_sample=False, max_new_tokens=max_tokens, pad_token_id=tokenizer.eos_token_id)
    return tokenizer.decode(output[0, ids.shape[1]:])

helms = HuggingFaceTokenizer(BlackHoleCacheConfig(), "tiny/gpt2", pretrained_model_name_or_path=folder)
client = HuggingFaceClient(BlackHoleCacheConfig(), helms, pretrained_model_name_or_path=folder)
answers = {"chat": [], "text": [generate(prompt) for prompt in asked["prompts"]]}
for messages, request in zip(asked["messages"], asked["requests"], strict=True):
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    answers["chat"].append({
        "prompt": prompt, "helms_prompt": client.get_prompt(Request(**request)), "text": generate(prompt)
    })
print(json.dumps(answers), file=open(sys.argv[3], "w"))
"""


def own_records():
    return [
        {"id": name, "messages": [{"role": role, "content": text} for role, text in turns], "expected": "yes"}
        for name, turns in OWN.items()
    ]


def write_records(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def bundle_messages():
    """What the bundle's file says, read without this package."""
    lines = (EXAMPLE / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["id"]: record["messages"] for record in [*map(json.loads, lines), *own_records()]}


def two_deployments(prod_env, model):
    """Make the model known twice: as a chat model, and as one that is sent text."""
    tiny_model.model_files(prod_env, model, CHAT)
    other = tiny_model.model_files(prod_env.with_name("other"), model, PLAIN, apply_chat_template=False)
    for path in prod_env.iterdir():
        _, second = (other / path.name).read_text().split("\n", 1)
        path.write_text(path.read_text() + second)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One helm-run of all entries; the one for `simple/model1` is refused, the others go on."""
    folder = tmp_path_factory.mktemp("chat")
    model = tiny_model.build_tiny_model(folder / "model", chat_template=True)
    two_deployments(folder / "prod_env", model)
    examples = [json.loads(line) for line in (EXAMPLE / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    (folder / "small").mkdir()
    small = pack(
        name="front-desk", test=write_records(folder / "small.jsonl", own_records()[:2]), target=folder / "small"
    )
    pack(
        name="front-desk",
        test=write_records(folder / "test.jsonl", [*examples, *own_records()]),
        train=EXAMPLE / "train.jsonl",
        attributes={"task": "assistance"},
        target=folder,
    )
    hub.upload(small.path, str(folder / "hub"))
    hub.upload(folder / "front-desk.zip", str(folder / "hub"))
    done = processes.helm_run(
        folder,
        f"innodata:path=front-desk.zip,max_tokens={MAX_TOKENS},model={CHAT}",
        f"innodata:path=front-desk.zip,render=text,max_tokens={MAX_TOKENS},limit=8,model={PLAIN}",
        f"innodata:dataset=front-desk,hub=hub,limit=1,max_tokens=1,model={CHAT}",
        f"innodata:dataset=front-desk,hub=hub,version=1,max_tokens=1,model={CHAT}",
        "innodata:path=front-desk.zip,model=simple/model1",
        env=tiny_model.offline_environment(),
        check=False,
    )
    (folder / "log.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    (folder / "exit.txt").write_text(str(done.returncode))
    return folder


def run_with(folder, *parts):
    (found,) = [
        path for name, path in processes.run_folders(folder).items() if all(part in name for part in parts)
    ]  # fmt: skip
    return found


def states(run):
    return processes.load(run / "scenario_state.json")["request_states"]


@pytest.fixture(scope="module")
def plain(folder):
    """What transformers makes of the bundle's messages and of the text prompts, in a process without helm-ext."""
    chat = states(run_with(folder, "path=front-desk.zip,max_tokens"))
    text = states(run_with(folder, "render=text"))
    messages = bundle_messages()
    asked = {
        "messages": [messages[state["instance"]["id"]] for state in chat],
        "requests": [state["request"] for state in chat],
        "prompts": [state["request"]["prompt"] for state in text],
    }
    target = folder / "plain.json"
    done = subprocess.run(
        [sys.executable, "-c", TRANSFORMERS, str(folder / "model"), str(MAX_TOKENS), str(target)],
        input=json.dumps(asked), env=tiny_model.offline_environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return processes.load(target)


def test_messages_are_sent_as_they_are(folder):
    messages = bundle_messages()
    chat = states(run_with(folder, "path=front-desk.zip,max_tokens"))
    assert [state["instance"]["id"] for state in chat] == list(messages)
    for state in chat:
        wanted = messages[state["instance"]["id"]]
        assert state["request"]["messages"] == state["instance"]["input"]["messages"] == wanted
        assert [list(message) for message in state["request"]["messages"]] == [["role", "content"]] * len(wanted)
        assert state["request"].get("prompt", "") == ""
        assert state["request"]["temperature"] == 0
        assert state["request"]["max_tokens"] == MAX_TOKENS
    roles = {tuple(message["role"] for message in talk) for talk in messages.values()}
    assert {("user",), ("system", "user"), ("user", "assistant", "user")} < roles
    assert max(map(len, roles)) == 8


def test_prompts_and_replies_are_those_of_plain_transformers(folder, plain):
    chat = states(run_with(folder, "path=front-desk.zip,max_tokens"))
    assert len(plain["chat"]) == len(chat) == 24 + len(OWN)
    for state, wanted in zip(chat, plain["chat"], strict=True):
        assert wanted["helms_prompt"] == wanted["prompt"]
        assert wanted["prompt"].endswith("<|assistant|>\n")
        assert all(message["content"] in wanted["prompt"] for message in state["request"]["messages"])
        (completion,) = state["result"]["completions"]
        assert completion["text"] == wanted["text"], state["instance"]["id"]
        assert len(completion["tokens"]) <= MAX_TOKENS
    assert len({wanted["text"] for wanted in plain["chat"]}) > 10  # the prompt matters


def test_text_for_a_model_without_chat(folder, plain):
    messages = bundle_messages()
    text = states(run_with(folder, "render=text"))
    assert len(text) == 8
    for state, wanted in zip(text, plain["text"], strict=True):
        request = state["request"]
        assert request["prompt"] == render_text(messages[state["instance"]["id"]])
        assert request.get("messages") is None
        assert request["stop_sequences"] == ["\n\nUser:"]
        assert state["result"]["completions"][0]["text"] == wanted.split("\n\nUser:")[0]
    assert text[0]["request"]["prompt"] == (
        "System: You are the help desk of the Lindenau town library. Answer in one short sentence.\n\n"
        "User: How long may I keep a novel?\n\nAssistant:"
    )


def test_a_client_that_ignores_messages_is_refused(folder):
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert (folder / "exit.txt").read_text() != "0"
    assert (
        "simple/model1: its client helm.clients.simple_client.SimpleClient ignores chat messages, so the "
        "model would be asked an empty prompt\n  hint: render=text writes the conversation as a text prompt"
    ) in log
    runs = processes.run_folders(folder)
    assert len(runs) == 4
    assert not any("simple_model1" in name for name in runs)
