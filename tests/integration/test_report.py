"""The report is one file that needs nothing else, says the right numbers, and shows hostile texts as texts."""

import json
import re
import subprocess

import axe
import pytest
import request_states_files
from browser import CHROMIUM
from commands import run
from request_states_files import answered, choice

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def write(path, wrong):
    states = []
    for n in range(40):
        question = HOSTILE if n == 0 else f"Which number follows {n}?"
        row = choice(question, [str(n + 1), str(n + 2)], id=f"r{n}", level=["easy", "hard"][n % 2])
        said = {"text": "B" if n < wrong else "A", "logprob": -0.1, "tokens": [{"text": "A", "logprob": -0.1}]}
        states.append(answered(row, "", completions=[said]))
    spec = {"method": "generation", "max_train_instances": 0}
    request_states_files.write(path, states, spec, name="numbers $x$")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for model, wrong in (("org/<b>one<b>", 10), ("two", 20)):
        write(folder / "rows.json", wrong)
        arguments = ["score", folder / "rows.json", "--model", model, "-o", folder / "out", "--arg", "by=level"]
        run(*arguments)
    assert "2 runs of 1 dataset" in run("report", folder / "out", "-o", folder / "report.html").stdout
    return folder / "report.html"


def test_nothing_is_loaded_from_elsewhere(page):
    text = page.read_text()
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', text)
    assert "url(http" not in text


def test_numbers_are_those_of_the_runs(page):
    text = page.read_text()
    assert "0.750" in text
    assert "0.598 to 0.858" in text  # Wilson's of 30 of 40
    assert "0.500" in text
    assert "+0.250" in text
    # 10 rows of 40 are right for one alone: Tango's limits; 2 of 2^10 signs, and the only comparison of all rows.
    assert "+0.140 to +0.402; p 0.002, p (Holm) 0.002; 10 rows differ" in text
    # Each level: 5 rows of 20 flipped one way, none the other: p = 0.0625, and corrected for the other level more.
    assert "No slice tells two models apart at 5 %, corrected for the 2 comparisons of slices" in text
    assert re.search(r"Baseline: always the first option</th><td>1.000", text)
    assert "expected calibration error 0.155" in text  # exp(-0.1) = 0.905 against 0.75


def test_texts_of_others_are_never_markup(page):
    text = page.read_text()
    assert HOSTILE not in text
    assert "<b>one<b>" not in text
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert any(row["question"].startswith(HOSTILE) for row in data[0]["rows"])


def test_the_same_runs_make_the_same_page(page, tmp_path):
    again = tmp_path / "again.html"
    run("report", page.parent / "out", "-o", again)
    assert again.read_text() == page.read_text()


def test_a_sample_says_that_it_is_one(page, tmp_path):
    few = tmp_path / "few.html"
    run("report", page.parent / "out", "-o", few, "--rows", "5")
    data = json.loads(re.search(r'id="data">(.*?)</script>', few.read_text(), re.DOTALL)[1])
    assert len(data[0]["rows"]) == 5
    assert all(answer is not None for row in data[0]["rows"] for answer in row["answers"])
    assert data[0]["total"] == 40


@pytest.mark.nightly("src/helm_ext/analysis", "src/helm_ext/cli/convert")
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_shows_the_rows_and_runs_nothing_of_theirs(page, tmp_path):
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom",
            f"--user-data-dir={tmp_path}", page.as_uri(),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "40 of 40 rows" in done.stdout
    assert "<title>Evaluation: score</title>" in done.stdout


def test_each_main_metric_has_a_table_of_its_own(tmp_path):
    """Also of one dataset: a column holds one metric. Models' names may be TeX, which is text here."""
    write(tmp_path / "rows.json", 10)
    for model, metric in (("org/$x_$", "exact_match"), ("two", "prefix_exact_match")):
        output = ("-o", tmp_path / "out", "--arg", f"main_metric={metric}")
        run("score", tmp_path / "rows.json", "--model", model, *output)
    done = run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    assert "2 runs of 2 datasets" in done.stdout
    text = (tmp_path / "r.html").read_text()
    headings = re.findall(r'<h2 id="d\d+">(.*?)</h2>', text)
    assert [heading.rpartition(", ")[2] for heading in headings] == ["exact_match", "prefix_exact_match"]
    assert "org/$x_$</text>" in text


def test_options_that_are_requests_of_their_own_have_no_calibration(tmp_path):
    """The first of them is no answer, and its log-probability none of one."""
    states = []
    for n in range(10):
        for k in range(2):
            question, option = {"text": f"Which? {n}", "logprob": -0.5}, {"text": f" o{k}", "logprob": -0.5 - k}
            said = {"text": f"Which? {n} o{k}", "logprob": -1.0 - k, "tokens": [question, option]}
            row = answered(choice(f"Which? {n}", ["o0", "o1"], n % 2, id=f"r{n}"), "", completions=[said])
            states.append({**row, "reference_index": k, "request_mode": "original"})
    spec = {"method": "multiple_choice_separate_original", "max_train_instances": 0}
    request_states_files.write(tmp_path / "rows.json", states, spec)
    run("score", tmp_path / "rows.json", "--model", "m", "-o", tmp_path / "out")
    run("report", tmp_path / "out", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "0.500" in text
    assert "Calibration" not in text


@pytest.mark.nightly("src/helm_ext/analysis", "src/helm_ext/cli/convert")
@pytest.mark.skipif(bool(axe.WHY_NOT), reason=axe.WHY_NOT)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 768, 1280])
def test_axe_finds_nothing_and_nothing_is_cut_off(page, tmp_path, width, dark):
    found = axe.judge(page, tmp_path, width=width, dark=dark)
    assert (found["dark"], found["width"]) == (dark, width)
    assert found["violations"] == []
    assert found["passes"] > 20
    assert found["wide"] <= width
