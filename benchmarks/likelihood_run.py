"""One process of `benchmarks.likelihoods`: make a model, or ask one for the log-probabilities of options.

python -m benchmarks.likelihood_run make SIZE FOLDER
python -m benchmarks.likelihood_run WAY FOLDER ROWS

Reads FOLDER/rows.json and writes FOLDER/WAY.json: for each row the sum of each option's log-probabilities, and the CPU
seconds of all rows but the first, in which the model is loaded. The model is a GPT-2 with random weights; HELM's client
and ours ask it in this process and without a cache.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

SIZES = {
    "tiny": {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 4000, "n_positions": 512},
    "124M": {},  # GPT-2 small, vocabulary of 50,257
}
LARGEST = 600
"""Rows at most."""
TOKENS = 4000
OPTIONS = 4


def make(size: str, folder: Path) -> None:
    """Write a model, its tokenizer and rows: prompts of 100 to 300 tokens, four options of 8 to 12."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    rng = random.Random(3)
    syllables = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(6000)]
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    inner.train_from_iterator([" ".join(rng.choices(words, k=200)) for _ in range(200)], trainer)
    end = "<|endoftext|>"
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=end, eos_token=end, pad_token=end)
    tokenizer.save_pretrained(folder)

    def write(length: int) -> str:
        """Return a text of so many tokens."""
        while True:
            text = "".join(f" {word}" for word in rng.choices(words, k=length))
            ids = tokenizer(text)["input_ids"][:length]
            text = tokenizer.decode(ids)
            if tokenizer(text)["input_ids"] == ids:
                return text

    rows = []
    for _ in range(LARGEST):
        lengths = [rng.randint(8, 12) for _ in range(OPTIONS)]
        rows.append(
            {"prompt": write(rng.randint(100, 300)), "options": [write(n) for n in lengths], "lengths": lengths}
        )
    (folder / "rows.json").write_text(json.dumps(rows))
    torch.manual_seed(0)
    config = GPT2Config(**{**SIZES[size], "bos_token_id": 0, "eos_token_id": 0})
    GPT2LMHeadModel(config).eval().save_pretrained(folder)


def ask(way: str, folder: Path, count: int) -> tuple[list[list[float]], float]:
    """Ask for the first rows by one of the clients; return the sum of each option, and the CPU seconds."""
    from helm.clients.huggingface_client import HuggingFaceClient
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.request import Request
    from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

    from helm_ext.clients import SharedPrefixHuggingFaceClient

    nowhere, name = BlackHoleCacheConfig(), "bench/model"
    tokenizer = HuggingFaceTokenizer(nowhere, name, pretrained_model_name_or_path=str(folder))
    arguments = {"pretrained_model_name_or_path": str(folder), "device": "cpu"}
    if way == "helm":
        client = HuggingFaceClient(nowhere, tokenizer, **arguments)
    else:
        client = SharedPrefixHuggingFaceClient(nowhere, tokenizer, **arguments)
    sums = []
    started = 0.0
    for row in json.loads((folder / "rows.json").read_text())[:count]:
        requests = [
            Request(model=name, model_deployment=name, prompt=row["prompt"] + option, max_tokens=0,
                        num_completions=1, temperature=0, echo_prompt=True)
            for option in row["options"]
        ]  # fmt: skip
        if way == "helm":
            results = [client.make_request(request) for request in requests]
        else:
            results = client.make_requests(requests)
        sums.append(
            [
                sum(token.logprob for token in result.completions[0].tokens[-length:])
                for result, length in zip(results, row["lengths"], strict=True)
            ]
        )
        started = started or time.process_time()
    return sums, time.process_time() - started


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]))
    else:
        way, folder = sys.argv[1], Path(sys.argv[2])
        sums, cpu = ask(way, folder, int(sys.argv[3]))
        (folder / f"{way}.json").write_text(json.dumps({"sums": sums, "cpu": cpu}))
