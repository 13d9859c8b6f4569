"""The first reading of a file in parts, wherever it is cut: all that is known of it is what one reading knows."""

import gzip
import hashlib
import itertools
import json
import pickle
import random

import pytest
from request_states_files import answered, choice, reference, state

from helm_ext.engines import engine as engines
from helm_ext.errors import DatasetError, Problems
from helm_ext.evalset.rows import Unrecorded
from helm_ext.files.content import Hashing
from helm_ext.files.store import RowStore
from helm_ext.formats import request_states
from helm_ext.formats.request_states import loading
from helm_ext.formats.request_states.reading import Lines, Span, open_file


def compared(text, **likelihoods):
    made = [{"text": option, "logprob": logprob} for option, logprob in likelihoods.items()]
    return {**choice(text, list(likelihoods)), "likelihoods": made}


def header(spec=None, **top):
    return json.dumps({"adapter_spec": {"max_train_instances": 0, **(spec or {})}, **top}).encode()


def lines(*rows):
    return [json.dumps(row).encode() for row in rows]


def ask(number, **instance):
    return state(f"What is {number} plus {number}?", str(2 * number), **instance)


def asks(*ids):
    """Return lines of rows with these ids; `...` for none."""
    return lines(*(ask(n, **({} if one is ... else {"id": one})) for n, one in enumerate(ids, 1)))


def failed(row):
    return {**row, "request": {"result": {"success": False}}}


CHANGED = {"name": "lowercase", "robustness": True, "fairness": False, "computed_on": "perturbed"}
MAPPED = {"B": "tin", "A": "gold"}
NINE = {"text": "9", "logprob": -0.5}


def untagged(text, answer, number):
    return {"instance": {"input": {"text": text}, "references": [{"output": {"text": answer}}], "id": number}}


def tin_or_gold(number, **more):
    """A question of two options, of which every second row means the second."""
    return choice(f"Which is {number}?", ["tin", "gold"], number % 2, id=str(number), **more)


