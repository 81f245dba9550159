"""Tables as numbers: kinds, gaps, levels, and what is left out."""

import json
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from mtbayes.data.coder import Seen
from mtbayes.data.schema import Schema, learn_table
from mtbayes.errors import InvalidInput

N = 60
ORDER = np.arange(N)


def texts(values):
    return pa.array([None if v is None else str(v) for v in values], pa.string())


def schema_of(table, target="y", **options):
    return learn_table(table, target, **options)[0]


def learned(values, **options):
    """The schema of one column beside a target of two classes."""
    return schema_of(pa.table({"v": values, "y": texts(ORDER % 2)}), **options)


def code(schema, values, **options):
    return schema.code(pa.table({"v": values}), **options)


@pytest.fixture(scope="module")
def table():
    return pa.table(
        {
            "id": texts(ORDER + 1),
            "age": texts([None if i % 7 == 0 else 20 + i % 13 for i in ORDER]),
            "colour": texts(np.array(["red", "blue", "green"])[ORDER % 3]),
            "ok": texts(np.array(["yes", "No"])[ORDER % 2]),
            "name": texts([f"n{i}" for i in ORDER]),
            "empty": pa.nulls(N, pa.string()),
            "constant": texts([5] * N),
            "x": texts(["12o" if i == 4 else i * 0.5 for i in ORDER]),
            "y": texts(np.array(["b", "a", "a"])[ORDER % 3]),
        }
    )


def test_what_is_used_and_what_is_left_out(table):
    schema = schema_of(table)
    kinds = {c.name: type(c).__name__ for c in schema.columns}
    assert kinds == {"age": "Number", "colour": "Category", "ok": "Boolean", "x": "Number"}
    assert dict(schema.dropped) == {
        "id": "it only counts the rows",
        "name": "text with 60 different values in 60 rows",
        "empty": "empty",
        "constant": "the same in every row",
    }
    assert (schema.task, schema.whole) == ("classes", False)
    names = ["age", "age is missing", "colour = red", "colour = blue", "colour = green", "ok", "x"]
    assert schema.features == [*names, "x is missing"]


def test_rows_become_the_numbers_that_features_name(table):
    schema, seen = schema_of(table), Seen.nothing()
    x = schema.code(table, seen=seen)
    median = np.median([20 + i % 13 for i in ORDER if i % 7])
    np.testing.assert_array_equal(x[:, 0], np.where(ORDER % 7 == 0, median, 20 + ORDER % 13))
    np.testing.assert_array_equal(x[:, 1], ORDER % 7 == 0)
    np.testing.assert_array_equal(x[:, 2:5].argmax(axis=1), ORDER % 3)
    np.testing.assert_array_equal(x[:, 2:5].sum(axis=1), 1)
    np.testing.assert_array_equal(x[:, 5], ORDER % 2 == 0)
    np.testing.assert_array_equal(np.flatnonzero(x[:, 7]), [4])
    assert seen.strays == {"x": 1}


def test_columns_are_found_by_name(table):
    schema = schema_of(table)
    turned = table.select(table.column_names[::-1]).drop(["y", "id"])
    np.testing.assert_array_equal(schema.code(turned), schema.code(table))
    assert schema.check((*turned.column_names, "new")) == ("new",)
    with pytest.raises(InvalidInput, match=r"'age', 'x' are missing.*is 'aeg' meant"):
        schema.check(("aeg", "colour", "ok"))
    with pytest.raises(InvalidInput, match=r"the target 'y' is missing.*mtbayes consensus"):
        schema.check(tuple(turned.column_names), target=True)


def test_batches_are_coded_like_the_table(table):
    schema = schema_of(table)
    parts = [schema.code(batch) for batch in table.to_batches(max_chunksize=7)]
    np.testing.assert_array_equal(np.concatenate(parts), schema.code(table))


def test_text_and_typed_columns_are_coded_alike():
    values = [None if i == 3 else i * 0.25 for i in ORDER]
    typed = pa.array(values, pa.float64())
    np.testing.assert_array_equal(
        code(learned(texts(values)), texts(values)), code(learned(typed), typed)
    )
    truths = [bool(i % 3) for i in ORDER]
    np.testing.assert_array_equal(
        code(learned(pa.array(truths)), pa.array(truths))[:, 0],
        code(learned(texts(truths)), texts(truths))[:, 0],
    )
    levels = pa.array(np.array(["u", "v"])[ORDER % 2]).dictionary_encode()
    np.testing.assert_array_equal(code(learned(levels), levels)[:, 0], ORDER % 2 == 0)


