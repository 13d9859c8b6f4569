"""Files of a user's are changed as text: what is not the entry stays as it is, to the byte."""

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
    return NamedList(path, KEY)


def add(made):
    return made.changed(ENTRY["name"], ENTRY)


def test_a_file_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "prod_env" / "f.yaml"
    add(NamedList(path, KEY)).write()
    args = "        url: http://x/v1\n        omit:\n        - n\n"
    assert path.read_text() == (
        f"model_deployments:\n  - name: local/new\n    client_spec:\n      class_name: a.B\n      args:\n{args}"
    )
    assert [found.name for found in path.parent.iterdir()] == ["f.yaml"]


def test_an_entry_comes_after_the_others_and_all_else_stays(tmp_path):
    made = add(read(tmp_path, BY_HAND))
    before, after = BY_HAND.split("\n    # the end\n")
    assert made.text.startswith(before)
    assert made.text.endswith("\n    # the end\n" + after)
    assert yaml.safe_load(made.text)[KEY][2] == ENTRY
    assert "    - name: local/new\n      client_spec:\n" in made.text
    assert made.changed("local/new").text == BY_HAND


LAST = f"{KEY}:\n- name: a/b\n  args: &it {{x: 1}}\n- name: c/d\n  args: *it\n# the end\n"


@pytest.mark.parametrize(("text", "name", "left"), [
    (BY_HAND, "a/one", BY_HAND.replace(
        "    - name: 'a/one'\n      client_spec: {class_name: \"x.Y\", args: {n: 1}}   # a comment\n", ""
    )),
    (BY_HAND, "a/two", BY_HAND.replace(
        "    - name: a/two\n      note: |\n        # not a comment\n        text\n", ""
    )),
    (BY_HAND, "a/none", BY_HAND),
    ("model_deployments:\n- name: a/b", "local/new", "model_deployments:\n- name: a/b\n"),
    ("model_deployments:\n- {name: a/b, x: 1}\n- {name: c/d}\n- {name: a/b, x: 2}\n", "a/b",
     "model_deployments:\n- {name: c/d}\n"),
    (LAST, "c/d", LAST.replace("- name: c/d\n  args: *it\n", "")),  # ends with an alias
    ("model_deployments:  # all\n- name: a/b\n", "a/b", "model_deployments: []  # all\n"),
])  # fmt: skip
def test_entries_are_removed_with_their_own_lines(tmp_path, text, name, left):
    assert read(tmp_path, text).changed(name).text == left


def test_helm_takes_the_last_of_one_name(tmp_path):
    assert read(tmp_path, "model_deployments: [{name: a/b, x: 1}, {name: a/b, x: 2}]").get("a/b")["x"] == 2


@pytest.mark.parametrize("text", [
    "", "# nothing yet", "model_deployments:", "model_deployments: []\nx: 1\n", "x: 1", "model_deployments: null\n",
    "model_deployments: ~   # none\nx: 1\n", "model_deployments: [ ]   # none\nx: 1\n",
])  # fmt: skip
def test_empty_lists(tmp_path, text):
    made = add(read(tmp_path, text))
    assert made.entries == [ENTRY]
    if "x: 1" in text:
        assert made.document["x"] == 1
    if "# nothing" in text:
        assert made.text.startswith("# nothing yet\n")
    assert text.count("# none") == made.text.count("# none")


@pytest.mark.parametrize(("text", "said"), [
    ("a: [", "f.yaml:1: not YAML: "),
    ("model_deployments: 3", "model_deployments: expected a list, got 3"),
    ("model_deployments:\n- 3", "model_deployments[0]: expected an entry with a name, got 3"),
    ("model_deployments:\n- nam: x", "model_deployments[0]: expected an entry with a name"),
    ("- a", 'expected model_deployments: and a list, got ["a"]'),
    ("a: !!python/object/apply:os.system ['true']", "not YAML"), ("a: " + "[" * 5000, "not YAML"),
    (b"a: \xff", "can't decode byte 0xff in position 3"),
])  # fmt: skip
def test_files_that_hold_no_such_list(tmp_path, text, said):
    with pytest.raises(HelmExtError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)


@pytest.mark.parametrize(("text", "name", "entry"), [
    ("[{name: a/b}]\n", "local/new", ENTRY), ("[{name: a/b}]\n", "a/b", None),
    ("\n- &a\n  name: a/b\n- <<: *a\n  name: c/d\n", "a/b", None),  # others lean on it
    ("\n- name: a/b\n  note: |\n    text\n    # text\n", "local/new", ENTRY),  # no comment
])  # fmt: skip
def test_what_is_left_alone(tmp_path, text, name, entry):
    with pytest.raises(HelmExtError, match="f.yaml: this file is written in a way(.|\n)*change it by hand"):
        read(tmp_path, f"{KEY}: {text}").changed(name, entry)


def test_permissions_stay(tmp_path):
    made = read(tmp_path, BY_HAND)
    os.chmod(made.path, 0o600)
    add(made).write()
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "prod_env").write_text("a file")
    with pytest.raises(HelmExtError, match="prod_env"):
        add(NamedList(tmp_path / "prod_env" / "f.yaml", KEY, "")).write()


def test_it_needs_no_helm():
    program = "import sys, helm_ext.clients.deployments as e; sys.exit('helm.benchmark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def made(name):
    return {
        METADATA: make_metadata(name, display_name=None, has_logprobs=False),
        DEPLOYMENTS: {"name": name, "client_spec": {"class_name": "x.Y"}},
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


def test_what_others_did_since_the_files_were_read(tmp_path):
    first, second = LocalModels(tmp_path), LocalModels(tmp_path)
    first.add(made("local/a"), replace=False)
    with pytest.raises(RunEntryError, match="local/a: is there already"):
        second.add(made("local/a"), replace=False)
    second.add(made("local/b"))
    first.remove("local/a")
    assert [entry["name"] for entry in LocalModels(tmp_path).deployments] == ["local/b"]
