"""Models of many kinds, tiny and random: a shared beginning changes no value. Expected: each sequence read whole."""

import random

import pytest
import tiny_model

tiny_model.hide_broken_torchvision()

import torch  # noqa: E402
import transformers  # noqa: E402

from helm_ext.clients.shared_prefix import PrefixModel, group_by_prefix  # noqa: E402

pytestmark = pytest.mark.long

VOCABULARY = 97
WINDOW = 8
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2}
OLD = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 1}
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [2.0, 3.0, 4.0, 5.0],
    "original_max_position_embeddings": 16,
}  # fmt: skip

SHARE = {
    "gpt2": lambda: transformers.GPT2Config(**OLD, n_positions=128),
    "llama": lambda: transformers.LlamaConfig(**GROUPED),
    "neox": lambda: transformers.GPTNeoXConfig(**SIZES),
    "mistral": lambda: transformers.MistralConfig(**GROUPED, sliding_window=WINDOW),
    "gemma2": lambda: transformers.Gemma2Config(**GROUPED, head_dim=8, sliding_window=WINDOW),
    "gemma3": lambda: transformers.Gemma3TextConfig(**GROUPED, head_dim=8, sliding_window=WINDOW),
    "qwen3": lambda: transformers.Qwen3Config(**GROUPED, head_dim=8),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1
    ),
    "opt": lambda: transformers.OPTConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
        max_position_embeddings=128, word_embed_proj_dim=32, bos_token_id=0, eos_token_id=1, pad_token_id=2,
    ),
}  # fmt: skip
SHARE_NOT = {
    "mamba": (
        lambda: transformers.MambaConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=4, bos_token_id=0, eos_token_id=1
        ),
        "it takes no cache",
    ),
    "jamba": (
        lambda: transformers.JambaConfig(
            **GROUPED, attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False, mamba_d_state=4
        ),
        "its cache holds LinearAttentionLayer",
    ),
    # Not causal: a token is told by those after it too.
    "xlnet": (
        lambda: transformers.XLNetConfig(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=2, d_inner=48),
        "it takes no cache",
    ),
}


def build(config):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)  # wide, so that options differ clearly
    return model


def make_rows():
    rng = random.Random(3)

    def some(count):
        return [rng.randrange(3, VOCABULARY) for _ in range(count)]

    prompt = some(40)  # more than WINDOW
    return {
        "options of several lengths": [prompt + some(count) for count in (5, 1, 3, 9)],
        "an empty option": [prompt, prompt + some(3), [*prompt, 5]],
        "equal options": [[*prompt, 4, 5, 6], [*prompt, 4, 5], [*prompt, 4, 5, 6]],
        "one option": [prompt],
        "nothing but equal ones": [prompt, prompt],
        "one token": [[7]],
        "two tokens": [[7, 8], [7, 9]],
        "nothing shared": [some(9) for _ in range(3)],
        "calibrated": [prompt + some(3), [5, 6, *some(3)], prompt + some(4), [5, 6, *some(2)]],
        "many options": [prompt + some(rng.randint(1, 20)) for _ in range(30)],
    }


def read_whole(model, sequence):
    """As HELM's client: all logits, and the log-softmax of one position after the other."""
    with torch.no_grad():
        logits = model(torch.tensor([sequence])).logits[0]
    pairs = zip(logits, sequence[1:], strict=False)
    return [0.0] + [torch.nn.functional.log_softmax(row, dim=0)[token].item() for row, token in pairs]


def score(model, sequences):
    found = {}
    for group in group_by_prefix(sequences):
        values = model.score([sequences[member] for member in group.members], group.shared)
        found.update(zip(group.members, values, strict=True))
    return [found[place] for place in range(len(sequences))]


def largest_difference(found, expected):
    """Of the sums, relative; and of the values, where a token put elsewhere would stand out."""
    assert [len(row) for row in found] == [len(row) for row in expected]
    sums = max(abs(sum(a) - sum(b)) / max(abs(sum(b)), 1e-9) for a, b in zip(found, expected, strict=True))
    values = max(abs(x - y) for a, b in zip(found, expected, strict=True) for x, y in zip(a, b, strict=True))
    assert values <= 1e-4
    return sums


@pytest.mark.parametrize("name", SHARE)
def test_sharing_changes_no_value(name):
    model = build(SHARE[name]())
    asked = PrefixModel(model, "cpu")
    assert asked.obstacle == ""
    for what, sequences in make_rows().items():
        expected = [read_whole(model, sequence) for sequence in sequences]
        assert largest_difference(score(asked, sequences), expected) <= 1e-6, what


@pytest.mark.parametrize("name", SHARE_NOT)
def test_models_that_cannot_share_are_asked_as_helm_asks(name):
    make, reason = SHARE_NOT[name]
    model = build(make())
    asked = PrefixModel(model, "cpu")
    assert asked.obstacle == reason
    for sequences in make_rows().values():
        assert score(asked, sequences) == [read_whole(model, sequence) for sequence in sequences]


def test_positions_that_the_whole_length_scales_are_not_shared_beyond_the_limit():
    config = transformers.Phi3Config(**GROUPED, original_max_position_embeddings=16, rope_parameters=LONGROPE)
    model = build(config)
    asked = PrefixModel(model, "cpu")
    assert asked.obstacle == ""
    prompt = list(range(3, 17))
    within, beyond = [[*prompt, 20], [*prompt, 21, 22]], [[*prompt, 20, 21, 22, 23], [*prompt, 24, 25]]
    assert asked.shares(within)
    assert not asked.shares(beyond)
    for sequences in (within, beyond):
        expected = [read_whole(model, sequence) for sequence in sequences]
        assert largest_difference(score(asked, sequences), expected) <= 1e-6
    # The limit is no formality: the same beginning has other values before a longer end.
    assert abs(read_whole(model, beyond[0])[5] - read_whole(model, within[0])[5]) > 1e-3


def test_half_precision_is_kept_as_helm_keeps_it():
    model = build(SHARE["gpt2"]()).to(torch.bfloat16)
    asked = PrefixModel(model, "cpu")
    assert asked.obstacle == ""
    sequences = make_rows()["options of several lengths"]
    for found, expected in zip(score(asked, sequences), [read_whole(model, one) for one in sequences], strict=True):
        assert found == pytest.approx(expected, rel=0.1, abs=0.25)
        assert all(float(torch.tensor(value).to(torch.bfloat16)) == value for value in found)


def test_a_model_whose_cache_lies_is_found_out():
    class Forgetful(transformers.GPT2LMHeadModel):
        """Reads what is new as if nothing stood before it."""

        def forward(self, input_ids=None, past_key_values=None, use_cache=None, logits_to_keep=0):
            if past_key_values is not None:
                past_key_values = None
            return super().forward(input_ids, past_key_values, use_cache=use_cache, logits_to_keep=logits_to_keep)

    torch.manual_seed(1)
    model = Forgetful(SHARE["gpt2"]()).eval()
    asked = PrefixModel(model, "cpu")
    assert asked.obstacle == "a shared cache changes its values"
    sequences = make_rows()["options of several lengths"]
    assert score(asked, sequences) == [read_whole(model, sequence) for sequence in sequences]
