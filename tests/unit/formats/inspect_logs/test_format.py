"""Which files are logs, and which log of a folder is meant."""

from pathlib import Path

import pytest
from tests.inspect_files import header, sample, with_eval, write_eval, write_json

from helm_ext.errors import DatasetError
from helm_ext.formats import detect, get_format

FORMAT = get_format("inspect")


def test_logs_are_recognised_by_what_they_hold(tmp_path: Path) -> None:
    paths = [write_json(tmp_path, [sample()]), write_eval(tmp_path, [sample()]), write_eval(tmp_path, [], name="log")]
    assert [detect(path).name for path in paths] == ["inspect"] * 3


MANY = {"task": "rivers", "dataset": {"sample_ids": list(range(50_000))}, "model": "m"}


@pytest.mark.parametrize(("document", "is_log"), [
    (header(eval=MANY), True),  # the model stands behind what is looked at
    (header(eval={"model": "m"}), False), (header(eval="task model"), False),
    ({**header(eval=None), "model": "m", "task": "t"}, False),
    ({"eval": {"task": "t", "model": "m"}}, False),  # neither plan nor status
])  # fmt: skip
def test_look_alikes_are_none(tmp_path: Path, document, is_log: bool) -> None:
    assert (detect(write_json(tmp_path, [], document)).name == "inspect") is is_log


def make_folder(folder: Path) -> Path:
    (folder / "below").mkdir()
    (folder / ".hidden").mkdir()
    write_eval(folder, [sample()], name="a.eval")
    write_eval(folder / "below", [sample()], with_eval(model="openai/other"), name="b.eval")
    write_eval(folder / ".hidden", [sample()], name="c.eval")
    (folder / "logs.json").write_text("{}")
    return folder


def test_each_log_of_a_folder_is_a_run(tmp_path: Path) -> None:
    path = str(make_folder(tmp_path))
    assert detect(path).name == "inspect"
    assert FORMAT.tasks({"path": path}) == [{"log": "a.eval"}, {"log": "below/b.eval"}]
    assert FORMAT.tasks({"path": path, "log": "a.eval"}) == [{}]
    assert FORMAT.name_model({"path": path, "log": "below/b.eval"}) == "openai/other"
    assert len(FORMAT.load(path=path, log="a.eval").instances) == 1
    with pytest.raises(DatasetError, match=r"2 logs could be meant\n.*log=NAME chooses one: a.eval, below/b.eval"):
        FORMAT.load(path=path)
    with pytest.raises(DatasetError, match=r"no log b.eval(.|\n)*did you mean .*below/b.eval"):
        FORMAT.load(path=path, log="b.eval")
    (tmp_path / "a.eval").unlink()
    assert FORMAT.tasks({"path": path}) == [{}]
    assert len(FORMAT.load(path=path).instances) == 1


def test_kinds_of_one_log_make_the_same_questions(tmp_path: Path) -> None:
    rows = [sample(1, metadata={"side": "east"}), sample(2, metadata={"side": "west"})]
    one, other = (FORMAT.load(path=str(write(tmp_path, rows)), by=["side"]) for write in (write_json, write_eval))
    assert one.attributes == other.attributes == {"side": ("east", "west")}
    assert one.question_digest == other.question_digest
    assert one.digest != other.digest


SHARDS = ["LOG.shards/0/shard-0.eval", "LOG.shards/1/shard-1.eval"]


@pytest.mark.parametrize(("merged", "name", "head", "logs"), [
    ([1, 2, 3], "LOG.eval", None, ["LOG.eval"]),
    ([1, 2, 3], "LOG-recovered.eval", None, ["LOG-recovered.eval"]),
    ([], "", None, SHARDS), ([1, 2], "LOG.eval", None, ["LOG.eval", SHARDS[1]]),
    ([1, 2, 3], "LOG.eval", header(status="cancelled"), ["LOG.eval", *SHARDS]),
    ([1, 2, 3], "LOG.eval", with_eval(task="lakes"), ["LOG.eval", *SHARDS]),
])  # fmt: skip
def test_shards_that_their_merged_log_covers_are_no_runs(tmp_path: Path, merged, name, head, logs) -> None:
    """Two shards, of the samples 1 and 2, and of 3."""
    if merged:
        write_eval(tmp_path, [sample(id) for id in merged], head, name=name)
    for path, ids in zip(SHARDS, ([1, 2], [3]), strict=True):
        (tmp_path / path).parent.mkdir(parents=True)
        write_eval((tmp_path / path).parent, [sample(id) for id in ids], name=Path(path).name)
    assert FORMAT.tasks({"path": str(tmp_path)}) == ([{"log": log} for log in logs] if len(logs) > 1 else [{}])
    if len(logs) == 1:
        assert [one.message for one in FORMAT.load(path=str(tmp_path)).warnings] == [
            "2 shards in LOG.shards not read: this log has the same samples, merged"
        ]
    assert len(FORMAT.tasks({"path": str(tmp_path / "LOG.shards")})) == 2
