"""Files of a user's are changed as text: what is not the entry stays as it is, to the byte."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest
import yaml

from helm_ext.clients.deployments import (
    DEPLOYMENTS,
    FILES,
    METADATA,
    LocalModels,
    NamedList,
    make_deployment,
    make_metadata,
)
from helm_ext.errors import HelmExtError, RunEntryError

KEY = "model_deployments"
ENTRY = {"name": "local/new", "client_spec": {"class_name": "a.B", "args": {"url": "http://x/v1", "omit": ["n"]}}}
BY_HAND = """\
# Our models.   Do not touch!

model_deployments:   # two of them
    - name: 'a/one'
      client_spec: {class_name: "x.Y", args: {n: 1}}   # a comment
    # the next one is slow
    - name: a/two
      note: |
        # not a comment
        text

    # the end

other: 1
"""


def read(tmp_path, text):
    path = tmp_path / "f.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return NamedList.read(path, KEY)


def test_a_file_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "prod_env" / "f.yaml"
    NamedList.read(path, KEY).with_entry(ENTRY).write()
    assert path.read_text() == (
        "model_deployments:\n"
        "  - name: local/new\n"
        "    client_spec:\n"
        "      class_name: a.B\n"
        "      args:\n"
        "        url: http://x/v1\n"
        "        omit:\n"
        "        - n\n"
    )
    assert [found.name for found in path.parent.iterdir()] == ["f.yaml"]


def test_an_entry_comes_after_the_others_and_all_else_stays(tmp_path):
    made = read(tmp_path, BY_HAND).with_entry(ENTRY).text
    before, after = BY_HAND.split("\n    # the end\n")
    assert made.startswith(before)
    assert made.endswith("\n    # the end\n" + after)
    assert yaml.safe_load(made)[KEY][2] == ENTRY
    assert "    - name: local/new\n      client_spec:\n" in made


def test_adding_and_removing_leaves_the_file_as_it_was(tmp_path):
    assert read(tmp_path, BY_HAND).with_entry(ENTRY).without("local/new").text == BY_HAND


def test_an_entry_is_removed_with_its_own_lines(tmp_path):
    assert read(tmp_path, BY_HAND).without("a/one").text == BY_HAND.replace(
        "    - name: 'a/one'\n      client_spec: {class_name: \"x.Y\", args: {n: 1}}   # a comment\n", ""
    )
    made = read(tmp_path, BY_HAND).without("a/two")
    assert [entry["name"] for entry in made.entries] == ["a/one"]
    assert made.text.endswith("\n\n    # the end\n\nother: 1\n")


def test_the_last_entry_leaves_an_empty_list(tmp_path):
    made = read(tmp_path, BY_HAND).without("a/one").without("a/two")
    assert yaml.safe_load(made.text) == {KEY: [], "other": 1}
    assert "# Our models." in made.text
    assert yaml.safe_load(made.with_entry(ENTRY).text) == {KEY: [ENTRY], "other": 1}


def test_entries_of_one_name_go_together(tmp_path):
    text = "model_deployments:\n- {name: a/b, x: 1}\n- {name: c/d}\n- {name: a/b, x: 2}\n"
    made = read(tmp_path, text)
    assert made.get("a/b") == {"name": "a/b", "x": 2}  # HELM takes the last one
    assert made.without("a/b").text == "model_deployments:\n- {name: c/d}\n"


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing yet", "model_deployments:", "model_deployments: []\nx: 1\n", "x: 1", "model_deployments: null\n",
        "model_deployments: ~   # none\nx: 1\n", "model_deployments: [ ]   # none\nx: 1\n",
    ],
)  # fmt: skip
def test_empty_lists(tmp_path, text):
    made = read(tmp_path, text).with_entry(ENTRY)
    assert made.entries == [ENTRY]
    if "x: 1" in text:
        assert made.document["x"] == 1
    if "# nothing" in text:
        assert made.text.startswith("# nothing yet\n")
    assert text.count("# none") == made.text.count("# none")


def test_a_file_that_ends_within_a_line(tmp_path):
    made = read(tmp_path, "model_deployments:\n- name: a/b").with_entry(ENTRY)
    assert [entry["name"] for entry in made.entries] == ["a/b", "local/new"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "f.yaml:1: not YAML: "),
        ("model_deployments: 3", "model_deployments: expected a list, got 3"),
        ("model_deployments:\n- 3", "model_deployments[0]: expected an entry with a name, got 3"),
        ("model_deployments:\n- nam: x", "model_deployments[0]: expected an entry with a name"),
        ("- a", 'expected model_deployments: and a list, got ["a"]'),
        ("a: !!python/object/apply:os.system ['true']", "not YAML"),
        ("a: " + "[" * 5000, "not YAML"),
        (b"a: \xff", "can't decode byte 0xff in position 3"),
    ],
)
def test_files_that_hold_no_such_list(tmp_path, text, said):
    with pytest.raises(HelmExtError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)


def test_a_list_in_brackets_is_left_alone(tmp_path):
    made = read(tmp_path, "model_deployments: [{name: a/b}]\n")
    for change in (lambda: made.with_entry(ENTRY), lambda: made.without("a/b")):
        with pytest.raises(HelmExtError, match="f.yaml:1: the list is in brackets"):
            change()


def test_an_entry_that_others_lean_on_is_left_alone(tmp_path):
    text = "model_deployments:\n- &a\n  name: a/b\n- <<: *a\n  name: c/d\n"
    with pytest.raises(HelmExtError, match="change it by hand"):
        read(tmp_path, text).without("a/b")


def test_permissions_stay(tmp_path):
    made = read(tmp_path, BY_HAND)
    os.chmod(made.path, 0o600)
    made.with_entry(ENTRY).write()
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "prod_env").write_text("a file")
    with pytest.raises(HelmExtError, match="prod_env"):
        NamedList(tmp_path / "prod_env" / "f.yaml", KEY, "").with_entry(ENTRY).write()


def test_a_text_whose_end_looks_like_a_comment_is_left_alone(tmp_path):
    with pytest.raises(HelmExtError, match="change it by hand"):
        read(tmp_path, f"{KEY}:\n- name: a/b\n  note: |\n    text\n    # text\n").with_entry(ENTRY)


def test_an_entry_that_ends_with_an_alias(tmp_path):
    text = f"{KEY}:\n- name: a/b\n  args: &it {{x: 1}}\n- name: c/d\n  args: *it\n# the end\n"
    made = read(tmp_path, text).with_entry(ENTRY)
    assert made.text.endswith("\n# the end\n")
    assert made.without("c/d").without("local/new").text == text.replace("- name: c/d\n  args: *it\n", "")


def test_it_needs_no_helm():
    program = "import sys, helm_ext.clients.deployments as e; sys.exit('helm.benchmark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


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
