"""People label answers on sheets: drawn with known chances, blind, and taken back onto the rows that they are of."""

import csv
import html
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import request_states_files as files
from browser import CHROMIUM, page_text
from judge_commands import find_run, read_judgements, run
from scipy.stats import chisquare

from helm_ext.cli import judge_runs
from helm_ext.judging.sheets import allocate, draw

pytestmark = pytest.mark.long

ROWS, FAILED = 61, 12
"""The judge fails the first twelve answers, and says nothing of the last one."""

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
FORMULA = '=HYPERLINK("http://x","y")'


def judged(n, **more):
    verdict = {"value": int(n >= FAILED)} if n < ROWS - 1 else {"status": "unparsed"}
    return {"by": "org/judge", "kind": "model", "criterion": "correct", "scale": [0, 1], **verdict, **more}


def write(path, judgements=lambda n: [judged(n)], mark=""):
    texts = {0: HOSTILE, 1: FORMULA}
    states = [
        files.answered(
            files.state(f"What is {n} + 1?", str(n + 1), id=f"r{n}", split="test",
                        extra_data={"helm_ext": {"judgements": judgements(n)}}),
            texts.get(n, f"It is {n + 1}{mark}."),
        )
        for n in range(ROWS)
    ]  # fmt: skip
    files.write(path, states, name="sums")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(folder / "sums.json")
        run("score", "sums.json", "--model", "secret-model")
    return folder


