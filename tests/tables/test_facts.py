"""The numbers of the page of a model."""

import pyarrow as pa

from mtbayes.tables.facts import _cells


def test_cells_are_in_one_style():
    values = pa.chunked_array([["1.234,5", "0,123456789", "12o", None, "20231231"]])
    assert _cells(values, ",") == ["1234.5", "0.123457", "12o", "", "20231231"]
    assert _cells(pa.chunked_array([[True, None]]), ".") == ["True", ""]
