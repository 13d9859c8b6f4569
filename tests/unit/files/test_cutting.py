"""Ranges of a file: whole lines, whoever finds them, and whatever becomes of the process that does."""

import io
import os
import random
import signal
from hashlib import sha256
from pathlib import Path

import pytest

from helm_ext.errors import DatasetChangedError, HelmExtError
from helm_ext.files.cutting import LineRanges, cut_lines


def find_children():
    return {int(child) for thread in Path("/proc/self/task").iterdir() for child in
            (thread / "children").read_text().split()}  # fmt: skip


@pytest.fixture
def children():
    """Return the processes that the test has started."""
    before = find_children()
    return lambda: find_children() - before


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows of mine.jsonl"
    path.write_bytes(b"head\n" + b"".join(b"row %d\n" % number for number in range(50_000)))
    return path


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_ranges_are_whole_lines_and_name_them(end):
    draw = random.Random(3)
    for _ in range(200):
        texts = [b"x" * draw.choice([0, 0, 1, 5, 30]) for _ in range(draw.randint(1, 12))]
        data = b"\n".join([b"head", *texts]) + end
        above, size = draw.randint(1, 3), draw.choice([1, 2, 7, 40, 1000])
        *found, digest = cut_lines(io.BytesIO(data), above, size)
        assert digest == sha256(data).hexdigest()
        rest = data.split(b"\n", above)[above] if data.count(b"\n") >= above else b""
        assert b"".join(data[one.start : one.stop] for one in found) == rest
        for one in found[:-1]:
            assert data[one.stop - 1 : one.stop] == b"\n"
            assert one.stop - one.start >= size
        for one in found:
            assert one.first == data[: one.start].count(b"\n") + 1
            assert one.lines == len(data[one.start : one.stop].removesuffix(b"\n").split(b"\n"))


def test_another_process_finds_the_same(file, children):
    ranges = LineRanges(str(file), 1, 1000)
    *found, digest = cut_lines(io.BytesIO(file.read_bytes()), 1, 1000)
    assert list(ranges) == found
    assert ranges.digest == digest
    assert not children()


def test_what_a_lost_process_has_found_is_not_given_twice(file, children):
    *expected, digest = cut_lines(io.BytesIO(file.read_bytes()), 1, 50)
    ranges, found = LineRanges(str(file), 1, 50), []  # more of them than the pipe between the two holds
    for one in ranges:
        found.append(one)
        if len(found) in (1, 1000):
            (child,) = children()
            os.kill(child, signal.SIGKILL)
    assert found == expected
    assert ranges.digest == digest


def test_a_process_that_is_lost_each_time_is_given_up(file, children):
    def take():
        for number, _ in enumerate(LineRanges(str(file), 1, 50)):
            if number % 1000 == 0:
                (child,) = children()
                os.kill(child, signal.SIGKILL)

    with pytest.raises(HelmExtError, match=r"rows of mine\.jsonl: the process .* was lost 3 times"):
        take()


def test_who_wants_no_more_ranges_leaves_no_process(file, children):
    ranges = iter(LineRanges(str(file), 1, 50))
    next(ranges)
    assert len(children()) == 1
    ranges.close()
    assert not children()


def test_modules_of_the_current_folder_are_not_taken_for_ours(file, monkeypatch):
    (file.parent / "json.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(file.parent)
    assert len(list(LineRanges(file.name, 1, 1 << 20))) == 1


def test_a_file_that_is_gone_ends_with_an_error(tmp_path, capfd):
    with pytest.raises(HelmExtError, match="was lost 3 times"):
        list(LineRanges(str(tmp_path / "none"), 1, 10))
    said = capfd.readouterr().err
    assert "none: No such file or directory" in said
    assert "Traceback" not in said


def test_a_file_that_goes_away_is_said_to_be_changed(file):
    ranges = LineRanges(str(file), 1, 50)
    file.unlink()
    with pytest.raises(DatasetChangedError, match="the file was changed while it was read"):
        list(ranges)
