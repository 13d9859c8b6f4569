"""The recipes of docs/how-to/kola.md: what each of KoLA's scripts says of a file of its layout, counted by hand.

The rows are our own. The numbers follow from the scripts' rules, which the page tells.
"""

import json
import re
from pathlib import Path

import pytest
import request_states_files as files
import run_entries

from helm_ext.errors import DatasetError
from helm_ext.scoring.registry import get_scores
from helm_ext.scoring.scores import kola

ROOT = Path(__file__).parents[3]
TOKENIZER = str(ROOT / "tests" / "data" / "word_tokenizer")
"""Splits at white space; knows the words `the river Nile Oslo Rome New York City`, all others are one token."""
PAGE = (ROOT / "docs" / "how-to" / "kola.md").read_text(encoding="utf-8")
RECIPES = {title: json.loads(block) for title, block in re.findall(r'```json title="(.+?)"\n(.+?)```', PAGE, re.DOTALL)}


def f1(found, predicted, expected):
    """The harmonic mean of precision and recall, KoLA's 0.001 being in the denominators."""
    precision, recall = found / predicted, found / expected
    return 2 * precision * recall / (precision + recall)


CASES = {
    "1-1, 1-2, 1-3": (
        {"output_format": "list"},
        [
            ("Oslo; Rome", "Oslo; Rome"),  # 2 of 2 pairs; 2 of 2 tokens
            ("Oslo; Rome", " Rome;Oslo"),  # "Rome" is not " Rome", "Oslo" is "Oslo"; tokens 2 of 2
            ("New York", "New York City;Oslo;Rome"),  # one pair, none equal, a third; tokens 2 of 3 and 2
            ("Oslo", "Oslo."),  # a full stop counts: no token is known
            ("Rome", ""),  # one empty segment
        ],
        {
            "em_acc_with_penalty": (2 / 2.001 + 1 / 2.001) / 5,
            "token_f1_with_penalty": (2 * f1(2, 2.001, 2.001) + f1(2, 3.001, 2.001) / 3) / 5,
        },
    ),
    "2-1, 2-2, 2-3": (
        {},
        [("True", "true. For it is so."), ("Oslo", " OSLO "), ("St. Ives", "St. Ives"), ("Rome", "Rome it is")],
        {"exact_match": 2 / 4},
    ),
    "2-4": (
        {},
        [
            # Nile is found twice, and the type of Rome is wrong; what no bracket closes counts, what has no type does not.
            ("The [ Nile | river ] and [ Rome | city ]", "The [nile|RIVER] [Nile | river | x] [Rome | town] [x]"),
            ("[ U.S. | country ]", "the [ U.S | country ] and [ U.S. | country"),  # a full stop counts
        ],
        {"entity_f1": 2 * 3 / (5 + 3), "entity_precision": 3 / 5, "entity_recall": 3 / 3},
    ),
    "2-5, 2-8": (
        {"stop_sequences": ["\n"]},
        [
            # Found: the first. Not: white space before the relation, "Entity". No triple: words without numbers.
            (
                "(entity1,capital,entity2)\n(entity2,part of,entity3)\n",
                "(entity1,capital,entity2)\n(entity2, part of,entity3) (Entity2,part of,entity3) (entity,part of,it)",
            ),
            # A name with a comma is expected, never found as it is written, and found up to its comma.
            ("(entity1,dissolved, abolished,entity2)\n", "(entity1,dissolved, abolished,entity2)"),
            ("(entity1,dissolved, abolished,entity2)\n", "entity1,dissolved,entity2"),
        ],
        {"triple_f1": 2 * 2 / (4 + 4), "triple_precision": 2 / 4, "triple_recall": 2 / 4},
    ),
    "2-6": (
        {},
        [
            (
                "Output: A <mark> war </mark> and a <mark> riot </mark> .\n\nEvents:war:Attack;riot:Protest",
                "Output: A <mark>war</mark> and a <mark> riot </mark> .\nEvents:war:Attack;riot:Killing",
            ),
            # The same words, one place further; behind a space the first type is nobody's, on both sides.
            (
                "Output: A <mark> war </mark> and a <mark> fire </mark>\n\nEvents: war:Attack;fire:Damage",
                "Output: A <mark> war </mark> and the big <mark> fire </mark>\n\nEvents: war:Hold;fire:Damage",
            ),
            ("Output: No <mark> war </mark>\n\nEvents: war:Attack", "Output: No <mark> war </mark>"),  # no `Events:`
            # A mark that is not closed marks nothing.
            ("Output: A <mark> war </mark>\n\nEvents:war:Attack",
             "Output: A <mark> war </mark> <mark> on\n\nEvents:war:Attack;on:Attack"),
        ],
        {
            "event_classification_f1": 2 * 3 / (5 + 6),
            "event_identification_f1": 2 * 4 / (5 + 6),
            "event_identification_precision": 4 / 5,
            "event_identification_recall": 4 / 6,
        },
    ),
    "2-7": (
        {},
        [
            ("before, cause", 'Explanation: "x", so.\nAnswer: [BEFORE, "precondition"]\n'),  # one of 2 temporal, 1 causal
            ("Explanation: x.\nAnswer: [overlap]\n", "The answer is: [overlap, overlap]"),  # each repetition is found
            ("Answer: []", "Answer: [after]"),  # no relation: a quarter in each kind
            ("overlap", "Answer: [overlap] for sure. Answer: [cause"),  # up to the last bracket that closes
            ("subevent", "subevent"),  # no brackets behind "answer": nothing is predicted
        ],
        {
            "event_temporal_f1": 2 * 4 / (4.25 + 3),
            "event_temporal_precision": 4 / 4.25,
            "event_causal_f1": 0,
            "event_subevent_recall": 0,
            "event_relation_f1": 2 * 4 / (4.25 + 3) / 4,
        },
    ),
    "3-1, 3-2, 3-3": (
        {"stop_sequences": ["\n"]},
        [
            ("Oslo", "No. So the answer is: Rome. Hm.\nSo the answer is: the Oslo.\nQ: And? A: So it is."),  # 1
            ("New York City", "New York."),  # 2 words of 2, of 3
            ("Oslo", "Oslo"),  # the last character goes: "Osl"
        ],
        {"squad_f1": (1 + 2 * 2 / (2 + 3) + 0) / 3},
    ),
    "3-4": (
        {"stop_sequences": ["\n"]},
        [("100 metres", "So the answer is: 100.0 metres."), ("2001", "So the answer is: 2001-05-03."), ("yes", "Yes.")],
        {"value_exact_match": 2 / 3},
    ),
    "3-5, 3-6": (
        {"stop_sequences": ["<stop>"]},
        [
            ('"the Nile", "Rome" <stop> \n\n', '"Rome", "the Nile"<stop> and so on'),  # 2 of 2 pairs, 3 of 3 tokens
            ("Oslo; Rome", '"Os", "Rome"'),  # one segment and two, of which "Rome" is nearer (6 letters, not 8), and unequal
            ("Oslo", "<stop>"),  # an empty list
        ],
        {
            "em_acc_with_penalty_quoted": 2 / 2.001 / 3,
            "token_f1_with_penalty_quoted": (f1(3, 3.001, 3.001) + f1(1, 1.001, 2.001) / 2) / 3,
        },
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_gives_the_number_of_its_scripts(tmp_path, title):
    spec, rows, expected = CASES[title]
    states = [files.answered(files.state(f"{n}?", gold, split="test"), said) for n, (gold, said) in enumerate(rows)]
    recipe = RECIPES[title]
    if "score_tokenizer" in recipe:
        recipe = {**recipe, "score_tokenizer": TOKENIZER}
    path = files.write(tmp_path / "f.json", states, {"max_train_instances": 0, **spec}, scoring=recipe)
    folder = run_entries.run(tmp_path, "adapter_spec", path=str(path))
    found = {name: run_entries.value(folder, name) for name in expected}
    assert found == pytest.approx(expected, abs=1e-12)
    first = get_scores()[recipe["metrics"][0]].main_stat
    [metric] = [
        one for one in json.loads((folder / "run_spec.json").read_text())["metric_specs"] if "metrics" in one["args"]
    ]
    assert metric["args"].get("main_metric", "exact_match") == first


def test_every_recipe_has_a_case_and_scripts_are_named_once():
    assert set(RECIPES) == set(CASES)
    named = [script for title in RECIPES for script in title.split(", ")]
    assert len(named) + len(["2-4 of two more kinds"]) * 2 == 19
    assert "Not expressible: 4-1, 4-2" in PAGE


def test_scores_that_count_tokens_need_a_tokenizer(tmp_path):
    def problems(**scoring):
        path = files.write(tmp_path / "f.json", [files.answered(files.state(split="test"), "mercury")], scoring=scoring)
        return [str(problem) for problem in files.problems(path) if problem.severity == "error"]

    [without] = problems(metrics=["token_f1_with_penalty"])
    assert '"token_f1_with_penalty" counts tokens, and no tokenizer is named\n  hint: score_tokenizer=FOLDER' in without
    [main] = problems(main_metric="token_f1_with_penalty")
    assert "scoring.main_metric" in main
    [missing] = problems(metrics=["token_f1_with_penalty"], score_tokenizer=str(tmp_path / "none"))
    assert "scoring.score_tokenizer: score_tokenizer=" in missing
    assert "cannot be loaded" in missing
    assert problems(metrics=["token_f1_with_penalty"], score_tokenizer=TOKENIZER) == []


def test_a_reference_that_names_no_relation_is_an_error():
    with pytest.raises(DatasetError, match='the reference "no relation" names "no", which is no relation'):
        get_scores()["event_relation_f1"].row_function({}, "no relation", "Answer: [before]")


def test_segments_are_paired_by_the_least_sum_of_distances():
    # "abc" goes with "abd" (1) although "abc" stands there too: with "xyz" that makes 1 + 0, crossed 3 + 3.
    assert kola.match(["abd", "xyz"], ["xyz", "abc"]) == ([("xyz", "xyz"), ("abd", "abc")], 1)
    many = ["x"] * 2_000_000
    pairs, penalty = kola.match(["x", "y"], many)  # a runaway completion: no more than a million are compared
    assert (len(pairs), penalty) == (2, 1e-6)
