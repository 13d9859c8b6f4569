"""The client for models of transformers beside HELM's, on tiny models with several kinds of tokenizer."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
import tiny_model

tiny_model.hide_broken_torchvision()

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from helm.clients.huggingface_client import HuggingFaceClient  # noqa: E402
from helm.common.cache import BlackHoleCacheConfig, SqliteCacheConfig, get_all_from_sqlite  # noqa: E402
from helm.common.request import Request  # noqa: E402
from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer  # noqa: E402

from helm_ext.clients import SharedPrefixHuggingFaceClient  # noqa: E402
from helm_ext.clients.client import ListClient, RequestCache, notes_of  # noqa: E402
from helm_ext.errors import DeploymentError  # noqa: E402

pytestmark = pytest.mark.long

NOWHERE = BlackHoleCacheConfig()
PROMPT = "Question: how many apples are left? Tom sells 12 loaves a day; 今天下雨 Answer:"
OPTIONS = ("three apples", "three apples are left in the basket", "nine", "9 loaves", "", "nine", "今天下雨")
WINDOW = 128
"""Positions of the GPT-2."""


def save(folder, inner, trainer, texts, special, config, **sizes):
    """Write a tokenizer that learned from texts, and a model of two layers."""
    inner.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "initializer_range": 0.5}
    made = config(vocab_size=len(tokenizer), **sizes, **ends)
    transformers.AutoModelForCausalLM.from_config(made).eval().save_pretrained(folder)


def make_llama_like(folder):
    """Rotary positions, fewer keys than queries, a token that begins each text, and "▁" for spaces."""
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    inner.decoder = tokenizers.decoders.Metaspace(prepend_scheme="first")
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    inner.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    save(
        folder, inner, trainer, tiny_model.TEXT, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
        transformers.LlamaConfig, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=256,
    )  # fmt: skip


def make_gpt2(folder):
    """A byte-level tokenizer that merges over spaces too, so that a merge may cross the border of prompt and option."""
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    end, alphabet = "<|endoftext|>", tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=[end], show_progress=False, initial_alphabet=alphabet
    )
    save(
        folder, inner, trainer, [*tiny_model.TEXT, *[" Answer: three" for _ in range(20)]],
        {"bos_token": end, "eos_token": end, "pad_token": end},
        transformers.GPT2Config, n_embd=32, n_layer=2, n_head=2, n_positions=WINDOW,
    )  # fmt: skip


MAKE = {"llama": make_llama_like, "gpt2": make_gpt2}


@pytest.fixture(scope="module", params=MAKE)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for name, make in MAKE.items():
        made[name] = tmp_path_factory.mktemp(name)
        make(made[name])
    return made


def make_client(folders, kind, cache=NOWHERE, cls=SharedPrefixHuggingFaceClient, **arguments):
    folder = str(folders[kind])
    tokenizer = HuggingFaceTokenizer(NOWHERE, f"shared-prefix/{kind}", pretrained_model_name_or_path=folder)
    return cls(cache, tokenizer, pretrained_model_name_or_path=folder, device="cpu", **arguments)


def make_requests(kind, options=OPTIONS, prompt=PROMPT, joint=" "):
    name = f"shared-prefix/{kind}"
    return [
        Request(model=name, model_deployment=name, prompt=prompt + (joint + option if option else ""), max_tokens=0,
                    num_completions=1, temperature=0, echo_prompt=True)
        for option in options
    ]  # fmt: skip


def ask_helm(folders, kind, requests, cache=NOWHERE):
    """The results of HELM's own client."""
    helm = make_client(folders, kind, cache, cls=HuggingFaceClient)
    return [helm.make_request(request) for request in requests]


def values(result):
    (completion,) = result.completions
    return [token.logprob for token in completion.tokens]


def texts(result):
    return [token.text for token in result.completions[0].tokens]


def same_but_for_last_bits(results, by_helm):
    for found, expected in zip(results, by_helm, strict=True):
        assert found.success
        assert expected.success
        assert texts(found) == texts(expected)
        assert found.completions[0].text == expected.completions[0].text
        assert found.completions[0].finish_reason == expected.completions[0].finish_reason
        assert values(found) == pytest.approx(values(expected), rel=1e-4, abs=1e-4)
        assert found.completions[0].logprob == pytest.approx(expected.completions[0].logprob, rel=1e-6)


ROWS = {
    "options": {},
    "joined without a space": {"joint": ""},
    "one option": {"options": ("nine",)},
    "nothing shared": {"options": ("Tom", "Mira", "今"), "prompt": "", "joint": ""},
    "single characters": {"options": ("a", "b", "a"), "prompt": "", "joint": ""},
}


@pytest.mark.parametrize("row", ROWS)
def test_results_are_those_of_helms_client(folders, kind, row):
    requests = make_requests(kind, **ROWS[row])
    expected = ask_helm(folders, kind, requests)
    client = make_client(folders, kind)
    assert isinstance(client, ListClient)
    same_but_for_last_bits(client.make_requests(requests), expected)
    same_but_for_last_bits([client.make_request(request) for request in requests], expected)


def test_tokens_may_lie_on_both_sides_of_the_border(folders):
    """The options part before their first character: what is shared are tokens."""
    client = make_client(folders, "gpt2")
    requests = make_requests("gpt2", ("three", "nine"))
    prompt = client.make_request(replace(requests[0], prompt=PROMPT))
    found = client.make_requests(requests)
    assert texts(found[0])[: len(texts(prompt))] != texts(prompt)
    assert notes_of(found[0])["shared_tokens"] < len(texts(prompt))
    same_but_for_last_bits(found, ask_helm(folders, "gpt2", requests))


