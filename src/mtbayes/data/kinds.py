"""Kinds of columns: what each learns from a column once, and how it codes any later one.

A kind reads a column of a typed file, or the text of a CSV, into numbers or levels. Missing values
take the place of the middle one, and a column beside it tells where they were. A cell that cannot
be read is taken for missing and counted: among dirty rows one "12o" must not turn a column of
numbers into text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.data import dates, numerals
from mtbayes.data.cells import Cells, Far, Unfit
from mtbayes.errors import InvalidInput
from mtbayes.types import FloatArray

_READABLE = 0.95  # of the cells, for a column of text to be of a kind
_COMMON = 5  # rows of a level that gets a column of its own
_LEVELS = 50
_SLIPS = 2  # rows of one word, at most, that is none of those of its column
_RARE = 2000  # levels without a column of their own that are remembered
_TRUTHS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_TRUTHS_LATER = _TRUTHS | {"1": 1.0, "0": 0.0}  # columns of which alone are numbers
_YEAR = 365.2425


class Kind(Protocol):
    """A column as it was learned; a frozen dataclass of numbers and text."""

    name: str

    def features(self) -> list[str]:
        """Names of the numbers that it becomes."""

    def code(self, cells: Cells) -> tuple[FloatArray, int]:
        """A column as numbers [n, k], and how many cells could not be read."""

    def contradiction(self, cells: Cells) -> int | None:
        """The first cell that is spelled in another style than the column was; None if none is."""

    def new(self, cells: Cells) -> Counter[str]:
        """Values that were never seen, and how many cells have each."""

    @property
    def spelling(self) -> str:
        """In what style text must be, in words."""


@dataclass(frozen=True)
class _Plain:
    """A column that becomes one number; `fill` stands in gaps, `gaps` tells whether some were."""

    name: str
    fill: float
    gaps: bool

    def __post_init__(self) -> None:
        _check_finite(self.fill, self.name)

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

    def contradiction(self, cells: Cells) -> int | None:
        """There is one style alone."""

    spelling: ClassVar[str] = ""

    def new(self, cells: Cells) -> Counter[str]:
        """Any value may come."""
        return Counter()


@storable
@dataclass(frozen=True)
class Number(_Plain):
    """Numbers, or their text, or durations in seconds; gaps are filled with the median.

    low, high: between which they lay
    decimal: the sign before decimals in text, or that nothing told it
    """

    low: float
    high: float
    decimal: str
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_finite(self.low, self.name)
        _check_finite(self.high, self.name)
        _check.known("decimal", self.decimal, [*numerals.NAMES, numerals.UNTOLD])

    @property
    def spelling(self) -> str:  # type: ignore[override]
        """Its decimal sign."""
        return f"numbers with a decimal {numerals.NAMES[self.decimal or numerals.POINT]}"

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Self:
        """From a column of which nearly all cells can be read."""
        found, strays = cls.read(cells)
        _enough(found, strays)
        low, high = float(np.nanmin(found)), float(np.nanmax(found))
        return cls(name, cls.middle(found), bool(np.isnan(found).any()), low, high, cells.told)

    def far(self, cells: Cells) -> Far:
        """Numbers farther from all that were seen than those from each other."""
        found, _ = self.read(cells)
        width = self.high - self.low or abs(self.high) or 1.0
        wild = found[(found < self.low - width) | (found > self.high + width)]
        seen = f"{self.low:g}" + (f" to {self.high:g}" if self.high > self.low else "")
        return Far(len(wild), np.min(wild, initial=np.inf), np.max(wild, initial=-np.inf), seen)

    def contradiction(self, cells: Cells) -> int | None:
        """The first number in text whose decimals stand behind the other sign."""
        if not cells.is_text:
            return None
        return numerals.contradiction(cells.text, cells.decimal, cells.numbers()[0])

    @staticmethod
    def read(cells: Cells) -> tuple[FloatArray, int]:
        """Numbers, NaN where missing, and how many cells could not be read."""
        return cells.numbers()


@storable
class Boolean(_Plain):
    """Truths, or true and false, yes and no, as 0 and 1; gaps become the more common one.

    A third word in a row or two is a slip. One that comes again and again is a value, such as
    "perhaps", and its column a category.
    """

    kind: ClassVar[str] = "boolean"

    @staticmethod
    def read(cells: Cells) -> tuple[FloatArray, int]:
        """0, 1 and NaN, and how many cells could not be read."""
        if pa.types.is_boolean(cells.type):
            return np.array(pc.cast(cells.values, pa.float64()).to_numpy(zero_copy_only=False)), 0
        if not cells.is_text:
            numbers, strays = cells.numbers()
            other = ~np.isnan(numbers) & (numbers != 0) & (numbers != 1)
            return np.where(other, np.nan, numbers), strays + int(other.sum())
        words = pc.utf8_lower(cells.text)
        place = pc.index_in(words, pa.array(list(_TRUTHS_LATER))).to_numpy(zero_copy_only=False)
        place = np.nan_to_num(np.asarray(place, float), nan=len(_TRUTHS_LATER)).astype(int)
        found = np.array([*_TRUTHS_LATER.values(), np.nan])[place]
        return found, int(np.isnan(found).sum()) - words.null_count

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Self:
        """From a column of which nearly all cells can be read, and the others are slips."""
        if not cells.is_text and not pa.types.is_boolean(cells.type):
            raise Unfit
        learned = super().learn(name, cells)
        if cells.is_text:
            words = pc.utf8_lower(pc.drop_null(cells.text))
            strange = words.filter(pc.invert(pc.is_in(words, pa.array(list(_TRUTHS)))))
            if max(Counter(strange.to_pylist()).values(), default=0) > _SLIPS:
                raise Unfit
        return learned

    @staticmethod
    def middle(found: FloatArray) -> float:
        """1 where at least half are true."""
        return float(np.nanmean(found) >= 0.5)


@storable
@dataclass(frozen=True)
class Date:
    """Days from `origin` (their median, in days since 1970), and the season on a circle."""

    name: str
    style: str
    origin: float
    gaps: bool
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        _check.known("style", self.style, list(dates.STYLES))
        _check_finite(self.origin, self.name)

    @property
    def spelling(self) -> str:
        """The order of day, month and year."""
        return f"dates as {dates.words(self.style)}"

    @staticmethod
    def read(cells: Cells, style: str) -> tuple[FloatArray, int]:
        """Days since 1970 with NaN, and how many cells could not be read."""
        if not cells.is_text:
            if not pa.types.is_date(cells.type) and not pa.types.is_timestamp(cells.type):
                raise Unfit
            stamps = pc.cast(cells.values, pa.timestamp("us"), safe=False)
            return _float(pc.cast(stamps, pa.int64())) / 86400e6, 0
        return dates.read(cells.text, style)

    @classmethod
    def learn(cls, name: str, cells: Cells) -> Date:
        """From a column of dates, or of text in a style that was found in it."""
        if cells.is_text and not cells.style:
            raise Unfit
        style = cells.style or dates.STYLES[0]
        found, strays = cls.read(cells, style)
        _enough(found, strays)
        return cls(name, style, float(np.nanmedian(found)), bool(np.isnan(found).any()))

    def contradiction(self, cells: Cells) -> int | None:
        """The first date in text with day and month the other way round."""
        if not cells.is_text:
            return None
        return dates.contradiction(cells.text, self.style, self.read(cells, self.style)[0])

    def new(self, cells: Cells) -> Counter[str]:
        """Any day may come."""
        return Counter()

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


@storable
@dataclass(frozen=True)
class Category:
    """Levels with a column each; all others share one if there were `others`.

    rare: those others, unless they are too many to be remembered
    """

    name: str
    levels: tuple[str, ...]
    others: bool
    gaps: bool
    rare: tuple[str, ...] = ()
    kind: ClassVar[str] = "category"
    spelling: ClassVar[str] = ""

    def __post_init__(self) -> None:
        every = [*self.levels, *self.rare]
        if len(set(every)) < len(every):
            raise InvalidInput(f"levels of {self.name!r} must differ, got two alike.")

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
            why = f"text with {len(counts)} different values in {given} rows"
            if numerals.dressed(counts):
                why += f", like {next(iter(counts))!r}; bare numbers would be used"
            raise Unfit(why)
        common = tuple(v for v, _ in levels)
        rare = tuple(v for v in counts if v not in set(common))
        return cls(name, common, bool(rare), gaps > 0, rare if len(rare) <= _RARE else ())

    def contradiction(self, cells: Cells) -> int | None:
        """Text is as it is."""

    def new(self, cells: Cells) -> Counter[str]:
        """Levels that no fitted row had."""
        if self.others and not self.rare:
            return Counter()
        known = pa.array([*self.levels, *self.rare], pa.string())
        strange = pc.drop_null(cells.text.filter(pc.invert(pc.is_in(cells.text, known))))
        found = pc.value_counts(strange).flatten()
        return Counter(dict(zip(*(v.to_pylist() for v in found), strict=True)))

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


def _check_finite(value: float, name: str) -> None:
    if not abs(value) < np.inf:
        raise InvalidInput(f"what stands in gaps of {name!r} must be finite, got {value}.")


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
