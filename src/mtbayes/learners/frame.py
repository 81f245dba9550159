"""A user's own table, for an estimator of the user's own that knows what to do with it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mtbayes.types import Array, FloatArray


class Frame:
    """Rows of a data frame, or of an array of any values, that are taken as arrays are.

    table: what a user gave, or some rows of it, in its own kind
    To NumPy it is a number for each cell, by which equal rows are known; nothing is learned from
    those.

    >>> rows = Frame(np.array([["a", 1], ["b", 2], ["a", 1]], object))
    >>> numbers = np.asarray(rows)
    >>> bool((numbers[0] == numbers[2]).all()), bool((numbers[0] == numbers[1]).any())
    (True, False)
    >>> rows[1:].table.tolist()
    [['b', 2], ['a', 1]]
    """

    def __init__(self, table: Any, numbers: FloatArray | None = None) -> None:
        self.table = table
        self.numbers = _numbers(table) if numbers is None else numbers
        self.shape, self.size = self.numbers.shape, self.numbers.size

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Any) -> Frame:
        places = np.arange(len(self))[which]
        return Frame(_safe_indexing(self.table, places), self.numbers[places])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.numbers, dtype)


def as_given(x: Array) -> Any:
    """Rows as a user gave them."""
    return x.table if isinstance(x, Frame) else x


def _numbers(table: Any) -> FloatArray:
    names = getattr(table, "columns", range(np.shape(table)[1]))
    by_place = isinstance(table, np.ndarray)
    cells = [np.asarray(table[:, name] if by_place else table[name]) for name in names]
    return np.stack([_of_cells(each) for each in cells], axis=1).astype(float)


def _of_cells(cells: Array) -> FloatArray:
    """Numbers as they are; anything else by a digest, which is the same in any table."""
    if cells.dtype.kind in "biuf":
        return np.asarray(cells, float)
    words, place = np.unique([f"{type(v).__name__} {v}" for v in cells], return_inverse=True)
    digests = b"".join(blake2b(word.encode(), digest_size=6).digest() + b"\0\0" for word in words)
    return np.frombuffer(digests, "<u8").astype(float)[place]
