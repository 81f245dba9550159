"""Targets as a file writes them, and as a model takes them."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import pyarrow as pa

from mtbayes.data.cells import Cells, is_text
from mtbayes.data.reading import MISSING
from mtbayes.data.schema import Schema
from mtbayes.errors import InvalidInput
from mtbayes.types import Array

_MOST_DIGITS = 6  # behind the point, that are worth writing


class Values:
    """Between the cells of a target and labels or numbers.

    given: [n], the cells of the rows as text
    """

    def __init__(self, schema: Schema, column: Any, y: Array) -> None:
        self.schema = schema
        labels = y.tolist()
        text = is_text(column)
        self.given: list[str] = column.to_pylist() if text else [str(v) for v in labels]
        self._commas = text and schema.decimal == "," and any("," in cell for cell in self.given)
        self._digits = None
        if schema.task == "number":
            self._digits = _digits(self.given if text else [], labels, schema.decimal)
        self._cells: dict[Any, str] = {}
        self._parsed: dict[str, Any] = {}
        if schema.task == "classes":  # as most rows write it
            counts: dict[Any, Counter[str]] = {}
            for label, cell in zip(labels, self.given, strict=True):
                counts.setdefault(label, Counter())[cell] += 1
            self._cells = {v: c.most_common(1)[0][0].strip() for v, c in counts.items()}

    def text(self, value: Any) -> str:
        """A label or a number as a cell of the file."""
        if self.schema.task == "classes":
            return self._cells.get(value, str(value))
        plain = f"{value:.6g}" if self._digits is None else f"{value:.{self._digits}f}"
        return plain.replace(".", ",") if self._commas else plain

    def parse(self, text: str) -> Any:
        """A cell as a label or a number."""
        if text not in self._parsed:
            self._parsed[text] = parse(self.schema, text)
        return self._parsed[text]


def _digits(cells: list[str], numbers: list[float], decimal: str = ".") -> int | None:
    """How many digits a column has behind the point; None where that differs much.

    >>> _digits(["1.50", "2.25"], [1.5, 2.25]), _digits([], [3.0, 4.0]), _digits([], [0.1])
    (2, 0, None)
    >>> _digits(["3.0", "4.0"], [3.0, 4.0]), _digits(["1,500", "2"], [1500.0, 2.0])
    (1, 0)
    """
    sign = re.escape(decimal)
    ends = [re.search(rf"{sign}(\d+)$", cell.strip()) for cell in cells]
    found = [len(end[1]) for end in ends if end]
    if all(number % 1 == 0 for number in numbers):  # which 3.00 is too
        return max(found) if len(found) == len(cells) and found else 0
    return max(found) if found and max(found) <= _MOST_DIGITS else None


def parse(schema: Schema, text: str) -> Any:
    """A cell of the target as a label or a number; what is neither is refused."""
    plain = text.strip()
    if plain in MISSING:
        raise InvalidInput("a target must have a value, got none. Drop the row if it has none.")
    if schema.task == "classes" and not schema.whole:
        return plain
    number = float(Cells(pa.array([plain]), schema.decimal).numbers()[0][0])
    if not math.isfinite(number) or (schema.task == "classes" and number % 1):
        kind = "whole number" if schema.task == "classes" else "number"
        kind += " with a decimal comma" if schema.decimal == "," else ""
        raise InvalidInput(
            f"{schema.target!r} must be a {kind} as in the other rows, got {text.strip()!r}."
        )
    return int(number) if schema.task == "classes" else number
