"""Columns that are the pixels of a square image, so that a row can be drawn."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mtbayes.data.cells import Unfit
from mtbayes.data.coder import cells_of
from mtbayes.data.kinds import Number
from mtbayes.data.numerals import POINT
from mtbayes.data.schema import Schema
from mtbayes.types import FloatArray

_SMALLEST = 8  # pixels on a side
_ALIKE = 0.8  # how much less neighbours differ than any two pixels, at most


def pixel_columns(schema: Schema) -> list[str] | None:
    """Names of the columns of a square image, line by line; None if the columns are no such.

    Pixels are numbers without gaps whose names differ in whole numbers alone, like pixel_0_7 or
    p63, and by which they are sorted. A pixel that is the same in every row was dropped.
    """
    names = []
    for column in schema.columns:
        if not isinstance(column, Number) or column.gaps:
            return None
        names.append(column.name)
    names += [name for name, why in schema.dropped if why == "the same in every row"]
    side = round(len(names) ** 0.5)
    stems = {re.sub(r"\d+", "#", name) for name in names}
    if side < _SMALLEST or side * side != len(names) or len(stems) != 1 or "#" not in stems.pop():
        return None
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def images(table: Any, schema: Schema) -> FloatArray | None:
    """Rows as images [n, side, side]; None where columns are no pixels.

    Neighbours in an image are alike: where they differ nearly as much as any two columns, 64
    columns that happen to be numbered are no image.
    """
    names = pixel_columns(schema)
    if names is None or not set(names) <= set(table.column_names):
        return None
    decimals = schema.coder.decimals
    columns = [cells_of(table.column(name), decimals.get(name, POINT)) for name in names]
    try:
        found = np.stack([cells.numbers()[0] for cells in columns], axis=1)
    except Unfit:
        return None
    side = round(len(names) ** 0.5)
    pictures = np.nan_to_num(found).reshape(-1, side, side)
    some = pictures[:1000]
    apart = np.abs(np.diff(some, axis=2)).mean()
    shuffled = np.random.default_rng(0).permutation(some.reshape(len(some), -1), axis=1)
    anyhow = np.abs(np.diff(shuffled, axis=1)).mean()
    return pictures if apart < _ALIKE * anyhow else None
