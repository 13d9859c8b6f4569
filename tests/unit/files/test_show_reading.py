"""How far a file of lines is read, as it is found by looking."""

import gzip
import random

import pytest

from helm_ext.files import LineSource, show_reading


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_lines_that_there_will_be_are_foreseen_from_the_bytes_on_disk(tmp_path, ending):
    path = tmp_path / f"many.jsonl{ending}"
    draw = random.Random(1)
    lines = b"".join(b'{"row": %d, "text": "%s"}\n' % (n, draw.randbytes(100).hex().encode()) for n in range(40_000))
    path.write_bytes(gzip.compress(lines, 1) if ending else lines)
    progress = show_reading(path)
    assert progress.title == f"reading {path.name}"
    with LineSource(path) as source:
        for number, _ in source:
            if number == 10_000:
                break
        counts = progress.counts()
        assert counts.rows == 10_000
        assert progress.total == pytest.approx(40_000, rel=0.3)
    with LineSource(path) as source:
        for _ in source:
            pass
        progress.counts()
    assert (progress.counts().rows, progress.total) == (40_000, 40_000)  # also when it is closed


def test_a_file_that_was_read_before_is_not_shown_for_another(tmp_path):
    (tmp_path / "one.jsonl").write_text("{}\n{}\n")
    with LineSource(tmp_path / "one.jsonl") as source:
        list(source)
    progress = show_reading(tmp_path / "pack.zip")
    assert (progress.counts().rows, progress.total) == (0, None)
