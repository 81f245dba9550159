"""One style of numbers for a file, decided from all of it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbayes.data import numerals
from mtbayes.data.coder import Seen
from mtbayes.data.reading import open_table
from mtbayes.data.schema import learn_table
from mtbayes.errors import InvalidInput

N = 40


def column(cells, others=()):
    """The one column "v" of a table whose other columns are text too, and what was noted."""
    count = -(-N // len(cells))
    own = {"v": pa.array(cells * count), "y": pa.array((["a", "b"] * N)[: count * len(cells)])}
    own |= {f"w{i}": pa.array(other * count) for i, other in enumerate(others)}
    schema, coded = learn_table(pa.table(own), "y")
    at = schema.features.index("v")
    return schema, coded.x[: len(cells), at].tolist(), coded.notes


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1.628", "2.5", "3.75"], [1.628, 2.5, 3.75]),
        (["1.628", "2,5", "3,75"], [1628, 2.5, 3.75]),
        (["1.628,5", "2", "-3.000"], [1628.5, 2, -3000]),
        (["1,628.5", "2", "-3,000"], [1628.5, 2, -3000]),
        (["1.234.567", "2.000", "3"], [1234567, 2000, 3]),
        (["0.125", "2.000", "3"], [0.125, 2, 3]),
        (["0,125", "2,000", "3"], [0.125, 2, 3]),
        (["1.5e3", "2.000", "3e-2"], [1500, 2, 0.03]),
        (["12", "-3", "+4"], [12, -3, 4]),
    ],
)
def test_cells_of_a_column_speak_for_each_other(cells, read):
    _, found, notes = column(cells)
    assert found == pytest.approx(read, rel=1e-15)
    assert notes == ()


def test_other_columns_speak_where_a_column_does_not():
    cells = ["1.628", "2.000", "3"]
    assert column(cells, [["4,5", "1,25", "7"]])[1] == [1628, 2000, 3]
    assert column(cells, [["4.5", "1.25", "7"]])[1] == [1.628, 2, 3]
    assert column(cells, [["a,b", "1,25 to 3", "no"]])[1] == [1.628, 2, 3]


def test_a_column_that_nothing_speaks_for_is_told_of():
    _, found, notes = column(["1.628", "2.000", "3"])
    assert found == [1.628, 2, 3]
    assert "'v' has cells like 1.628, which may be 1.628 or 1628" in notes[0]


def test_the_style_is_kept_and_later_cells_that_contradict_it_are_refused():
    schema, _, _ = column(["1.628", "2,5", "3,75"])
    later = pa.table({"v": ["2.000", "3"]})
    assert schema.code(later)[:, 0].tolist() == [2000, 3]
    again = type(schema).from_json(schema.as_json())
    with pytest.raises(InvalidInput, match=r"decimal comma.*got '2\.5' in row 2"):
        again.code(pa.table({"v": ["1", "2.5"]}))


def test_a_cell_that_contradicts_the_others_is_refused_with_its_line(tmp_path):
    path = tmp_path / "some.csv"
    lines = ["v;remark;y", "1.628;x;a", '2.5;"two', 'lines";b', "3.75;x;a", "", "4,5;x;b"] * 1
    path.write_text("\n".join([*lines, *["3.1;x;a"] * 30]) + "\n")
    source = open_table(path)
    with pytest.raises(InvalidInput, match=r"'v'.*decimal point.*'4,5' in line 7\."):
        learn_table(source.table(), "y", where=source.where)


def test_a_target_has_its_own_style_kept():
    values = ["1.628", "2,5", "3,75", "1,25"] * 10
    table = pa.table({"v": np.sqrt(np.arange(40)), "y": values})
    schema, coded = learn_table(table, "y", "number")
    assert coded.y[:3].tolist() == [1628, 2.5, 3.75]
    assert schema.targets(pa.table({"y": ["2.000"]})).y.tolist() == [2000]
    with pytest.raises(InvalidInput, match=r"'y'.*'2\.75' in row 1"):
        schema.targets(pa.table({"y": ["2.75"]}))


def spelled(value, decimals, thousands, comma):
    text = f"{value:{',' if thousands else ''}.{decimals}f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


@given(
    st.lists(
        st.tuples(st.floats(-1e12, 1e12, allow_subnormal=False), st.integers(0, 6), st.booleans()),
        min_size=1,
        max_size=30,
    ),
    st.booleans(),
)
def test_whatever_is_spelled_in_a_style_is_read_in_it(numbers, comma):
    cells = [spelled(*number, comma) for number in numbers]
    expected = [float(f"{value:.{decimals}f}") for value, decimals, _ in numbers]
    sign = numerals.COMMA if comma else numerals.POINT
    found, strays = numerals.read(pa.array(cells), sign)
    assert found.to_pylist() == expected
    assert strays == 0
    told = numerals.decide({"v": pa.array(cells)})
    assert "v" in told.ambiguous or told.decimals.get("v", sign) == sign


def test_whole_numbers_have_the_style_of_their_file():
    cells = ["1000", "2345", "7"]
    schema, _, _ = column(cells, [["4,5", "1,25", "7"]])
    assert schema.code(pa.table({"v": ["1.234"], "w0": ["0,5"]}))[0].tolist() == [1234, 0.5]
    with pytest.raises(InvalidInput, match=r"numbers with a decimal comma.*'1.5' in row 1"):
        schema.code(pa.table({"v": ["1.5"], "w0": ["0,5"]}))


@pytest.mark.parametrize(
    ("fitted", "later", "told"),
    [
        (["12", "700", "3"], ["1.234", "5"], True),  # no cell of either file tells
        (["12", "700", "3"], ["1.234", "5.5"], False),
        (["12.5", "700", "3"], ["1.234", "5"], False),
    ],
)
def test_later_cells_that_may_be_thousands_are_told_of(fitted, later, told):
    schema, _, _ = column(fitted)
    seen = Seen.nothing()
    assert schema.code(pa.table({"v": later}), seen=seen)[0, 0] == 1.234
    assert any("1.234 for 1234" in note for note in seen.notes) == told