@pytest.fixture
def folder(scored, tmp_path, monkeypatch):
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_sheet(name="sheet.csv"):
    with Path(name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_back(rows, name="sheet.csv", delimiter=","):
    with Path(name).open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def draw_and_label(*arguments):
    """Draw a sheet, and say that all answers are right."""
    run("judge", "sheet", *arguments)
    rows = [{**row, "label": "1"} for row in read_sheet()]
    write_back(rows)
    return rows


def read_labels(folder):
    found = read_judgements(folder)
    return {key: [one for one in said if one["kind"] == "human"] for key, said in found.items()}


def test_a_sheet_is_blind_and_its_labels_know_their_chances(folder):
    said = run("judge", "sheet", find_run(), "-n", 20)
    assert "20 answers to label: correct, drawn by verdict" in said
    assert "  0: 10 of 12\n  1: 10 of 48\n" in said  # equal numbers of both verdicts, none of what has no verdict
    rows = read_sheet()
    assert list(rows[0]) == ["item", "question", "reference", "answer", "label"]
    for name in ("sheet.csv", "sheet.html"):
        text = Path(name).read_text(encoding="utf-8-sig")
        assert not re.findall(r"secret-model|org/judge|recorded|verdict|unparsed|r1\b", text)
    numbers = [int(row["question"].split()[2]) for row in rows]
    assert numbers != sorted(numbers)
    assert [int(row["item"].split("-")[1]) for row in rows] == list(range(1, 21))
    assert all(not row["label"] for row in rows)
    assert all(row["answer"][0] not in "=+-@" for row in rows)
    before = Path("sheet.draw.json").read_text()
    assert "a sheet is there already" in run("judge", "sheet", find_run(), "-n", 20, code=1)
    run("judge", "sheet", find_run(), "-n", 20, "--out", "again")
    assert Path("again.draw.json").read_text() == before  # one seed, one draw
    assert "no label, so no run is made" in run("judge", "labels", "sheet.csv", find_run(), code=1)
    for number, row in enumerate(rows[:-1]):  # one is not labelled
        row["label"] = ["1", "0", "yes", "no"][number % 4]
    write_back(rows[::-1], delimiter=";")  # as a spreadsheet in Germany saves it, in another order
    said = run("judge", "labels", "sheet.csv", find_run())
    assert "sheet.csv: 19 labels, 1 without one" in said
    labels = read_labels(find_run("judged"))
    assert sum(map(len, labels.values())) == 19
    for number, row in enumerate(rows[:-1]):
        n = int(row["question"].split()[2])
        [one] = labels[f"r{n}"]
        assert one["value"] == [1, 0][number % 2]
        assert one["by"] == "rater A"
        stratum, p = ("1", 10 / 48) if n >= FAILED else ("0", 10 / 12)
        draw_of = row["item"].partition("-")[0]
        assert one["drawn"] == {"design": "by_verdict", "stratum": stratum, "p": pytest.approx(p), "draw": draw_of}
    # Labels stay when the same sheet comes again, once each, and when the run is judged again.
    run("judge", "labels", "sheet.csv", find_run("judged"))
    assert sum(map(len, read_labels(find_run("judged", -1)).values())) == 19


@pytest.mark.parametrize("design", ["random", "by_verdict", "disagreements"])
def test_a_further_sheet_has_other_answers_and_counts_with_the_first(folder, design):
    """With the same seed, two sheets of 20 are one of 40: the same rows, chances and corrected score."""

    def label(run_of, suite, *arguments):
        said = run("judge", "sheet", run_of, "--design", design, *arguments)
        asked = read_sheet(f"{arguments[-1]}.csv")
        write_back([{**row, "label": len(row["question"]) % 2} for row in asked], f"{arguments[-1]}.csv")
        scored = run("judge", "labels", f"{arguments[-1]}.csv", run_of, "--suite", suite)
        return said, {row["question"] for row in asked}, re.findall("(?m)^.*corrected.*$", scored)

    _, whole, expected = label(find_run(), "once", "-n", 40, "-o", "whole")
    _, first, _ = label(find_run(), "twice", "-n", 20, "-o", "first")
    said, second, found = label(find_run("twice"), "twice", "-n", 20, "-o", "second")
    assert "20 have labels already, and are left out" in said
    assert (first | second, len(first & second)) == (whole, 0)
    assert expected
    assert found == expected
    rows = json.loads(Path("second.draw.json").read_text())["rows"]
    left = {"0": 2 / 2, "1": 18 / 38, "all": 20 / 40}
    assert all(row["p"] == pytest.approx(left[row["stratum"]]) for row in rows)


def test_every_answer_has_the_chance_that_is_recorded():
    strata = {"0": range(5), "1": range(5, 40)}
    counted = Counter(key for seed in range(2000) for key in draw(strata, 10, seed))
    assert [counted[key] for key in range(5)] == [2000] * 5
    rest = [counted[key] for key in range(5, 40)]
    assert sum(rest) == 2000 * 5
    assert chisquare(rest).pvalue > 1e-4  # seeds are fixed: no test of luck
    assert {p for _, p in draw(strata, 10, 1).values()} == {1.0, 5 / 35}
    assert allocate({"a": 2, "b": 100, "c": 100}, 11) == {"a": 2, "b": 5, "c": 4}
    assert allocate({"a": 2, "b": 1}, 100) == {"a": 2, "b": 1}


def test_raters_share_one_answer_in_five(folder):
    run("judge", "sheet", find_run(), "-n", 20, "--raters", 2, "--design", "random")
    sheets = [read_sheet(f"sheet-{rater}.csv") for rater in (1, 2)]
    items = [{row["item"][:-2] for row in rows} for rows in sheets]
    assert [len(one) for one in items] == [12, 12]
    assert len(items[0] & items[1]) == 4
    for value, rows in zip("10", sheets, strict=True):
        for row in rows:
            row["label"] = value
        write_back(rows, f"sheet-{2 - int(value)}.csv")
    assert "--by names one" not in run("judge", "labels", "sheet-1.csv", "sheet-2.csv", find_run())
    labels = [one for row in read_labels(find_run("judged")).values() for one in row]
    assert Counter(one["by"] for one in labels) == {"rater A": 12, "rater B": 12}
    assert {one["drawn"]["p"] for one in labels} == {20 / 60}


def test_two_runs_are_drawn_where_they_differ(folder):
    write(folder / "other.json", lambda n: [judged(n, value=int(n % 2), status="ok")], mark="!")
    run("score", "other.json", "--model", "second-model", "--suite", "t")
    runs = find_run(), find_run("t")
    said = run("judge", "sheet", *runs, "-n", 40, "--design", "disagreements")
    assert "40 answers to label" in said  # 20 questions, both answers
    assert "  0, 0: 10 of 12\n  0, 1: 10 of 12\n  1, 0: 10 of 48\n  1, 1: 10 of 48\n" in said
    rows = read_sheet()
    assert len({row["question"] for row in rows}) == 20
    write_back([{**row, "label": "1"} for row in rows])
    run("judge", "labels", "sheet.csv", *runs, "--by", "Ada", "--main-metric", "exact_match")
    said = run("judge", "labels", "sheet.csv", *runs, "--by", "Ada")  # what was judged is the main metric
    assert not re.search("stale|mean of", said), "of a run that goes"
    assert len([*Path("benchmark_output/runs/judged").glob("*:*")]) == 2  # not a run for each main metric
    # People call all right: the judge's raw difference goes, whichever side it favours.
    said = run("compare", "benchmark_output/runs/judged")
    assert ": judge_correct_corrected\n" in said
    assert "corrected by 20 labels" in said
    found = [read_labels(find_run("judged", number)) for number in (0, 1)]
    assert [sum(map(len, one.values())) for one in found] == [20, 20]
    assert "is of one run" in run("judge", "sheet", *runs, "--design", "random", "--out", "x", code=1)


def test_two_judges_are_drawn_where_they_differ(folder):
    write(folder / "jury.json", lambda n: [judged(n), judged(n, by="org/other", value=n % 2, status="ok")])
    run("score", "jury.json", "--model", "m", "--suite", "jury")
    said = run("judge", "sheet", find_run("jury"), "-n", 20, "--design", "disagreements", "--out", "jury")
    # The last answer has the verdict of the second judge alone: none of the jury's, which its label would count for.
    assert "  0, 0: 5 of 6\n  0, 1: 5 of 6\n  1, 0: 5 of 24\n  1, 1: 5 of 24\n" in said
    assert "none" not in said
    said = run("judge", "sheet", find_run("jury"), "-n", 20, "--out", "votes")
    assert "  0 of 2: 6 of 6\n  1 of 2: 7 of 30\n  2 of 2: 7 of 24\n" in said
    write_back([{**row, "label": "1"} for row in read_sheet("votes.csv")], "votes.csv")
    Path("others.json").write_text(Path("sums.json").read_text().replace("What is", "Say"))
    run("score", "others.json", "--model", "m", "--suite", "others")
    said = run("judge", "labels", "votes.csv", find_run("others"), code=1)
    assert "none of its 20 labels is of an answer of adapter_spec:path=others.json" in said
    assert said.count("others.json") == 1


@pytest.mark.parametrize(("change", "message"), [
    (lambda rows: rows.append(dict(rows[0])), r"sheet.csv:12: item: \w+-0001-A stands in line 2 already"),
    (lambda rows: rows[3].update(label="maybe"), 'sheet.csv:5: label: expected 0 or 1, no or yes, got "maybe"\n  hint: leave it'),
    (lambda rows: rows[3].update(label="0.5"), "sheet.csv:5: label: expected 0 or 1"),
    (lambda rows: rows[9].update(item=rows[9]["item"][:-6] + "9999-A"), r'sheet.csv:11: item: "\w+-9999-A" is no row'),
    (lambda rows: [row.pop("label") for row in rows], "sheet.csv:1: no column label"),
])  # fmt: skip
def test_what_is_wrong_with_a_sheet_is_said(folder, change, message):
    rows = draw_and_label(find_run(), "-n", 10)
    change(rows)
    write_back(rows)
    assert re.search(message, run("judge", "labels", "sheet.csv", find_run(), code=1))
    assert not Path("benchmark_output/runs/judged").exists()


def test_labels_of_answers_that_have_changed_are_refused(folder):
    rows = draw_and_label(find_run(), "-n", 10, "--design", "random")
    n = next(n for row in rows if (n := int(row["question"].split()[2])) > 1)
    state = find_run() / "scenario_state.json"
    state.write_text(state.read_text().replace(f"It is {n + 1}.", "It is so."))
    said = run("judge", "labels", "sheet.csv", find_run(), code=1)
    assert f'question or answer of row "r{n}" has changed since the sheet was drawn' in said
    state.write_text(state.read_text().replace('"It is ', '"It was '))
    said = run("judge", "labels", "sheet.csv", find_run(), code=1)
    assert "draw a sheet of the run as it is now" in said
    assert "none of its" not in said


def test_labels_of_some_rows_are_none_of_a_run_that_has_more(folder):
    """Of rows that could not be drawn, such labels would say nothing."""
    whole = json.loads(Path("sums.json").read_text())
    Path("part.json").write_text(json.dumps({**whole, "request_states": whole["request_states"][:40]}))
    run("score", "part.json", "--model", "secret-model", "--suite", "part")
    draw_and_label(find_run("part"), "-n", 20, "--design", "random")
    said = run("judge", "labels", "sheet.csv", find_run(), code=1)
    assert "it was drawn from 40 answers, and" in said
    assert f"has {ROWS}" in said
    assert "20 labels" in run("judge", "labels", "sheet.csv", find_run("part"))


def test_a_run_with_labels_does_not_go_for_one_without(folder):
    draw_and_label(find_run(), "-n", 10)
    run("judge", "labels", "sheet.csv", find_run())
    Path("mine.csv").write_text("id,label\nr5,1\n")
    mine = "judge", "labels", "mine.csv", "--by", "Bob", "--design", "random"
    [file] = Path("benchmark_output/judged").iterdir()
    before = file.read_bytes()
    assert "lacks: correct by rater A" in run(*mine, find_run(), code=1)
    assert sum(map(len, read_labels(find_run("judged")).values())) == 10
    run(*mine, find_run(), "--suite", "other")  # the way out that the refusal names
    assert file.read_bytes() == before
    shutil.rmtree(find_run("judged"))  # the file alone has the labels now
    assert "lacks: correct by rater A" in run(*mine, find_run(), code=1)
    run("judge", "labels", "sheet.csv", find_run())
    run(*mine, find_run("judged"))
    assert sum(map(len, read_labels(find_run("judged")).values())) == 11


def test_labels_of_other_answers_by_the_same_person_are_not_lost(folder):
    draw_and_label(find_run(), "-n", 10)
    run("judge", "labels", "sheet.csv", find_run())
    write(folder / "sums.json", mark=" again")
    run("score", "sums.json", "--model", "secret-model", "--suite", "again")
    Path("mine.csv").write_text("id,label\n" + "".join(f"r{n},1\n" for n in range(ROWS)))
    mine = "judge", "labels", "mine.csv", "--by", "rater A", "--design", "random", "--criterion", "correct"
    assert "lacks: correct by rater A" in run(*mine, find_run("again"), code=1)
    assert sum(map(len, read_labels(find_run("judged")).values())) == 10


def test_labels_go_on_where_a_run_that_goes_was_removed_by_half(folder, monkeypatch):
    draw_and_label(find_run(), "-n", 10)
    run("judge", "labels", "sheet.csv", find_run(), "--main-metric", "exact_match")

    def killed(path):
        (path / "scenario_state.json").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(judge_runs, "shutil", SimpleNamespace(rmtree=killed))
        run("judge", "labels", "sheet.csv", find_run(), code=1)
    assert len([*Path("benchmark_output/runs/judged").glob("*:*")]) == 2
    run("judge", "labels", "sheet.csv", find_run())
    assert sum(map(len, read_labels(find_run("judged")).values())) == 10
    assert len([*Path("benchmark_output/runs/judged").glob("*:*")]) == 1


def test_labels_made_elsewhere_correct_nothing_without_their_design(folder):
    rows = [{"id": f"r{n}", "label": str(n % 2), "answer": f" It is {n + 1}.\n"} for n in range(2, 32)]
    write_back(rows, "mine.csv")
    said = run("judge", "labels", "mine.csv", find_run())
    assert "how their rows were chosen is not known" in said
    labels = read_labels(find_run("judged"))
    assert all("drawn" not in one for row in labels.values() for one in row)
    run("judge", "labels", "mine.csv", find_run(), "--design", "by_verdict", "--by", "Ada", "--suite", "known")
    labels = read_labels(find_run("known"))
    assert labels["r2"][0]["drawn"] == {"design": "by_verdict", "stratum": "0", "p": 10 / 12}
    assert labels["r20"][0]["drawn"] == {"design": "by_verdict", "stratum": "1", "p": 20 / 48}
    assert "'randm' is not one of" in run("judge", "labels", "mine.csv", find_run(), "--design", "randm", code=2)
    rows[3]["answer"] = "something else"
    write_back([*rows, {"id": "nobody", "label": "1", "answer": ""}], "mine.csv")
    said = run("judge", "labels", "mine.csv", find_run(), "--design", "random", code=1)
    assert 'mine.csv:8: answer: the answer of row "r5" is another one' in said
    assert 'mine.csv:61: id: "nobody": no row of the run' in said


# The page, in a browser

DRIVER = """
<script>
addEventListener("load", async () => {
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const said = [];
  const look = () => said.push(document.getElementById("said").textContent);
  look();
  if (!localStorage.length) {
    press("1"); press("2"); press("2"); look();
    press("u"); look();
    press("ArrowRight"); press("ArrowLeft"); press("9"); press("x"); look();
    press("ArrowLeft"); press("2");
    press("n");
    while (!document.getElementById("said").textContent.includes("All are labelled") && said.length < 40) { press("1"); }
    look();
  }
  let made;
  URL.createObjectURL = (blob) => { made = blob; return "#"; };
  document.getElementById("download").click();
  const text = await made.text();
  const out = document.createElement("div");
  out.id = "out";
  out.textContent = JSON.stringify({ said, text, title: document.title, buttons: document.querySelectorAll("#values button").length });
  document.body.append(out);
});
</script>
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_people_label_on_the_page_with_the_keyboard(folder):
    run("judge", "sheet", find_run(), "-n", 60, "--design", "random")
    page = folder / "sheet.html"
    text = page.read_text()
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="', text)
    assert HOSTILE not in text
    (folder / "driven.html").write_text(text.replace("</body>", f"{DRIVER}</body>"))

    def look():
        shown = page_text((folder / "driven.html").as_uri(), folder / "profile", 5000)
        return json.loads(html.unescape(re.search(r'<div id="out">(.*?)</div>', shown, re.DOTALL)[1]))

    first = look()
    assert first["title"] == "60 answers to label: correct"  # nothing of an answer's ran
    assert first["buttons"] == 2
    assert first["said"][:4] == [
        "Answer 1 of 60, 0 labelled.",
        "Answer 4 of 60, 3 labelled.",
        "Answer 3 of 60, 2 labelled.",
        "Answer 3 of 60, 2 labelled.",
    ]
    assert "60 labelled. All are labelled" in first["said"][4]
    again = look()  # the browser has kept what was done
    assert "60 labelled" in again["said"][0]
    assert again["text"] == first["text"]
    drawn = read_sheet()
    Path("labelled.csv").write_bytes(first["text"].encode("utf-8"))
    rows = read_sheet("labelled.csv")
    assert [{**row, "label": ""} for row in rows] == drawn  # the same rows and texts, hostile ones included
    assert [row["label"] for row in rows[:3]] == ["1", "0", "1"]
    assert "labelled.csv: 60 labels" in run("judge", "labels", "labelled.csv", find_run())