def test_notes_say_how_it_was_computed(folders, kind):
    found = make_client(folders, kind).make_requests(make_requests(kind, ("three apples", "nine")))
    length = len(texts(found[1]))
    assert notes_of(found[1]) == {
        "device": "cpu",
        "dtype": "torch.float32",
        "computed_together": 2,
        "shared_tokens": next(n for n, (a, b) in enumerate(zip(*map(texts, found), strict=False)) if a != b),
        "usage": {"prompt_tokens": length, "completion_tokens": 0},
    }


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def everything(results):
    return [(texts(result), values(result), result.completions[0].logprob) for result in results]


def test_helms_client_finds_what_ours_wrote_and_the_other_way_round(folders, kind, tmp_path):
    ours, helms = (SqliteCacheConfig(str(tmp_path / f"{name}.sqlite")) for name in ("ours", "helms"))
    requests = make_requests(kind)
    made = make_client(folders, kind, ours).make_requests(requests)
    RequestCache.of(ours).flush()
    found = ask_helm(folders, kind, requests, ours)
    assert all(result.cached for result in found)
    assert everything(found) == everything(made)

    made = ask_helm(folders, kind, requests, helms)
    found = make_client(folders, kind, helms).make_requests(requests)
    assert all(result.cached for result in found)
    assert everything(found) == everything(made)


def test_a_row_of_which_a_request_is_missing_is_computed_whole_and_to_the_same_bits(folders, kind, tmp_path):
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    requests = make_requests(kind)
    first = make_client(folders, kind, cache).make_requests(requests)
    assert not any(result.cached for result in first)
    RequestCache.of(cache).flush()
    again = make_client(folders, kind, cache).make_requests(requests)
    assert all(result.cached for result in again)
    assert [notes_of(result) for result in again] == [notes_of(result) for result in first]
    connection = sqlite3.connect(cache.path)
    with connection:
        connection.execute("DELETE FROM unnamed WHERE rowid = (SELECT min(rowid) FROM unnamed)")
    connection.close()
    resumed = make_client(folders, kind, cache).make_requests(requests)
    assert not any(result.cached for result in resumed)
    assert everything(first) == everything(again) == everything(resumed)


def test_what_is_not_whole_in_the_cache_is_computed_again(folders, kind, tmp_path):
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    requests = make_requests(kind, ("nine", "three"))
    client = make_client(folders, kind, cache)
    first = client.make_requests(requests)
    RequestCache.of(cache).flush()
    stored = list(get_all_from_sqlite(cache.path))
    broken = [(key, {**reply, "completions": [{"text": "", "tokens": ["a"], "logprobs": [], "prompt_logprobs": []}]})
              for key, reply in stored]  # fmt: skip
    client.cache.put_many(broken)
    found = client.make_requests(requests)
    assert not any(result.cached for result in found)
    assert everything(found) == everything(first)


# ── what goes wrong, and what is not scored ───────────────────────────────────────────────────────────────────────────


def test_a_prompt_beyond_the_positions_fails_alone_as_with_helms_client(folders):
    long = "apples are left in the basket " * 40
    requests = make_requests("gpt2", ("nine", long, "three"))
    expected = ask_helm(folders, "gpt2", requests)
    assert [result.success for result in expected] == [True, False, True]
    found = make_client(folders, "gpt2").make_requests(requests)
    assert [result.success for result in found] == [True, False, True]
    assert found[1].error == expected[1].error
    assert found[1].error_flags.is_retriable is False
    same_but_for_last_bits([found[0], found[2]], [expected[0], expected[2]])


def test_an_empty_prompt_is_what_it_is_for_helm(folders, kind):
    requests = make_requests(kind, ("", "nine"), prompt="", joint="")
    expected = ask_helm(folders, kind, requests)
    found = make_client(folders, kind).make_requests(requests)
    assert [result.success for result in found] == [result.success for result in expected]
    assert [result.error for result in found] == [result.error for result in expected]


def test_generation_is_helms(folders, kind, tmp_path):
    cache = SqliteCacheConfig(str(tmp_path / "cache.sqlite"))
    name = f"shared-prefix/{kind}"
    request = Request(model=name, model_deployment=name, prompt=PROMPT, temperature=0, max_tokens=5)
    client = make_client(folders, kind, cache)
    assert everything(client.make_requests([request])) == everything(ask_helm(folders, kind, [request]))
    assert client.make_request(request).cached
    RequestCache.of(cache).flush()
    assert ask_helm(folders, kind, [request], cache)[0].cached


def test_a_model_that_cannot_be_loaded_is_said_at_once(folders, tmp_path):
    tokenizer = HuggingFaceTokenizer(
        NOWHERE, "shared-prefix/llama", pretrained_model_name_or_path=str(folders["llama"])
    )
    nothing = str(tmp_path / "nothing")
    client = SharedPrefixHuggingFaceClient(NOWHERE, tokenizer, pretrained_model_name_or_path=nothing, device="cpu")
    requests = [replace(request, model="shared-prefix/absent") for request in make_requests("llama", ("nine", "three"))]
    with pytest.raises(DeploymentError, match="shared-prefix/absent: .*nothing cannot be loaded"):
        client.make_requests(requests)
    result = client.make_request(requests[0])
    assert not result.success
    assert result.error_flags.is_retriable is False


def test_torch_is_imported_only_where_the_client_is_asked_for():
    program = "import sys, helm_ext.clients, helm_ext.running.executor; print(*sorted({'torch', 'transformers'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
