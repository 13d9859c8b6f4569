"""The leaderboard of StreamingSummarizer: the same every time, one table a dataset, no empty columns, with intervals."""

import json

import pytest
import request_states_files
from processes import command
from request_states_files import answered, state

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/running", "src/helm_ext/scoring/basic", "src/helm_ext/scoring/statistics"),
]

ROWS = 40


def write(path, wrong, name, unanswered=0):
    """Write a file that answers the first `wrong` rows of 40 wrongly, and the last `unanswered` not at all."""
    rows = [state(f"{n} + 1?", str(n + 1), passage=n // 4) for n in range(ROWS)]
    states = [answered(row, "no" if n < wrong else str(n + 1)) for n, row in enumerate(rows[: ROWS - unanswered])]
    states += rows[ROWS - unanswered :]
    request_states_files.write(path, states, name=name)


def summarize(folder, seed=None):
    """With a seed of hashes of its own, in a process that Python starts with it."""
    arguments = (
        folder, "helm-summarize", "--suite", "score", "--auto-generate-schema",
        "--summarizer-class-name", "helm_ext.running.StreamingSummarizer",
    )  # fmt: skip
    command(*arguments, env=seed and {"PYTHONHASHSEED": seed})
    groups = folder / "benchmark_output/runs/score/groups"
    return {path.name: json.loads(path.read_text()) for path in sorted(groups.glob("*.json"))}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    for model, wrong in (("one", 10), ("two", 0)):
        write(folder / f"{model}.json", wrong, "sums")
        command(folder, "helm-ext", "score", f"{model}.json", "--model", model)
    write(folder / "three.json", 8, "sums", unanswered=8)
    command(folder, "helm-ext", "score", "three.json", "--model", "three", "--missing", "skip")
    sizes = {"rare": (10, "no"), "common": (90, "yes")}  # rows, and what is said where "yes" is right
    states = [
        answered(state(f"Is {name} {n} right?", "yes", split="test", sub_split=name, id=f"{name}{n}"), said)
        for name, (count, said) in sizes.items()
        for n in range(count)
    ]
    request_states_files.write(folder / "parts.json", states, name="parts")
    command(folder, "helm-ext", "score", "parts.json", "--model", "one")
    write(folder / "more.json", 20, "more")
    command(folder, "helm-ext", "score", "more.json", "--model", "one", "--arg", "metrics=rouge_l+f1_score")
    return folder


@pytest.fixture(scope="module")
def pages(suite):
    return summarize(suite)


def by_title(tables):
    return {table["title"]: table for table in tables}


def rows_of(table):
    headings = [cell["value"] for cell in table["header"]]
    return [dict(zip(headings, (cell.get("value") for cell in row), strict=True)) for row in table["rows"]]


def test_it_is_the_same_every_time(suite, pages):
    assert summarize(suite, "1") == pages


def test_models_of_one_dataset_stand_in_one_table_and_column(pages):
    """Also one that did not answer all rows (`missing=skip`): how many it left out stands beside its name."""
    ((name, page),) = [(name, tables) for name, tables in pages.items() if name.startswith("sums-")]
    assert len(page) == 1
    left = "8 of 40 rows left out"
    assert [(row["Model"], row["Norm. EM"], row["# left out"]) for row in rows_of(page[0])] == [
        ("recorded/one", 0.75, 0.0),
        (f"recorded/three ({left})", 0.75, 8.0),
        ("recorded/two", 1.0, 0.0),
    ]
    main = by_title(pages["all_scenarios.json"])["Main Metric"]
    column = {row["Model"]: row["sums - Norm. EM"] for row in rows_of(main)}
    group = name.removesuffix(".json")
    assert column == {"recorded/one": 0.75, f"recorded/three ({group}: {left})": 0.75, "recorded/two": 1.0}


def test_a_table_shows_the_mean_over_rows_and_that_of_each_sub_split(pages):
    """90 of 100, not the mean of 0 and 1; no stat is of a sub-split alone, which HELM would average."""
    (main,) = [row for row in rows_of(by_title(pages["all_scenarios.json"])["Main metric, 95 % interval"])
               if row["Model"] == "recorded/one"]  # fmt: skip
    assert main["parts - Norm. EM"] == 0.9
    (page,) = [tables for name, tables in pages.items() if name.startswith("parts-")]
    columns = {column: value for table in page for row in rows_of(table) for column, value in row.items()}
    assert columns["sub_split=rare (normalized_exact_match)"] == 0
    assert columns["sub_split=common (normalized_exact_match)"] == 1


def test_both_ends_are_told_apart_where_headings_are_cut(pages):
    """HELM's page shows 27 characters of a heading."""
    table = by_title(pages["all_scenarios.json"])["Main metric, 95 % interval"]
    headings = [cell["value"] for cell in table["header"]]
    columns = "more (metrics=rouge_l+f1_score) - ROUGE-L", "parts - Norm. EM", "sums - Norm. EM"
    assert headings == ["Model", *(f"{end}{one}" for one in columns for end in ("", "from: ", "to: "))]
    assert len({heading[:27] for heading in headings}) == len(headings)


def test_intervals_are_wilsons(pages):
    """30 of 40 right: 0.598 to 0.858; 40 of 40: 0.912 to 1 (R: binom::binom.wilson)."""
    (page,) = [tables for name, tables in pages.items() if name.startswith("sums-")]
    first, _, second = rows_of(page[0])
    assert first["Norm. EM from"] == pytest.approx(0.5981, abs=1e-4)
    assert first["Norm. EM to"] == pytest.approx(0.8581, abs=1e-4)
    assert second["Norm. EM from"] == pytest.approx(0.9124, abs=1e-4)
    assert second["Norm. EM to"] == 1.0


def test_no_column_is_empty_and_none_is_there_twice(pages):
    for tables in pages.values():
        for table in tables if isinstance(tables, list) else []:
            headings = [cell["value"] for cell in table["header"]]
            assert len(headings) == len(set(headings)), (table["title"], headings)
            for place, heading in enumerate(headings):
                assert any(row[place].get("value") is not None for row in table["rows"]), (table["title"], heading)


def test_intervals_are_of_rows_not_of_trials_or_perturbed_copies(tmp_path):
    from types import SimpleNamespace

    from helm.benchmark.presentation.summarize import Run

    from helm_ext.running.summarizer import add_intervals
    from helm_ext.scoring.statistics import mean_interval

    def row(instance_id, trial, *means, split="test", **changes):
        stats = [{"name": {"name": "exact_match", "split": split}, "mean": mean} for mean in means]
        return {"instance_id": instance_id, "train_trial_index": trial, "stats": stats, **changes}

    rows = [
        row("b", 0, 1.0), row("a", 0, 0.0), row("c", 0, 0.25), row("d", 0, None), row("e", 0),
        row("a", 1, 1.0), row("b", 1, 1.0), row("a", 2, 0.5), row("a", 2, 1.0, perturbation={"name": "typos"}),
        row("v", 0, 1.0, split="valid"), row("w", 0, 0.5, split="valid"),
    ]  # fmt: skip
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(rows))
    run = add_intervals(Run(str(tmp_path), SimpleNamespace(name="run"), []), "exact_match")
    test, valid = mean_interval([1.0, 0.5, 0.25]), mean_interval([1.0, 0.5])
    assert [(stat.name.split, stat.name.name.rpartition("_")[2], stat.mean) for stat in run.stats] == [
        ("test", "low", max(test.low, 0.0)),
        ("test", "high", min(test.high, 1.0)),
        ("valid", "low", max(valid.low, 0.0)),
        ("valid", "high", min(valid.high, 1.0)),
    ]


def test_few_notes_stand_behind_a_models_name():
    from types import SimpleNamespace

    from helm.benchmark.metrics.metric_name import MetricName
    from helm.benchmark.metrics.statistic import Stat
    from helm.benchmark.presentation.summarize import Cell, Run, Table

    from helm_ext.running.summarizer import RunNotes

    def run(number):
        counts = {"num_instances": 3, "num_left_out": number}
        stats = [Stat(MetricName(name, split="test")).add(count) for name, count in counts.items()]
        scenario = SimpleNamespace(class_name="helm_ext.x", args={})
        return Run("", SimpleNamespace(name=f"run{number}", groups=[f"g{number}"], scenario_spec=scenario), stats)

    runs = list(map(run, range(6)))
    notes = RunNotes(runs, SimpleNamespace(find_stale=set))
    cells = [Cell("m"), *(Cell(1.0, run_spec_names=[one.run_spec.name]) for one in runs)]
    table = notes.annotate(Table("t", [], [cells]))
    assert table.rows[0][0].value == (
        "m (g1: 1 of 4 rows left out; g2: 2 of 5 rows left out; g3: 3 of 6 rows left out; 2 more)"
    )


def test_the_mean_of_two_recordings_has_no_interval(tmp_path):
    """HELM averages two runs of one model; the mean of two lower ends is the lower end of nothing."""
    for wrong in (10, 20):
        write(tmp_path / f"wrong{wrong}.json", wrong, "sums")
        command(tmp_path, "helm-ext", "score", f"wrong{wrong}.json", "--model", "one")
    (page,) = [tables for name, tables in summarize(tmp_path).items() if name.startswith("sums-")]
    (row,) = rows_of(page[0])
    assert row["Norm. EM"] == 0.625  # 0.75 and 0.5
    assert "Norm. EM from" not in row
