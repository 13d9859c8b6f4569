"""lm-evaluation-harness' command line, with one more model: `recorded`."""

from __future__ import annotations

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from benchmarks.peer_runs.answers import Answers


@register_model("recorded")
class RecordedLM(LM):
    def __init__(self, answers: str, **_: object) -> None:
        super().__init__()
        self.answers = Answers(answers)

    def generate_until(self, requests):
        return [self.answers(request.args[0]) for request in requests]

    def loglikelihood(self, requests):
        """The continuation that was answered is likely, any other is not."""
        pairs = [request.args for request in requests]
        likely = [continuation.strip() == self.answers(prompt) for prompt, continuation in pairs]
        return [(-0.5, True) if is_answer else (-5.0, False) for is_answer in likely]

    def loglikelihood_rolling(self, requests):
        """Refuse: `LM` wants it defined, and no task of ours asks for the likelihood of whole texts."""
        raise NotImplementedError


if __name__ == "__main__":
    cli_evaluate()
