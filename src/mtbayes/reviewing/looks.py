"""What a person needs to see of a row: what is unusual about it, and rows like it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from mtbayes.data.kinds import Category
from mtbayes.data.schema import Schema
from mtbayes.types import Array, FloatArray

UNUSUAL = 2.0
"""Standard deviations from the rows of the given class, from which a column is marked."""
_FAR = 99.0  # standard deviations, from which numbers say no more
_GROUP, _FEWEST = 0.05, 20  # of rows with a number alike, and at least so many
_MAD = 1.4826  # from a median of absolute values to a Gaussian's standard deviation


class Column(NamedTuple):
    """A cell, and how far it is from rows of the given and of the suggested class.

    given, suggested: signed, in standard deviations; None where the column is not used, or where no
        such rows are known
    """

    name: str
    value: str
    given: float | None
    suggested: float | None

    @property
    def unusual(self) -> bool:
        """Whether the given class hardly has such values."""
        return self.given is not None and abs(self.given) >= UNUSUAL


class Looks:
    """The columns of all rows, beside groups of them that are trusted."""

    def __init__(self, schema: Schema, x: FloatArray) -> None:
        self.x, self.names = x, [column.name for column in schema.columns]
        ends = np.cumsum([len(column.features()) for column in schema.columns])
        self.blocks = [slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True)]
        self.levels = [isinstance(column, Category) for column in schema.columns]
        spread = x.std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)

    def columns(
        self, row: int, cells: dict[str, str], given: Array, suggested: Array
    ) -> list[Column]:
        """The cells of a row, the most unusual for the given class first, unused ones last.

        given, suggested: rows of either class that are trusted
        """
        found = []
        for name, block, levels in zip(self.names, self.blocks, self.levels, strict=True):
            far = [self._far(row, block, group, levels) for group in (given, suggested)]
            found.append(Column(name, cells[name], *far))
        found.sort(key=lambda column: -abs(column.given or 0.0))
        others = [name for name in cells if name not in set(self.names)]
        return found + [Column(name, cells[name], None, None) for name in others]

    def _far(self, row: int, block: slice, group: Array, levels: bool) -> float | None:
        """How far a column of a row is from those of a group, in standard deviations."""
        group = group[group != row]
        if not len(group):
            return None
        if levels:  # as far as a number would be of which there are so few as rare
            rows, own = _levels(self.x[group, block]), _levels(self.x[None, row, block])[0]
            counts = np.bincount(rows, minlength=own + 1)
            rare = counts[rows] <= counts[own]
            return float(norm.isf((rare.sum() + 0.5) / (len(group) + 1) / 2))
        values, own = self.x[group, block.start], self.x[row, block.start]
        middle = np.median(values)
        width = _MAD * float(np.median(np.abs(values - middle))) or float(values.std())
        if width == 0:
            return 0.0 if own == middle else float(np.copysign(_FAR, own - middle))
        return float(np.clip((own - middle) / width, -_FAR, _FAR))

    def nearest(self, row: int, group: Array, count: int) -> list[int]:
        """The rows of a group that are most like a row, the nearest first."""
        group = group[group != row]
        away = (self.x[group] - self.x[row]) / self.scale
        order = np.argsort(np.einsum("ij,ij->i", away, away), kind="stable")[:count]
        return group[order].tolist()


def _levels(coded: FloatArray) -> Array:
    """A number for each level of a category, 0 for one that was never seen, [n]."""
    return np.where(coded.any(axis=1), coded.argmax(axis=1) + 1, 0)


def like(y: Array, target: Any, trusted: Array, *, numbers: bool) -> Array:
    """Trusted rows [k] with a target, or with the numbers nearest to it."""
    if not numbers:
        return np.flatnonzero(trusted & (y == target))
    rows = np.flatnonzero(trusted)
    count = min(len(rows), max(_FEWEST, round(_GROUP * len(rows))))
    return np.sort(rows[np.argsort(np.abs(y[rows] - target), kind="stable")[:count]])
