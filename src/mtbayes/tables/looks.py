"""What a person needs to see of a row: what is unusual about it, and rows like it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from mtbayes.data.schema import Schema
from mtbayes.types import Array, FloatArray

UNUSUAL = 2.0
"""Standard deviations from the rows of the given class, from which a column is marked."""
_FAR = 99.0  # standard deviations, from which numbers say no more
_GROUP, _FEWEST = 0.05, 20  # of rows with a number alike, and at least so many
_FEW, _TINY = 5, 1e-12  # numbers or texts of a group, to be told from others
_MAD = 1.4826  # from a median of absolute values to a Gaussian's standard deviation


class Column(NamedTuple):
    """A cell, and how far it is from rows of the given and of the suggested class.

    given, suggested: signed, in standard deviations; None where the column is not used, or where no
        such rows are known
    rare: whether they say how rare the value is, which has no scale
    """

    name: str
    value: str
    given: float | None
    suggested: float | None
    rare: bool = False

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
        self.kinds = [column.kind for column in schema.columns]
        self.gaps = [getattr(column, "gaps", False) for column in schema.columns]
        spread = x.std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)

    def columns(
        self, row: int, cells: dict[str, str], given: Array, suggested: Array
    ) -> list[Column]:
        """The cells of a row, the most unusual for the given class first, unused ones last.

        given, suggested: rows of either class that are trusted
        """
        found = []
        groups = [group[group != row] for group in (given, suggested)]
        for name, block, kind, gaps in zip(
            self.names, self.blocks, self.kinds, self.gaps, strict=True
        ):
            own, rows = self.x[row, block], [self.x[group, block] for group in groups]
            rare = kind in _LEVELS
            if gaps and not rare:  # the last feature says that a cell was empty
                rare = bool(own[-1])
                own, rows = (
                    (own[-1:], [v[:, -1:] for v in rows])
                    if rare
                    else (own, [v[v[:, -1] == 0] for v in rows])
                )
            far = _levels_apart if rare else _FAR_BY_KIND.get(kind, _numbers_apart)
            near, other = far(own, rows)
            found.append(Column(name, cells[name], near, other, rare))
        found.sort(key=lambda column: -abs(column.given or 0.0))
        others = [name for name in cells if name not in set(self.names)]
        return found + [Column(name, cells[name], None, None) for name in others]

    def nearest(self, row: int, group: Array, count: int) -> list[int]:
        """The rows of a group that are most like a row, the nearest first."""
        group = group[group != row]
        away = (self.x[group] - self.x[row]) / self.scale
        order = np.argsort(np.einsum("ij,ij->i", away, away), kind="stable")[:count]
        return group[order].tolist()


def _numbers_apart(own: FloatArray, groups: list[FloatArray]) -> list[float | None]:
    """How far a number is from those of each group, in standard deviations."""
    return [_number_apart(own[0], rows[:, 0]) if len(rows) >= _FEW else None for rows in groups]


def _number_apart(own: float, values: FloatArray) -> float:
    middle = np.median(values)
    width = _MAD * float(np.median(np.abs(values - middle))) or float(values.std())
    if width == 0:
        return 0.0 if own == middle else float(np.copysign(_FAR, own - middle))
    return float(np.clip((own - middle) / width, -_FAR, _FAR))


def _levels_apart(own: FloatArray, groups: list[FloatArray]) -> list[float | None]:
    """As far as a number would be of which there are so few as rare."""
    level = _levels(own[None])[0]
    found: list[float | None] = []
    for rows in groups:
        levels = _levels(rows)
        counts = np.bincount(levels, minlength=level + 1)
        rare = counts[levels] <= counts[level]
        tail = (rare.sum() + 0.5) / (len(rows) + 1) / 2
        found.append(float(-ndtri(tail)) if len(rows) else None)
    return found


def _texts_apart(own: FloatArray, groups: list[FloatArray]) -> list[float | None]:
    """How far a text is from those of each group towards the other group.

    Of all directions of texts the one counts in which the groups differ, each part of it weighed by
    how little texts of one group differ there.
    """
    if min(map(len, groups)) < _FEW:
        return [None, None]
    between = groups[1].mean(axis=0) - groups[0].mean(axis=0)
    weight = between / (np.mean([rows.var(axis=0) for rows in groups], axis=0) + _TINY)
    found: list[float | None] = []
    for rows, side in zip(groups, (1, -1), strict=True):
        along = side * rows @ weight
        off = (side * float(own @ weight) - along.mean()) / (along.std() + _TINY)
        found.append(float(np.clip(off, 0.0, _FAR)))
    return found


_LEVELS = ("boolean", "category")
_FAR_BY_KIND = {"text": _texts_apart}


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
