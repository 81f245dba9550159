"""Cells that a spreadsheet takes for text, whatever they begin with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = "^[=+@\t\r-]"  # what a spreadsheet takes for the beginning of a formula


def safe_cells(batch: Any) -> Any:
    """A record batch whose text, names of columns included, is no formula: ' goes before it.

    >>> safe_cells(pa.record_batch({"=a": ["=1+1", "b"], "n": [-1, 2]})).to_pydict()
    {"'=a": ["'=1+1", 'b'], 'n': [-1, 2]}
    """
    names = pa.array(batch.schema.names, pa.string())
    columns = [_safe(c) if pa.types.is_string(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=_safe(names).to_pylist())


def _safe(text: Any) -> Any:
    risky = pc.match_substring_regex(text, _FORMULA)
    return pc.if_else(risky, pc.binary_join_element_wise("'", text, ""), text)
