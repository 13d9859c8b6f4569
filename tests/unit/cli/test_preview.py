"""What HELM's adapter cannot do, and a tokenizer that cannot be loaded, are errors that say what HELM said."""

import re

import pytest
from commands import run
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from request_states_files import split_rows, write

from helm_ext.cli.validate import PREVIEW_DEPLOYMENT, adapt
from helm_ext.errors import HelmExtError
from helm_ext.planning.run_specs import get_run_spec


class BrokenAdapter:
    def adapt(self, instances, parallelism):
        raise ValueError(f"Sample larger than population, {len(instances)} rows, {parallelism} thread")


@pytest.mark.parametrize("deployment", [PREVIEW_DEPLOYMENT, "org/model"])
def test_what_helms_adapter_cannot_do_is_said(tmp_path, monkeypatch, deployment):
    from dataclasses import replace

    monkeypatch.setattr(AdapterFactory, "get_adapter", lambda *_: BrokenAdapter())
    path = write(tmp_path / "x.json", split_rows(4, train=2), {"max_train_instances": 1})
    run_spec = get_run_spec("adapter_spec", {"path": str(path)})
    run_spec = replace(run_spec, adapter_spec=replace(run_spec.adapter_spec, model_deployment=deployment))
    with pytest.raises(HelmExtError) as caught:
        adapt(run_spec, 1)
    said = f"{deployment}: HELM cannot make the prompts: Sample larger than population, 3 rows, 1 thread"
    assert str(caught.value).startswith(said)
    assert ("leave out --model" in str(caught.value)) == (deployment != PREVIEW_DEPLOYMENT)


def test_of_several_outputs_the_first_is_shown(tmp_path):
    """All were asked the same."""
    table = tmp_path / "t.csv"
    table.write_text("question,gold,alpha,beta\n1+1?,2,It is 2.,2\n2+2?,4,4 it is.,4\n")
    shown = run("preview", table, "--arg", "output=alpha+beta").stdout
    assert "runs      recorded: one run for each of alpha, beta" in shown
    assert shown.count("──── row") == 2


def test_of_a_table_of_answers_the_answers_are_shown_and_no_request(tmp_path):
    """Nobody is asked anything, and what was asked stands in no table: no temperature, no limit of tokens."""
    table = tmp_path / "t.csv"
    table.write_text("question,A,B,answer,gpt\nWarmer?,ice,fire,B,It is B.\nColder?,ice,fire,A,\n")
    given = ("--arg", "output=gpt", "--arg", "empty=not_run")
    shown = run("preview", table, *given).stdout
    assert "Warmer?\n──── end of question\nrecorded: 'It is B.'\nexpected: 'B' = 'fire'\n" in shown
    assert "recorded: nothing (not_run)\nexpected: 'A' = 'ice'\n" in shown
    assert not re.search("max_tokens|temperature|demonstrations", shown)
    assert "max_tokens=5" in run("preview", table, "--arg", "question=question").stdout