def test_json_keeps_everything(table):
    days = pa.array([date(2020, 1 + i % 12, 3) for i in ORDER])
    schema = schema_of(table.append_column("day", days))
    assert Schema.from_json(json.loads(json.dumps(schema.as_json()))) == schema
    with pytest.raises(InvalidInput, match="Fit the model anew"):
        Schema.from_json({"columns": [{"kind": "os.system", "name": "v"}]})


def test_rare_levels_are_pooled_and_new_ones_join_them():
    values = texts(["u"] * 30 + ["v"] * 26 + ["w", "x", "z", None])
    schema = learned(values)
    assert schema.features == ["v = u", "v = v", "v is another", "v is missing"]
    found = code(schema, texts(["v", "w", "never seen", None, " u "]))
    np.testing.assert_array_equal(
        found, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    )


def test_without_rare_levels_a_new_one_is_all_zero():
    schema = learned(texts(np.array(["u", "v"])[ORDER % 2]))
    np.testing.assert_array_equal(code(schema, texts(["w", None])), np.zeros((2, 2)))


@pytest.mark.parametrize(
    "style", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]
)
def test_dates_are_days_and_a_season(style):
    when = [datetime(2019 + i % 3, 1 + i % 12, 1 + i % 28, 12) for i in ORDER]
    values = texts([d.strftime(style) for d in when])
    schema = learned(values)
    assert schema.features == ["v in days", "v, winter", "v, spring"]
    found = code(schema, values)
    days = np.array([d.toordinal() for d in when])
    np.testing.assert_allclose(found[:, 0] - found[0, 0], days - days[0])
    np.testing.assert_allclose(np.hypot(found[:, 1], found[:, 2]), 1)
    days = texts([date(2021, *day).strftime(style) for day in ((1, 1), (4, 2))])
    np.testing.assert_allclose(code(schema, days)[:, 1:], np.eye(2), atol=0.02)
    typed = learned(pa.array([d.date() for d in when]))
    np.testing.assert_allclose(
        code(typed, pa.array([when[5].date()]))[0, 1:], found[5, 1:], atol=0.01
    )


def test_american_dates_where_a_day_is_above_12():
    values = texts([f"{1 + i % 12}/{1 + i % 28}/2020" for i in ORDER])
    assert learned(values).columns[0].style == "%m/%d/%Y"


def test_infinite_and_unreadable_cells_are_missing():
    schema = learned(texts([*ORDER[:-1] ** 2, "inf"]))
    seen = Seen.nothing()
    found = code(schema, texts(["4", "much", "-1e3"]), seen=seen)
    fill = np.median(ORDER[:-1] ** 2)
    np.testing.assert_array_equal(found, [[4, 0], [fill, 1], [-1000, 0]])
    assert seen.strays == {"v": 1}


def test_infinite_cells_of_a_fit_are_told():
    _, coded = learn_table(
        pa.table({"v": [*(ORDER[:-1] * 0.5), np.inf], "y": texts(ORDER % 2)}), "y"
    )
    assert coded.seen.notes == ["1 infinite cell of 'v', taken for missing"]


def test_a_number_near_the_only_fitted_one_is_not_far():
    schema, seen = learned(pa.array([5.0, None] * (N // 2))), Seen.nothing()
    code(schema, pa.array([5.0000001, 9.9, 10.1]), seen=seen)
    assert seen.far["v"][:3] == (1, 10.1, 10.1)
    assert "which are 5: 10.1." in seen.notes[0]


@pytest.mark.parametrize(
    "cells", [texts(["1", "0", "2"]), pa.array([1, 0, 2]), pa.array([1.0, 0.0, 2.0])]
)
def test_truths_may_be_0_and_1_later(cells):
    seen = Seen.nothing()
    schema = learned(texts(np.array(["yes", "no", "no"])[ORDER % 3]))
    np.testing.assert_array_equal(code(schema, cells, seen=seen), [[1], [0], [0]])
    assert seen.strays == {"v": 1}
    assert type(learned(texts(ORDER % 2)).columns[0]).__name__ == "Number"
    assert type(learned(pa.array(ORDER % 2)).columns[0]).__name__ == "Number"


def test_a_column_of_another_type_is_refused():
    schema = learned(pa.array(ORDER * 0.5))
    with pytest.raises(InvalidInput, match="'v' must be a number"):
        code(schema, pa.array([date(2020, 1, 1)]))


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 30, "classes"),
        ([True, False] * 30, "classes"),
        (["1", "2", "3"] * 20, "classes"),
        ([1.0, 0.0] * 30, "classes"),
        ([0.5, 1.5] * 30, "number"),
        (list(range(60)), "number"),
    ],
)
def test_the_task_is_guessed(values, task):
    table = pa.table({"v": np.sqrt(ORDER), "y": values})
    assert schema_of(table).task == task


