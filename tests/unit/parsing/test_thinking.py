"""What of a completion was thought, and what was said."""

import time

import pytest

from helm_ext.parsing import names_thinking, split_thinking

HARMONY = "<|channel|>analysis<|message|>Capital?<|end|><|start|>assistant<|channel|>final<|message|>Rome"


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<think>Rome or Bari?</think>\n\nRome", "Rome or Bari?", "Rome"),
        (" \n<thinking>\nBari\n</thinking>Rome ", "Bari", "Rome "), ("<Think>Bari</Think>Rome", "Bari", "Rome"),
        ("Bari?\n</think>\n\nRome", "Bari?", "Rome"),  # the chat template opened the thought
        ("</think>Rome", "", "Rome"), ("<think></think>Rome", "", "Rome"),
        ("<think>a</think><think>b</think>Rome", "ab", "Rome"),
        ("<think>a<think>b</think>c</think>Rome", "abc", "Rome"),
        ("<think>Bari?", "Bari?", ""),  # cut off while thinking
        ("<think>a</think>\n<think>Bari?", "a\nBari?", ""), ("Bari?</think> Rome <think>", "Bari?", "Rome <think>"),
        (HARMONY, "Capital?", "Rome"), (HARMONY + "<|return|>", "Capital?", "Rome"),
        ("<|start|>assistant" + HARMONY, "Capital?", "Rome"),
        ("Capital?<|end|><|start|>assistant<|channel|>final<|message|>Rome", "Capital?", "Rome"),
        ("<|channel|>final <|constrain|>json<|message|>Rome", "", "Rome"),
        ("<|channel|>analysis<|message|>Capital?", "Capital?", ""), ("Rome", None, "Rome"), ("a < b", None, "a < b"),
        ("Use <think>so</think> for it", None, ""), ("A thought ends with `</think>`.", None, ""),
        ('A thought ends with "</think>".', None, ""), ("<thinker>Rodin</thinker>", None, ""),
    ],
)  # fmt: skip
def test_splits(text, thought, said):
    assert split_thinking(text) == (None if thought is None else (thought, said))


@pytest.mark.parametrize("part", ["<think>", "</think>", "<think></think>", "<|channel|>", " ", "<|channel|>final"])
def test_time_grows_with_the_length(part):
    began = time.process_time()
    split_thinking("<think>" + part * 100_000)
    split_thinking(part * 100_000 + "</think>x")
    assert time.process_time() - began < 5


def test_references_that_are_about_such_tags():
    assert names_thinking("write </think> there")
    assert not names_thinking("a <b> thinks")
