"""Files of all sorts: what they hold, or one clear line."""

import gzip
import os
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mtbayes.data import reading
from mtbayes.data.reading import open_table
from mtbayes.errors import InvalidInput

ROWS = [{"a": "1", "b": "x,y"}, {"a": "2", "b": None}]


def rows(path):
    return open_table(path).table().to_pylist()


@pytest.fixture
def file(tmp_path):
    def write(content, name="some.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('a,b\n1,"x,y"\n2,\n', "plain.csv"),
        ('\ufeffa,b\n1,"x,y"\n2,NA\n', "mark.csv"),
        ('a,b\r\n1,"x,y"\r\n2,?\r\n', "windows.csv"),
        ('a,b\n1,"x,y"\n2,\n', "no_ending"),
        ("a;b\n1;x,y\n2;\n", "semicolon.csv"),
        ("a\tb\n1\tx,y\n2\t\n", "tabs.tsv"),
        ("a\tb\n1\tx,y\n2\t\n", "tabs.csv"),
        ("a|b\n1|x,y\n2|\n", "bars.txt"),
        (gzip.compress(b'a,b\n1,"x,y"\n2,\n', mtime=0), "small.csv.gz"),
        ("a\tb\n1\tx,y\n2\t\n".encode("utf-16"), "excel.txt"),
        ('a,b\n1,"x,y"\n2,', "no_last_line_end.csv"),
        ("sep=;\na;b\n1;x,y\n2;\n", "excel.csv"),
        ('"sep=^"\r\na^b\r\n1^x,y\r\n2^\r\n', "odd.csv"),
    ],
)
def test_all_ways_to_write_the_same_table(file, content, name):
    path = file(content, name)
    assert rows(path) == ROWS
    assert open_table(path).rows == (None if name == "excel.txt" else 2)


def test_typed_files_keep_their_types(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x,y", None]})
    pyarrow.parquet.write_table(table, tmp_path / "misnamed.csv")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    for name in ("misnamed.csv", "t.feather"):
        assert open_table(tmp_path / name).table() == table
        assert open_table(tmp_path / name).rows == 2


def test_latin_1_is_read_and_noted(file):
    source = open_table(file("a,b\n1,café\n".encode("latin-1")))
    assert source.table().to_pylist() == [{"a": "1", "b": "café"}]
    assert "Latin-1" in source.notes[0]


def test_bytes_that_are_not_utf8_are_noticed_far_behind_the_head(file):
    text = "a,b\n" + "1,cafe\n" * 20_000 + "1,café\n"
    assert open_table(file(text)).notes == ()
    source = open_table(file(text.encode("latin-1")))
    assert source.table().column("b")[-1].as_py() == "café"


def test_equal_names_are_told_apart(file):
    source = open_table(file("a,a,a.1,\n1,2,3,4\n"))
    assert source.names == ("a", "a.2", "a.1", "nameless column 1")
    assert source.table().to_pylist() == [
        {"a": "1", "a.2": "2", "a.1": "3", "nameless column 1": "4"}
    ]
    assert source.notes == ("a second column is called 'a'; it is 'a.2' here",)


def test_a_column_without_a_name_is_the_same_without_the_target(file):
    assert open_table(file("a,b,\n1,2,3\n")).names[2] == "nameless column 1"
    assert open_table(file("a,\n1,3\n")).names[1] == "nameless column 1"


def test_a_header_that_looks_like_a_row_is_told(file):
    (note,) = open_table(file("1741.91,0.900,dear\n12.5,0.1,cheap\n")).notes
    assert note == "the first line is taken for names of columns, '1741.91' among them"
    assert open_table(file("2019,2020,pixel 1.5\n1,2,3\n")).notes == ()


def test_a_line_end_within_quotes(file):
    assert rows(file('a,b\n1,"two\nlines"\n')) == [{"a": "1", "b": "two\nlines"}]


def test_batches_are_the_table(file, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 2**10)
    values = np.arange(2000)
    path = file("a,b\n" + "".join(f"{v},x{v}\n" for v in values))
    batches = list(open_table(path).batches())
    assert len(batches) > 5
    assert [v for b in batches for v in b.column("b").to_pylist()] == [f"x{v}" for v in values]


def test_a_column_that_turns_to_text_after_the_first_block_stays_whole(file, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 2**10)
    path = file("a,b\n" + "1,2\n" * 2000 + "x,3\n")
    assert open_table(path).table().column("a")[-1].as_py() == "x"


GARBAGE = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8).tobytes()


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("", "empty.csv", "is empty"),
        ("\n\n", "blank.csv", "no text"),
        ("a,b\n", "header.csv", "header and no rows"),
        ("a,b", "header_without_end.csv", "header and no rows"),
        (GARBAGE, "garbage.csv", "bytes that no text has"),
        (GARBAGE.replace(b"\0", b""), "garbage_without_0.csv", "bytes that no text has"),
        (b"PK\x03\x04 and more", "book.xlsx", "Excel workbook"),
        (b"PAR1 and nothing", "cut.parquet", "reading it stopped"),
        (b"ARROW1 and nothing", "cut.feather", "reading it stopped"),
        (gzip.compress(b"a,b\n1,2\n" * 1000, mtime=0)[:-20], "cut.csv.gz", "reading it stopped"),
        ("a,b\n1,2\n1,2,3\n", "ragged.csv", "Row #3: Expected 2 columns, got 3"),
        ('a,b\n1,2\n3,"4\n5,6\n', "open.csv", "mark in line 3 that is never closed"),
        ('a,b\n1,2\n3,"', "open_end.csv", "mark in line 3 that is never closed"),
        ('a,b\n1,é\n3,"4\n'.encode("latin-1"), "open_latin.csv", "line 3 that is never closed"),
    ],
)
def test_what_is_no_table_is_refused_in_a_line(file, content, name, said):
    with pytest.raises(InvalidInput, match=said) as error:
        open_table(file(content, name)).table()
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_quotation_mark_within_a_cell_opens_nothing(file):
    assert rows(file('a,b\n1,5" pipe\n')) == [{"a": "1", "b": '5" pipe'}]