FILES = {
    "ids": [
        *asks("a", ..., "b", "a", "id1", 7, "7", "b", "", "b-2", "b"),
        *(json.dumps(ask(n, id="a", perturbation=CHANGED)).encode() for n in (12, 13)),
        *asks("q", 1 << 70),
    ],
    "an id that is repeated late": asks(*(f"r{n}" for n in range(8)), "r2", "r7"),
    "one without an id": asks("a", "b", "c", ...),
    "splits": lines(
        ask(1, id="1", split="test"),
        answered(ask(2, id="2", split="train"), "4"),
        ask(3, id="3"),
        ask(2, id="4", split="test"),
        ask(4, id="5", split="train"),
        ask(5, id="6", split="valid"),
        ask(4, id="7", split="dev"),
        ask(4, id="8", split="train", chain_of_thought="Count."),
    ),
    "train rows alone": lines(*(ask(n, id=str(n), split="train") for n in range(4)), failed(ask(4, split="train"))),
    "recordings": lines(
        answered(ask(1, id="1"), "2"),
        ask(2, id="2"),
        failed(ask(3, id="3")),
        answered(ask(4, id="4"), ""),
        answered(ask(5, id="5"), "9", completions=[{**NINE, "tokens": [NINE]}]),
        failed(ask(6, id="6")),
        answered(ask(7, id="7"), "14"),
    ),
    "stray keys": lines(
        answered({**ask(1, id="1"), "output": "2"}, "2"),
        {**ask(2, id="2"), "output": "4"},
        answered({**ask(3, id="3"), "output": "6"}, "6"),
        {**ask(4, id="4", tag="x"), "note": 1, "reqest": []},
        answered({**ask(5, id="5", tag="y"), "reqest": 1, "note": 2}, "10"),
        {**ask(6, id="6"), "output": "12"},
    ),
    "texts": lines(
        state("Input: One?", "1", id="1"),
        state("Two?", "", id="2"),
        state("Input: Three?\nOutput:", "3", id="3"),
        untagged("Four?", "4", "4"),
        state("Five?", "5\n\nQ", id="5"),
        state("Six?", id="6", references=[reference("6", correct=True), reference("six; VI", correct=True)]),
        state("Seven?", "7\n", id="7", split="train"),
        state("Eight\u2028or nine?", "8\u2028", id="8"),
        untagged("Ten?", "10", "10"),
    ),
    "numbers that are none": [
        *lines(ask(1, id="1")),
        *(json.dumps(ask(n, id=str(n), extra_data={"a": [float("nan")] * n})).encode() for n in (2, 3)),
        *lines(ask(4, id="4")),
    ],
    "choices": lines(
        *map(tin_or_gold, range(3)),
        {**choice("Which is yellow?", ["tin", "gold"], 1, id="4"), "answer_mapping": MAPPED},
        choice("Which is red?\nA. tin\nB. gold", ["tin", "gold"], id="5"),
        {**choice("Which is blue?", ["tin", "gold"], 1, id="6"), "answer_mapping": {"C": "gold"}},
        choice("Which is it?", ["tin", "gold", "iron"], id="7"),
    ),
    "choices alike": lines(*map(tin_or_gold, range(5))),
    "one row without options": lines(*map(tin_or_gold, range(4)), ask(4, id="4")),
    "likelihoods": lines(*(compared(f"Which is {n}?", tin=-n / 3, gold=-1.0) for n in range(5))),
    "groups": lines(
        *(
            ask(
                n,
                id=str(n),
                sub_split=(None, "b", "a", "b")[n % 4],
                extra_data={"kind": "zyx"[n % 3], "from": n // 4} if n % 5 else {},
            )
            for n in range(12)
        )
    ),  # fmt: skip
    "drawn": lines(*(ask(n % 6, id="n" if n % 2 else str(n), extra_data={"n": n}) for n in range(14))),
    "messages": lines(
        *(
            ask(
                n,
                id=str(n),
                split=("test", "train")[n % 4 == 3],
                references=[reference(str(n), correct=True)],
                input={"messages": [{"role": "user", "content": f"Say {n}"}]},
            )
            for n in (1, 2, 3, 1, 4)
        )
    ),  # fmt: skip
    "options asked for one by one": lines(
        choice("Which is first?", ["tin", "gold"], id="0"),
        *(answered(choice(f"Which is {n}?", ["tin", "gold", "iron"][:n], id=str(n)), "tin") for n in (2, 3, 2)),
    ),
    "judgements": lines(
        *(
            {
                **answered(ask(n, id=n), "2"),
                "judgements": [{"by": "m", "kind": "model", "criterion": "c", "value": n % 2}],
            }
            for n in range(3)
        )
    ),  # fmt: skip
    "keys of their own": lines(*({**ask(n, id=str(n)), "mine": n} for n in range(3)), ask(3, id="3")),
    "blank lines": [b"", *lines(ask(1, id="1")), b"", b" \t", *lines(ask(2, id="1")), b"", *lines(ask(3)), b"", b""],
}
OPTIONS = {
    "groups": {"by": ["kind", "sub_split"], "cluster": "from"},
    "recordings": {"missing": "skip"},
    "likelihoods": {},
}
SPECS = {
    "texts": {"stop_sequences": ["\n"], "max_train_instances": 2},
    "groups": {"eval_splits": ["test"]},
    "drawn": {"max_train_instances": 3, "max_eval_instances": 6},
    "splits": {"max_train_instances": 2},
    "messages": {"method": "chat"},
    "options asked for one by one": {"method": "multiple_choice_separate_original"},
    "train rows alone": {"max_train_instances": 1},
}
WRONG = {
    "no answer": [*FILES["ids"], *lines({"instance": {"input": {"text": "Eh?"}, "references": [], "id": "x"}})] * 2,
    "not UTF-8": [*FILES["ids"], b'{"instance": "\xff"}', *FILES["splits"]],
    "a comment": [*FILES["ids"], b"// no row", b'{"instance": {},}', *lines(ask(3, split="tset"))],
    "two kinds": [*FILES["likelihoods"], *lines(answered(choice("Which?", ["tin", "gold"]), "tin"))],
    "options of one row": [*FILES["choices"], *lines({**choice("Which?", ["tin", "tin"]), "note": 1})],
    "a perturbation that HELM lacks": lines(ask(1), ask(2, perturbation={"A": True}), ask(3)),
    "no group": [*FILES["ids"]],
}
WRONG_OPTIONS = {"no group": {"by": ["nothing"]}, "options of one row": {"method": "multiple_choice_joint"}}


class Here:
    """Does parts in this process, some of a line as one; all that is sent is sent as bytes, as to another process."""

    def __init__(self, cuts=None):
        self.cuts = cuts
        self.done = []

    def map(self, make_worker, tasks, *, split):
        tasks = list(tasks)
        edges = range(len(tasks) + 1) if self.cuts is None else [0, *self.cuts, len(tasks)]
        for start, end in itertools.pairwise(edges):
            if some := tasks[start:end]:
                whole = Lines(some[0].first, b"\n".join(line for one in some for _, line in one))
                whole = some[0] if len(some) == 1 else whole  # which may be read from the file
                self.done.append(whole)
                work, task = pickle.loads(pickle.dumps((make_worker, whole)))
                yield pickle.loads(pickle.dumps(work()(task)))


def see(path, **options):
    """Return all that is known of a file: of its rows too, as they are read again."""
    try:
        evalset = request_states.load(path, **options)
    except DatasetError as error:
        return type(error), [(problem, problem.kind, problem.number) for problem in error.problems]
    seen = {name: getattr(evalset, name) for name in vars(evalset) if name not in ("instances", "places")}
    places = [*evalset.places.positions], evalset.places.path, evalset.places.listed_in
    return seen | {"places": places, "instances": list(map(repr, evalset.instances))}


@pytest.fixture
def in_parts(monkeypatch):
    """Return what reads a file in parts: `in_parts(engine)(path)`."""

    def read(engine, path, **options):
        with monkeypatch.context() as patch:
            patch.setattr(loading, "LEAST_BYTES", 0)
            patch.setattr(loading, "PART_BYTES", 1)
            patch.setattr(Hashing.read_chunk, "__defaults__", (1,))
            patch.setattr(engines, "find_engine", lambda: engine)
            return see(path, **options)

    return read


def write(path, rows, spec=None, *, end=b"\n", last=True, before=b""):
    path.write_bytes(before + end.join([header(spec), *rows]) + (end if last else b""))
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_the_same_wherever_it_is_cut(tmp_path, in_parts, name):
    path = write(tmp_path / "f.jsonl", FILES[name], SPECS.get(name))
    options = OPTIONS.get(name, {})
    whole = see(path, **options)
    assert isinstance(whole, dict), whole
    number = len(path.read_bytes().splitlines()) - 1
    draw = random.Random(name)
    # Every line by itself; all at once; three drawn parts: their sums are made in the same way.
    cuts = [None, [], [1], [number - 1], *(sorted(draw.sample(range(1, number), 2)) for _ in range(3) if number > 2)]
    for places in cuts:
        engine = Here(places)
        assert in_parts(engine, path, **options) == whole, places
        assert len(engine.done) >= (number if places is None else len(places) + 1), "the file was read in one piece"


def test_what_is_recorded_is_known_before_rows_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "KEPT_ROWS", 1)
    rows = request_states.load(write(tmp_path / "f.jsonl", FILES["recordings"])).instances
    assert rows.status.tolist() == [0, 1, 2, 0, 0, 2, 0]
    all_four, all_but_numbers = 15, Unrecorded.TRAIN_INSTANCES | Unrecorded.TRUNCATED
    assert rows.unrecorded.tolist() == [all_four, 0, 0, all_four, all_but_numbers, 0, all_four]
    assert not rows.has_labels
    assert request_states.load(write(tmp_path / "f.jsonl", FILES["choices alike"])).instances.has_labels


