"""Parquet files and datasets saved by the Hugging Face library, written here by these libraries themselves."""

import datasets
import pyarrow as pa
import pytest
from pyarrow import parquet

from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats import detect
from helm_ext.formats.table.arrow import ParquetTable, SavedTable, pin_revision
from helm_ext.formats.table.format import FORMAT

METALS = ["iron", "zinc", "tin", "lead"]
ROWS = [{"question": f"Metal {n}?", "choices": METALS, "answer": n % 4, "output": METALS[n % 4]} for n in range(5)]
FEATURES = datasets.Features(
    {"question": datasets.Value("string"), "choices": datasets.Sequence(datasets.Value("string")),
     "answer": datasets.ClassLabel(names=["A", "B", "C", "D"]), "output": datasets.Value("string")}
)  # fmt: skip


@pytest.fixture
def library(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets.disable_progress_bars()
    return datasets.Dataset.from_list(ROWS, features=FEATURES)


def test_parquet_is_read_by_row_group(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=2)
    table = ParquetTable(str(path))
    assert [(line, cells) for line, cells, _ in table.read()] == list(enumerate(ROWS, 1))
    assert [cells for _, cells, _ in table.read(["answer"])] == [{"answer": row["answer"]} for row in ROWS]


def test_parquet_is_known_by_its_first_bytes(tmp_path):
    path = tmp_path / "x"
    parquet.write_table(pa.Table.from_pylist(ROWS), path)
    assert detect(path) is FORMAT
    assert FORMAT.load(path=str(path)).counts["recorded"] == 5


def test_class_labels_come_from_the_schema(tmp_path, library):
    # 1 to 3 would be ambiguous in a column of plain numbers.
    path = tmp_path / "x.parquet"
    library.select([1, 2, 3]).to_parquet(path)
    assert ParquetTable(str(path)).class_labels == {"answer": ["A", "B", "C", "D"]}
    evalset = FORMAT.load(path=str(path))
    assert [[r.output.text for r in i.references if r.is_correct] for i in evalset.instances] == [["zinc"], ["tin"], ["lead"]]  # fmt: skip


def test_class_labels_are_the_options_where_there_are_no_others(tmp_path):
    features = datasets.Features(
        {"input": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    path = tmp_path / "x.parquet"
    rows = [{"input": "I like it.", "label": 1}, {"input": "I do not.", "label": 0}]
    datasets.Dataset.from_list(rows, features=features).to_parquet(path)
    evalset = FORMAT.load(path=str(path), by=["label"])
    assert evalset.attributes == {"label": ("bad", "good")}
    instance = evalset.instances[0]
    assert row_extra(instance)["labels"] == {"A": "bad", "B": "good"}
    assert [r.output.text for r in instance.references if r.is_correct] == ["good"]


def test_more_classes_than_letters_go_by_their_names(tmp_path):
    names = [f"metal {number}" for number in range(30)]
    features = datasets.Features({"input": datasets.Value("string"), "label": datasets.ClassLabel(names=names), "output": datasets.Value("string")})  # fmt: skip
    path = tmp_path / "x.parquet"
    datasets.Dataset.from_list([{"input": "?", "label": 28, "output": "Metal 28."}], features=features).to_parquet(path)
    evalset = FORMAT.load(path=str(path))
    assert row_extra(evalset.instances[0])["labels"] == dict(zip(names, names, strict=True))
    assert [r.output.text for r in evalset.instances[0].references if r.is_correct] == ["metal 28"]


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"PAR1 and no more", "parquet"), (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "parquet")],
)
def test_what_is_no_parquet_is_refused(tmp_path, data, code):
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    with pytest.raises(DatasetError) as caught:
        FORMAT.load(path=str(path))
    assert caught.value.problems[0].code == code


def test_a_saved_dataset_is_known_by_its_files(tmp_path, library):
    library.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"test": library}).save_to_disk(str(tmp_path / "dict"))
    for name in ("one", "dict"):
        assert detect(tmp_path / name) is FORMAT
        evalset = FORMAT.load(path=str(tmp_path / name))
        assert evalset.counts["recorded"] == 5
        assert len(evalset.digest) == 64


def test_all_splits_are_read_as_splits(tmp_path, library):
    live = library.remove_columns("output")
    saved = datasets.DatasetDict(
        {"train": live.select([0, 1]), "validation": live.select([2]), "test": live.select([3, 4])}
    )
    saved.save_to_disk(str(tmp_path / "d"))
    evalset = FORMAT.load(path=str(tmp_path / "d"))
    assert [instance.split for instance in evalset.instances] == ["train", "train", "valid", "test", "test"]
    assert evalset.adapter_spec.max_train_instances == 5
    only = FORMAT.load(path=str(tmp_path / "d"), splits=["validation"])
    assert [instance.split for instance in only.instances] == ["valid"]


def test_a_split_of_another_name_is_refused_unless_it_is_read_alone(tmp_path, library):
    datasets.DatasetDict({"easy": library, "hard": library}).save_to_disk(str(tmp_path / "d"))
    with pytest.raises(DatasetError, match='"easy" is neither train, validation nor test'):
        FORMAT.load(path=str(tmp_path / "d"))
    assert FORMAT.load(path=str(tmp_path / "d"), splits=["hard"]).counts["recorded"] == 5
    with pytest.raises(DatasetError, match="there is no split"):
        FORMAT.load(path=str(tmp_path / "d"), splits=["hrad"])


