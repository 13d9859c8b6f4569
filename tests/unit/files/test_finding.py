"""Lines that are found again by their places in a file."""

from __future__ import annotations

import hashlib
import os
import pickle

import numpy as np
import pytest

from helm_ext.errors import DatasetChangedError
from helm_ext.files import split_lines
from helm_ext.files.finding import Identity, LineFile, LineIndex, iterate


def index(path, *, chunk=7, offset=0, wanted=None):
    """Read a file as it is read the first time, some bytes at a time; return what tells where its lines stand."""
    found = LineIndex()
    with path.open("rb") as file:
        identity = Identity.of(file.fileno())
        file.seek(offset)

        def read_chunk():
            data = file.read(chunk)
            found.update(data)
            return data

        for number, line in split_lines(read_chunk):
            if wanted is None or number in wanted:
                found.note(number, line)
    return found, LineFile(str(path), identity, offset)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"\n", b"\r\n", b"\n\n \r\n"])
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 16])
@pytest.mark.parametrize("offset", [0, 5])
def test_lines_in_any_order(tmp_path, end, last, chunk, offset):
    lines = [b"a", "é \u2028".encode(), b"", b"x" * 30, b"\r", b"b \r c", b"d"]
    path = tmp_path / "lines"
    data = end.join(lines) + last
    path.write_bytes(b"?" * offset + data)
    found, file = index(path, chunk=chunk, offset=offset)
    assert found.hexdigest() == hashlib.sha256(data).hexdigest()
    for order in ([1, 2, 3, 4, 5, 6, 7], [7, 1, 4, 4, 2], [6, 0, 3, 0], []):
        wanted = [None if number == 0 else lines[number - 1] for number in order]
        # "\r" at a line's end belongs to the end: once, as `split_lines` has it.
        wanted = [b"" if line == b"\r" and end == b"\n" else line for line in wanted]
        spans = found.find(np.array(order, np.uint32))
        assert list(file.read(spans)) == wanted
        assert list(pickle.loads(pickle.dumps(file)).read(spans)) == wanted


def test_lines_that_are_not_noted_are_not_in_the_way(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(1, 50)))
    found, file = index(path, wanted={2, 3, 40})
    assert list(file.read(found.find(np.array([40, 2, 3])))) == [b"line 40", b"line 2", b"line 3"]


def test_a_line_that_changed_is_refused_though_the_file_looks_the_same(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nsix\n")
    found, file = index(path)
    status = path.stat()
    with path.open("r+b") as changing:
        changing.seek(5)
        changing.write(b"W")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.is_same()
    reading = file.read(found.find(np.array([1, 3, 2])))
    assert [next(reading), next(reading)] == [b"one", b"six"]
    with pytest.raises(DatasetChangedError, match="lines: the file was changed while it was read\n  hint: start again"):
        next(reading)


@pytest.mark.parametrize("change", ["grow", "touch", "replace", "remove"])
def test_a_file_that_is_another_is_refused(tmp_path, change):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    found, file = index(path)
    spans = found.find(np.array([1, 2]))
    reading = file.read(spans)
    next(reading)
    if change == "grow":
        with path.open("ab") as writing:
            writing.write(b"\n")
    elif change == "touch":
        os.utime(path, ns=(1, 1))
    else:
        (tmp_path / "other").write_bytes(b"one\ntwo\n")
        path.unlink() if change == "remove" else (tmp_path / "other").replace(path)
    assert not file.is_same()
    with pytest.raises(DatasetChangedError):
        list(file.read(spans))
    if change in ("grow", "touch"):  # while it is open: the file that is read is the one that was opened
        with pytest.raises(DatasetChangedError):
            list(reading)
    else:
        assert list(reading) == [b"two"]


def test_elements_of_an_array_are_pythons():
    assert list(iterate(np.arange(5, dtype=np.uint32), 2)) == [0, 1, 2, 3, 4]
    assert list(iterate(np.arange(6).reshape(3, 2), 2)) == [[0, 1], [2, 3], [4, 5]]
    assert {type(number) for number in iterate(np.arange(5))} == {int}
