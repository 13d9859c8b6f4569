"""Hints of `helm-ext preview` name what is wrong: the tokenizer only where it is the tokenizer."""

import pytest
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from request_states_files import split_rows, write

from helm_ext.cli.validate import adapt
from helm_ext.errors import HelmExtError
from helm_ext.planning.run_specs import get_run_spec


class Window:
    def __init__(self, error):
        self.error = error

    def fits_within_context_window(self, text):
        if self.error:
            raise self.error
        return bool(text)


class BrokenAdapter:
    def __init__(self, window_error):
        self.window_service = Window(window_error)

    def adapt(self, instances, parallelism):
        raise ValueError(f"Sample larger than population, {len(instances)} rows, {parallelism} thread")


def preview(tmp_path, monkeypatch, window_error):
    monkeypatch.setattr(AdapterFactory, "get_adapter", lambda *_: BrokenAdapter(window_error))
    path = write(tmp_path / "x.json", split_rows(4, train=2), {"max_train_instances": 1})
    with pytest.raises(HelmExtError) as caught:
        adapt(get_run_spec("adapter_spec", {"path": str(path)}), 1)
    return str(caught.value)


def test_what_helms_adapter_cannot_do_is_not_laid_to_the_tokenizer(tmp_path, monkeypatch):
    said = preview(tmp_path, monkeypatch, None)
    assert said == "HELM cannot make the prompts: ValueError: Sample larger than population, 3 rows, 1 thread"


def test_a_tokenizer_that_cannot_be_loaded(tmp_path, monkeypatch):
    said = preview(tmp_path, monkeypatch, OSError("no such model"))
    assert "its tokenizer cannot be used here" in said
    assert "hint: leave out --model" in said
