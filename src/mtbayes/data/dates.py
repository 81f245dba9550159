"""How text spells dates: the order of day and month decided once from all cells, days that exist.

The 30th of February is no date. A year of two digits is one from 1969 to 2068, as POSIX has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.types import Array, FloatArray

STYLES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d",
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y",
)  # fmt: skip
"""In the order in which they are tried, in the letters of strptime."""

_READABLE = 0.95
_PIVOT = 69  # the first year of two digits that was before 2000
_PARTS = {"%Y": r"(?P<year>\d{4})", "%y": r"(?P<year>\d{2})"} | {
    f"%{letter}": rf"(?P<{name}>\d{{1,2}})" for letter, name in (("m", "month"), ("d", "day"))
}
_CLOCK = (
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?"
    r" ?(?P<half>[AaPp][Mm])?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?$"
)


class Spelled(NamedTuple):
    """The style of each column of text that holds dates."""

    styles: dict[str, str]
    ambiguous: tuple[str, ...]
    """Columns whose days and months may as well be the other way round."""


def twin(style: str) -> str | None:
    """The style with day and month the other way round, if people write so.

    >>> twin("%d/%m/%Y")
    '%m/%d/%Y'
    """
    swapped = style.translate(str.maketrans("dm", "md"))
    return swapped if swapped in STYLES and swapped != style else None


def words(style: str) -> str:
    """A style for people.

    >>> words("%d.%m.%Y")
    'day.month.year'
    """
    for part, name in (("%Y", "year"), ("%y", "year"), ("%m", "month"), ("%d", "day")):
        style = style.replace(part, name)
    return style


def decide(columns: Mapping[str, Any]) -> Spelled:
    """From all cells of all columns of a file, as trimmed text."""
    found: dict[str, str] = {}
    open_ones: list[str] = []
    clear: list[str] = []
    for name, text in columns.items():
        style, sure = _style(text)
        if style is not None:
            found[name] = style
            (clear if sure else open_ones).append(name)
    months_first = [found[name].startswith("%m") for name in clear if twin(found[name])]
    usual = None if not months_first else sum(months_first) * 2 > len(months_first)
    ambiguous = []
    for name in open_ones:
        if usual is None:
            ambiguous.append(name)
        elif usual != found[name].startswith("%m"):
            found[name] = twin(found[name]) or found[name]
    return Spelled(found, tuple(ambiguous))


def _style(text: Any) -> tuple[str | None, bool]:
    """The style that reads most cells, if nearly all, and whether it is the only one."""
    given = len(text) - text.null_count
    some = pc.drop_null(text)[:100]
    likely = [style for style in STYLES if 2 * _matches(some, style) > len(some)]
    counts = {s: int((~np.isnan(read(text, s)[0])).sum()) for s in likely}
    best = max(counts, key=lambda s: counts[s], default=None)
    if best is None or not given or counts[best] < _READABLE * given:
        return None, False
    other = twin(best)
    return best, other is None or counts.get(other, 0) < counts[best]


def _matches(text: Any, style: str) -> int:
    return int(pc.sum(pc.match_substring_regex(text, _expression(style))).as_py() or 0)


def _expression(style: str) -> str:
    sign = re.escape(style[2])
    return "^" + sign.join(_PARTS[part] for part in re.findall("%.", style)) + _CLOCK


def read(text: Any, style: str) -> tuple[FloatArray, int]:
    """Days since 1970 with NaN, and how many cells could not be read.

    >>> read(pa.array(["29.02.2020", "30.02.2020"]), "%d.%m.%Y")
    (array([18321.,    nan]), 1)
    """
    cut = pc.extract_regex(text, _expression(style))
    year, month, day, hour, minute, second = (
        _numbers(pc.struct_field(cut, part))
        for part in ("year", "month", "day", "hour", "minute", "second")
    )
    if "%y" in style:
        year = np.where(year < _PIVOT, 2000 + year, 1900 + year)
    there = np.isfinite(day) & (month >= 1) & (month <= 12) & (day >= 1)
    whole = _first_of(np.where(there, year, 1970), np.where(there, month, 1))
    last = _first_of(*_month_after(np.where(there, year, 1970), np.where(there, month, 1)))
    days = whole + np.where(there, day, 1) - 1
    there &= days < last
    clock, ticks = _clock(cut, hour, minute, second)
    found = np.where(there & ticks, days + clock, np.nan)
    return found, int(np.isnan(found).sum()) - text.null_count


def contradiction(text: Any, style: str, found: FloatArray) -> int | None:
    """The first cell that is a date with day and month the other way round alone."""
    other = twin(style)
    if other is None:
        return None
    places = np.flatnonzero(np.isnan(found) & ~np.isnan(read(text, other)[0]))
    return int(places[0]) if len(places) else None


def _clock(cut: Any, hour: Array, minute: Array, second: Array) -> tuple[FloatArray, Array]:
    """The share of a day that has gone by, and whether there is such a time."""
    half = _texts(pc.utf8_lower(pc.struct_field(cut, "half")))
    zone = _texts(pc.struct_field(cut, "zone"))
    hour, minute, second = (np.nan_to_num(part) for part in (hour, minute, second))
    is_half = half != ""
    ticks = (minute < 60) & (second < 61) & (hour <= np.where(is_half, 12, 24))
    ticks &= ~is_half | (hour > 0)
    hour = np.where(is_half, hour % 12 + 12 * (half == "pm"), hour)
    marks, which = np.unique(zone, return_inverse=True)
    offset = np.array([_offset(mark) for mark in marks.tolist()] or [0.0])[which]
    return hour / 24 + minute / 1440 + second / 86400 - offset, ticks


def _offset(mark: str) -> float:
    """Of a time zone, in days."""
    if mark in ("", "Z"):
        return 0.0
    minutes = 60 * int(mark[1:3]) + int(mark[-2:])
    return (-1 if mark[0] == "-" else 1) * minutes / 1440


def _first_of(year: Array, month: Array) -> FloatArray:
    """Days since 1970 of the first of a month."""
    months = (year.astype(int) - 1970) * 12 + month.astype(int) - 1
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(float)


def _month_after(year: Array, month: Array) -> tuple[Array, Array]:
    return year + (month == 12), np.where(month == 12, 1, month + 1)


def _numbers(text: Any) -> FloatArray:
    found = pc.cast(pc.if_else(pc.equal(text, ""), None, text), pa.float64())
    return np.array(found.to_numpy(zero_copy_only=False), float)


def _texts(text: Any) -> Array:
    return np.asarray(pc.fill_null(text, "").to_numpy(zero_copy_only=False), dtype=str)
