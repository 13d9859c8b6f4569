"""A dataset and a deployment for helm-run with a server of this machine (`openai_server`)."""

import json
from pathlib import Path

RUNNER = ("--runner-class-name", "helm_ext.running.StreamingRunner")
SECRET = "sk-hush-0123456789"
ENTRY = "adapter_spec:path=questions.jsonl,model=local/tiny"


def make_folder(folder: Path, server, rows: int = 20, **args) -> Path:
    head = {"adapter_spec": {"output_prefix": "Answer: ", "max_tokens": 5, "max_train_instances": 0}}
    lines = [
        {"instance": {"id": f"r{row}", "split": "test", "input": {"text": f"Question {row}?"}, "references": [
            {"output": {"text": "Paris"}, "tags": ["correct"]}]}}
        for row in range(rows)
    ]  # fmt: skip
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    (folder / "prod_env").mkdir(exist_ok=True)
    args = {"base_url": f"{server.url}/v1", **args}
    deployment = {
        "name": "local/tiny",
        "client_spec": {"class_name": "helm_ext.clients.OpenAICompatibleClient", "args": args},
    }
    (folder / "prod_env" / "model_deployments.yaml").write_text(json.dumps({"model_deployments": [deployment]}))
    (folder / "prod_env" / "credentials.conf").write_text(f'localApiKey: "{SECRET}"\n')
    return folder