def test_targets_of_whole_numbers_are_numbers_again():
    table = pa.table({"v": np.sqrt(ORDER), "y": texts([10, 9, None] * 20)})
    found = schema_of(table).targets(table)
    np.testing.assert_array_equal(found.y, [10, 9] * 20)
    assert found.y.dtype.kind == "i"
    with pytest.raises(InvalidInput, match="'09' in row 2"):
        schema_of(table).targets(pa.table({"y": texts([10, "09"])}))
    np.testing.assert_array_equal(found.kept, ORDER % 3 < 2)


@pytest.mark.parametrize(
    "labels",
    [
        ["01", "1", "001"],
        [2**53, 2**53 + 1, 2**53 + 2],
        [10**20, 10**20 + 1, -(10**20)],
        ["1.0", "1", "1.00"],
        [" 7 ", "7.5", "x"],
    ],
)
def test_labels_are_what_the_file_says(labels):
    given = texts(labels * 20)
    table = pa.table({"v": np.sqrt(ORDER), "y": given})
    schema, coded = learn_table(table, "y", "classes")
    assert [str(v) for v in coded.y] == [str(v).strip() for v in given.to_pylist()]
    assert len(np.unique(coded.y)) == 3
    np.testing.assert_array_equal(schema.targets(table).y, coded.y)


def test_labels_of_a_typed_file_are_exact():
    big = [2**53, 2**53 + 1] * 30
    coded = learn_table(pa.table({"v": np.sqrt(ORDER), "y": big}), "y", "classes")[1]
    assert coded.y.tolist() == big
    unsigned = pa.array([2**64 - 1, 2**64 - 2] * 30, pa.uint64())
    coded = learn_table(pa.table({"v": np.sqrt(ORDER), "y": unsigned}), "y", "classes")[1]
    assert coded.y.tolist() == [str(v) for v in unsigned.to_pylist()]


def test_labels_that_are_one_number_in_two_spellings_are_told():
    table = pa.table({"v": np.sqrt(ORDER), "y": texts(["01", "1", "2"] * 20)})
    assert "'01' and '1'" in learn_table(table, "y", "classes")[1].notes[0]


@pytest.mark.parametrize(
    "values",
    [
        pa.nulls(N),
        pa.array([[1, 2]] * N),
        pa.array([b"a", b"b"] * 30),
        pa.array([{"a": 1}] * N),
    ],
)
def test_a_target_that_is_no_number_and_no_text_is_refused(values):
    with pytest.raises(InvalidInput, match=r"must hold (numbers or text|values)"):
        learn_table(pa.table({"v": np.sqrt(ORDER), "y": values}), "y")


def test_new_levels_are_named_with_the_number_of_their_rows():
    schema, seen = learned(texts(["u"] * 30 + ["v"] * 26 + ["w", "x", "z", None])), Seen.nothing()
    code(schema, texts(["u", "w", "new", "new", None, "newer"]), seen=seen)
    code(schema, texts(["new"]), seen=seen)
    assert seen.new == {"v": {"new": 3, "newer": 1}}


def test_learned_rows_are_those_that_the_schema_codes(table):
    days = pa.array([date(2020, 1 + i % 12, 3) for i in ORDER])
    gaps = texts([None if i % 9 == 0 else "ba"[i % 2] for i in ORDER])
    table = table.append_column("day", days).set_column(8, "y", gaps)
    schema, coded = learn_table(table, "y")
    targets, seen = schema.targets(table), Seen.nothing()
    kept = table.filter(pa.array(targets.kept))
    np.testing.assert_array_equal(coded.x, schema.code(kept, seen=seen))
    np.testing.assert_array_equal(coded.y, targets.y)
    np.testing.assert_array_equal(coded.kept, ORDER % 9 > 0)
    assert coded.seen.strays == seen.strays == {"x": 1}