def test_a_broken_saved_dataset_is_refused(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["test"]}')
    with pytest.raises(DatasetError) as caught:
        FORMAT.load(path=str(tmp_path))
    assert caught.value.problems[0].code == "saved-dataset"


class TestHub:
    """What can be shown without a network: a stand-in answers for the library's functions."""

    @pytest.fixture
    def hub(self, monkeypatch, library):
        asked = []
        monkeypatch.setattr(datasets, "get_dataset_config_names", lambda name, revision=None: ["default"])

        def load_dataset(name, revision=None):
            asked.append((name, revision))
            return datasets.DatasetDict({"test": library})

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return asked

    def test_a_dataset_is_read_at_its_commit(self, hub):
        table = SavedTable(f"hub:zormun/metals@{'a' * 40}")
        assert len(list(table.read())) == 5
        assert hub == [("zormun/metals", "a" * 40)]

    def test_a_commit_is_not_looked_up(self):
        assert pin_revision(f"hub:zormun/metals@{'a' * 40}") == f"hub:zormun/metals@{'a' * 40}"

    def test_the_commit_of_a_branch_goes_into_the_arguments(self, monkeypatch):
        import huggingface_hub

        class Found:
            sha = "b" * 40

        monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, name, revision=None: Found)
        assert FORMAT.resolve({"path": "hub:zormun/metals"}) == {"path": f"hub:zormun/metals@{'b' * 40}"}

    def test_several_configurations_are_refused(self, hub, monkeypatch):
        monkeypatch.setattr(datasets, "get_dataset_config_names", lambda name, revision=None: ["en", "de"])
        with pytest.raises(DatasetError, match="several configurations"):
            SavedTable(f"hub:zormun/metals@{'a' * 40}")

    def test_what_cannot_be_reached_says_what_works_without(self, hub, monkeypatch):
        def fail(name, revision=None):
            raise ConnectionError("no route to host")

        monkeypatch.setattr(datasets, "get_dataset_config_names", fail)
        with pytest.raises(DatasetError, match=r"cannot be had(.|\n)*save_to_disk"):
            SavedTable("hub:zormun/metals")

    @pytest.mark.parametrize("name", ["hub:metals", "hub:a/b/c", "hub:"])
    def test_a_name_has_an_owner(self, name):
        with pytest.raises(DatasetError, match="names no dataset"):
            SavedTable(name)


def _write(path, **columns):
    parquet.write_table(pa.table({"question": ["Metal?", "Ore?"], **columns}), path)
    return str(path)


def test_a_long_table_is_refused_though_only_some_columns_are_read(tmp_path):
    path = _write(tmp_path / "x.parquet", answer=["tin", "zinc"], output=["tin", "tin"], model=["gpt", "llama"])
    with pytest.raises(DatasetError, match="the column model names several models"):
        FORMAT.load(path=path)


def test_numbers_of_32_bits_are_as_they_are_written(tmp_path):
    path = _write(tmp_path / "x.parquet", answer=pa.array([0.1, 3.0], pa.float32()), output=["0.1", "3"])
    evalset = FORMAT.load(path=path)
    assert [i.references[0].output.text for i in evalset.instances] == ["0.1", "3"]


def test_an_output_that_is_not_a_number_was_not_run(tmp_path):
    path = _write(tmp_path / "x.parquet", answer=["1", "2"], output=[1.0, float("nan")])
    assert FORMAT.load(path=path).counts["not_run"] == 1


def test_outputs_of_class_labels_are_their_names(tmp_path):
    features = datasets.Features(
        {"question": datasets.Value("string"), "label": datasets.ClassLabel(names=["ore", "metal"]),
         "output": datasets.ClassLabel(names=["metal", "ore"])}
    )  # fmt: skip
    rows = [{"question": "Iron?", "label": 1, "output": 0}, {"question": "Bauxite?", "label": 0, "output": -1}]
    datasets.Dataset.from_list(rows, features=features).to_parquet(path := str(tmp_path / "x.parquet"))
    recorded = [row_extra(i)["recorded"] for i in FORMAT.load(path=path).instances]
    assert recorded[0]["states"][0]["result"]["completions"][0]["text"] == "metal"
    assert recorded[1]["status"] == "not_run"


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.json", "x.parquet"])
def test_a_file_is_read_once_and_its_rows_are_the_same_on_disk(tmp_path, monkeypatch, name):
    rows = [{"question": f"Ore {n}?", "answer": "tin", "output": f"tïn {n}", "n": str(n)} for n in range(5)]
    path, frame = tmp_path / name, pa.Table.from_pylist(rows).to_pandas()
    if name == "x.csv":
        frame.to_csv(path, index=False)
    elif name == "x.parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=name == "x.jsonl", force_ascii=False)
    monkeypatch.setattr("helm_ext.formats.table.loading.KEPT", 2)
    opened = FORMAT.open(path=str(path), by=["n"])
    digest = opened.digest
    path.unlink()
    found = list(opened.rows())
    assert [(row.answers[0].text, row.data["n"]) for row in found] == [(row["output"], row["n"]) for row in rows]
    assert [row.line for row in found] == [n + 1 + (name == "x.csv") if name != "x.json" else 1 for n in range(5)]
    assert len(digest) == 64


def test_values_that_json_cannot_hold_stay_what_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("helm_ext.formats.table.loading.KEPT", 0)
    path = _write(tmp_path / "x.parquet", answer=pa.array([1, 2], pa.decimal128(5, 1)), output=["1", "2"])
    with pytest.raises(DatasetError, match="write the column as texts"):
        FORMAT.load(path=path)
