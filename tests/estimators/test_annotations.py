import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mtbayes import Annotations, InvalidInput

WIDE = {"ann": ["a", "b", None], "bob": ["a", None, "b"]}


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_any_kind_are_taken(frame):
    found = Annotations.wide(frame(WIDE))
    assert found.row.tolist() == [0, 0, 1, 2]
    assert found.who.tolist() == [0, 1, 0, 1]
    assert found.value.tolist() == ["a", "a", "b", "b"]
    assert found.names.tolist() == ["ann", "bob"]


def test_array_with_gaps_holds_whole_numbers():
    found = Annotations.wide(np.array([[1, np.nan], [0, 1.0]]))
    assert found.value.tolist() == [1, 0, 1]
    assert found.value.dtype.kind == "i"
    assert found.names.tolist() == [0, 1]


def test_array_of_text():
    found = Annotations.wide(np.array([["a", None], ["b", "a"]], object), names=["x", "y"])
    assert (found.value.tolist(), found.names.tolist()) == (["a", "b", "a"], ["x", "y"])


def test_missing_of_pandas_is_a_gap():
    frame = pd.DataFrame({"x": pd.array([1, pd.NA], "Int64"), "y": pd.array([2, 1], "Int64")})
    assert Annotations.wide(frame).value.tolist() == [1, 2, 1]


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_text_is_a_gap(blank):
    wide = Annotations.wide({"x": ["a", blank], "y": [blank, "b"]})
    long = Annotations.long([0, 0, 1], ["x", "y", "y"], ["a", blank, "b"])
    assert wide.value.tolist() == long.value.tolist() == ["a", "b"]


def test_number_that_stands_for_a_gap_is_a_label_until_it_is_replaced():
    frame = pd.DataFrame({"x": [-1, 2, 1], "y": [1, -1, 2]})
    array = frame.to_numpy()
    assert Annotations.wide(frame).value.tolist() == [-1, 1, 2, -1, 1, 2]
    for gaps in (frame.replace(-1, None), np.where(array == -1, None, array)):
        assert Annotations.wide(gaps).value.tolist() == [1, 2, 1, 2]


def test_long_is_wide():
    long = Annotations.long(
        ["r2", "r0", "r0", "r1"],
        ["bob", "bob", "ann", "ann"],
        ["b", "a", "a", "b"],
        index=["r0", "r1", "r2"],
    )
    wide = Annotations.wide(WIDE)
    names = long.names[long.who].tolist()
    assert sorted(zip(long.row.tolist(), names, long.value.tolist(), strict=True)) == sorted(
        zip(wide.row.tolist(), wide.names[wide.who].tolist(), wide.value.tolist(), strict=True)
    )


def test_same_label_twice_is_one():
    assert len(Annotations.long([0, 0], ["x", "x"], ["a", "a"]).value) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Annotations.wide({"x": ["a"], "y": [None]}),
            r"every annotator must have given a label, got none by 'y'. Leave such columns out",
        ),
        (
            lambda: Annotations.wide({"x": ["a", None], "y": ["a", None]}),
            r"every row must have a label, got 1 of 2 without one, the first is 1. Drop them",
        ),
        (
            lambda: Annotations.long([0, 0], ["x", "x"], ["a", "b"]),
            r"row 0 must have one label by one person, got 'a' and 'b' by 'x'. Keep the last",
        ),
        (
            lambda: Annotations.long(["p", "q"], ["x", "y"], ["a", "b"], index=["p"]),
            r"row must name rows of the table, got 'q' by 'y', which is none of them. Drop",
        ),
        (
            lambda: Annotations.long(["p"], ["x"], ["a"], index=["p", "r"]),
            r"every row must have a label, got 1 of 2 without one, the first is 'r'",
        ),
        (
            lambda: Annotations.long(["p"], ["x"], ["a"]),
            r"row must count rows from 0 where no index is given, got 'p'. Give the names",
        ),
        (lambda: Annotations.long([10**30], ["x"], ["a"]), "row must count rows from 0 where no"),
        (
            lambda: Annotations.long([0], ["x", "y"], ["a"]),
            r"row, annotator and label must be equally long, got 1, 2 and 1",
        ),
        (
            lambda: Annotations.long([0], ["x"], ["a"], index=[0, 0]),
            r"index must name each row once, got 0 twice",
        ),
        (
            lambda: Annotations.long([0, 0], ["x", None], ["a", "a"]),
            r"annotator must say who gave each label, got None for row 0. Name the person",
        ),
        (
            lambda: Annotations.long([0, 1], ["x", float("nan")], ["a", "a"]),
            r"annotator must say who gave each label, got nan for row 1. Name the person",
        ),
        (
            lambda: Annotations.wide(pd.DataFrame([["a", "b"]], columns=["x", "x"])),
            r"each column must be another person's, got 'x' twice. Rename one of them",
        ),
        (
            lambda: Annotations.wide(np.array([["a", "b"]]), names=["x", "x"]),
            r"each column must be another person's, got 'x' twice. Rename one of them",
        ),
        (
            lambda: Annotations.wide({"x": ["a", "b"], "y": ["a"]}),
            r"columns must be equally long, got 2 by 'x' and 1 by 'y'. Put None",
        ),
        (lambda: Annotations.wide(pd.Series(["a"])), "annotations must be rows by people, got an"),
        (lambda: Annotations.wide({"x": [1.0, np.inf]}), "labels must be finite, got inf by 'x'"),
        (
            lambda: Annotations.long([0, 1], "ab", ["a", -np.inf]),
            "labels must be finite, got -inf by 'b'",
        ),
        (lambda: Annotations.wide({"x": [None]}), "annotations must hold labels, got none"),
        (lambda: Annotations.wide(np.zeros(3)), "annotations must be rows by people, got an array"),
        (lambda: Annotations.wide(np.zeros((3, 2)), ["x"]), "names must name each of 2 columns"),
        (lambda: Annotations.wide({"x": ["a", 1]}), "labels must be of one kind, got int and str"),
        (
            lambda: Annotations.wide(WIDE, classes=["a", "c"]),
            "classes must hold all labels, got 'b', which is none of them",
        ),
    ],
)
def test_bad_input_is_told(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


def test_whole_numbers_of_python_and_numpy_are_of_one_kind():
    found = Annotations.long([0, np.int64(1)], ["x", "x"], [1, np.int64(0)])
    assert found.value.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([0, 1, 2, 999], "got 999 by 'x', X has 3 rows, counted from 0. Drop such entries, or"),
        ([0, 1, 2, 10**15], f"got {10**15} by 'x', X has 3 rows"),
        ([0, 1, 2, 3], "X must have a row for each that was labelled, got 3 rows for 4"),
        ([0, 1], "X must have a row for each that was labelled, got 3 rows for 2"),
        ([0, 2], "every row must have a label, got 1 of 3 without one, the first is 1. Drop"),
    ],
)
def test_rows_that_are_counted_are_told_where_x_is_known(ids, words):
    said = Annotations.long(ids, ["x"] * len(ids), ["a"] * len(ids))
    with pytest.raises(InvalidInput, match=words):
        said.check_rows(3)


