"""The first reading of a file by real processes: what they find is what one finds, and what becomes of lost ones."""

import json
import os
import subprocess
import sys

import pytest
from processes import OFFLINE
from request_states_files import answered, state

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/engines", "src/helm_ext/formats/request_states", "src/helm_ext/files"),
]

SCRIPT = """
import multiprocessing, os, signal, sys
from helm_ext.formats import request_states
from helm_ext.formats.request_states import loading

def main():
    loading.KEPT_ROWS, loading.LEAST_BYTES, loading.PART_BYTES = 20, 1, 3000
    merge, merged, killed = loading.Profile.merge, [], []

    def merge_and_kill(self, other):
        merged.append(other)
        workers = multiprocessing.active_children()
        if len(merged) == 3 and workers and "kill" in sys.argv:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.append(workers[0].pid)
        merge(self, other)

    loading.Profile.merge = merge_and_kill
    try:
        evalset = request_states.load(sys.argv[1], by=["kind"])
    except Exception as error:
        print(type(error).__name__, error)
        return
    for name, value in vars(evalset).items():
        if name not in ("instances", "places"):
            print(name, value)
    print(*evalset.places.positions)
    for instance in evalset.instances:
        print(instance)
    print(len(merged) > 10, bool(killed), file=sys.stderr)

if __name__ == "__main__":
    main()
"""

POISON = """
import os, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "helm_ext.formats.request_states.rows":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            read = module.RowReader.read

            def read_or_die(self, state):
                if state.value["instance"].get("id") == "r77":
                    os._exit(9)
                return read(self, state)

            module.RowReader.read = read_or_die

        spec.loader.exec_module = exec_module
        return spec

if "--multiprocessing-fork" in sys.orig_argv:
    sys.meta_path.insert(0, Finder())
"""


def make_rows(number):
    return [
        answered(
            state(f"What is {n % 145} plus 1?", str(n + 1), id=None if n == 190 else f"r{n % 180}",
                  split=("test", "train")[n % 10 == 9], extra_data={"kind": "zyx"[n // 50 % 3]}),
            str(n),
        )
        for n in range(number)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    lines = [{"adapter_spec": {"max_train_instances": 2}}, *make_rows(200)]
    (folder / "f.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "wrong.jsonl").write_text((folder / "f.jsonl").read_text() + '{"instance": 3}\n')
    (folder / "read.py").write_text(SCRIPT)
    (folder / "poison").mkdir()
    (folder / "poison" / "sitecustomize.py").write_text(POISON)
    return folder


def read(folder, name, workers, *arguments, path=""):
    """Read a file in a process of its own; return what it says, and of how it was done."""
    env = {**os.environ, **OFFLINE, "HELM_EXT_WORKERS": str(workers)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [path, env.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "read.py", name, *arguments], cwd=folder, env=env, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_processes_find_what_one_finds(folder):
    """Each has a seed of its own for Python's hashes."""
    one, _ = read(folder, "f.jsonl", 1)
    two, how = read(folder, "f.jsonl", 2)
    assert two == one
    assert "True False" in how
    for word in ("no id, or that of an earlier row", "input"):
        assert word in one
    assert read(folder, "wrong.jsonl", 2)[0] == read(folder, "wrong.jsonl", 1)[0]


def test_a_row_that_ends_each_process_is_named(folder):
    said, _ = read(folder, "f.jsonl", 2, path=str(folder / "poison"))
    assert "BatchLostError lines 79 to 79: this batch ends each process that does it" in said