def test_rows_without_a_target_teach_no_schema():
    table = pa.table(
        {"v": texts([*ORDER[:30], *[1000] * 30]), "y": texts(["a", "b"] * 15 + [None] * 30)}
    )
    assert schema_of(table.append_column("w", texts(ORDER % 5))).dropped == (
        ("v", "it only counts the rows"),
    )


@pytest.mark.parametrize(
    ("target", "task", "said"),
    [
        ("Agee", None, "Is 'age' meant"),
        ("name", None, "60 in 60 rows"),
        ("colour", "number", "'red'"),
        ("colour", "clases", "'classes'"),
    ],
)
def test_targets_that_cannot_be_learned(table, target, task, said):
    with pytest.raises(InvalidInput, match=said):
        learn_table(table, target, task)


def test_no_column_is_left():
    with pytest.raises(InvalidInput, match="'v': the same in every row"):
        learned(pa.array([1] * N))


def test_a_count_of_rows_is_used_where_there_is_nothing_else():
    assert [c.name for c in learned(pa.array(ORDER)).columns] == ["v"]


def kinds(cells):
    """What a column of these cells is taken for, and how many of them cannot be read."""
    table = pa.table({"v": cells, "y": ["a", "b"] * (len(cells) // 2)})
    schema, coded = learn_table(table, "y")
    return [type(column).__name__ for column in schema.columns], dict(coded.seen.strays)


def test_a_third_word_that_comes_again_makes_a_category_of_truths():
    truths = ["yes", "no", "Yes"] * 66
    assert kinds([*truths, "perhaps", "yse"]) == (["Boolean"], {"v": 2})
    assert kinds([*truths, "perhaps", "perhaps"]) == (["Boolean"], {"v": 2})
    assert kinds([*truths, "perhaps", "perhaps", "perhaps", "no"]) == (["Category"], {})


def test_labels_that_differ_beyond_double_precision_are_not_called_alike():
    long = ["100000000000000000000", "100000000000000000001"]
    _, coded = learn_table(pa.table({"v": np.sqrt(np.arange(40)), "y": long * 20}), "y")
    assert coded.notes == ()
    assert coded.y[:2].tolist() == long
    _, coded = learn_table(pa.table({"v": np.sqrt(np.arange(40)), "y": ["1e3", "1000"] * 20}), "y")
    assert "told apart by their spelling: '1000' and '1e3'" in coded.notes[0]


def test_classes_of_one_row_are_named():
    v = np.sqrt(np.arange(40))
    _, coded = learn_table(pa.table({"v": v, "y": ["a", "b"] * 19 + ["c", "d"]}), "y")
    assert coded.notes[0].endswith("without any other of its kind: 'c', 'd'")
    _, coded = learn_table(pa.table({"v": v[:2], "y": ["a", "b"]}), "y")
    assert coded.notes == ()


def test_thousands_of_classes_are_refused_before_any_fit():
    rows = np.arange(6000)
    table = pa.table({"v": np.sqrt(rows), "y": [f"c{i % 3000}" for i in rows]})
    with pytest.raises(InvalidInput, match="got 'y' with 3000 in 6000 rows, like 'c0'"):
        learn_table(table, "y")


@pytest.mark.parametrize("form", ["${:,.2f}", "{:.1f}%", "{:.2f} kg", "({:.2f})", "1'{:07.3f}"])
def test_numbers_that_are_dressed_up_are_named_with_a_remedy(form):
    cells = [form.format(v) for v in np.sqrt(np.arange(100, 100 + N))]
    table = pa.table({"price": cells, "v": np.sqrt(ORDER), "y": ["a", "b"] * (N // 2)})
    ((name, why),) = schema_of(table).dropped
    assert name == "price"
    assert why.endswith(
        f"different values in {N} rows, like {cells[0]!r}; bare numbers would be used"
    )


def test_labels_that_differ_in_capitals_alone_are_told():
    labels = ["dear", "Dear", "cheap", "so  so", "so so", "x"] * (N // 6)
    _, coded = learn_table(pa.table({"v": np.sqrt(ORDER), "y": labels}), "y")
    assert len(set(coded.y)) == 6
    assert "told apart by their spelling: 'Dear' and 'dear'" in coded.notes[0]