def test_label_of_one_person_alone_is_refused_unless_it_is_named():
    table = {"x": ["a", "b", "catt"], "y": ["a", "b", "b"]}
    with pytest.raises(
        InvalidInput, match=r"got 'catt', which 'x' alone uses, first in row 2. Corr"
    ):
        Annotations.wide(table).check_labels()
    Annotations.wide(table, classes=["a", "b", "catt"]).check_labels()
    Annotations.wide({"x": ["a", "b"]}).check_labels()


NAMED = pd.DataFrame(WIDE, index=["r0", "r1", "r2"])
TURNED = ["r2", "r1", "r0"]


@pytest.mark.parametrize(
    "said",
    [
        Annotations.wide(NAMED),
        Annotations.wide(NAMED, classes=["a", "b", "c"]),
        Annotations.long(NAMED.index, ["x"] * 3, ["a"] * 3, index=NAMED.index),
    ],
)
def test_rows_of_x_in_another_order_are_told(said):
    words = "y must have its rows in the order of X, got labels of 'r0' in row 0, where X has 'r2'"
    with pytest.raises(InvalidInput, match=words):
        said.check_order(pd.DataFrame({"f": 0}, index=TURNED))
    said.check_order(pd.DataFrame({"f": 0}, index=NAMED.index))


@pytest.mark.parametrize(
    ("said", "x"),
    [
        (Annotations.wide(NAMED), pd.DataFrame({"f": 0}, index=["r2", "r1", "other"])),
        (Annotations.wide(NAMED), np.zeros((3, 1))),
        (Annotations.wide(NAMED), [[0], [0], [0]]),
        (Annotations.wide(pl.DataFrame(WIDE)), pd.DataFrame({"f": 0}, index=[2, 1, 0])),
        (Annotations.wide(pd.DataFrame(WIDE)), pl.DataFrame({"f": [0, 0, 0]})),
        (  # names in a column of X, whose own index counts
            Annotations.long([0, 1, 2], "xxx", "aaa", index=pd.Series([2, 1, 0])),
            pd.DataFrame({"f": [0, 0, 0]}),
        ),
    ],
)
def test_places_count_where_names_say_nothing_of_the_order(said, x):
    said.check_order(x)


def test_annotations_do_not_depend_on_the_order_of_columns_or_entries():
    table = {"r10": ["a", "b", None], "r2": ["b", "b", "a"], "r1": [None, "a", "a"]}
    turned = dict(reversed(table.items()))
    entries = [(i, who, v[i]) for who, v in table.items() for i in (2, 0, 1) if v[i]]
    turn = zip(*entries, strict=True)
    made = [Annotations.wide(table), Annotations.wide(turned), Annotations.long(*turn)]
    for said in made:
        assert said.names.tolist() == ["r1", "r2", "r10"]
        assert said.row.tolist() == [0, 0, 1, 1, 1, 2, 2]
        assert said.who.tolist() == [1, 2, 0, 1, 2, 0, 1]
        assert said.value.tolist() == ["b", "a", "a", "b", "b", "a", "a"]


def test_row_of_an_infinite_rating_is_named():
    with pytest.raises(InvalidInput, match="got inf by 'x' of row 1"):
        Annotations.wide({"x": [1.0, float("inf")], "y": [1.0, 2.0]})