@pytest.mark.long
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_the_same_words(tmp_path, in_parts, name):
    path = write(tmp_path / "f.jsonl", WRONG[name])
    options = WRONG_OPTIONS.get(name, {})
    whole = see(path, **options)
    assert isinstance(whole, tuple)
    for places in (None, [2], [1, 3]):
        engine = Here(places)
        assert in_parts(engine, path, **options) == whole
        assert engine.done


def test_a_wrong_file_is_not_held_in_memory(tmp_path, in_parts, monkeypatch):
    held, add = [], RowStore.add

    def add_and_count(self, row):
        add(self, row)
        held.append(len(self.kept or ()))

    monkeypatch.setattr(RowStore, "add", add_and_count)
    monkeypatch.setattr(loading, "KEPT_ROWS", 3)
    path, engine = write(tmp_path / "f.jsonl", [*lines(*map(ask, range(20))), b"no row"]), Here([9])
    assert in_parts(engine, path) == see(path)
    assert engine.done
    assert max(held) == 3


def test_what_is_wrong_with_a_truncated_file_is_said_in_the_same_words(tmp_path, in_parts):
    """Of its rows too: here the first has no correct reference."""
    rows = [ask(0, references=[]), *map(ask, range(1, 3_000))]
    data = gzip.compress(write(tmp_path / "f.jsonl", lines(*rows)).read_bytes())
    path = tmp_path / "f.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    whole = see(path)
    assert {"compression", "no-correct-reference"} <= {problem.code for problem, _, _ in whole[1]}
    assert in_parts(Here(), path) == whole


