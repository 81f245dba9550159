"""Files are whole or absent; tidy rows come back as written."""

import pytest

from mtbayes import _files
from mtbayes.experiments.results import Row, read_rows, write_rows


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), _files.atomic(path) as temporary:
        temporary.write_text(f"half {1 / 0}")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_rows_round_trip(tmp_path):
    rows = [
        Row("toy", "fixed, point", "matched", 10, 0.9, 1.0, 10.0, 0.1, 3, "tv", 0.1234567891),
        Row("toy", "x", "random", float("inf"), 1.0, 0.5, 1.0, 0.0, 0, "tv", 1e-9),
    ]
    write_rows(tmp_path / "r.csv", rows)
    assert read_rows(tmp_path / "r.csv") == rows
