"""Cells that made a row suspicious."""

import numpy as np
import pyarrow as pa
import pytest

from mtbayes.data.schema import learn_table
from mtbayes.estimators import RobustClassifier, RobustRegressor
from mtbayes.tables.cells import with_cells
from mtbayes.tables.findings import Findings
from mtbayes.tables.model import TableModel, TableRows

N = 200
WRONG = 6  # a long and red one that is called short


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    long = np.arange(N) % 2 == 0
    given = np.where(long, "long", "short")
    given[WRONG] = "short"
    length: list[float | None] = (np.where(long, 30.0, 10.0) + rng.normal(size=N)).tolist()
    length[WRONG + 2] = None
    colour = np.where(long == (rng.random(N) < 0.97), "red", "blue")
    colour[WRONG] = "red"
    return pa.table({"noise": rng.normal(size=N), "length": length, "colour": colour, "y": given})


def told(table, suspects, suggested, estimator=RobustClassifier, count=1):
    """The reasons of rows that a judge calls wrong."""
    schema, coded = learn_table(table, "y")
    rows = TableRows(table, 1 + np.arange(len(table)), coded.x, coded.y)
    order = np.array([*suspects, *np.setdiff1d(np.arange(len(table)), suspects)])
    wrong = np.where(np.isin(order, suspects), 0.9, 0.01)
    given = coded.y[order].tolist()
    others = [suggested if w > 0.5 else g for g, w in zip(given, wrong, strict=True)]
    found = Findings(order, wrong, given, others, ["so"] * len(table), [])
    return with_cells(TableModel(estimator(), schema), rows, found, count).why


def test_cells_that_only_the_suggestion_has_are_named(table):
    first, *rest = told(table, [WRONG], "long")
    begin, reasons = first.split("; unusual for short: ")
    length = table.column("length")[WRONG].as_py()
    z = (length - 10) / 1.0
    assert begin == "so"
    assert set(rest) == {"so"}
    assert reasons.startswith(f"length {length:.5g} (")
    assert float(reasons.split("(")[1].split(" sd above")[0]) == pytest.approx(z, rel=0.3)
    assert "colour red (rare)" in reasons
    assert "noise" not in reasons


def test_a_row_that_is_as_unusual_for_both_has_no_such_reason(table):
    """Noise that is wild speaks for neither."""
    noise = table.column("noise").to_numpy().copy()
    noise[1] = 40.0
    wild = table.set_column(0, "noise", pa.array(noise))
    (first, *_) = told(wild, [1], "long")  # a short one, rightly called so
    assert "noise" not in first


def test_rows_behind_the_first_and_rows_that_look_right_stay_as_they_are(table):
    why = told(table, [WRONG, 1], "long", count=1)
    assert "unusual" in why[0]
    assert set(why[1:]) == {"so"}
    assert set(told(table, [], "long", count=N)) == {"so"}


def test_a_missing_cell_is_not_called_far(table):
    length = table.column("length").to_pylist()
    length[WRONG] = None
    (first, *_) = told(table.set_column(1, "length", pa.array(length)), [WRONG], "long")
    assert first == "so; unusual for short: colour red (rare)"


def test_a_value_is_compared_with_values_where_most_cells_are_empty(table):
    """Fill-ins are no values: beside them any length would be far off."""
    rng = np.random.default_rng(1)
    long = np.arange(N) % 2 == 0
    cells = zip(rng.normal(20, 3, N), long, strict=True)
    length = [float(v) if keep else None for v, keep in cells]
    length[1], length[3], length[5] = 12.0, 20.0, 28.0  # three short ones that have a length
    length[WRONG] = 26.0
    gaps = table.set_column(1, "length", pa.array(length))
    (first, *_) = told(gaps, [WRONG], "long")
    assert "length" not in first


def test_an_empty_cell_is_rare_or_nothing_is_said(table):
    length = table.column("length").to_pylist()
    length = [None if i % 2 == 0 else v for i, v in enumerate(length)]  # long ones have none
    gaps = table.set_column(1, "length", pa.array(length))
    (first, *_) = told(gaps, [WRONG], "long")
    assert "length missing (rare)" in first


def test_yes_and_no_are_rare_and_not_far(table):
    red = [("yes" if v == "red" else "no") for v in table.column("colour").to_pylist()]
    truths = table.set_column(2, "red", pa.array(red))
    (first, *_) = told(truths, [WRONG], "long")
    assert "red yes (rare)" in first


def test_numbers_have_no_cells():
    rng = np.random.default_rng(0)
    area = rng.uniform(10, 100, N)
    price = 3 * area + rng.normal(size=N)
    price[5], area[5] = 300.0, 12.0
    (first, *_) = told(pa.table({"area": area, "y": price}), [5], 36.0, RobustRegressor)
    assert first == "so"


def test_pixels_are_not_named():
    rng = np.random.default_rng(0)
    many = {f"p{i}": rng.normal(size=N) + 9.0 * (np.arange(N) % 2) for i in range(120)}
    table = pa.table(many | {"y": np.where(np.arange(N) % 2, "a", "b")})
    assert set(told(table, [3], "b")) == {"so"}
