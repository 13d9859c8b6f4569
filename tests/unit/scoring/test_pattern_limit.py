"""Regular expressions that come with data end a run, with an error that names them, rather than hang it."""

import json
import re
import signal
import time

import pytest
from request_states_files import answered, choice, state, write
from typer.testing import CliRunner

from helm_ext.cli import app
from helm_ext.scoring import bounded as patterns
from helm_ext.scoring.bounded import PatternTimeoutError, limit_pattern

HOPELESS = "(a+)+$"
TEXT = "a" * 100 + "b"


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(patterns, "PATTERN_SECONDS", 0.3)


def rows(make):
    return [answered(make(id=f"r{i}"), "x" if make is gold else TEXT) for i in range(3)]


def free(**instance):
    return state("q?", "mercury", **instance)


def gold(**instance):
    return state("q?", TEXT, **instance)


def labelled(**instance):
    return choice("q?", ["x", "y"], **instance)


@pytest.mark.long
@pytest.mark.parametrize(("make", "spec", "scoring"), [
    (free, {}, {"extract": HOPELESS}),
    (gold, {}, {"extract": HOPELESS, "extract_references": True}),
    (free, {"output_format": "list"}, {"extract_all": HOPELESS}),
    (labelled, {"output_mapping_pattern": HOPELESS}, {}),
    (labelled, {"output_mapping_pattern": HOPELESS}, {"metrics": ["quasi_exact_match"]}),  # HELM's own
], ids=["extract", "extract of references", "extract_all", "output_mapping_pattern", "metric of HELM's"])  # fmt: skip
def test_a_pattern_that_takes_too_long_ends_the_run(make, spec, scoring, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    more = {"scoring": scoring} if scoring else {}
    write(tmp_path / "x.json", rows(make), {"max_train_instances": 0, **spec}, **more)
    start = time.process_time()
    result = CliRunner().invoke(app, ["score", "x.json", "--model", "m"])
    assert time.process_time() - start < 60
    said = f"{result.output}{result.exception}"
    assert result.exit_code
    assert f"the regular expression {json.dumps(HOPELESS)} takes more than 0.3 seconds with a text of 101 " in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("stats.json"))


def test_the_limit_is_off_behind_the_block():
    before = signal.getsignal(signal.SIGVTALRM)
    with limit_pattern("a", "b"):
        pass
    start = time.process_time()
    while time.process_time() - start < 0.6:
        pass
    assert signal.getsignal(signal.SIGVTALRM) == before
    with pytest.raises(PatternTimeoutError), limit_pattern(HOPELESS, TEXT):
        re.search(HOPELESS, TEXT)


@pytest.mark.parametrize(("length", "most"), [(1, 4096), (patterns.SHORT + 1, 32)])
def test_only_so_many_texts_are_remembered(length, most):
    asked = []
    remembered = patterns.remember_short(asked.append)
    for number in (*range(most), 0, most, 0, 1):
        remembered(f"{number:>{length}}".ljust(length))
    assert len(asked) == most + 2  # 0 was asked for lately; 1 made room for the last one
