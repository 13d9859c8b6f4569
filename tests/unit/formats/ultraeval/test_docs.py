"""docs/ultraeval.md says what there is."""

from dataclasses import fields
from pathlib import Path

import pytest

from helm_ext.adaptation.wrap import NO_PROMPT_LOGPROBS
from helm_ext.formats.ultraeval import loading as ultraeval
from helm_ext.formats.ultraeval.checkout import OURS
from helm_ext.formats.ultraeval.config import Options
from helm_ext.scoring.scores.likelihoods import MAIN_STATS
from helm_ext.scoring.scores.ultraeval import BLEU_TOKENIZERS, SCORES

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "ultraeval.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "ultraeval"


def test_every_argument_is_there():
    names = {field.name for field in fields(Options)} - {"name"}
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_every_metric_rule_and_postprocessing_is_there():
    names = {score.name for score in SCORES} - {f"ultraeval_bleu_{name}" for name in BLEU_TOKENIZERS}
    names |= set(OURS) | set(MAIN_STATS) | set(MAIN_STATS.values()) | {"acc"}
    assert [name for name in sorted(names) if f"`{name}`" not in PAGE] == []


CAN_DO_PPL = (
    "AI21Client AlephAlphaClient AnthropicLegacyClient CohereClient HuggingFaceClient OpenAILegacyCompletionsClient "
    "TogetherClient VLLMClient"
)
"""HELM's clients that return every token of the prompt with its value, by their code."""


def test_the_clients_that_can_do_ppl_are_there():
    assert [name for name in CAN_DO_PPL.split() if f"`{name}`" not in PAGE] == []
    refused = {path.rpartition(".")[2] for path in NO_PROMPT_LOGPROBS}
    assert refused.isdisjoint(CAN_DO_PPL.split())


@pytest.mark.parametrize("method", ["gen", "ppl"])
def test_the_example_task_loads(method):
    evalset = ultraeval.load(dataset="workshop", root=EXAMPLE, method=method)
    assert evalset.name == f"workshop_workshop_{method}"
    assert len(evalset.instances) == 12
    assert ultraeval.check(dataset="workshop", root=EXAMPLE, method=method) == ([], {"rows": 12, "failed": 0})
    config = EXAMPLE / "datasets" / "workshop" / "config" / f"workshop_{method}.json"
    assert ultraeval.load(config=config).digest == evalset.digest
