"""Run entries run in this process, by our runner or HELM's, recorded or with a model that says what it is told to."""

import json
from pathlib import Path
from typing import Any, ClassVar

from helm.benchmark.config_registry import register_builtin_configs_from_helm_package
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    get_model_deployment,
    register_model_deployment,
)
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.runner import Runner, set_benchmark_output_path
from helm.benchmark.tokenizer_config_registry import TokenizerConfig, TokenizerSpec, register_tokenizer_config
from helm.clients.client import Client
from helm.common.authentication import Authentication
from helm.common.object_spec import ObjectSpec
from helm.common.request import GeneratedOutput, Request, RequestResult, Token

from helm_ext import plugin  # noqa: F401 - registers the run entries
from helm_ext.running.runner import StreamingRunner

MODEL = "said/model"
TIMES = frozenset({"inference_runtime"})
"""Stats that differ from one live run to the next."""


class Saying(Client):
    """Says what `answers` has for what the prompt holds, as often as it is asked; of an echoed prompt its words."""

    answers: ClassVar[dict[str, list[str]]] = {}

    def make_request(self, request: Request) -> RequestResult:
        asked = request.prompt or "\n".join(message["content"] for message in request.messages or ())
        if request.echo_prompt:
            words = [word if number == 0 else f" {word}" for number, word in enumerate(asked.split(" "))]
            texts = [(asked, words)]
        else:
            said = next(texts for part, texts in self.answers.items() if part in asked)
            texts = [(text, [text]) for text in (said * request.num_completions)[: request.num_completions]]
        made = []
        for text, words in texts:
            tokens = [Token(word, -0.25 - len(word) / 8) for word in words]
            made.append(GeneratedOutput(text, sum(token.logprob for token in tokens), tokens, {"reason": "stop"}))
        return RequestResult(True, [], made, cached=False, request_time=0.5, request_datetime=1_700_000_000)


def register() -> None:
    """Register the model once."""
    try:
        get_model_deployment(MODEL)
    except ValueError:
        register_builtin_configs_from_helm_package()
        tokenizer = TokenizerSpec("helm.tokenizers.simple_tokenizer.SimpleTokenizer")
        register_tokenizer_config(TokenizerConfig("said/words", tokenizer, end_of_text_token="", prefix_token=""))
        client = ClientSpec(f"{__name__}.Saying")
        register_model_deployment(
            ModelDeployment(MODEL, client, tokenizer_name="said/words", max_sequence_length=10_000)
        )


def run(
    folder: Path, entry: str, *, runner: type[Runner] = StreamingRunner, suite: str = "s", **arguments: Any
) -> Path:
    """Run an entry, of recorded completions or those of `model=said/model`, and return the folder of the run."""
    register()
    given = {"model": "recorded/m", **arguments}
    [spec] = construct_run_specs(ObjectSpec(entry, given))
    output = folder / "out"
    output.mkdir(exist_ok=True)
    set_benchmark_output_path(str(output))
    runner(
        execution_spec=ExecutionSpec(auth=Authentication(""), url=None, local_path=str(folder), parallelism=1),
        output_path=str(output), suite=suite, skip_instances=False, cache_instances=False,
        cache_instances_only=False, skip_completed_runs=False, exit_on_error=True,
    ).run_one(spec)  # fmt: skip
    return output / "runs" / suite / spec.name


def stats(folder: Path) -> dict[str, Any]:
    """Return the stats of a run: name, split and perturbation to (count, sum, mean, ...)."""
    found = json.loads((folder / "stats.json").read_bytes())
    return {json.dumps(one.pop("name"), sort_keys=True): one for one in found}


def value(folder: Path, name: str) -> float | None:
    """Return the mean of a stat over the rows of the run, None where there is none."""
    found = [one for key, one in stats(folder).items() if json.loads(key)["name"] == name and "perturbation" not in key]
    return found[0].get("mean") if found else None


def completions(folder: Path) -> list[dict[str, Any]]:
    """Return the first completion of each request of a run."""
    state = json.loads((folder / "scenario_state.json").read_bytes())
    return [one["result"]["completions"][0] for one in state["request_states"]]