def test_states_of_helms_are_read_in_one_piece(tmp_path, in_parts):
    """States of one row may stand anywhere: here, at both ends."""
    helms = [{**answered(choice("Which?", ["tin", "gold"], id="1"), " tin"), "train_trial_index": 0,
              "reference_index": index, "request_mode": "original"} for index in (0, 1)]  # fmt: skip
    path = write(tmp_path / "f.jsonl", lines(helms[0], *(ask(n, id=f"n{n}") for n in range(3)), helms[1]))
    whole = see(path)
    assert in_parts(Here(), path) == whole


def test_files_without_rows_that_can_be_cut_are_read_in_one_piece(tmp_path, in_parts):
    for name, data in (
        ("no_rows.jsonl", header() + b"\n\n"),
        ("no_header.jsonl", b"\n".join(FILES["ids"])),
        ("document.json", b'{"adapter_spec": {}, "request_states": [' + b",\n".join(FILES["ids"]) + b"]}"),
    ):
        (tmp_path / name).write_bytes(data)
        assert in_parts(Here(), tmp_path / name) == see(tmp_path / name)


def test_lines_can_be_split_down_to_one():
    waiting, found = [Lines(2, b"\n".join(b"%d" % number for number in range(2, 80)))], []
    assert str(waiting[0]) == "lines 2 to 79"
    while waiting:
        made = waiting.pop(0).split()
        waiting[:0] = made if len(made) > 1 else []
        found += made if len(made) == 1 else []
    assert [str(one) for one in found] == [f"lines {number} to {number}" for number in range(2, 80)]
    assert [line for one in found for line in one] == [(number, b"%d" % number) for number in range(2, 80)]


@pytest.mark.parametrize("size", [1, 5, 9, 1000])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_pieces_of_a_file_are_its_lines(tmp_path, monkeypatch, size, suffix, end):
    monkeypatch.setattr(Hashing.read_chunk, "__defaults__", (4,))
    path, lines = tmp_path / f"f.jsonl{suffix}", [b"", header(), b"12345", b"", b"1", b"last one"]
    path.write_bytes((gzip.compress if suffix else bytes)(b"\n".join(lines) + end))
    reader = open_file(path, Problems(path))
    pieces = [pickle.loads(pickle.dumps(one)) for one in reader.cut(size)]
    assert reader.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [line for one in pieces for line in one] == list(enumerate(lines, 1))
    assert all(sum(len(line) + 1 for _, line in one) >= size for one in pieces[:-1])
    assert all(isinstance(one.block, bytes if suffix else Span) for one in pieces)


def test_a_file_that_is_changed_while_workers_read_it_is_read_again_by_one_process(tmp_path, in_parts):
    path = write(tmp_path / "f.jsonl", FILES["ids"])

    class Changing(Here):
        def map(self, make_worker, tasks, *, split):
            tasks = list(tasks)
            path.write_bytes(path.read_bytes().replace(b"?", b"!"))
            yield from super().map(make_worker, tasks, split=split)

    found = in_parts(Changing(), path)
    assert b"!" in path.read_bytes()
    assert found == see(path)
    assert found["digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
