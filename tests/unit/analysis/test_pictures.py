"""What is asked holds pictures too: the same texts beside other pictures are other questions."""

import base64
import json

import pytest
from finished_runs import run_sums, score
from inspect_files import header, write_eval
from inspect_files import sample as inspect_sample
from request_states_files import answered, state, write

from helm_ext.analysis.comparing import compare_runs
from helm_ext.analysis.run_scores import read_scores
from helm_ext.errors import DatasetError, RunEntryError
from helm_ext.formats import get_format

CAT, DOG = (base64.b64encode(name * 40).decode() for name in (b"cat", b"dog"))
URI = "data:image/png;base64,"


def picture_log(folder, name, picture, attachments=None):
    folder.mkdir(exist_ok=True)
    asked = [{"type": "text", "text": "What is this?"}, *([{"type": "image", "image": picture}] if picture else [])]
    made = inspect_sample(input=[{"role": "user", "content": asked}], attachments=attachments or {})
    return write_eval(folder, [made], header(), name=name)


def helm_file(folder, name, picture):
    folder.mkdir(exist_ok=True)
    row = answered(state("What is this?", "2", id="a", split="test"), "2")
    if picture:
        media = [{"content_type": "image/png", "location": picture}]
        row["instance"]["input"]["multimedia_content"] = {"media_objects": media}
    return write(folder / name, [row], {"max_train_instances": 0})


def digest(format_, path):
    return get_format(format_).load(path=str(path)).question_digest


def test_pictures_of_inspect_logs_are_part_of_the_questions_digest(tmp_path):
    """By their bytes, however they stand in the log; by their URL."""
    kinds = [(URI + CAT,), (CAT,), ("attachment://x", {"x": URI + CAT}), (URI + DOG,), ("https://a.org/cat.png",),
             ("https://a.org/dog.png",), ("cat.png",), (None,)]  # fmt: skip
    digests = [digest("inspect", picture_log(tmp_path, f"{number}.eval", *kind)) for number, kind in enumerate(kinds)]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 6
    # As before pictures counted
    assert digests[-1] == "0624262eeedf33bc085f4a8e830d27e990b48bbd816363f4de2b75152654a554"


def test_a_picture_that_the_log_does_not_hold_is_said(tmp_path):
    evalset = get_format("inspect").load(path=str(picture_log(tmp_path, "a.eval", "<base64-data-removed>")))
    assert any("1 image or file of questions not in the log" in warning.message for warning in evalset.warnings)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_pictures_of_adapter_spec_files_are_part_of_the_questions_digest(tmp_path, suffix):
    made = {digest("adapter_spec", helm_file(tmp_path, f"{p}.{suffix}", p)) for p in ("cat.png", "dog.png", None)}
    assert len(made) == 3


def scored(make, suffix):
    return lambda folder, model, picture: score(
        folder, make(folder / model, f"log.{suffix}", f"https://a.org/{picture}"), f"org/{model}"
    )


def of_helms_own(folder, model, picture):
    run = run_sums(folder, model, deployment=model, model=f"org/{model}")
    path = run.folder / "scenario_state.json"
    value = json.loads(path.read_bytes())
    media = [{"content_type": "image/png", "location": picture}]
    value["request_states"][0]["instance"]["input"]["multimedia_content"] = {"media_objects": media}
    path.write_text(json.dumps(value))
    return run


@pytest.mark.long
@pytest.mark.parametrize(("make", "said"), [
    (scored(picture_log, "eval"), "no two runs are of one dataset"),
    (scored(helm_file, "jsonl"), "no two runs are of one dataset"),
    (of_helms_own, "org/a and org/c were asked different questions in 1 row"),
])  # fmt: skip
def test_runs_of_other_pictures_are_not_compared(tmp_path, make, said):
    pictures = {"a": "cat.png", "b": "cat.png", "c": "dog.png"}
    a, b, c = (read_scores(make(tmp_path, model, picture)) for model, picture in pictures.items())
    assert len(compare_runs([a, b])[0]) == 1
    with pytest.raises((DatasetError, RunEntryError), match=said):
        compare_runs([a, c])


def test_a_converted_log_has_no_pictures_and_knows_which(tmp_path):
    from typer.testing import CliRunner

    from helm_ext.cli import app

    made = []
    for name, picture in (("cat", CAT), ("dog", DOG)):
        source, target = picture_log(tmp_path, f"{name}.eval", URI + picture), tmp_path / f"{name}.jsonl"
        done = CliRunner().invoke(app, ["convert", str(source), str(target)])
        assert "converting it would lose:\n  - images, sound or video" in str(done.exception)
        assert CliRunner().invoke(app, ["convert", str(source), str(target), "--lossy"]).exit_code == 0
        made.append(digest("adapter_spec", target))
    assert made[0] != made[1]
