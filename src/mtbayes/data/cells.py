"""Cells of a column, read as text or numbers."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.data import numerals
from mtbayes.data.reading import MISSING
from mtbayes.types import FloatArray


class Unfit(Exception):
    """A column is not of this kind, or not worth a place; says why."""


def is_text(values: Any) -> bool:
    """Whether a column's cells are text."""
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


class Cells:
    """A column of a table, read as text or numbers when first asked, and once.

    values: an Arrow array
    decimal: the sign before the decimals of numbers in text, if it is told; style: of dates in text
    """

    def __init__(self, values: Any, decimal: str = numerals.UNTOLD, style: str = "") -> None:
        self.values, self.style = values, style
        self.infinite = 0  # how many numbers are, once they are read
        self.told, self.decimal = decimal, decimal or numerals.POINT

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """Whether cells are text."""
        return is_text(self.values)

    @property
    def type(self) -> Any:
        """Arrow's type of the cells."""
        return self.values.type

    @property
    def empty(self) -> int:
        """How many cells are."""
        if self.is_text:
            return int(self.text.null_count)
        return int(pc.sum(pc.is_null(self.values, nan_is_null=True)).as_py() or 0)

    @cached_property
    def text(self) -> Any:
        """Cells as trimmed text, those that are missing as null."""
        trimmed = pc.utf8_trim_whitespace(pc.cast(self.values, pa.string()))
        return pc.if_else(pc.is_in(trimmed, pa.array(MISSING)), None, trimmed)

    def numbers(self) -> tuple[FloatArray, int]:
        """Cells as numbers, NaN where missing or infinite, and how many could not be read."""
        if self._numbers is None:
            raise Unfit
        return self._numbers

    @cached_property
    def _numbers(self) -> tuple[FloatArray, int] | None:
        kind, strays = self.type, 0
        if self.is_text:
            found, strays = numerals.read(self.text, self.decimal)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            found = pc.cast(self.values, pa.float64(), safe=False)
        elif pa.types.is_duration(kind) or pa.types.is_time(kind):
            found = _seconds(self.values)
        else:
            return None
        array = np.array(found.to_numpy(zero_copy_only=False), float)
        infinite = np.isinf(array)
        self.infinite = int(infinite.sum())
        array[infinite] = np.nan
        return array, strays


class Far(NamedTuple):
    """How many numbers of a column lie far from all fitted ones, the least and the largest."""

    total: int
    low: float
    high: float
    fitted: str
    """What was, in words."""

    def beside(self, other: Far) -> Far:
        """Of both."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Far(self.total + other.total, low, high, self.fitted)

    @property
    def words(self) -> str:
        """What they are: one, or between which they lie."""
        return f"{self.low:g}" + (f" to {self.high:g}" if self.high > self.low else "")


def _seconds(values: Any) -> Any:
    """Durations, or times of a day, in seconds."""
    plain = pa.duration("us") if pa.types.is_duration(values.type) else pa.time64("us")
    ticks = pc.cast(pc.cast(values, plain, safe=False), pa.int64())
    return pc.divide(pc.cast(ticks, pa.float64(), safe=False), 1e6)
