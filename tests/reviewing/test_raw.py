"""A clean file: what was not decided is as it was, to the last byte."""

import gzip

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from mtbayes.data.reading import open_table
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.applying import apply
from mtbayes.reviewing.contents import keys
from mtbayes.reviewing.decisions import Decision

CASES = {
    "plain": ("a,label,b\n1,x,2\n3,y,4\n5,x,6\n", "utf-8"),
    "line ends": ("a,label,b\r\n1,x,2\r\n3,y,4\r\n5,x,6", "utf-8"),
    "quotes": ('a,"label",b\n"1, 0","x",2\n3,"y","say ""y"", so\nthere"\n5,x,6\n', "utf-8"),
    "a mark": ("a,label,b\n1,x,2\n3,y,4\n5,x,6\n", "utf-8-sig"),
    "old": ("ä;label;b\n1,5;x;é\n3;y;ü\n5;x;6\n", "latin-1"),
    "wide": ("a,label,b\n1,x,é\n3,y,4\n5,x,6\n", "utf-16"),
    "tabs": ("a\tlabel\tb\n1\tx\t2\n3\ty\t4\n\n5\tx\t6\n", "utf-8"),
    "told": ("sep=;\r\na;label;b\r\n1;x;2\r\n3;y;4\r\n5;x;6\r\n", "utf-8-sig"),
    "spaces": ("a, label,b\n1, x ,2\n3,y ,4\n5,x,6\n", "utf-8"),
}


def decisions_of(table, target, **made):
    """By place: row0="value", or None to drop it."""
    found = keys(table)
    result = {}
    for name, value in made.items():
        row = int(name.removeprefix("row"))
        action = "drop" if value is None else "correct"
        given = str(table.column(target)[row].as_py())
        result[found[row]] = Decision(found[row], row + 1, action, given, value or "")
    return result


@pytest.mark.parametrize("case", CASES)
def test_other_bytes_stay(tmp_path, case):
    text, encoding = CASES[case]
    path = tmp_path / ("data.tsv" if case == "tabs" else "data.csv")
    path.write_bytes(text.encode(encoding))
    source = open_table(path)
    target = "label"
    out = tmp_path / "clean.csv"
    table = source.table()
    done, gone = apply(source, target, decisions_of(table, target, row0="new", row1=None), out)
    assert (len(done), gone) == (2, [])
    told, lines = "", text.splitlines(keepends=True)
    if case == "told":
        told = lines.pop(0)
    ends = {"quotes": 4}  # a row of two lines
    last = lines[ends.get(case, 3) :]
    first = lines[1].replace('"x"', '"new"').replace(" x ", "new")
    first = first.replace("x", "new") if "new" not in first else first
    assert out.read_bytes() == "".join([told, lines[0], first, *last]).encode(encoding)
    path.write_bytes(out.read_bytes())
    assert open_table(path).table().column(target).to_pylist()[0].strip() == "new"


def test_nothing_decided_is_a_copy(tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "clean.csv"
    path.write_bytes(b'\xef\xbb\xbfa,"b"\r\n"1",x\r\n\r\n2,"y"\n3,z')
    apply(open_table(path), "b", {}, out)
    assert out.read_bytes() == path.read_bytes()


def test_values_that_need_quotes_get_them(tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "clean.csv"
    path.write_text("a,b\n1,x\n2,y\n3,z\n")
    table = open_table(path).table()
    made = decisions_of(table, "b", row0='say "so", now', row2="line\nbreak")
    apply(open_table(path), "b", made, out)
    assert out.read_text() == 'a,b\n1,"say ""so"", now"\n2,y\n3,"line\nbreak"\n'


def test_gzip(tmp_path):
    path, out = tmp_path / "data.csv.gz", tmp_path / "clean.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    apply(open_table(path), "b", decisions_of(open_table(path).table(), "b", row1="z"), out)
    assert gzip.decompress(out.read_bytes()) == b"a,b\n1,x\n2,z\n"


def test_rows_are_known_in_another_order_and_columns_too(tmp_path):
    path, other, out = (tmp_path / name for name in ("data.csv", "other.csv", "clean.csv"))
    path.write_text("a,b\n1,x\n2,y\n2,y\n3,z\n")
    other.write_text("b,a\nz,3\ny,2\nx,1\ny,2\n")
    made = decisions_of(open_table(path).table(), "b", row2="second", row3=None)
    done, gone = apply(open_table(other), "b", made, out)
    assert gone == []
    assert out.read_text() == "b,a\ny,2\nx,1\nsecond,2\n"  # of equal rows, as many as were decided
    other.write_text("b,a\nz,4\ny,2\nx,1\n")
    done, gone = apply(open_table(other), "b", made, out)
    assert ([d.action for d in gone], done) == (["correct", "drop"], {})


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (["x", "y", "x"], "y", "y"),
        ([1, 2, 1], "2", 2),
        ([0.5, 1.5, 2.5], "7.25", 7.25),
        ([True, False, True], "false", False),
    ],
)
def test_tables_keep_their_types(tmp_path, kind, column, text, value):
    path, out = tmp_path / f"data.{kind}", tmp_path / f"clean.{kind}"
    table = pa.table({"a": pa.array([1, 2, 3], pa.int8()), "b": column, "c": [[1], [2, 3], []]})
    if column[0] == "x":
        table = table.set_column(1, "b", table.column("b").dictionary_encode())
    write = {"parquet": pa.parquet.write_table, "feather": pa.feather.write_feather}[kind]
    write(table, path)
    source = open_table(path)
    apply(source, "b", decisions_of(source.table(), "b", row0=text, row1=None), out)
    found = open_table(out).table()
    assert found.schema.types == open_table(path).table().schema.types
    assert found.to_pydict() == {"a": [1, 3], "b": [value, column[2]], "c": [[1], []]}


def test_what_cannot_be_written_is_told(tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "clean.csv"
    path.write_bytes("a,b\n1,é\n2,y\n".encode("latin-1"))
    made = decisions_of(open_table(path).table(), "b", row1="中")
    with pytest.raises(InvalidInput, match="latin-1, got '中'"):
        apply(open_table(path), "b", made, out)
    assert not out.exists()
    with pytest.raises(InvalidInput, match="must be text"):
        apply(open_table(path), "b", made, tmp_path / "clean.parquet")
    with pytest.raises(InvalidInput, match="must be another than"):
        apply(open_table(path), "b", {}, path)
    whole = tmp_path / "data.parquet"
    pa.parquet.write_table(pa.table({"a": [1], "b": [1]}), whole)
    with pytest.raises(InvalidInput, match=r"with the ending \.parquet"):
        apply(open_table(whole), "b", {}, out)
    made = decisions_of(open_table(whole).table(), "b", row0="x")
    with pytest.raises(InvalidInput, match="must be a int64 as the others are, got 'x'"):
        apply(open_table(whole), "b", made, tmp_path / "clean.parquet")
