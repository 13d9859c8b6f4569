"""A tiny language model with a tokenizer, made in seconds and without a network: what a Hugging Face test runs on."""

import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

TEXT = (
    "The kettle is on the stove and the water begins to boil.",
    "Question: how many apples are left? Answer: three apples are left in the basket.",
    "Tom sells 12 loaves a day and keeps 3; he has 9 loaves for the market.",
    "Which animal barks? (A) the cat (B) the dog (C) the fish",
    "It is raining, so Mira takes the umbrella and walks to the library.",
    "今天下雨，所以她带着雨伞去图书馆。 问题：小猫在哪里？ 答案：在屋里。",
)
"""What the tokenizer learns from. Other texts are spelled in bytes: nothing is unknown."""

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def build_tiny_model(folder: Path, chat_template: bool = False) -> Path:
    """Write a GPT-2 of two layers with random, seeded weights and its byte-level BPE tokenizer; return `folder`.

    The same bytes every time. It runs in a process of its own: torch is slow to import and seeds are global.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, str(Path(__file__).resolve()), str(folder), "chat" if chat_template else "plain"]
    done = subprocess.run(program, env=offline_environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the tiny model could not be built:\n{done.stderr[-3000:]}")
    return folder


def offline_environment(**extra: str) -> dict[str, str]:
    """Return an environment for processes that load the model: no network, one thread, a working torchvision or none.

    A torchvision of another build than torch raises when it is imported, and transformers imports it if it is there.
    Such a one is hidden, by `tests/without_torchvision/sitecustomize.py`.
    """
    path = str(Path(__file__).resolve().parent / "without_torchvision")
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": f"{path}{os.pathsep}{known}" if known else path,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        **extra,
    }


def hide_broken_torchvision() -> None:
    """Let this process load models of transformers too, as `offline_environment` lets others: with one thread of torch.

    The threads of two test processes wait for one another: a product of tiny matrices took 10 ms.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    runpy.run_path(str(Path(__file__).resolve().parent / "without_torchvision" / "sitecustomize.py"))


def model_files(
    prod_env: Path,
    folder: Path,
    name: str = "tiny/gpt2",
    client: str = "helm.clients.huggingface_client.HuggingFaceClient",
    **client_args: object,
) -> Path:
    """Write what HELM needs to know the model `name` to the folder `prod_env`; return `prod_env`.

    `helm-summarize` finds the model there too, so that it does not ask the Hugging Face hub.
    """
    prod_env.mkdir(parents=True, exist_ok=True)
    arguments = "".join(f"\n            {key}: {str(value).lower()}" for key, value in client_args.items())
    (prod_env / "model_deployments.yaml").write_text(
        textwrap.dedent(
            f"""\
            model_deployments:
              - name: {name}
                model_name: {name}
                tokenizer_name: {name}
                max_sequence_length: 256
                client_spec:
                  class_name: {client}
                  args:
                    pretrained_model_name_or_path: {folder}
                    device: cpu{{arguments}}
            """
        ).replace("{arguments}", arguments.replace("            ", "        "))
    )
    (prod_env / "tokenizer_configs.yaml").write_text(
        textwrap.dedent(
            f"""\
            tokenizer_configs:
              - name: {name}
                tokenizer_spec:
                  class_name: helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer
                  args:
                    pretrained_model_name_or_path: {folder}
                end_of_text_token: <|endoftext|>
                prefix_token: <|endoftext|>
            """
        )
    )
    (prod_env / "model_metadata.yaml").write_text(
        textwrap.dedent(
            f"""\
            models:
              - name: {name}
                display_name: Tiny GPT-2
                description: Random weights.
                creator_organization_name: Tests
                access: open
                release_date: 2020-01-01
                tags: [TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG]
            """
        )
    )
    return prod_env


def _build(folder: Path, chat_template: bool) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    end = "<|endoftext|>"
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator(TEXT, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token=end, eos_token=end, pad_token=end, clean_up_tokenization_spaces=False
    )
    if chat_template:
        tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)

    torch.manual_seed(7)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=256, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.5,  # wide, so that options differ clearly
    )  # fmt: skip
    GPT2LMHeadModel(config).eval().save_pretrained(folder)


if __name__ == "__main__":
    _build(Path(sys.argv[1]), sys.argv[2] == "chat")
