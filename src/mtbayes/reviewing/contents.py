"""Rows known by what is in them, wherever in a file they are."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Any

_BETWEEN = "\x1f"  # cells
_NOTHING = "\x00"  # a cell that is missing


def keys(table: Any) -> list[str]:
    """A text for each row of a `pyarrow.Table`: equal for equal rows, but for a count of copies.

    Neither the order of rows nor that of columns matters.

    >>> import pyarrow as pa
    >>> one, other = keys(pa.table({"a": [1, 1], "b": ["x", "x"]}))
    >>> other == f"{one}#2"
    True
    """
    names = sorted(table.column_names)
    head = _BETWEEN.join(names)
    seen: Counter[str] = Counter()
    found = []
    for cells in zip(*(texts(table.column(name)) for name in names), strict=True):
        row = _BETWEEN.join([head, *cells])
        digest = blake2b(row.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        seen[digest] += 1
        found.append(digest if seen[digest] == 1 else f"{digest}#{seen[digest]}")
    return found


def texts(column: Any) -> list[str]:
    """Cells as text."""
    return [_NOTHING if v is None else str(v) for v in column.to_pylist()]
