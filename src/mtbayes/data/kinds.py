"""Kinds of columns: what each learns from a column once, and how it codes any later one.

A kind reads a column of a typed file, or the text of a CSV, into numbers or levels. Missing values
take the place of the middle one, and a column beside it tells where they were. A cell that cannot
be read is taken for missing and counted: among dirty rows one "12o" must not turn a column of
numbers into text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.data.reading import MISSING
from mtbayes.types import FloatArray

_READABLE = 0.95  # of the cells, for a column of text to be of a kind
_COMMON = 5  # rows of a level that gets a column of its own
_LEVELS = 50
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_TRUTHS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_YEAR = 365.2425


class Unfit(Exception):
    """A column is not of this kind, or not worth a place; says why."""


class Kind(Protocol):
    """A column as it was learned; a frozen dataclass of numbers and text."""

    name: str

    def features(self) -> list[str]:
        """Names of the numbers that it becomes."""

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """A column as numbers [n, k], and how many cells could not be read."""


def is_text(values: Any) -> bool:
    """Whether a column's cells are text."""
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


class Cells:
    """A column of a table, read as text or numbers when first asked, and once.

    values: an Arrow array; decimal: the sign between whole and part beside "."
    """

    def __init__(self, values: Any, decimal: str = ".") -> None:
        self.values, self.decimal = values, decimal

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
            given = len(self.text) - self.text.null_count
            plain = self.text
            if self.decimal == "," and pc.any(pc.match_substring(plain, ",")).as_py():
                plain = pc.replace_substring(pc.replace_substring(plain, ".", ""), ",", ".")
            try:
                found = pc.cast(plain, pa.float64())
            except pa.ArrowInvalid:
                plain = pc.if_else(pc.match_substring_regex(plain, _NUMBER), plain, None)
                found = pc.cast(plain, pa.float64())
            strays = given - (len(found) - found.null_count)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            found = pc.cast(self.values, pa.float64(), safe=False)
        else:
            return None
        array = np.array(found.to_numpy(zero_copy_only=False), float)
        array[~np.isfinite(array)] = np.nan
        return array, strays


@dataclass(frozen=True)
class _Plain:
    """A column that becomes one number; `fill` stands in gaps, `gaps` tells whether some were."""

    name: str
    fill: float
    gaps: bool

    @staticmethod
    def read(cells: Cells) -> tuple[FloatArray, int]:
        """Cells as numbers, NaN where missing, and how many could not be read."""
        raise NotImplementedError

    @staticmethod
    def middle(found: FloatArray) -> float:
        """What fills gaps."""
        return float(np.nanmedian(found))

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Self:
        """From a column of which nearly all cells can be read."""
        found, strays = cls.read(cells)
        _enough(found, strays)
        return cls(name, cls.middle(found), bool(np.isnan(found).any()))

    def features(self) -> list[str]:
        """The number, and whether it was missing."""
        return [self.name, *([f"{self.name} is missing"] if self.gaps else [])]

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """Numbers with the gaps filled."""
        found, strays = self.read(cells)
        return _filled(found, self.fill, self.gaps), strays


class Number(_Plain):
    """Numbers, or their text; gaps are filled with the median."""

    kind: ClassVar[str] = "number"

    @staticmethod
    def read(cells: Cells) -> tuple[FloatArray, int]:
        """Numbers, NaN where missing, and how many cells could not be read."""
        return cells.numbers()


class Boolean(_Plain):
    """Truths, or true and false, yes and no, as 0 and 1; gaps become the more common one."""

    kind: ClassVar[str] = "boolean"

    @staticmethod
    def read(cells: Cells) -> tuple[FloatArray, int]:
        """0, 1 and NaN, and how many cells could not be read."""
        if pa.types.is_boolean(cells.type):
            return np.array(pc.cast(cells.values, pa.float64()).to_numpy(zero_copy_only=False)), 0
        if not cells.is_text:
            raise Unfit
        words = pc.utf8_lower(cells.text)
        place = pc.index_in(words, pa.array(list(_TRUTHS))).to_numpy(zero_copy_only=False)
        place = np.nan_to_num(np.asarray(place, float), nan=len(_TRUTHS)).astype(int)
        found = np.array([*_TRUTHS.values(), np.nan])[place]
        return found, int(np.isnan(found).sum()) - words.null_count

    @staticmethod
    def middle(found: FloatArray) -> float:
        """1 where at least half are true."""
        return float(np.nanmean(found) >= 0.5)


