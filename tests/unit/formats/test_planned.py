"""What was read when a run was planned is what it is scored on, and waits only as long as it costs little."""

import pytest
from helm.benchmark.scenarios.scenario import create_scenario
from tests.request_states_files import state, write

from helm_ext.formats import planned, request_states
from helm_ext.planning import run_specs


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def plan(name: str, rows: int = 2, **arguments: int):
        write(tmp_path / f"{name}.json", [state(f"{name} {i}?", "yes") for i in range(rows)])
        return run_specs.get_run_spec("adapter_spec", {"path": f"{name}.json", **arguments}).scenario_spec

    return plan


@pytest.fixture
def loaded(monkeypatch):
    """The files that were read."""
    paths: list[str] = []
    load = request_states.load

    def spy(path, **options):
        paths.append(str(path))
        return load(path, **options)

    monkeypatch.setattr(request_states, "load", spy)
    return paths


def get_inputs(spec) -> list[str]:
    return [instance.input.text for instance in create_scenario(spec).get_instances("")]


def test_a_file_is_read_once(plan, loaded):
    spec = plan("a")
    assert get_inputs(spec) == ["a 0?", "a 1?"]
    assert loaded == ["a.json"]
    assert get_inputs(spec) == ["a 0?", "a 1?"]  # it does not wait a second time
    assert loaded == ["a.json", "a.json"]


def test_the_planned_bytes_are_scored(plan, tmp_path):
    spec = plan("a")
    (tmp_path / "a.json").unlink()
    assert get_inputs(spec) == ["a 0?", "a 1?"]


def test_other_arguments_are_another_dataset(plan, loaded):
    first, second = plan("a"), plan("a", seed=7)
    get_inputs(second)
    get_inputs(first)
    assert loaded == ["a.json", "a.json", "a.json"]  # `first` was planned before and not wanted: dropped


def test_little_waits(plan, loaded, monkeypatch):
    monkeypatch.setattr(planned, "MAX_WAITING", 5)
    specs = [plan("a", 4), plan("b", 2), plan("c", 1)]  # `a` is run first; 4 + 2 are too many
    for spec in specs:
        get_inputs(spec)
    assert loaded == ["a.json", "b.json", "c.json", "b.json"]


def test_the_first_may_be_large(plan, loaded, monkeypatch):
    monkeypatch.setattr(planned, "MAX_WAITING", 1)
    get_inputs(plan("a", 4))
    assert loaded == ["a.json"]


@pytest.mark.parametrize("most", [1, 100])
def test_what_was_skipped_does_not_wait_longer(plan, monkeypatch, most):
    """A large first dataset whose run was complete already; the next one's own was not kept, or was."""
    monkeypatch.setattr(planned, "MAX_WAITING", most)
    plan("a", 4)
    get_inputs(plan("b", 4))
    assert not planned._waiting
