"""Rows of an importer become what an adapter_spec file with the same rows becomes; what is left out is counted."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from helm_ext.errors import DatasetError, DatasetIntegrityError
from helm_ext.evalset import Source, SourceScore, row_extra
from helm_ext.formats.format import Claim, Seen
from helm_ext.formats.imported.format import ImportedFormat
from helm_ext.formats.imported.row import Answer, Opened, Row


class Memory(ImportedFormat):
    """An importer whose file is a list of rows."""

    name = "memory"
    title = dataset_title = expects = usage = scenario_class = "memory"
    arguments = ()

    def __init__(self, rows: Sequence[Row], **opened: Any) -> None:
        self.rows = rows
        self.opened = opened
        self.source = Source(tool="memory", task="capitals", scores={"match,none": SourceScore(0.5)})

    def claims(self, seen: Seen) -> Claim:  # noqa: ARG002
        return Claim.NO

    def open(self, path: str = "capitals.log", by: Sequence[str] = ()) -> Opened:  # noqa: ARG002
        def rows() -> Iterator[Row]:
            yield from self.rows

        digest = hashlib.sha256(repr(self.rows).encode()).hexdigest()
        return Opened(path=path, source=self.source, rows=rows, digest=digest, **self.opened)


def text_row(line: int, answer: str | None = "Paris", **more: Any) -> Row:
    answers = None if answer is None else [Answer(answer)]
    return Row(**{"line": line, "id": line, "question": f"{line}?", "gold": ["Paris"], "answers": answers, **more})


def choice_row(line: int, **more: Any) -> Row:
    options = {"A": "Lyon", "B": "Paris"}
    return text_row(line, "B", **{"options": options, "gold": ["B"], **more})


def test_a_question_is_the_whole_prompt() -> None:
    evalset = Memory([text_row(1)]).load()
    spec = evalset.adapter_spec
    assert (spec.method, spec.max_train_instances) == ("generation", 0)
    around = [spec.instructions, spec.input_prefix, spec.input_suffix, spec.output_prefix, spec.output_suffix]
    assert around == [""] * 5
    assert evalset.instances[0].input.text == "1?"
    assert (evalset.name, evalset.format) == ("capitals", "memory")


def test_what_is_an_answer_and_what_is_left_out() -> None:
    same = {"A": "Paris", "B": "Paris "}
    rows = [
        text_row(1, ""), text_row(2, None), text_row(3, None, failed="timeout"),
        text_row(4, gold=[], unscored="the scorer failed"),
        choice_row(5, options=same), choice_row(6, options=same, gold=["A", "B"]),
    ]  # fmt: skip
    evalset = Memory(rows).load()
    recorded = [row_extra(instance)["recorded"] for instance in evalset.instances]
    assert [one["status"] for one in recorded] == ["ok", "not_run", "failed", "unscored", "unscored", "ok"]
    assert recorded[3] == {"status": "unscored", "states": [], "skip": True}
    assert {what: evalset.counts[what] for what in ("recorded", "unscored")} == {"recorded": 2, "unscored": 2}


@pytest.mark.parametrize("labels", ["AB", "12", "yz"])
def test_options_keep_their_labels(labels: str) -> None:
    options = dict(zip(labels, ["Lyon", "Paris"], strict=True))
    row = choice_row(1, options=options, gold=[labels[1]], answers=[Answer(labels[1])])
    (instance,) = Memory([row]).load().instances
    assert row_extra(instance)["labels"] == options
    assert [reference.output.text for reference in instance.references if reference.is_correct] == ["Paris"]


def test_a_conversation_stays_one_and_texts_beside_it_become_one_turn() -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of France?"}]
    rows = [text_row(1, question=turns), text_row(2)]
    evalset = Memory(rows, adapter_spec={"method": "chat"}).load()
    assert [instance.input.messages for instance in evalset.instances] == [turns, [{"role": "user", "content": "2?"}]]


def test_cut_and_refused_answers_are_counted() -> None:
    cut, refused = Answer("Par", finish_reason="length"), Answer("No.", is_refusal=True)
    evalset = Memory([text_row(1, answers=[cut]), text_row(2, answers=[refused]), text_row(3)]).load()
    assert {key: evalset.counts[key] for key in ("read", "cut", "refused")} == {"read": 3, "cut": 1, "refused": 1}


def test_scores_of_the_source_ride_on_the_rows() -> None:
    """What it could not score is told from what it never looked at."""
    rows = [
        text_row(at, source_scores=scores) for at, scores in enumerate(({"match,none": 1.0}, {"match,none": None}, {}))
    ]
    evalset = Memory(rows).load()
    extras = [row_extra(instance) for instance in evalset.instances]
    assert [extra.get("source_scores") for extra in extras] == [{"memory_match": 1.0}, None, None]
    assert [extra.get("source_unscored") for extra in extras] == [None, ["memory_match"], None]
    assert evalset.source is not None
    assert evalset.source.to_args()["scores"] == {
        "match,none": {"stat": "memory_match", "mean": 0.5, "lower_is_better": False}
    }


OWN = "normalized_exact_match"


@pytest.mark.parametrize(("headline", "arguments", "main", "own"), [
    ("judge,none", {}, "memory_judge", OWN), ("", {}, OWN, None),
    ("judge,none", {"metrics": ["exact_match"]}, "exact_match", None),
    ("judge,none", {"main_metric": "exact_match"}, "exact_match", None),  # a name that both have is ours
    ("judge,none", {"main_metric": "memory_exact_match"}, "memory_exact_match", OWN),
    ("", {"main_metric": "judge"}, "memory_judge", OWN), ("", {"main_metric": "judge,none"}, "memory_judge", OWN),
    ("", {"main_metric": "f1,strict", "metrics": ["f1_score", "exact_match"]}, "memory_f1,strict", "f1_score"),
])  # fmt: skip
def test_the_main_metric_is_the_headline_of_the_source_or_any_score_that_is_named(
    headline: str, arguments: dict[str, Any], main: str, own: str | None
) -> None:
    memory = Memory([text_row(1, source_scores={"judge,none": 1.0, "exact_match,none": 0.0, "f1,strict": 0.5})])
    memory.source.scores = {name: SourceScore() for name in ("judge,none", "exact_match,none", "f1,strict")}
    memory.source.main = headline
    scoring = memory.load(**arguments).scoring
    assert (scoring.main_metric, scoring.own_metric) == (main, own)
    assert scoring.metrics


def test_only_what_the_source_can_score_is_measured_by_it_alone_unless_a_metric_of_ours_is_named() -> None:
    def scoring(**arguments: Any) -> tuple[tuple[str, ...], str, str | None]:
        memory = Memory([text_row(1, gold=[], source_scores={"match,none": 1.0})], is_measured=False)
        memory.source.main = "match,none"
        found = memory.load(**arguments).scoring
        return found.metrics, found.main_metric, found.own_metric

    assert scoring() == scoring(main_metric="match") == ((), "memory_match", "")
    with pytest.raises(DatasetError, match="reference"):
        scoring(main_metric="exact_match")


def test_rows_are_grouped_by_what_they_keep() -> None:
    rows = [text_row(1, data={"meta": {"level": 3}}), text_row(2, data={"meta": {"level": True}}), text_row(3)]
    evalset = Memory(rows).load(by=["meta.level"])
    assert evalset.attributes == {"meta.level": ("3", "true")}
    assert ["no value of" in str(warning) for warning in evalset.warnings] == [True]


def test_a_file_without_an_answer_is_refused_unless_it_may_be_run() -> None:
    rows = [text_row(1, None), text_row(2, None, failed="x")]
    with pytest.raises(DatasetIntegrityError, match="no row has an answer"):
        Memory(rows).load()
    problems, _ = Memory(rows).check()
    assert [problem.code for problem in problems if problem.severity == "error"] == ["nothing-to-score"]
    assert Memory([text_row(1, None)], may_be_live=True).load().counts["recorded"] == 0


@pytest.mark.parametrize(("rows", "arguments", "said"), [
    ([], {}, "there are no rows"),
    ([text_row(1, data={"level": 1})], {"by": ["levl"]}, 'no row has a value of "levl"(.|\n)*level'),
    ([text_row(1)], {"main_metric": "memory_mtch"}, "memory_mtch. is none of the metrics(.|\n)*memory_match"),
])  # fmt: skip
def test_what_is_refused_and_the_nearest_of_what_is_there(rows, arguments, said) -> None:
    with pytest.raises(DatasetError, match=said):
        Memory(rows).load(**arguments)


def test_problems_name_the_line_and_no_field_of_another_format() -> None:
    problems, _ = Memory([text_row(1), choice_row(7, gold=[])]).check()
    error = next(problem for problem in problems if problem.severity == "error")
    assert (error.location.path, error.location.line, error.location.field) == ("capitals.log", 7, "")


def test_two_models_answers_to_the_same_questions_stand_in_one_column() -> None:
    one, other = Memory([text_row(1, "Paris")]).load(), Memory([text_row(1, "Lyon")]).load()
    assert one.digest != other.digest
    assert one.question_digest == other.question_digest