@dataclass(frozen=True)
class Date:
    """Days from `origin` (their median, in days since 1970), and the season on a circle."""

    name: str
    style: str
    origin: float
    gaps: bool
    kind: ClassVar[str] = "date"

    @staticmethod
    def read(cells: Cells, style: str) -> tuple[FloatArray, int]:
        """Days since 1970 with NaN, and how many cells could not be read."""
        if not cells.is_text:
            if not pa.types.is_date(cells.type) and not pa.types.is_timestamp(cells.type):
                raise Unfit
            stamps = pc.cast(cells.values, pa.timestamp("us"), safe=False)
            return _float(pc.cast(stamps, pa.int64())) / 86400e6, 0
        words = cells.text
        days = pc.strptime(
            pc.replace_substring_regex(words, r"[T ].*$", ""),
            format=style,
            unit="s",
            error_is_null=True,
        )
        clock = pc.extract_regex(words, r"[T ](?P<h>\d{1,2}):(?P<m>\d{2})")
        hours, minutes = (
            np.nan_to_num(_float(pc.cast(pc.struct_field(clock, part), pa.float64())))
            for part in "hm"
        )
        found = _float(pc.cast(days, pa.int64())) / 86400 + hours / 24 + minutes / 1440
        return found, days.null_count - words.null_count

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Date:
        """From a column of dates, or of text in the first style that reads it."""
        for style in _DATES:
            found, strays = cls.read(cells, style)
            try:
                _enough(found, strays)
            except Unfit:
                continue
            return cls(name, style, float(np.nanmedian(found)), bool(np.isnan(found).any()))
        raise Unfit

    def features(self) -> list[str]:
        """Days, the season's two coordinates, and whether it was missing."""
        parts = [f"{self.name} in days", f"{self.name}, winter", f"{self.name}, spring"]
        return [*parts, *([f"{self.name} is missing"] if self.gaps else [])]

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """Days and the point on the circle of the year; a missing date is in no season."""
        found, strays = self.read(cells, self.style)
        angle = 2 * np.pi * found / _YEAR
        season = np.nan_to_num(np.stack([np.cos(angle), np.sin(angle)], axis=1))
        days = _filled(found - self.origin, 0.0, self.gaps)
        return np.concatenate([days[:, :1], season, days[:, 1:]], axis=1), strays


@dataclass(frozen=True)
class Category:
    """Levels with a column each; all others share one if there were `others`."""

    name: str
    levels: tuple[str, ...]
    others: bool
    gaps: bool
    kind: ClassVar[str] = "category"

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Category:
        """From a column of text of which at least half is of common levels."""
        found = pc.value_counts(cells.text).flatten()
        counts = Counter(dict(zip(*(v.to_pylist() for v in found), strict=True)))
        gaps = counts.pop(None, 0)
        given = counts.total()
        if not given:
            raise Unfit("empty")
        levels = [(v, n) for v, n in counts.most_common(_LEVELS) if n >= _COMMON]
        if 2 * sum(n for _, n in levels) < given:
            raise Unfit(f"text with {len(counts)} different values in {given} rows")
        return cls(name, tuple(v for v, _ in levels), len(levels) < len(counts), gaps > 0)

    def features(self) -> list[str]:
        """A name for each level."""
        names = [f"{self.name} = {level}" for level in self.levels]
        others = [f"{self.name} is another"] if self.others else []
        return names + others + ([f"{self.name} is missing"] if self.gaps else [])

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """0 and 1; a level that was never seen counts among the others, or is all 0."""
        place = pc.index_in(cells.text, pa.array(self.levels, pa.string()))
        known = np.nan_to_num(_float(place), nan=-1.0).astype(int)
        missing = np.asarray(cells.text.is_null().to_numpy(zero_copy_only=False), bool)
        parts = [known[:, None] == np.arange(len(self.levels))]
        if self.others:
            parts.append(((known < 0) & ~missing)[:, None])
        if self.gaps:
            parts.append(missing[:, None])
        return np.concatenate(parts, axis=1).astype(float), 0


KINDS: dict[str, Any] = {kind.kind: kind for kind in (Boolean, Number, Date, Category)}
"""By name, in the order in which a column is tried."""


def learned(name: str, cells: Cells) -> Kind:
    """The kind of a column; Unfit with the reason if it is worth nothing."""
    values = cells.values
    if pa.types.is_null(values.type) or values.null_count == len(values):
        raise Unfit("empty")
    if pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        raise Unfit(f"cells of type {values.type}")
    if values.null_count == 0 and pc.count_distinct(values).as_py() == 1:
        raise Unfit("the same in every row")
    for kind in KINDS.values():
        try:
            found: Kind = kind.learn(name, cells)
        except Unfit:
            if kind is Category:
                raise
        else:
            return found
    raise AssertionError


def counts_rows(cells: Cells) -> bool:
    """Whether a column of numbers is 1, 2, 3 ... in whatever order."""
    found, strays = cells.numbers()
    if strays or np.isnan(found).any() or len(found) < 3:
        return False
    return bool(np.array_equal(np.sort(found), found.min() + np.arange(len(found))))


def _enough(found: FloatArray, strays: int) -> None:
    """Nearly all cells that are not missing can be read."""
    read = int((~np.isnan(found)).sum())
    if read == 0 or read < _READABLE * (read + strays):
        raise Unfit


def _filled(found: FloatArray, fill: float, gaps: bool) -> FloatArray:
    missing = np.isnan(found)
    parts = [np.where(missing, fill, found), *([missing] if gaps else [])]
    return np.stack(parts, axis=1).astype(float)


def _float(values: Any) -> FloatArray:
    return np.array(values.to_numpy(zero_copy_only=False), float)