def test_the_line_of_a_row_counts_what_is_no_row(file):
    source = open_table(file('sep=;\na;b\n1;2\n\n3;"two\nlines"\n5;6\n'))
    assert [source.where(i) for i in range(3)] == ["line 3", "line 5", "line 7"]


def test_a_pipe_is_read_like_a_file(tmp_path, file):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = b"a,b\n" + b"1,2\n" * 50_000
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    source = open_table(path)
    writer.join()
    assert source.table() == open_table(file(content)).table()
    assert source.path == path


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_PATIENCE", 0.0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="pipe into which nobody writes"):
        open_table(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="device"):
        open_table("/dev/zero")


def test_what_is_no_file(tmp_path):
    with pytest.raises(InvalidInput, match="folder must hold files"):
        open_table(tmp_path)
    with pytest.raises(InvalidInput, match="must exist"):
        open_table(tmp_path / "none.csv")


@pytest.mark.parametrize("first", ['5" wide', '"so"called', "plain"])
def test_a_mark_that_is_never_closed_is_found_behind_others(tmp_path, first):
    path = tmp_path / "some.csv"
    path.write_text(f'x,y\n{first},1\n2,"two\nlines"\n3,"a\n')
    with pytest.raises(InvalidInput, match="quotation mark in line 5 that is never closed"):
        open_table(path)
    path.write_text(f'x,y\n{first},1\n2,"two\nlines"\n3,"a"\n')
    assert open_table(path).table().num_rows == 3


def test_a_slow_writer_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_PATIENCE", 0.2)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    opened = threading.Event()

    def write():
        with path.open("wb") as pipe:
            opened.wait()
            time.sleep(0.6)
            pipe.write(b"x,y\n1,2\n")

    writer = threading.Thread(target=write)
    writer.start()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # the writer is in
    opened.set()
    assert open_table(path).table().to_pylist() == [{"x": "1", "y": "2"}]
    os.close(reader)
    writer.join()
    with pytest.raises(InvalidInput, match="nobody writes"):
        open_table(path)
