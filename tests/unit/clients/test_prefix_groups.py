"""Which sequences are computed together."""

import random

import pytest
import tiny_model

tiny_model.hide_broken_torchvision()

from helm_ext.clients.shared_prefix import (  # noqa: E402
    BATCH_TAILS,
    BATCH_TOKENS,
    Group,
    cut_tails,
    group_by_prefix,
)

PROMPT = list(range(100, 160))


SHORT = [7, 8, 9]
ROWS = {
    "options of one prompt": ([[*PROMPT, 1, 2], [*PROMPT, 3], [*PROMPT, 1, 4]], [Group((0, 1, 2), 60)]),
    "an empty option": ([PROMPT, [*PROMPT, 5]], [Group((0, 1), 60)]),
    "equal ones": ([PROMPT, PROMPT], [Group((0, 1), 60)]),
    "equal ones of a token": ([[7], [7]], [Group((0, 1), 1)]),
    "a single one": ([PROMPT], [Group((0,), 60)]),
    "none": ([], []),
    # The options after the question, and after "Answer:", in the order in which HELM asks.
    "a calibrated row": (
        [[*PROMPT, 1], [*SHORT, 1], [*PROMPT, 2], [*SHORT, 2]], [Group((0, 2), 60), Group((1, 3), 3)],
    ),
    "a calibrated row, with a token that begins every text": (
        [[0, *PROMPT, 1], [0, *SHORT, 1], [0, *PROMPT, 2], [0, *SHORT, 2]], [Group((0, 2), 61), Group((1, 3), 4)],
    ),
    "nothing shared": ([[number, *PROMPT] for number in range(4)], [Group((number,), 61) for number in range(4)]),
    "nothing shared but a token that begins every text": (
        [[0, number, *PROMPT * 4] for number in range(4)], [Group((number,), 242) for number in range(4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_what_is_computed_together(row):
    sequences, groups = ROWS[row]
    assert group_by_prefix(sequences) == groups


def test_every_member_is_in_one_group_and_begins_with_what_is_shared():
    rng = random.Random(1)
    for _ in range(300):
        sequences = [[rng.randrange(3) for _ in range(rng.randint(1, 60))] for _ in range(rng.randint(1, 9))]
        if rng.random() < 0.5:
            sequences = [PROMPT[: rng.randint(0, 60)] + sequence for sequence in sequences]
        groups = group_by_prefix(sequences)
        assert sorted(member for group in groups for member in group.members) == list(range(len(sequences)))
        for group in groups:
            assert group.shared >= 1
            assert len({tuple(sequences[member][: group.shared]) for member in group.members}) == 1
            assert all(len(sequences[member]) >= group.shared for member in group.members)


@pytest.mark.parametrize("shared", [10, 1_000, 5_000])
def test_batches_hold_each_tail_once_and_are_bounded(shared):
    rng = random.Random(2)
    tails = {tuple(rng.randrange(9) for _ in range(rng.randint(0, 300))) for _ in range(80)}
    batches = list(cut_tails(tails, shared))
    assert sorted(tail for batch in batches for tail in batch) == sorted(tail for tail in tails if len(tail) > 1)
    for batch in batches:
        longest = len(batch[0])
        assert longest == max(map(len, batch))
        assert len(batch) == 1 or len(batch) * longest <= BATCH_TAILS
        assert len(batch) == 1 or len(batch) * (shared + longest) <= BATCH_TOKENS
