import threading

import pytest

from helm_ext.clients.deployments.entries import (
    DEPLOYMENTS,
    FILES,
    METADATA,
    LocalModels,
    make_deployment,
    make_metadata,
)
from helm_ext.errors import RunEntryError


def made(name):
    return {
        METADATA: make_metadata(name, display_name=None, has_logprobs=False),
        DEPLOYMENTS: make_deployment(name, class_name="x.Y", args={"base_url": "http://localhost:1/v1"}),
    }


def test_of_eight_who_add_at_once_each_is_kept(tmp_path):
    """All have read the files before the first one writes."""
    ready = threading.Barrier(8)

    def add(name):
        models = LocalModels(tmp_path)
        ready.wait()
        models.add(made(name))

    threads = [threading.Thread(target=add, args=(f"local/m{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = LocalModels(tmp_path)
    for key in (METADATA, DEPLOYMENTS):
        assert sorted(entry["name"] for entry in found.lists[key].entries) == [f"local/m{i}" for i in range(8)]
    assert {path.name for path in tmp_path.iterdir()} <= {*FILES.values(), ".helm-ext.lock"}


def test_a_name_that_was_free_when_the_files_were_read(tmp_path):
    first, second = LocalModels(tmp_path), LocalModels(tmp_path)
    first.add(made("local/m"), replace=False)
    with pytest.raises(RunEntryError, match="local/m: is there already"):
        second.add(made("local/m"), replace=False)


def test_what_others_added_stays_when_one_is_removed(tmp_path):
    models = LocalModels(tmp_path)
    models.add(made("local/a"))
    LocalModels(tmp_path).add(made("local/b"))
    models.remove("local/a")
    assert [entry["name"] for entry in LocalModels(tmp_path).deployments] == ["local/b"]
